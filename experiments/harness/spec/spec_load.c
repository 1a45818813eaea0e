/* Loading a spec: the file is parsed, the overrides are applied and the baseline is derived, all on the tree; then both
 * trees are read. Contract: the same file and arguments give the same resolved text. */
#include "spec/spec.h"

#include <assert.h>
#include <string.h>

#include "spec/full_keys.h"
#include "spec/spec_read.h"
#include "spec/spec_settings.h"

struct loader {
    struct spec_reader reader;
    struct region *region;
    struct yaml_tree *file; /* as written */
    struct yaml_tree *root; /* after the overrides */
    int overrides;
    const char **key; /* of each override */
};

/* ---- the baseline ---- */

static const char *const own_keys[] = {"backend",   "check",           "conv",         "drop_dead", "memory", "record",
                                       "relu_save", "relu_after_pool", "pool_in_conv", "rng",       "update", NULL};

const struct wrong_value spec_wrong_values[] = {{"rng", "unsafe", "stash"}, {"commit", "every", "once"}, {.key = NULL}};

bool spec_is_own(const char *key) { return yaml_read_among(key, own_keys); }

/* value NULL: removes the key. */
static void set_key(struct yaml_tree *root, const char *key, const char *value, struct region *region)
{
    const struct yaml_tree *old = yaml_tree_get(root, key);
    const struct mark mark = old ? old->mark : root->mark;
    yaml_tree_set(root, key, mark, value ? yaml_tree_make(YAML_TEXT, value, mark, region) : NULL, region);
}

static bool is_text(const struct yaml_tree *value, const char *text)
{
    return value && value->kind == YAML_TEXT && !strcmp(value->text, text);
}

/* The tree of root's baseline: it recomputes nothing, takes no stored plan and injects no fault; then its baseline:
 * block applies. Of a separate update there are no parts. */
static struct yaml_tree *make_baseline(struct loader *l, const struct yaml_tree *root)
{
    static const char *const dropped[] = {"plan", "fault", "check", "baseline", "expect", "published", "sweep", NULL};
    struct yaml_reader *r = &l->reader.yaml;
    struct yaml_tree *own = yaml_tree_copy(root, l->region);
    const struct yaml_tree *block = yaml_tree_get(root, "baseline");
    if (root->kind != YAML_MAP) return own;
    set_key(own, "policy", "store_all", l->region);
    for (const struct wrong_value *w = spec_wrong_values; w->key; w++)
        if (is_text(yaml_tree_get(root, w->key), w->value)) set_key(own, w->key, w->of_baseline, l->region);
    for (const char *const *key = dropped; *key; key++) set_key(own, *key, NULL, l->region);
    if (block && block->kind != YAML_MAP) yaml_read_error(r, block, NULL, "baseline", "expected a map of keys");
    for (int i = 0; block && block->kind == YAML_MAP && i < block->count; i++) {
        const char *key = block->key[i]->text;
        if (spec_is_own(key))
            yaml_tree_set(own, key, block->key[i]->mark, block->item[i], l->region);
        else
            yaml_read_error(r, block->key[i], "baseline", key, "%s", yaml_read_unknown(r, key, own_keys, ""));
    }
    if (is_text(yaml_tree_get(block, "update"), "separate")) set_key(own, "update_part", NULL, l->region);
    return own;
}

/* ---- sweeps ---- */

/* Reads every point as a spec of its own; errors are reported at the values. */
static void check_points(struct loader *l, const struct spec *spec)
{
    if (errors_count(l->reader.yaml.errors)) return;
    for (int point = 0; point < spec->points; point++) {
        struct yaml_tree *root = yaml_tree_copy(l->root, l->region);
        set_key(root, "sweep", NULL, l->region);
        set_key(root, "expect", NULL, l->region);
        for (int a = 0; a < spec->axes; a++) {
            const struct sweep_axis *axis = &spec->axis[a];
            yaml_tree_assign(root, axis->node, axis->value[spec->point[point * spec->axes + a]], l->region);
        }
        spec_read(&l->reader, root, region_array(l->region, 1, sizeof(struct spec)));
    }
}

/* ---- the resolved text and what overrides changed in it ---- */

/* Notes which numbers the differences between two resolved values of key affect; maps are compared key by key. NULL:
 * not there. */
static void note_changes(struct spec *spec, const struct yaml_tree *before, const struct yaml_tree *after,
                         const char *key)
{
    const struct yaml_tree *const sides[] = {before, after};
    const bool maps = before && after && before->kind == YAML_MAP && after->kind == YAML_MAP;
    for (int side = 0; maps && side < 2; side++)
        for (int i = 0; i < sides[side]->count; i++) {
            const char *one = sides[side]->key[i]->text;
            note_changes(spec, yaml_tree_get(before, one), yaml_tree_get(after, one),
                         region_text(spec->region, "%s%s%s", key, *key ? "." : "", one));
        }
    const char *a = before && !maps ? yaml_tree_print(before, spec->region) : "";
    const char *b = after && !maps ? yaml_tree_print(after, spec->region) : "";
    if (maps || !strcmp(a, b)) return;
    const unsigned numbers = spec_changes(key);
    for (int json_member = 0; json_member < EXPECTABLE; json_member++)
        if (numbers >> json_member & 1 && !spec->changed[json_member]) spec->changed[json_member] = key;
}

