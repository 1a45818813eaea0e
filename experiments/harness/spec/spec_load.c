/* Loading a spec: the file, then the command line, then what makes it the baseline; all of it on the tree, which is
 * read once it is whole. Contract: the same file and arguments give the same resolved text. */
#include "spec/spec_load.h"

#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "spec/overrides.h"
#include "spec/spec_read.h"
#include "spec/spec_settings.h"

struct loader {
    const char *shown; /* what errors call the file, NULL: its path */
    struct spec_reader reader;
    struct region *region;
    struct spec *spec;
    struct yaml_tree *file; /* as written */
    struct yaml_tree *root; /* after the overrides, and made the baseline where asked */
    bool baseline;
};

/* ---- model files ---- */

const struct yaml_tree *spec_model_file(struct spec_reader *r, const struct yaml_tree *at, const char *path)
{
    struct yaml_reader *reading = &r->reading;
    if (access(path, F_OK) != 0) {
        yaml_read_error(reading, at, "model", "file", "no file '%.*s' beside the spec or in experiments/",
                        text_shown(path, 100), path);
        return NULL;
    }
    for (struct model_file *f = r->files; f; f = f->next)
        if (!strcmp(f->path, path)) return f->list;
    struct source *source;
    struct model_file *file = region_array(reading->region, 1, sizeof *file);
    if (!file) return NULL;
    if (source_read(path, reading->region, &source) != ST_OK)
        yaml_read_error(reading, at, "model", "file", "%s", status_message());
    else
        file->list = yaml_tree_parse(source, 0, reading->region, reading->errors);
    file->path = path;
    file->next = r->files;
    r->files = file;
    return file->list;
}

/* ---- the baseline ---- */

/* And never the policy: it stores everything. */
static const char *const own_keys[] = {"backend",   "check",           "conv", "drop_dead", "memory", "record",
                                       "relu_save", "relu_after_pool", "rng",  NULL};

bool spec_is_own(const char *key)
{
    int at = 0;
    while (own_keys[at] && strcmp(own_keys[at], key)) at++;
    return own_keys[at];
}

static void set_key(struct loader *l, struct yaml_tree *root, const char *key, const char *word)
{
    struct mark mark = root->mark;
    const struct yaml_tree *old = yaml_tree_get(root, key);
    if (old) mark = old->mark;
    struct yaml_tree *name = yaml_tree_make(YAML_TEXT, key, mark, l->region);
    struct yaml_tree *value = word ? yaml_tree_make(YAML_TEXT, word, mark, l->region) : NULL;
    if (name && (value || !word)) (void)yaml_tree_set(root, name, value, l->region);
}

/* root as the baseline: nothing recomputed, no stored plan, no fault, and then what the baseline: block says. rng:
 * unsafe exists to be caught by the baseline, which draws from the same stream as it should be drawn: stash. */
static struct yaml_tree *make_baseline(struct loader *l, const struct yaml_tree *root)
{
    struct yaml_reader *r = &l->reader.reading;
    struct yaml_tree *own = yaml_tree_copy(root, l->region);
    const struct yaml_tree *block = yaml_tree_get(root, "baseline"), *rng = yaml_tree_get(root, "rng");
    if (!own || root->kind != YAML_MAP) return own;
    set_key(l, own, "policy", "store_all");
    if (rng && rng->kind == YAML_TEXT && !strcmp(rng->text, "unsafe")) set_key(l, own, "rng", "stash");
    for (const char *const *key = (const char *const[]){"plan", "fault", "check", "baseline", "expect", "sweep", NULL};
         *key; key++)
        set_key(l, own, *key, NULL);
    if (block && block->kind != YAML_MAP) yaml_read_error(r, block, NULL, "baseline", "expected a map of keys");
    for (int i = 0; block && block->kind == YAML_MAP && i < block->count; i++) {
        const char *key = block->key[i]->text;
        const char *unknown = spec_is_own(key) ? NULL : yaml_read_unknown(r, key, own_keys);
        if (unknown) yaml_read_error(r, block->key[i], "baseline", key, "%s", unknown);
        if (!unknown) (void)yaml_tree_set(own, block->key[i], block->item[i], l->region);
    }
    return own;
}

