#include "result/record_claim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "console/utf8.h"

enum { POLLS = 10 }; /* a second */

/* ---- the holder: "PID HOST" in the file ---- */

struct holder {
    long pid; /* 0: not known */
    char host[256];
    bool stopped; /* as far as this machine's processes tell */
};

static enum status write_holder(struct record_claim *claim)
{
    char text[300];
    struct utsname system = {0};
    uname(&system);
    const int length = snprintf(text, sizeof text, "%ld %.255s\n", (long)getpid(), system.nodename);
    if (ftruncate(claim->lock, 0) == 0 && pwrite(claim->lock, text, (size_t)length, 0) == length) return ST_OK;
    fail(ST_FAILED, "%s: cannot be written: %s", claim->path, strerror(errno));
    record_claim_release(claim);
    return ST_FAILED;
}

/* T or t in /proc/PID/stat, behind the name in parentheses. */
static bool is_stopped(long pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    descriptor_auto int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = descriptor < 0 ? -1 : read(descriptor, text, sizeof text - 1);
    const char *state = got > 0 ? strrchr(text, ')') : NULL;
    return state && (!strncmp(state, ") T", 3) || !strncmp(state, ") t", 3));
}

static struct holder read_holder(int descriptor)
{
    char text[300] = "";
    struct holder holder = {0};
    struct utsname system = {0};
    uname(&system);
    if (pread(descriptor, text, sizeof text - 1, 0) <= 0 || sscanf(text, "%ld %255s", &holder.pid, holder.host) != 2 ||
        holder.pid <= 0)
        return (struct holder){0};
    utf8_clean(holder.host, "");
    holder.stopped = strcmp(holder.host, system.nodename) == 0 && is_stopped(holder.pid);
    return holder;
}

/* ---- waiting ---- */

/* Opens and locks the file; -1 in claim->lock: holder has it, or (pid 0) has just removed it. */
static enum status try(struct record_claim *claim, const char *path, struct holder *holder)
{
    struct stat about, named;
    const int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    *holder = (struct holder){0};
    claim->lock = -1;
    if (descriptor < 0 || fstat(descriptor, &about) < 0)
        return fail(ST_FAILED, "%s: cannot lock it: %s", path, strerror(errno));
    const bool plain = S_ISREG(about.st_mode);
    const enum lock lock = plain ? file_lock_take(descriptor) : LOCK_UNKNOWN;
    const enum status status = !plain                 ? fail(ST_FAILED, "%s: exists and is not a plain file", path)
                               : lock == LOCK_UNKNOWN ? file_lock_error(path)
                                                      : ST_OK;
    if (lock == LOCK_HELD) *holder = read_holder(descriptor);
    if (lock == LOCK_FREE && lstat(path, &named) == 0 && named.st_dev == about.st_dev && named.st_ino == about.st_ino)
        claim->lock = descriptor;
    else
        close(descriptor);
    return status;
}

/* Says who is waited for when a second has passed, and when the holder is another or is stopped. */
static void say(const char *path, const struct holder *now, const struct holder *said)
{
    if (said->pid == now->pid && said->stopped == now->stopped && !strcmp(said->host, now->host)) return;
    fprintf(stderr, "%s: waiting for process %ld on %s, which has it", path, now->pid, now->host);
    if (now->stopped)
        fprintf(stderr, " and is stopped: kill -CONT %ld lets it go on, kill -9 %ld ends it; waiting %d s more",
                now->pid, now->pid, CLAIM_PATIENCE);
    fprintf(stderr, "\n");
}

enum status record_claim_take(struct record_claim *claim, const char *path)
{
    struct holder said = {0}, now;
    if (snprintf(claim->path, RECORD_PATH, "%s", path) >= RECORD_PATH)
        return fail(ST_FAILED, "%.80s...: the name is too long", path);
    for (int polls = 0, stopped = 0;; polls++) {
        TRY(try(claim, path, &now));
        if (claim->lock >= 0) return write_holder(claim);
        stopped = now.stopped ? stopped + 1 : 0;
        if (stopped > CLAIM_PATIENCE * POLLS)
            return fail(ST_FAILED,
                        "%s: process %ld, which has it, is stopped: kill -CONT %ld lets it go on, kill -9 %ld ends it",
                        path, now.pid, now.pid, now.pid);
        if (polls >= POLLS && now.pid) {
            say(path, &now, &said);
            said = now;
        }
        usleep(1000000 / POLLS);
    }
}

void record_claim_release(struct record_claim *claim)
{
    unlink(claim->path);
    close(claim->lock);
}
