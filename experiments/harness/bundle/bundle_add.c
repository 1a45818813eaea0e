#include "bundle/bundle.h"

#include <string.h>

enum status bundle_add(struct bundle *bundle, const char *name, const char *path, const char *text)
{
    struct tar_file file = {.name = name, .path = path};
    if (text) file.text = region_text(bundle->region, "%s", text);
    TRY(tarball_digest(&file));
    for (int i = 0; i < bundle->files; i++) {
        if (strcmp(bundle->file[i].name, name) != 0) continue;
        if (strcmp(bundle->file[i].sha256, file.sha256) == 0) return ST_OK;
        return fail(ST_SPEC, "%s: another run called '%s' is in the bundle", path, name);
    }
    region_grow(bundle->region, &bundle->file, bundle->files, sizeof *bundle->file);
    bundle->file[bundle->files++] = file;
    return ST_OK;
}
