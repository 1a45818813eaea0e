#include "yaml/yaml_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "yaml/new_file.h"

enum { REPLACED_MAX = 1 << 24 };

const char *yaml_write_value(const struct setting *setting, const void *object, struct region *region)
{
    if (setting->type != SETTING_PATH) return setting_print(setting, object, region);
    const char *path = *(const char *const *)(const void *)((const char *)object + setting->offset);
    char *absolute = realpath(path, NULL);
    const char *text = text_quote(absolute ? absolute : path, region);
    free(absolute);
    return text;
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

static bool has_line(const char *text, const char *key)
{
    const size_t length = strlen(key);
    for (const char *line = text; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
        if (strncmp(line, key, length) == 0 && line[length] == ':') return true;
    return false;
}

enum status yaml_write_check(const char *path, const char *key, struct region *region)
{
    struct new_file file;
    char *text;
    if (!path) return ST_OK;
    if (access(path, F_OK) == 0 && (file_read_text(path, REPLACED_MAX, region, &text) != ST_OK || !has_line(text, key)))
        return fail(ST_SPEC, "%s: exists and is no %s file; nothing was measured", path, key);
    TRY(new_file_begin(&file, path));
    new_file_drop(&file);
    return ST_OK;
}

enum status yaml_write_whole(const char *path, bool (*write)(const void *of, FILE *out), const void *of)
{
    struct new_file file;
    if (!path) return write(of, stdout) ? ST_OK : fail(ST_FAILED, "the output cannot be written");
    TRY(new_file_begin(&file, path));
    FILE *out = fopen(file.name, "we");
    const bool good = out && write(of, out);
    int error = errno;
    if (out && fclose(out) != 0 && good)
        error = errno;
    else if (good)
        return new_file_publish(&file);
    new_file_drop(&file);
    return fail(ST_FAILED, "%s: cannot be written: %s", path, strerror(error));
}
