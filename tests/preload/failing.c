/* Loaded before the C library (LD_PRELOAD): the n-th call that changes a file below a folder fails with EIO. Calls are
 * counted over all processes that share the count; a stream that writes to such a file does so by the same calls.
 *
 *   FAILING_FOLDER  absolute path; other files are left alone
 *   FAILING_COUNT   a file of two 64-bit numbers: calls so far, and how many of them were fsync()
 *   FAILING_AT      the call that fails, from 1; none where it is 0
 *   FAILING_HOW     once; lasting: and every later one; lost: it reports success, but what it writes is lost
 *
 * Or locks are what fails, on any file, as on a file system that has none:
 *
 *   FAILING_LOCK    errno of taking a lock
 *   FAILING_LOOK    errno of asking for one
 *   FAILING_HELD    errno of taking one that another process has, in place of EAGAIN
 *
 * Or the C library is another one:
 *
 *   FAILING_LIBC    its version; its log() differs by FAILING_LOG units of 2^-30 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STREAMS = 64 };

static struct {
    _Atomic uint64_t calls, syncs;
} * counts;
static const char *folder;
static uint64_t fails;
static bool lasting, lost;
static int no_lock, no_look, held; /* errno, or 0 */
static FILE *stream[STREAMS];      /* by descriptor */

static int number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *count = getenv("FAILING_COUNT"), *at = getenv("FAILING_AT"), *how = getenv("FAILING_HOW");
    no_lock = number_of("FAILING_LOCK");
    no_look = number_of("FAILING_LOOK");
    held = number_of("FAILING_HELD");
    int descriptor = count ? (int)syscall(SYS_openat, AT_FDCWD, count, O_RDWR) : -1;
    if (descriptor < 0) return;
    void *shared = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    syscall(SYS_close, descriptor);
    if (shared == MAP_FAILED) return;
    counts = shared;
    fails = at ? strtoull(at, NULL, 10) : 0;
    lasting = how && strcmp(how, "lasting") == 0;
    lost = how && strcmp(how, "lost") == 0;
    folder = getenv("FAILING_FOLDER");
}

const char *gnu_get_libc_version(void)
{
    const char *(*real)(void);
    *(void **)&real = dlsym(RTLD_NEXT, "gnu_get_libc_version");
    return getenv("FAILING_LIBC") ? getenv("FAILING_LIBC") : real();
}

double log(double x)
{
    double (*real)(double);
    *(void **)&real = dlsym(RTLD_NEXT, "log");
    return real(x) * (1 + number_of("FAILING_LOG") / (double)(1 << 30));
}

/* One more call; true where it is the one. */
static bool aimed(void)
{
    const uint64_t number = atomic_fetch_add(&counts->calls, 1) + 1;
    return fails && (number == fails || (lasting && number > fails));
}

/* One more call; true where it is to fail. */
static bool hit(void)
{
    if (!aimed() || lost) return false;
    errno = EIO;
    return true;
}

/* What a write returns that was not done. */
static ssize_t ended(size_t bytes)
{
    if (!lost) errno = EIO;
    return lost ? (ssize_t)bytes : -1;
}

static bool path_counts(const char *path)
{
    char full[2 * PATH_MAX] = "";
    if (!folder) return false;
    if (*path != '/' && getcwd(full, PATH_MAX)) strcat(full, "/");
    strncat(full, path, PATH_MAX - 1);
    return strncmp(full, folder, strlen(folder)) == 0;
}

