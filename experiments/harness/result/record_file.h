/* The file that a result is written to: its folder, its names until it is complete, and the lock that allows one
 * process at a time to write it. */
#pragma once

#include <stdbool.h>

#include "base/region.h"
#include "result/file_lock.h"

enum { RECORD_PATH = 1024 };

/* fresh: the file while it is laid out or finished, hidden from readers; then it is renamed to part, at the end to
 * path.
 */
struct record_file {
    char folder[RECORD_PATH], path[RECORD_PATH], part[RECORD_PATH], fresh[RECORD_PATH];
    int lock; /* descriptor of the lock, -1: none */
};

/* Creates a folder and its parents, if missing. */
enum status record_folder(const char *folder);

/* Creates RESULTS/EXPERIMENT and an empty locked fresh file for NAME. */
enum status record_file_begin(struct record_file *file, const char *results, const char *experiment, const char *name);

/* Renames fresh to part, or (whole) to path. Its content is on the disk before, its name afterwards. */
enum status record_file_publish(struct record_file *file, bool whole);

/* Makes fresh a copy of part, under a name that only the holder of the lock uses. */
enum status record_file_copy(struct record_file *file);

/* Removes fresh. */
void record_file_drop(struct record_file *file);

/* Releases the lock. */
void record_file_release(struct record_file *file);

/* Whether a process is writing the file at path: LOCK_HELD. */
enum lock record_file_lock(const char *path);

/* A result replaces nothing but a plain file: ST_FAILED where path is anything else. */
enum status record_file_check_plain(const char *path);

/* The path of the first NAME.h5END in folder, written: that a process is writing, or may
 * be, where there are no locks; "": there is none. */
const char *record_file_find(const char *folder, const char *end, bool written, struct region *region);
