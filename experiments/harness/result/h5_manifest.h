/* Digests of everything that was written to an HDF5 file, to be compared with the file when it is opened again. */
#ifndef REMATCH_RESULT_H5_MANIFEST_H
#define REMATCH_RESULT_H5_MANIFEST_H

#include "numerics/digest.h"
#include "result/h5.h"

struct h5_manifest;

struct h5_manifest *h5_manifest_create(void);
void h5_manifest_destroy(struct h5_manifest *manifest);

/* Opens a file for writing; the manifest continues with what is written to it. */
enum status h5_manifest_open(struct h5_manifest *manifest, struct h5 *h5, const char *path, enum h5_mode mode);

/* Reads the file at path; ST_FAILED: the message names the first object that differs from the manifest. The content of
 * an array without written rows is not checked. */
enum status h5_manifest_check(const struct h5_manifest *manifest, const char *path);

/* What h5_write.h wrote. name: of an attribute or a scale; path of a scale that is attached; "" of an array. */
enum h5_kind { H5_ATTRIBUTE, H5_DATA, H5_SCALE, H5_ATTACHED };
struct h5_entry {
    enum h5_kind kind;
    const char *path, *name;
    enum number number;
    hid_t dataset;                   /* of an array that grows, once a row was appended; else -1 */
    uint64_t extent, width, written; /* rows, elements of one, rows that were written */
    bool alone;                      /* a scalar, not a list */
    unsigned dimension;
    struct digest digest;
};

/* The entry of that kind, path and name, new unless there is one; valid until the next call. */
struct h5_entry *h5_manifest_entry(struct h5_manifest *manifest, enum h5_kind kind, const char *path, const char *name);

/* Adds the next rows of an attribute or an array to its digest. */
void h5_entry_add(struct h5_entry *entry, uint64_t count, const void *rows);

#endif
