/* The calls that write a watched file: replaces pwrite(), ftruncate() and fsync() for the whole suite and records those
 * for that file. */
#pragma once

#include <sys/types.h>

enum { SYNCED = -1 };

struct file_write {
    off_t at;
    size_t bytes;
    char *data; /* NULL: the length of the file was set to at; or, if at is SYNCED, fsync() */
};

/* Records calls for the file at path from now on, NULL: none; discards all records. */
void writes_watch(const char *path);
void writes_forget(void);
size_t writes_seen(void);
const struct file_write *writes_get(size_t number);
