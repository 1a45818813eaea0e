#include "writing.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

void writing_fields(const struct field *fields, const void *object, const char *between, struct region *region,
                    FILE *out)
{
    for (const struct field *f = fields; f->key; f++) {
        const char *value = field_print(f, object, region);
        fprintf(out, "%s: %s%s", f->key, value ? value : "", f[1].key ? between : "");
    }
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