/* ---- what is not run now, but must be right ---- */

static void read_scratch(struct loader *l, const struct yaml_tree *root)
{
    struct spec *scratch = region_array(l->region, 1, sizeof *scratch);
    if (scratch) spec_read(&l->reader, root, scratch);
}

/* Every point of the grid is a spec of its own; errors are told at the values. */
static void check_points(struct loader *l)
{
    struct yaml_tree *sweep = yaml_tree_get(l->root, "sweep");
    size_t points = 1;
    if (!sweep || errors_count(l->reader.reading.errors)) return;
    for (int i = 0; i < sweep->count; i++) points *= (size_t)sweep->item[i]->count;
    for (size_t point = 0; point < points; point++) {
        struct yaml_tree *root = yaml_tree_copy(l->root, l->region);
        size_t rest = point;
        if (!root) return;
        set_key(l, root, "sweep", NULL);
        for (int i = sweep->count - 1; i >= 0; i--) {
            size_t count = (size_t)sweep->item[i]->count;
            yaml_tree_assign(&l->reader.reading, root, sweep->key[i], sweep->item[i]->item[rest % count]);
            rest /= count;
        }
        read_scratch(l, root);
    }
}

/* ---- what was overridden ---- */

/* Notes what differs between two resolved values of key, of maps their keys one by one. NULL: not there. */
static void note_changes(struct loader *l, const struct yaml_tree *before, const struct yaml_tree *after,
                         const char *key)
{
    const struct yaml_tree *const sides[] = {before, after};
    const bool maps = before && after && before->kind == YAML_MAP && after->kind == YAML_MAP;
    for (int side = 0; maps && side < 2; side++)
        for (int i = 0; i < sides[side]->count; i++) {
            const char *one = sides[side]->key[i]->text;
            const char *path = region_text(l->region, "%s%s%s", key, *key ? "." : "", one);
            if (path) note_changes(l, yaml_tree_get(before, one), yaml_tree_get(after, one), path);
        }
    const char *a = before && !maps ? yaml_tree_print(before, l->region) : "";
    const char *b = after && !maps ? yaml_tree_print(after, l->region) : "";
    if (maps || (a && b && !strcmp(a, b))) return;
    const unsigned figures = spec_changes(key);
    for (int figure = 0; figure < EXPECTABLE; figure++)
        if (figures >> figure & 1 && !l->spec->changed[figure]) l->spec->changed[figure] = key;
}

static const char *shown_value(struct loader *l, const struct yaml_tree *written, const struct yaml_tree *resolved,
                               const char *key)
{
    const struct yaml_tree *value = yaml_tree_follow(written, key);
    if (!value) value = yaml_tree_follow(resolved, key);
    return value ? yaml_tree_print(value, l->region) : "unset";
}

/* The spec as it would be without overrides, as a tree of its resolved text; NULL where it is none. */
static struct yaml_tree *resolve_file(struct loader *l)
{
    struct loader bare = {.region = l->region, .reader = {.reading = {.folder = l->reader.reading.folder}}};
    struct spec *spec = region_array(l->region, 1, sizeof *spec);
    struct source *source = region_array(l->region, 1, sizeof *source);
    bare.reader.reading.region = l->region;
    bare.reader.reading.errors = errors_create(l->region);
    if (!bare.reader.reading.errors || !spec || !source) return NULL;
    const struct yaml_tree *root = l->baseline ? make_baseline(&bare, l->file) : l->file;
    if (!root) return NULL;
    spec_read(&bare.reader, root, spec);
    if (errors_count(bare.reader.reading.errors)) return NULL;
    *source = (struct source){"resolved", spec_print(spec, root, l->region), 0};
    return source->text ? yaml_tree_parse(source, 0, l->region, bare.reader.reading.errors) : NULL;
}

