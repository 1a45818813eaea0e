#include "writing.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "file.h"

enum { REPLACED_MAX = 1 << 24 };

void writing_fields(const struct field *fields, const void *object, const char *between, struct region *region,
                    FILE *out)
{
    for (const struct field *f = fields; f->key; f++) {
        const char *value = field_print(f, object, region);
        fprintf(out, "%s: %s%s", f->key, value ? value : "", f[1].key ? between : "");
    }
}

static bool has_line(const char *text, const char *key)
{
    const size_t length = strlen(key);
    for (const char *line = text; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
        if (strncmp(line, key, length) == 0 && line[length] == ':') return true;
    return false;
}

enum status writing_check(const char *path, const char *key, struct region *region)
{
    char part[PATH_MAX], *text;
    if (!path) return ST_OK;
    if (access(path, F_OK) == 0 && (file_read_text(path, REPLACED_MAX, region, &text) != ST_OK || !has_line(text, key)))
        return fail(ST_SPEC, "%s: it is there and no file of %s; nothing was measured", path, key);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *out = fopen(part, "we");
    if (!out) return fail(ST_FAILED, "%s: cannot be written: %s", part, strerror(errno));
    fclose(out);
    unlink(part);
    return ST_OK;
}

enum status writing_whole(const char *path, bool (*write)(const void *of, FILE *out), const void *of)
{
    char part[PATH_MAX];
    if (!path) return write(of, stdout) ? ST_OK : fail(ST_FAILED, "the output cannot be written");
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        return fail(ST_FAILED, "%s: the name is too long", path);
    FILE *out = fopen(part, "we");
    if (!out) return fail(ST_FAILED, "%s: cannot be written: %s", part, strerror(errno));
    const bool good = write(of, out) && fsync(fileno(out)) == 0;
    int error = errno;
    if (fclose(out) == 0 && good && rename(part, path) == 0) return ST_OK;
    if (good) error = errno;
    unlink(part);
    return fail(ST_FAILED, "%s: cannot be written: %s", path, strerror(error));
}
