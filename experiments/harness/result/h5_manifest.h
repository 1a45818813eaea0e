/* What was asked to be written to an HDF5 file, as digests, so that the file, opened again, can be compared with it.
 * The functions of h5.h add to the manifest of the file they write. */
#ifndef REMATCH_RESULT_H5_MANIFEST_H
#define REMATCH_RESULT_H5_MANIFEST_H

#include "result/h5.h"

struct h5_manifest;

/* An empty manifest; NULL: out of memory. */
struct h5_manifest *h5_manifest_create(void);
void h5_manifest_destroy(struct h5_manifest *manifest);

/* One number or one text as attribute name of the object; an earlier value is replaced. number NUMBERS: a text. */
void h5_manifest_attribute(struct h5 *h5, const char *object, const char *name, enum number number, const void *value);

/* An array of rows of width elements each, of which none is written yet. extent: how many there are. */
void h5_manifest_array(struct h5 *h5, const char *path, enum number number, uint64_t extent, uint64_t width);

/* count texts, all of them; alone: as a scalar, not as a list. */
void h5_manifest_texts(struct h5 *h5, const char *path, size_t count, const char *const *values, bool alone);

/* The array at path is open as dataset from now on; and the next rows written to it. */
void h5_manifest_open(struct h5 *h5, const char *path, hid_t dataset);
void h5_manifest_rows(struct h5 *h5, hid_t dataset, uint64_t count, const void *data);

/* The array at path is a dimension scale called name; one of its dimensions is tied to a scale. */
void h5_manifest_scale(struct h5 *h5, const char *path, const char *name);
void h5_manifest_attach(struct h5 *h5, const char *path, unsigned dimension, const char *scale);

/* Reads the file at path; ST_FAILED names the first object that is not as the manifest has it. An array of which no row
 * was written may hold anything. */
enum status h5_manifest_check(const struct h5_manifest *manifest, const char *path);

#endif
