#include "result/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum lock file_lock_look(int descriptor)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(descriptor, F_OFD_GETLK, &lock) < 0) return LOCK_UNKNOWN;
    return lock.l_type == F_UNLCK ? LOCK_FREE : LOCK_HELD;
}

enum lock file_lock_take(int descriptor)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(descriptor, F_OFD_SETLK, &lock) == 0) return LOCK_FREE;
    const int error = errno;
    /* POSIX has EACCES, too, for a lock of another process; a file system or a policy also refuses with it */
    const bool held = error == EAGAIN || (error == EACCES && file_lock_look(descriptor) == LOCK_HELD);
    errno = error;
    return held ? LOCK_HELD : file_lock_required() ? LOCK_UNKNOWN : LOCK_FREE;
}

bool file_lock_required(void)
{
    const char *use = getenv("HDF5_USE_FILE_LOCKING");
    return !use || (strcmp(use, "FALSE") != 0 && strcmp(use, "0") != 0);
}

enum status file_lock_error(const char *path)
{
    const int error = errno;
    return fail(ST_FAILED,
                "%s: cannot be locked: %s (errno %d). Without locks two processes could write one file: put results on "
                "a file system that has locks (results=FOLDER), or set HDF5_USE_FILE_LOCKING=FALSE and start no run "
                "twice at a time",
                path, strerror(error), error);
}
