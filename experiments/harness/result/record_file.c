/* Contract: at every instant, part and path name readable files, or none. The lock belongs to the open file
 * description, so that the system releases it however the process ends. A process that is refused removes only the .new
 * that it locked. */
#include "result/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "yaml/new_file.h"

enum status record_folder(const char *folder)
{
    char path[RECORD_PATH];
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path)
        return fail(ST_FAILED, "results folder %s: its name is too long", folder);
    for (char *end = path + 1;; end++) {
        if (*end && *end != '/') continue;
        const char kept = *end;
        *end = 0;
        struct stat there;
        if (mkdir(path, 0777) < 0 && (errno != EEXIST || stat(path, &there) < 0 || !S_ISDIR(there.st_mode)))
            return fail(ST_FAILED, "results folder %s: cannot create %s: %s", folder, path,
                        errno == EEXIST ? "a file has that name" : strerror(errno));
        if (!kept) return ST_OK;
        *end = kept;
    }
}

enum lock record_file_lock(const char *path)
{
    descriptor_auto int descriptor =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not waiting for a pipe's writer */
    return descriptor < 0 ? LOCK_FREE : file_lock_look(descriptor);
}

const char *record_file_find(const char *folder, const char *end, bool written, struct region *region)
{
    glob_t all;
    const char *found = "";
    if (glob(region_text(region, "%s/*.h5%s", folder, end), 0, NULL, &all) != 0) return found;
    for (size_t i = 0; i < all.gl_pathc && !*found; i++)
        if (!written || record_file_lock(all.gl_pathv[i]) != LOCK_FREE)
            found = region_text(region, "%s", all.gl_pathv[i]);
    globfree(&all);
    return found;
}

/* Between opening and locking, its owner may have renamed the file. */
static bool still_names(const char *path, int descriptor)
{
    struct stat named, locked;
    return lstat(path, &named) == 0 && fstat(descriptor, &locked) == 0 && named.st_dev == locked.st_dev &&
           named.st_ino == locked.st_ino;
}

/* busy: another process has the lock, or has replaced the file. */
static enum status lock_named(int descriptor, const char *path, bool *busy)
{
    const enum lock lock = file_lock_take(descriptor);
    if (lock == LOCK_UNKNOWN) return file_lock_error(path);
    *busy = lock == LOCK_HELD || !still_names(path, descriptor);
    return ST_OK;
}

/* An empty locked file of that name; busy: another process is creating it. A plain file that an earlier process left is
 * locked before it is replaced, in case it is in use. */
static enum status create_locked(const char *path, int *made, bool *busy)
{
    struct stat there;
    descriptor_auto int left = -1;
    if (lstat(path, &there) == 0 && S_ISREG(there.st_mode)) {
        left = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (left < 0 && errno != ENOENT) return fail(ST_FAILED, "%s: cannot create: %s", path, strerror(errno));
    }
    if (left >= 0) TRY(lock_named(left, path, busy));
    if (*busy) return ST_OK;
    *made = new_file_create(path);
    *busy = *made < 0 && errno == EEXIST;
    if (*made < 0) return *busy ? ST_OK : fail(ST_FAILED, "%s: cannot create: %s", path, strerror(errno));
    const enum status status = lock_named(*made, path, busy);
    if (status != ST_OK) unlink(path);
    return status;
}

enum status record_file_check_plain(const char *path)
{
    struct stat there;
    if (stat(path, &there) < 0 || S_ISREG(there.st_mode)) return ST_OK;
    return fail(ST_FAILED, "%s: exists and is not a plain file", path);
}

/* An empty locked fresh file beside path. */
static enum status begin(struct record_file *file)
{
    snprintf(file->part, RECORD_PATH, "%.1010s.part", file->path);
    snprintf(file->fresh, RECORD_PATH, "%.1010s.new", file->path);
    TRY(record_file_check_plain(file->path));
    TRY(record_file_check_plain(file->part));
    bool busy = false;
    enum status status = create_locked(file->fresh, &file->lock, &busy);
    if (status == ST_OK && !busy) {
        const enum lock part = record_file_lock(file->part);
        if (part == LOCK_UNKNOWN && file_lock_required()) status = file_lock_error(file->part);
        busy = part == LOCK_HELD;
        if (status == ST_OK && !busy) return ST_OK;
        unlink(file->fresh);
    }
    record_file_release(file);
    return busy ? fail(ST_FAILED, "%s: another process is writing it", file->part) : status;
}

enum status record_file_begin(struct record_file *file, const char *results, const char *experiment, const char *name)
{
    file->lock = -1;
    if (snprintf(file->folder, RECORD_PATH, "%s/%s", results, experiment) >= RECORD_PATH - 64)
        return fail(ST_FAILED, "results folder %.80s...: its name is too long", results);
    TRY(record_folder(file->folder));
    snprintf(file->path, RECORD_PATH, "%.960s/%.40s.h5", file->folder, name);
    return begin(file);
}

enum status record_file_publish(struct record_file *file, bool whole)
{
    const char *name = whole ? file->path : file->part;
    TRY(new_file_sync(file->fresh, O_RDONLY));
    if (rename(file->fresh, name) < 0) return fail(ST_FAILED, "%s: cannot rename to it: %s", name, strerror(errno));
    if (whole && unlink(file->part) < 0 && errno != ENOENT)
        return fail(ST_FAILED, "%s: cannot remove it: %s", file->part, strerror(errno));
    return new_file_sync(file->folder, O_RDONLY | O_DIRECTORY);
}

static int copy_bytes(int from, int to)
{
    char buffer[1 << 16];
    for (;;) {
        ssize_t got = read(from, buffer, sizeof buffer);
        if (got <= 0) return got < 0 ? errno : 0;
        for (ssize_t done = 0, put; done < got; done += put)
            if ((put = write(to, buffer + done, (size_t)(got - done))) <= 0) return errno;
    }
}

enum status record_file_copy(struct record_file *file)
{
    snprintf(file->fresh, RECORD_PATH, "%.1010s.end", file->path);
    int from = open(file->part, O_RDONLY | O_CLOEXEC);
    int to = new_file_create(file->fresh);
    int error = from < 0 || to < 0 ? errno : copy_bytes(from, to);
    if (from >= 0) close(from);
    if (to >= 0 && close(to) < 0 && !error) error = errno;
    return error ? fail(ST_FAILED, "%s: cannot write: %s", file->fresh, strerror(error)) : ST_OK;
}

void record_file_drop(struct record_file *file) { unlink(file->fresh); }

void record_file_release(struct record_file *file)
{
    if (file->lock >= 0) close(file->lock);
    file->lock = -1;
}
