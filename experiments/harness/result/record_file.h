/* The file that a result is written to: its folder, its names on the way to being whole, and that one process at a
 * time writes it. */
#ifndef REMATCH_RESULT_RECORD_FILE_H
#define REMATCH_RESULT_RECORD_FILE_H

#include <stdbool.h>

#include "base/status.h"

enum { RECORD_PATH = 1024 };

/* fresh is what is being laid out or finished, and never seen by readers; it becomes part, and at last path. */
struct record_file {
    char folder[RECORD_PATH], path[RECORD_PATH], part[RECORD_PATH], fresh[RECORD_PATH];
    int lock; /* descriptor that holds the lock, -1: none */
};

/* Makes a folder and those above it, where they are not there. */
enum status record_folder(const char *folder);

/* Makes RESULTS/EXPERIMENT and an empty locked fresh file for NAME. */
enum status record_file_begin(struct record_file *file, const char *results, const char *experiment, const char *name);

/* fresh takes the place of part, or of path; what it holds is on the disk before, and its name after. */
enum status record_file_publish(struct record_file *file, bool whole);

/* What was written to part is on the disk. */
enum status record_file_sync(const struct record_file *file);

/* fresh becomes a copy of part, under a name that only who holds the lock uses. */
enum status record_file_copy(struct record_file *file);

/* Removes fresh. */
void record_file_drop(struct record_file *file);

/* Lets another process write it. */
void record_file_release(struct record_file *file);

/* A process is writing the file at path. */
bool record_file_is_written(const char *path);

#endif
