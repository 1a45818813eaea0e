/* Creating files: an existing link, pipe or file of the same name is never written to. */
#pragma once

#include <limits.h>

#include "base/status.h"

/* Removes an existing file and creates an empty one; its descriptor, or -1 with errno. */
int new_file_create(const char *path);

/* Forces path, a file or a folder, to the disk. flags: of open(). */
enum status new_file_sync(const char *path, int flags);

/* A file being written, under a temporary name in the folder of the file that it will replace. */
struct new_file {
    const char *path;
    char name[PATH_MAX];
};

/* Creates it, empty. Each is ended by new_file_end() or new_file_drop(). */
enum status new_file_begin(struct new_file *file, const char *path);

/* Forces a file that was written (status ST_OK) to the disk and renames it to path. Else, and on failure, it is
 * removed; returns the first failure. */
enum status new_file_end(const struct new_file *file, enum status status);

void new_file_drop(const struct new_file *file);
