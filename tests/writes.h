/* What a file is told to hold, write by write: pwrite() and ftruncate(), called from anywhere in the suite, come by
 * here first and are remembered for the file that is watched. */
#ifndef REMATCH_TEST_WRITES_H
#define REMATCH_TEST_WRITES_H

#include <sys/types.h>

struct file_write {
    off_t at;
    size_t bytes;
    char *data; /* NULL: the file was cut or extended to at */
};

/* Remembers from now on what is written to the file at path; NULL: no more. And forgets all. */
void writes_watch(const char *path);
void writes_forget(void);
size_t writes_seen(void);
const struct file_write *writes_get(size_t number);

#endif
