/* HDF5 in the few shapes that result files use.
 *
 * A file remembers its first failure: it is recorded with fail(), and from then on every call does nothing and reads
 * zeros, so that a layout reads as a list and h5_status() is asked once. A file that failed while being written must
 * not be closed: closing would spoil what was flushed before. Objects carry no times, text is variable-length UTF-8,
 * numbers are little-endian. */
#ifndef REMATCH_RESULT_H5_H
#define REMATCH_RESULT_H5_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"

enum number { NUMBER_U8, NUMBER_I32, NUMBER_U32, NUMBER_U64, NUMBER_F32, NUMBER_F64, NUMBERS };

/* APPEND: single writer, many readers; no new objects. EDIT: anything, but a crash in it leaves no readable file. */
enum h5_mode { H5_CREATE, H5_APPEND, H5_EDIT, H5_READ };

struct h5_manifest;

struct h5 {
    hid_t file;
    const char *path;
    uint64_t bytes; /* of the file when it was opened, the bound on what it can claim to hold */
    bool reading, broken;
    struct h5_manifest *manifest; /* of what is written (h5_manifest.h), set by who opened it; NULL: none is kept */
    char message[5120];           /* a path and what is wrong */
};

enum status h5_open(struct h5 *h5, const char *path, enum h5_mode mode);
void h5_flush(struct h5 *h5);
enum status h5_close(struct h5 *h5); /* not after a failed write, see above */

/* ST_OK, or the first failure again. */
enum status h5_status(struct h5 *h5);

/* Unless ok: remembers that what ("write", "read") could not be done to name, and why by the library's data. */
bool h5_check(struct h5 *h5, bool ok, const char *what, const char *name);

/* Closes whatever the library opened, -1 being nothing; but nothing of a file that failed while being written. Data may
 * be written only now, so name is what could not be written where this fails. */
void h5_drop(struct h5 *h5, hid_t id, const char *name);

/* How a number lies in the file and in memory; the type of all texts (the caller closes it), -1 where
 * the library cannot make it. */
hid_t h5_file_type(enum number number);
hid_t h5_memory_type(enum number number);
size_t h5_number_bytes(enum number number);
hid_t h5_text_type(void);

/* Remembers that name is not what it should be; false. */
bool h5_refuse(struct h5 *h5, const char *name, const char *why);

/* The library itself crashes on some damaged files, or runs for ever. From guard to release, where the file is only
 * read, a crash or 3 seconds of processor time end the process with one message that names it, and exit code 3. They
 * come in pairs, which may nest. */
void h5_guard(const struct h5 *h5);
void h5_release(const struct h5 *h5);

/* Reading distrusts: the object must be there, of the right kind and width, and its rows must have bytes in the file
 * (H5Dget_storage_size), as an extent may claim any number of them; texts have no more bytes than the file; what is
 * read as 8-bit numbers are flags; what texts would do to a terminal becomes '?'. */
bool h5_exists(struct h5 *h5, const char *path);
uint64_t h5_rows(struct h5 *h5, const char *path);
uint64_t h5_rows_stored(struct h5 *h5, const char *path); /* those that have bytes: all, unless a write failed */
void h5_read_rows(struct h5 *h5, const char *path, enum number number, size_t width, uint64_t first, uint64_t count,
                  void *data);
uint64_t h5_width(struct h5 *h5, const char *path); /* elements of a row */
void h5_expect_rows(struct h5 *h5, const char *path, enum number number, size_t width, uint64_t count);
const char **h5_read_texts(struct h5 *h5, const char *path, struct region *region, size_t *count);
const char *h5_read_text(struct h5 *h5, const char *path, struct region *region);

/* A missing attribute reads as otherwise; otherwise NULL, or none: it must be there. */
const char *h5_read_attribute_text(struct h5 *h5, const char *object, const char *name, const char *otherwise,
                                   struct region *region);
void h5_read_attribute(struct h5 *h5, const char *object, const char *name, enum number number, void *value);
uint64_t h5_read_attribute_u64(struct h5 *h5, const char *object, const char *name, uint64_t otherwise);
double h5_read_attribute_f64(struct h5 *h5, const char *object, const char *name, double otherwise);

#endif