static bool descriptor_counts(int descriptor)
{
    char name[64], path[PATH_MAX];
    const int kept = errno;
    if (!folder) return false;
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t length = syscall(SYS_readlink, name, path, sizeof path - 1);
    errno = kept;
    if (length < 0) return false;
    path[length] = 0;
    return path_counts(path);
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    if (path_counts(path) && hit()) return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t write(int descriptor, const void *data, size_t bytes)
{
    if (descriptor_counts(descriptor) && aimed()) return ended(bytes);
    return syscall(SYS_write, descriptor, data, bytes);
}

ssize_t pwrite(int descriptor, const void *data, size_t bytes, off_t at)
{
    if (descriptor_counts(descriptor) && aimed()) return ended(bytes);
    return syscall(SYS_pwrite64, descriptor, data, bytes, at);
}

int ftruncate(int descriptor, off_t bytes)
{
    if (descriptor_counts(descriptor) && hit()) return -1;
    return (int)syscall(SYS_ftruncate, descriptor, bytes);
}

int fsync(int descriptor)
{
    if (descriptor_counts(descriptor)) {
        atomic_fetch_add(&counts->syncs, 1);
        if (hit()) return -1;
    }
    return (int)syscall(SYS_fsync, descriptor);
}

/* It fails as the system's does: the descriptor is gone. */
int close(int descriptor)
{
    const bool fail = descriptor_counts(descriptor) && hit();
    const long result = syscall(SYS_close, descriptor);
    if (fail) errno = EIO;
    return fail ? -1 : (int)result;
}

int rename(const char *from, const char *to)
{
    if (path_counts(to) && hit()) return -1;
    return (int)syscall(SYS_rename, from, to);
}

int unlink(const char *path)
{
    if (path_counts(path) && hit()) return -1;
    return (int)syscall(SYS_unlink, path);
}

int mkdir(const char *path, mode_t mode)
{
    if (path_counts(path) && hit()) return -1;
    return (int)syscall(SYS_mkdir, path, mode);
}

/* ---- locks ---- */

static int refuse(int error)
{
    errno = error;
    return -1;
}

int flock(int descriptor, int operation)
{
    return no_lock ? refuse(no_lock) : (int)syscall(SYS_flock, descriptor, operation);
}

int fcntl(int descriptor, int command, ...)
{
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    const bool look = command == F_GETLK || command == F_OFD_GETLK,
               lock = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
    if (look && no_look) return refuse(no_look);
    if (lock && no_lock) return refuse(no_lock);
    const int result = (int)syscall(SYS_fcntl, descriptor, command, argument);
    return lock && held && result < 0 && errno == EAGAIN ? refuse(held) : result;
}

/* ---- streams ---- */

static ssize_t stream_write(void *cookie, const char *data, size_t bytes)
{
    const ssize_t written = write((int)(intptr_t)cookie, data, bytes);
    return written < 0 ? 0 : written;
}

static int stream_close(void *cookie)
{
    stream[(intptr_t)cookie] = NULL;
    return close((int)(intptr_t)cookie);
}

static FILE *stream_of(int descriptor)
{
    const cookie_io_functions_t calls = {.write = stream_write, .close = stream_close};
    if (descriptor < 0 || descriptor >= STREAMS) return NULL;
    return stream[descriptor] = fopencookie((void *)(intptr_t)descriptor, "w", calls);
}

FILE *fopen(const char *restrict path, const char *restrict mode)
{
    FILE *(*next)(const char *, const char *);
    *(void **)&next = dlsym(RTLD_NEXT, "fopen");
    if (*mode != 'w' || !path_counts(path)) return next(path, mode);
    const int exclusive = strchr(mode, 'x') ? O_EXCL : 0;
    return stream_of(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | exclusive, 0666));
}

FILE *fdopen(int descriptor, const char *mode)
{
    FILE *(*next)(int, const char *);
    *(void **)&next = dlsym(RTLD_NEXT, "fdopen");
    return *mode == 'w' && descriptor_counts(descriptor) ? stream_of(descriptor) : next(descriptor, mode);
}

int fileno(FILE *file)
{
    int (*next)(FILE *);
    for (int i = 0; i < STREAMS; i++)
        if (stream[i] && stream[i] == file) return i;
    *(void **)&next = dlsym(RTLD_NEXT, "fileno");
    return next(file);
}

/* The same calls under the names that 64-bit offsets have. */
int fcntl64(int descriptor, int command, ...) __attribute__((alias("fcntl")));
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
ssize_t pwrite64(int descriptor, const void *data, size_t bytes, off64_t at) __attribute__((alias("pwrite")));
int ftruncate64(int descriptor, off64_t bytes) __attribute__((alias("ftruncate")));
FILE *fopen64(const char *restrict path, const char *restrict mode) __attribute__((alias("fopen")));
