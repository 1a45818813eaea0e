/* HDF5, reduced to the few shapes that result files use.
 *
 * The first failure of a file is kept and reported with fail(); from then on every call does nothing and reads zeros,
 * so that a layout is a plain list of calls with one h5_status() at its end. A file whose writing failed must not be
 * closed: closing it would damage what was flushed before. Objects carry no times, text is variable-length UTF-8, and
 * numbers are little-endian. */
#pragma once

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"

/* TEXT: in memory a const char *. */
enum number { NUMBER_U8, NUMBER_I32, NUMBER_U32, NUMBER_U64, NUMBER_F32, NUMBER_F64, NUMBER_TEXT, NUMBERS };

/* APPEND: single writer, many readers; no new objects. EDIT: anything, but a crash in it leaves no readable file. */
enum h5_mode { H5_CREATE, H5_APPEND, H5_EDIT, H5_READ };

struct h5_manifest;

struct h5 {
    hid_t file, text; /* text: the type of all texts */
    const char *path;
    uint64_t bytes; /* size when it was opened: no object can hold more */
    bool reading, broken;
    struct h5_manifest *manifest; /* of what is written (h5_write.h) */
    char message[5120];           /* path and first failure */
};

enum status h5_open(struct h5 *h5, const char *path, enum h5_mode mode);
void h5_flush(struct h5 *h5);
enum status h5_close(struct h5 *h5); /* not after a failed write, see above */

/* ST_OK, or the first failure, reported again. */
enum status h5_status(struct h5 *h5);

/* Unless ok: records the failure to do what ("write", "read") to name, with the library's reason. */
bool h5_check(struct h5 *h5, bool ok, const char *what, const char *name);

/* Closes any objects of the library; ignores -1, and objects of a file whose writing failed. The library may write data
 * only now; a failure is reported as one of name. */
#define h5_drop(h5, name, ...) h5_drop_ids((h5), (name), (const hid_t[]){__VA_ARGS__, 0})
void h5_drop_ids(struct h5 *h5, const char *name, const hid_t *id); /* ended by 0 */

/* The type of a number in the file and in memory, and its bytes there. */
hid_t h5_type(const struct h5 *h5, enum number number, bool in_memory);
size_t h5_number_bytes(enum number number);

/* Records that name is invalid, and why; returns false. */
bool h5_refuse(struct h5 *h5, const char *name, const char *why);

/* The library itself crashes or loops on some damaged files. Between guard and release, for a file opened for reading,
 * a crash or 3 seconds of processor time end the process with one message that names the file, and exit code 3. Pairs
 * may nest. */
void h5_guard(const struct h5 *h5);
void h5_release(const struct h5 *h5);

/* Reading verifies everything: the object exists with the expected kind and width, and the file stores its rows
 * (H5Dget_storage_size), since an extent may claim any number of them; texts are no longer than the file; 8-bit numbers
 * are flags, 0 or 1; control characters of texts become '?'. */
bool h5_exists(struct h5 *h5, const char *path);
uint64_t h5_rows(struct h5 *h5, const char *path);
uint64_t h5_rows_stored(struct h5 *h5, const char *path); /* rows that the file stores: all, unless a write failed */
/* Returns how many rows there are, with those that are not read; 0: refused. */
uint64_t h5_read_rows(struct h5 *h5, const char *path, enum number number, size_t width, uint64_t first, uint64_t count,
                      void *data);
uint64_t h5_width(struct h5 *h5, const char *path); /* elements of a row */
void h5_expect_rows(struct h5 *h5, const char *path, enum number number, size_t width, uint64_t count);
const char **h5_read_texts(struct h5 *h5, const char *path, struct region *region, size_t *count);
const char *h5_read_text(struct h5 *h5, const char *path, struct region *region);

/* An attribute: a number, or a text of region. One that is missing leaves value as it is; unless optional, it is a
 * failure. A text without otherwise is required. */
void h5_read_value(struct h5 *h5, const char *object, const char *name, enum number number, bool optional, void *value,
                   struct region *region);
const char *h5_read_attribute_text(struct h5 *h5, const char *object, const char *name, const char *otherwise,
                                   struct region *region);
uint64_t h5_read_attribute_u64(struct h5 *h5, const char *object, const char *name, uint64_t otherwise);
