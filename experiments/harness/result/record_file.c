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

static struct flock whole_file(void) { return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}; }

bool record_file_is_written(const char *path)
{
    struct flock lock = whole_file();
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not wait for a pipe's writer */
    if (descriptor < 0) return false;
    bool written = fcntl(descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(descriptor);
    return written;
}

const char *record_file_find(const char *folder, const char *end, bool written, struct region *region)
{
    glob_t all;
    const char *found = "";
    if (glob(region_text(region, "%s/*.h5%s", folder, end), 0, NULL, &all) != 0) return found;
    for (size_t i = 0; i < all.gl_pathc && !*found; i++)
        if (!written || record_file_is_written(all.gl_pathv[i])) found = region_text(region, "%s", all.gl_pathv[i]);
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

static bool is_locked(int descriptor, const char *path)
{
    struct flock lock = whole_file();
    return fcntl(descriptor, F_OFD_SETLK, &lock) == 0 && still_names(path, descriptor);
}

/* An empty locked file of that name; -1: errno is the reason, EAGAIN: another process is creating it. A plain file that
 * an earlier process left is locked before it is replaced, in case it is in use. */
static int create_locked(const char *path)
{
    struct stat there;
    int left = -1, made = -1;
    if (lstat(path, &there) == 0 && S_ISREG(there.st_mode)) {
        left = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (left < 0 && errno != ENOENT) return -1;
    }
    if (left >= 0 && !is_locked(left, path)) {
        errno = EAGAIN;
    } else if ((made = new_file_create(path)) < 0) {
        errno = errno == EEXIST ? EAGAIN : errno;
    } else if (!is_locked(made, path)) {
        close(made);
        made = -1;
        errno = EAGAIN;
    }
    const int error = errno;
    if (left >= 0) close(left);
    errno = error;
    return made;
}

/* A result replaces nothing but a plain file. */
static enum status check_plain(const char *path)
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
    TRY(check_plain(file->path));
    TRY(check_plain(file->part));
    file->lock = create_locked(file->fresh);
    const bool busy = file->lock < 0 && errno == EAGAIN;
    if (file->lock < 0 && !busy) return fail(ST_FAILED, "%s: cannot create: %s", file->fresh, strerror(errno));
    if (!busy && !record_file_is_written(file->part)) return ST_OK;
    if (!busy) unlink(file->fresh);
    record_file_release(file);
    return fail(ST_FAILED, "%s: another process is writing it", file->part);
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

enum status record_claim_take(struct record_claim *claim, const char *path, const char *waiting)
{
    if (snprintf(claim->path, RECORD_PATH, "%s", path) >= RECORD_PATH)
        return fail(ST_FAILED, "%.80s...: the name is too long", path);
    for (;;) {
        struct flock lock = whole_file();
        claim->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        bool held = claim->lock >= 0 && fcntl(claim->lock, F_OFD_SETLK, &lock) == 0;
        if (claim->lock >= 0 && !held && (errno == EAGAIN || errno == EACCES)) {
            if (waiting) fprintf(stderr, "%s\n", waiting);
            waiting = NULL;
            held = fcntl(claim->lock, F_OFD_SETLKW, &lock) == 0;
        }
        if (held && still_names(path, claim->lock)) return ST_OK;
        if (!held) fail(ST_FAILED, "%s: cannot lock it: %s", path, strerror(errno));
        if (claim->lock >= 0) close(claim->lock);
        if (!held) return ST_FAILED;
    }
}

void record_claim_release(struct record_claim *claim)
{
    unlink(claim->path);
    close(claim->lock);
}
