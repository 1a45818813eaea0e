#include "base/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has_variable(const char *path)
{
    while ((path = strchr(path, '$')))
        if (*++path == '{' || *path == '_' || isalpha((unsigned char)*path)) return true;
    return false;
}

enum status file_expand(const char *path, struct region *region, const char **expanded)
{
    const char *home = getenv("HOME");
    *expanded = path;
    if (has_variable(path) && access(path, F_OK) != 0)
        return fail(ST_SPEC, "'%s' has a variable, which only a shell replaces; expected a path without '$'", path);
    if (*path != '~') return ST_OK;
    if (path[1] && path[1] != '/')
        return fail(ST_SPEC, "'%s' is not looked up; expected a path, ~/ for your own home, or ./%s", path, path);
    if (!home || *home != '/') return fail(ST_SPEC, "'%s': HOME is not set to an absolute path", path);
    *expanded = region_text(region, "%s%s", home, path + 1);
    return ST_OK;
}

enum status file_open(const char *path, int *descriptor, uint64_t *bytes)
{
    struct stat about;
    /* Without O_NONBLOCK, a pipe of that name would wait for a writer. */
    *descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*descriptor < 0) return fail(errno == ENOENT ? ST_MISSING : ST_FAILED, "%s: %s", path, strerror(errno));
    const bool known = fstat(*descriptor, &about) == 0;
    if (known && S_ISREG(about.st_mode)) {
        *bytes = (uint64_t)about.st_size;
        return ST_OK;
    }
    fail(ST_FAILED, "%s: %s", path, known ? "is not a plain file" : strerror(errno));
    close(*descriptor);
    *descriptor = -1;
    return ST_FAILED;
}

enum status file_read(int descriptor, const char *path, uint64_t offset, size_t bytes, void *to)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(descriptor, (char *)to + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail(ST_FAILED, "%s: offset %" PRIu64 ": %s", path, offset + done, strerror(errno));
        if (got == 0)
            return fail(ST_FAILED, "%s: ends at offset %" PRIu64 "; expected: %zu bytes from offset %" PRIu64, path,
                        offset + done, bytes, offset);
        done += (size_t)got;
    }
    return ST_OK;
}

enum status file_read_text(const char *path, size_t most, struct region *region, char **text)
{
    descriptor_auto int descriptor = -1;
    uint64_t bytes;
    TRY(file_open(path, &descriptor, &bytes));
    if (bytes > most) return fail(ST_FAILED, "%s: is larger than %zu bytes", path, most);
    *text = region_array(region, (size_t)bytes + 1, 1);
    TRY(file_read(descriptor, path, 0, (size_t)bytes, *text));
    if (memchr(*text, 0, (size_t)bytes)) return fail(ST_FAILED, "%s: holds a zero byte: not a text file", path);
    return ST_OK;
}
