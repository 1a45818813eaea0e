#include "yaml/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int exclusive = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

int new_file_create(const char *path) { return unlink(path) < 0 && errno != ENOENT ? -1 : open(path, exclusive, 0666); }

enum status new_file_sync(const char *path, int flags)
{
    int descriptor = open(path, flags | O_CLOEXEC);
    int error = descriptor < 0 || fsync(descriptor) < 0 ? errno : 0;
    if (descriptor >= 0 && close(descriptor) < 0 && !error) error = errno;
    return error && error != EINVAL ? fail(ST_FAILED, "%s: cannot write to the disk: %s", path, strerror(error))
                                    : ST_OK;
}

enum status new_file_begin(struct new_file *file, const char *path)
{
    int made = -1;
    file->path = path;
    for (int i = 0; made < 0; i++) {
        if (snprintf(file->name, sizeof file->name, "%s.%ld-%d", path, (long)getpid(), i) >= (int)sizeof file->name)
            return fail(ST_FAILED, "%.80s...: the name is too long", path);
        made = open(file->name, exclusive, 0666);
        if (made < 0 && errno != EEXIST)
            return fail(ST_FAILED, "%.1000s: cannot create a file beside it: %s", path, strerror(errno));
    }
    close(made);
    return ST_OK;
}

enum status new_file_end(const struct new_file *file, enum status status)
{
    const char *slash = strrchr(file->path, '/');
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - file->path + 1) : 1, slash ? file->path : ".");
    if (status == ST_OK) status = new_file_sync(file->name, O_RDONLY);
    if (status == ST_OK && rename(file->name, file->path) < 0)
        status = fail(ST_FAILED, "%s: cannot be replaced: %s", file->path, strerror(errno));
    if (status != ST_OK) new_file_drop(file);
    return status == ST_OK ? new_file_sync(folder, O_RDONLY | O_DIRECTORY) : status;
}

void new_file_drop(const struct new_file *file) { unlink(file->name); }
