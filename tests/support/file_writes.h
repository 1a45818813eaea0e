/* What is written to a file, call by call: pwrite(), ftruncate() and fsync(), called from anywhere in the suite, come
 * by here first and are remembered for the file that is watched. */
#ifndef REMATCH_TESTS_SUPPORT_FILE_WRITES_H
#define REMATCH_TESTS_SUPPORT_FILE_WRITES_H

#include <sys/types.h>

enum { SYNCED = -1 };

struct file_write {
    off_t at;
    size_t bytes;
    char *data; /* NULL: the file was cut or extended to at; or, at being SYNCED, all before is on the disk */
};

/* Remembers from now on what is written to the file at path; NULL: no more. And forgets all. */
void writes_watch(const char *path);
void writes_forget(void);
size_t writes_seen(void);
const struct file_write *writes_get(size_t number);

#endif
