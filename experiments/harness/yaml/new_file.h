/* Files made anew: never what already has their name is written to, be it a link, a pipe or another process's file. */
#ifndef REMATCH_YAML_NEW_FILE_H
#define REMATCH_YAML_NEW_FILE_H

#include <limits.h>

#include "base/status.h"

/* Removes what has the name and creates an empty file; its descriptor, or -1 with errno. */
int new_file_create(const char *path);

/* What was written to path, a file or a folder, is on the disk. flags: of open(). */
enum status new_file_sync(const char *path, int flags);

/* A file in the making, under a name of its own in the folder of the file whose place it takes. */
struct new_file {
    const char *path;
    char name[PATH_MAX];
};

/* Creates it, empty. Each is ended by new_file_publish() or new_file_drop(). */
enum status new_file_begin(struct new_file *fresh, const char *path);

/* It takes the place of path, once it is on the disk, or is removed. */
enum status new_file_publish(const struct new_file *fresh);

void new_file_drop(const struct new_file *fresh);

#endif