static enum status note_overrides(struct loader *l, int count, const char *const *keys)
{
    struct spec *spec = l->spec;
    const char **lines;
    struct source *source;
    NEW(l->region, lines, (size_t)count);
    NEW(l->region, source, 1);
    spec->override = lines;
    spec->overrides = count;
    if (!count) return ST_OK;
    *source = (struct source){"resolved", spec->resolved, 0};
    const struct yaml_tree *before = resolve_file(l);
    const struct yaml_tree *after = yaml_tree_parse(source, 0, l->region, l->reader.reading.errors);
    if (!after) return fail(ST_FAILED, "the resolved spec cannot be read back");
    note_changes(l, before, after, before ? "" : keys[0]);
    for (int i = 0; i < count; i++) {
        const char *old = shown_value(l, l->file, before, keys[i]), *now = shown_value(l, l->root, after, keys[i]);
        lines[i] = old && now ? region_text(l->region, "%s: %s -> %s", keys[i], old, now) : NULL;
        if (!lines[i]) return ST_FAILED;
    }
    return ST_OK;
}

/* ---- loading ---- */

static enum status load(struct loader *l, int count, const char *const *overrides)
{
    struct spec *spec = l->spec;
    struct yaml_reader *r = &l->reader.reading;
    struct source *source;
    const char **keys;
    r->region = l->region;
    if (!(r->errors = errors_create(l->region))) return ST_FAILED;
    if (!(r->folder = yaml_read_folder(spec->path, l->region))) return ST_FAILED;
    NEW(l->region, keys, (size_t)count);
    if (source_read(spec->path, l->region, &source) != ST_OK) return fail(ST_SPEC, "%s", status_message());
    if (l->shown) source->name = l->shown;
    spec->text = source->text;
    l->file = yaml_tree_parse(source, 0, l->region, r->errors);
    if (!l->file) return errors_report(r->errors, stderr);
    if (!(l->root = yaml_tree_copy(l->file, l->region))) return ST_FAILED;
    if (l->root->kind == YAML_MAP) overrides_apply(r, l->root, count, overrides, keys);
    struct yaml_tree *baseline = make_baseline(l, l->root);
    if (!baseline) return ST_FAILED;
    if (l->baseline) l->root = baseline;
    spec_read(&l->reader, l->root, spec);
    if (!l->baseline && l->root->kind == YAML_MAP) read_scratch(l, baseline);
    if (!l->baseline) check_points(l);
    TRY(errors_report(r->errors, stderr));
    if (!(spec->resolved = spec_print(spec, l->root, l->region))) return ST_FAILED;
    return note_overrides(l, count, keys);
}

enum status spec_load_as(const char *path, const char *shown, int count, const char *const *overrides, bool baseline,
                         struct spec **spec)
{
    struct loader l = {.region = region_create(), .shown = shown, .baseline = baseline};
    *spec = NULL;
    l.spec = l.region ? region_array(l.region, 1, sizeof *l.spec) : NULL;
    enum status status = l.spec ? ST_OK : fail(ST_FAILED, "out of memory for a spec");
    if (status == ST_OK) {
        l.spec->region = l.region;
        l.spec->path = region_text(l.region, "%s", path);
        status = l.spec->path ? load(&l, count, overrides) : ST_FAILED;
    }
    if (status == ST_OK) {
        *spec = l.spec;
        return ST_OK;
    }
    fprintf(stderr, "rematch: %s\n", status_message());
    region_destroy(l.region);
    return status;
}

enum status spec_load(const char *path, int count, const char *const *overrides, bool baseline, struct spec **spec)
{
    return spec_load_as(path, NULL, count, overrides, baseline, spec);
}

void spec_destroy(struct spec *spec)
{
    if (spec) region_destroy(spec->region);
}
