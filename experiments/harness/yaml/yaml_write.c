#include "yaml/yaml_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "yaml/new_file.h"

const char *yaml_write_value(const struct setting *setting, const void *object, struct region *region)
{
    if (setting->type != SETTING_PATH) return setting_print(setting, object, region);
    const char *path = *(const char *const *)(const void *)((const char *)object + setting->offset);
    freed_auto char *absolute = realpath(path, NULL);
    return text_quote(absolute ? absolute : path, region);
}

int yaml_write_settings(const struct setting *keys, const void *object, const char *first, const char *between,
                        struct region *region, FILE *out)
{
    int written = 0;
    for (const struct setting *f = keys; f && f->key; f++)
        if (!setting_unset(f, object))
            fprintf(out, "%s%s: %s", written++ ? between : first, f->key, yaml_write_value(f, object, region));
    return written;
}

enum status yaml_write_check(const char *path, const char *first, const char *kind)
{
    struct new_file file;
    char found[64] = "";
    struct stat there;
    const size_t length = strlen(first);
    if (!path) return ST_OK;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) /* opening a pipe would wait for its writer */
        return fail(ST_SPEC, "%s: exists and is not a plain file; nothing was written", path);
    FILE *old = fopen(path, "re");
    if (!old && errno != ENOENT) return fail(ST_FAILED, "%s: cannot be replaced: %s", path, strerror(errno));
    const bool other = old && (fread(found, 1, length, old) != length || memcmp(found, first, length) != 0);
    if (old) fclose(old);
    if (other) return fail(ST_SPEC, "%s: exists and is no %s; nothing was written", path, kind);
    TRY(new_file_begin(&file, path));
    new_file_drop(&file);
    return ST_OK;
}

static bool write_to(FILE *out, void (*write)(const void *of, FILE *out), const void *of)
{
    if (out) write(of, out);
    return out && fflush(out) == 0 && !ferror(out);
}

enum status yaml_write_whole(const char *path, void (*write)(const void *of, FILE *out), const void *of)
{
    struct new_file file;
    if (!path) return write_to(stdout, write, of) ? ST_OK : fail(ST_FAILED, "the output cannot be written");
    TRY(new_file_begin(&file, path));
    FILE *out = fopen(file.name, "we");
    const bool good = write_to(out, write, of);
    const int error = errno;
    if (out) fclose(out);
    return new_file_end(&file, good ? ST_OK : fail(ST_FAILED, "%s: cannot be written: %s", path, strerror(error)));
}
