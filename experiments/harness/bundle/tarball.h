/* The archive of a bundle: tar, compressed by zstd, all files in one folder. A file, SHA256SUMS, lists the others,
 * as sha256sum -c reads it.
 *
 * Contract: the same files give the same bytes (sorted names; no times, owners or modes). An archive is distrusted: its
 * names must be plain, nothing but files is unpacked, and no more bytes and entries than the limits allow. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"

struct tar_file {
    const char *name; /* in the folder: runs/NAME/ID.h5 */
    const char *path; /* of its content; NULL: text is the content */
    const char *text;
    uint64_t bytes;
    char sha256[65];
};

/* Whether a name may be in an archive: words of letters, digits, '_', '-' and '.', none of which begins with '.',
 * separated by '/', in eight folders at most. */
bool tarball_name_is_plain(const char *name);

/* Compares two files by name, for qsort(). */
int tarball_order(const void *a, const void *b);

/* Sets bytes and sha256 from the content. */
enum status tarball_digest(struct tar_file *file);

/* Writes the files, whose digests are set, in the order of their names; whole or not at all. ST_SPEC: path exists and
 * is no archive of this kind. */
enum status tarball_write(const char *path, struct tar_file *file, int files);

/* Whether the file at path begins as such an archive, or is called so. */
bool tarball_is_one(const char *path);

/* Unpacks the archive into folder, which is empty, and lists its files. ST_DIFFERS: a file was changed, added or
 * removed, and the message names it. ST_SPEC: it is no bundle, or has names, links or sizes that no bundle has.
 * ST_FAILED: it is cut off, damaged or too large, cannot be unpacked, or a signal waits that run/signals.h blocked. */
enum status tarball_read(const char *path, const char *folder, struct region *region, struct tar_file **file,
                         int *files);
