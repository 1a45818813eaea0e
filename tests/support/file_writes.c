#include "file_writes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static ino_t watched;
static struct file_write *seen;
static size_t count;

void writes_watch(const char *path)
{
    struct stat file;
    watched = path && stat(path, &file) == 0 ? file.st_ino : 0;
}

void writes_forget(void)
{
    while (count) free(seen[--count].data);
}

size_t writes_seen(void) { return count; }

const struct file_write *writes_get(size_t number) { return &seen[number]; }

static void remember(int descriptor, const void *data, size_t bytes, off_t at)
{
    struct stat file;
    if (!watched || fstat(descriptor, &file) < 0 || file.st_ino != watched) return;
    seen = realloc(seen, (count + 1) * sizeof *seen);
    seen[count] = (struct file_write){.at = at, .bytes = bytes, .data = data ? malloc(bytes) : NULL};
    if (data) memcpy(seen[count].data, data, bytes);
    count++;
}

ssize_t pwrite(int descriptor, const void *data, size_t bytes, off_t at)
{
    remember(descriptor, data, bytes, at);
    return syscall(SYS_pwrite64, descriptor, data, bytes, at);
}

int fsync(int descriptor)
{
    remember(descriptor, NULL, 0, SYNCED);
    return (int)syscall(SYS_fsync, descriptor);
}

int ftruncate(int descriptor, off_t bytes)
{
    remember(descriptor, NULL, 0, bytes);
    return (int)syscall(SYS_ftruncate, descriptor, bytes);
}