/* The value at key as written, as resolved, or of the model's presets, which the resolved text has in their places
 * alone; NULL: unset. */
static const char *shown_value(const struct yaml_tree *written, const struct yaml_tree *resolved,
                               const struct spec *spec, const char *key, struct region *region)
{
    static const char parameter[] = "model.parameters.";
    const size_t length = sizeof parameter - 1;
    const struct yaml_tree *value = yaml_tree_follow(written, key);
    if (!value) value = yaml_tree_follow(resolved, key);
    if (!value && !strncmp(key, parameter, length)) value = yaml_tree_get(spec->model_presets, key + length);
    return value ? yaml_tree_print(value, region) : NULL;
}

/* The resolved tree of the file without overrides, which is read into spec; NULL: without them it is no spec. */
static struct yaml_tree *resolve_file(const struct loader *l, bool baseline, struct spec *spec)
{
    struct loader bare = {.region = l->region, .reader.yaml = l->reader.yaml};
    bare.reader.yaml.errors = errors_create(l->region);
    const struct yaml_tree *root = baseline ? make_baseline(&bare, l->file) : l->file;
    spec_read(&bare.reader, root, spec);
    if (errors_count(bare.reader.yaml.errors)) return NULL;
    return yaml_tree_of_text(spec_print(spec, root, l->region), l->region);
}

static void resolve(struct loader *l, struct spec *spec, const struct yaml_tree *root)
{
    const char **lines;
    NEW(l->region, lines, (size_t)l->overrides);
    spec->resolved = spec_print(spec, root, l->region);
    spec->override = lines;
    if (!l->overrides) return;
    struct spec *file = region_array(l->region, 1, sizeof *file);
    const struct yaml_tree *before = resolve_file(l, !spec->baseline, file),
                           *after = yaml_tree_of_text(spec->resolved, l->region);
    assert(after);
    note_changes(spec, before, after, before ? "" : l->key[0]);
    for (int i = 0; i < l->overrides; i++) {
        const char *from = shown_value(l->file, before, file, l->key[i], l->region);
        const char *to = shown_value(root, after, spec, l->key[i], l->region);
        if (from || to) /* else it removed a key that was not there */
            lines[spec->overrides++] =
                region_text(l->region, "%s: %s -> %s", l->key[i], from ? from : "unset", to ? to : "unset");
    }
}

/* ---- loading ---- */

static enum status load(struct loader *l, struct source *source, const char *const *overrides, struct spec *spec)
{
    struct yaml_reader *r = &l->reader.yaml;
    l->file = yaml_tree_parse(source, 0, l->region, r->errors);
    if (!l->file) return errors_report(r->errors, stderr);
    l->root = yaml_tree_copy(l->file, l->region);
    if (l->root->kind == YAML_MAP) overrides_apply(r, l->root, l->overrides, overrides, l->key);
    const struct yaml_tree *baseline = make_baseline(l, l->root);
    spec->root = spec->baseline->root = l->root;
    spec_read(&l->reader, l->root, spec);
    if (l->root->kind == YAML_MAP) spec_read(&l->reader, baseline, spec->baseline);
    check_points(l, spec);
    TRY(errors_report(r->errors, stderr));
    resolve(l, spec, l->root);
    resolve(l, spec->baseline, baseline);
    return ST_OK;
}

enum status spec_load_as(const char *path, const char *shown, int count, const char *const *overrides,
                         struct spec **spec)
{
    struct region *region = region_create();
    struct loader l = {
        .reader.yaml = {region, errors_create(region), yaml_read_folder(path, region), full_key_names(region)},
        .region = region,
        .overrides = count};
    struct source *source;
    NEW(region, l.key, (size_t)count);
    *spec = NULL;
    enum status status = source_read(path, region, &source) == ST_OK ? ST_OK : fail(ST_SPEC, "%s", status_message());
    if (status == ST_OK) {
        struct spec *both = *spec = region_array(region, 2, sizeof *both);
        both[0] = both[1] =
            (struct spec){.region = region, .path = region_text(region, "%s", path), .text = source->text};
        both[0].baseline = &both[1];
        if (shown) source->name = shown;
        status = load(&l, source, overrides, *spec);
    }
    if (status != ST_OK) region_destroy(region), *spec = NULL;
    return status;
}

enum status spec_load(const char *path, int count, const char *const *overrides, struct spec **spec)
{
    return spec_load_as(path, NULL, count, overrides, spec);
}

enum status spec_place(const struct spec *spec, enum status status)
{
    const char *message = region_text(spec->region, "%s", status_message());
    const char *key = region_text(spec->region, "%.*s", (int)strcspn(message, ":"), message);
    const struct yaml_tree *at = status == ST_SPEC && *key ? yaml_tree_follow(spec->root, key) : NULL;
    if (!at || at->mark.source->argument) return status;
    struct errors *errors = errors_create(spec->region);
    errors_add(errors, at->mark, NULL, "%s", message);
    return errors_report(errors, stderr);
}

void spec_destroy(struct spec *spec)
{
    if (spec) region_destroy(spec->region);
}
