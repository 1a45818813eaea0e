/* Writing an HDF5 file: attributes, groups, texts, arrays, and arrays that grow. Digests of everything that was written
 * make a manifest, with which the file is compared when it is opened again. */
#pragma once

#include "result/h5.h"

struct h5_manifest *h5_manifest_create(void);
void h5_manifest_destroy(struct h5_manifest *manifest);

/* Opens a file for writing; the manifest continues with what is written to it. */
enum status h5_manifest_open(struct h5_manifest *manifest, struct h5 *h5, const char *path, enum h5_mode mode);

/* Reads the file at path; ST_FAILED: the message names the first object that differs from the manifest. The content of
 * an array without written rows is not checked. */
enum status h5_manifest_check(const struct h5_manifest *manifest, const char *path);

/* Attributes of the object at a path; an old value is replaced. A text that is NULL is written as "". */
void h5_attribute(struct h5 *h5, const char *object, const char *name, enum number number, const void *value);
void h5_attribute_text(struct h5 *h5, const char *object, const char *name, const char *value);
void h5_attribute_u64(struct h5 *h5, const char *object, const char *name, uint64_t value);
void h5_attribute_f64(struct h5 *h5, const char *object, const char *name, double value);

void h5_group(struct h5 *h5, const char *path);
void h5_text(struct h5 *h5, const char *path, const char *value);
void h5_texts(struct h5 *h5, const char *path, size_t count, const char *const *values);

/* A whole array; rank 0: one value. data NULL: its space in the file is allocated, h5_write_rows() writes it later. */
void h5_array(struct h5 *h5, const char *path, enum number number, int rank, const hsize_t *extent, const void *data);

/* An empty array of rows of the given extent (rank numbers) that grows row by row. */
void h5_series(struct h5 *h5, const char *path, enum number number, int rank, const hsize_t *extent);

/* Units and meaning of an array; NULL: none. */
void h5_describe(struct h5 *h5, const char *path, const char *units, const char *doc);

/* Makes the array at path a dimension scale called name; attaches a scale to a dimension of an array. */
void h5_scale(struct h5 *h5, const char *path, const char *name);
void h5_attach(struct h5 *h5, const char *path, unsigned dimension, const char *scale);

/* Writes rows [first, first + count) of an array, which must follow the last ones written. */
void h5_write_rows(struct h5 *h5, const char *path, hsize_t first, hsize_t count, const void *data);

/* Appends a row to an array that grows, which stays open until its file is closed. */
void h5_append(struct h5 *h5, const char *path, const void *row);

/* Of every array that was laid out for rows, but has none: copies those that another file of the same layout has. rows:
 * how many of the array at a path. */
void h5_copy_rows(struct h5 *h5, struct h5 *from, uint64_t (*rows)(void *self, const char *path), void *self);
