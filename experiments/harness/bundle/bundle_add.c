#include "bundle/bundle.h"

enum status bundle_add(struct bundle *bundle, const char *name, const char *path, const char *text)
{
    struct tar_file file = {.name = name, .path = path};
    if (text) file.text = region_text(bundle->region, "%s", text);
    TRY(tarball_digest(&file));
    region_grow(bundle->region, &bundle->file, bundle->files, sizeof *bundle->file);
    bundle->file[bundle->files++] = file;
    return ST_OK;
}
