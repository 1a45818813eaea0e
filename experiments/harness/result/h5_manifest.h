/* Digests of everything that was written to an HDF5 file, to be compared with the file when it is opened again. The
 * functions of h5_write.h add to the manifest of the file they write. */
#ifndef REMATCH_RESULT_H5_MANIFEST_H
#define REMATCH_RESULT_H5_MANIFEST_H

#include "result/h5.h"

struct h5_manifest;

struct h5_manifest *h5_manifest_create(void);
void h5_manifest_destroy(struct h5_manifest *manifest);

/* Attribute name of the object: one number, or a text (number NUMBERS); replaces an earlier value. */
void h5_manifest_attribute(struct h5 *h5, const char *object, const char *name, enum number number, const void *value);

/* An array of extent rows of width elements each, none of which is written yet. */
void h5_manifest_array(struct h5 *h5, const char *path, enum number number, uint64_t extent, uint64_t width);

/* All count texts of an array; alone: a scalar, not a list. */
void h5_manifest_texts(struct h5 *h5, const char *path, size_t count, const char *const *values, bool alone);

/* The array at path is now open as dataset; the next rows were written to it. */
void h5_manifest_open(struct h5 *h5, const char *path, hid_t dataset);
void h5_manifest_rows(struct h5 *h5, hid_t dataset, uint64_t count, const void *data);

/* The array at path is a dimension scale called name; one of its dimensions has a scale attached. */
void h5_manifest_scale(struct h5 *h5, const char *path, const char *name);
void h5_manifest_attach(struct h5 *h5, const char *path, unsigned dimension, const char *scale);

/* Reads the file at path; ST_FAILED: the message names the first object that differs from the manifest. The content of
 * an array without written rows is not checked. */
enum status h5_manifest_check(const struct h5_manifest *manifest, const char *path);

#endif
