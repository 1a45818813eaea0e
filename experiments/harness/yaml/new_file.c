#include "yaml/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int anew = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

int new_file_create(const char *path) { return unlink(path) < 0 && errno != ENOENT ? -1 : open(path, anew, 0666); }

enum status new_file_sync(const char *path, int flags)
{
    int descriptor = open(path, flags | O_CLOEXEC);
    int error = descriptor < 0 || fsync(descriptor) < 0 ? errno : 0;
    if (descriptor >= 0 && close(descriptor) < 0 && !error) error = errno;
    return error && error != EINVAL ? fail(ST_FAILED, "%s: cannot write to the disk: %s", path, strerror(error))
                                    : ST_OK;
}

enum status new_file_begin(struct new_file *fresh, const char *path)
{
    int made = -1;
    fresh->path = path;
    for (int i = 0; made < 0; i++) {
        if (snprintf(fresh->name, sizeof fresh->name, "%s.%ld-%d", path, (long)getpid(), i) >= (int)sizeof fresh->name)
            return fail(ST_FAILED, "%.80s...: its name is too long", path);
        made = open(fresh->name, anew, 0666);
        if (made < 0 && errno != EEXIST)
            return fail(ST_FAILED, "%.1000s: cannot create a file beside it: %s", path, strerror(errno));
    }
    close(made);
    return ST_OK;
}

enum status new_file_publish(const struct new_file *fresh)
{
    const char *slash = strrchr(fresh->path, '/');
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - fresh->path + 1) : 1, slash ? fresh->path : ".");
    enum status status = new_file_sync(fresh->name, O_RDONLY);
    if (status == ST_OK && rename(fresh->name, fresh->path) < 0)
        status = fail(ST_FAILED, "%s: cannot take its place: %s", fresh->path, strerror(errno));
    if (status != ST_OK) {
        new_file_drop(fresh);
        return status;
    }
    return new_file_sync(folder, O_RDONLY | O_DIRECTORY);
}

void new_file_drop(const struct new_file *fresh) { unlink(fresh->name); }
