#include "bundle/bundle.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/json_tree.h"
#include "base/text.h"
#include "base/units.h"
#include "build.h"
#include "report/show.h"
#include "result/result_read.h"

static enum status add_texts(struct bundle *b, struct result *r, const char *stem)
{
    freed_auto char *json = json_dumps(b->run[b->runs - 1], JSON_INDENT(1));
    const char *const texts[][2] = {{".yaml", h5_read_text(&r->h5, "/spec/text", r->region)},
                                    {".resolved.yaml", h5_read_text(&r->h5, "/spec/resolved", r->region)},
                                    {".json", json}};
    TRY(h5_status(&r->h5));
    for (size_t i = 0; i < 3; i++)
        TRY(bundle_add(b, region_text(b->region, "%s%s", stem, texts[i][0]), NULL, texts[i][1]));
    return ST_OK;
}

static enum status add_run(struct bundle *b, const char *path)
{
    const int before = b->files;
    json_t *json;
    result_auto *r = NULL;
    TRY(result_open(path, &r));
    if (!r->whole || (strcmp(r->now, "completed") != 0 && strcmp(r->now, "planned") != 0))
        return fail(ST_SPEC, "%s: %s; expected a completed run, ID.h5", path, r->now);
    const char *experiment = h5_read_attribute_text(&r->h5, "/", "experiment", "", r->region),
               *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const char *stem = region_text(b->region, "runs/%s/%.*s", experiment, (int)(strlen(file) - strlen(".h5")), file);
    const char *name = region_text(b->region, "%s.h5", stem);
    if (!tarball_name_is_plain(name))
        return fail(ST_SPEC, "%s: it cannot be called '%s' in a bundle; expected letters, digits, '-', '_' and '.'",
                    path, name);
    TRY(bundle_add(b, name, path, NULL));
    if (b->files == before) return ST_OK;
    b->other |= strcmp(h5_read_attribute_text(&r->h5, "/", "software_version", "", r->region), BUILD_COMMIT) != 0;
    TRY(show_json(path, &json));
    json_object_set_new(json, "path", json_of_text(name)); /* cppcheck 2.10 crashes on PUT() here */
    region_grow(b->region, &b->run, b->runs, sizeof *b->run);
    b->run[b->runs++] = json;
    return add_texts(b, r, stem);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(json_string_at(*(json_t *const *)a, "path"), json_string_at(*(json_t *const *)b, "path"));
}

static enum status collect(struct bundle *b, int runs, const char *const *run)
{
    for (int i = 0; i < runs; i++) TRY(add_run(b, run[i]));
    if (b->runs) qsort(b->run, (size_t)b->runs, sizeof *b->run, by_name);
    if (b->files) qsort(b->file, (size_t)b->files, sizeof *b->file, tarball_order);
    TRY(bundle_describe(b));
    qsort(b->file, (size_t)b->files, sizeof *b->file, tarball_order);
    return ST_OK;
}

enum status bundle_collect(struct bundle *b, int runs, const char *const *run)
{
    const enum status status = collect(b, runs, run);
    for (int i = 0; i < b->runs; i++) json_decref(b->run[i]);
    return status;
}

enum status bundle_write(int runs, const char *const *run, const char *path, FILE *out)
{
    region_auto *region = region_create();
    struct bundle b = {.region = region};
    struct tar_file whole = {.path = path};
    TRY(bundle_collect(&b, runs, run));
    TRY(tarball_write(path, b.file, b.files));
    TRY(tarball_digest(&whole));
    fprintf(out, "bundle    %s: %d run%s, %d files, %s\nsha256    %s\n", path, b.runs, text_plural(b.runs), b.files + 1,
            BYTES_TEXT(whole.bytes), whole.sha256);
    return ST_OK;
}
