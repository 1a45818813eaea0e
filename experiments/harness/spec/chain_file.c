/* Contract: an item of the list is a stage or, where it has `stages`, a group of items; `repeat` writes either out so
 * many times, and NAME becomes NAME[0], NAME[1] and so on, as in a model. */
#include "spec/chain_file.h"

#include <string.h>

#include "spec/overrides.h"
#include "spec/spec_read.h"

struct item {
    struct abstract_stage stage;
    int64_t repeat;
};

#define TIME(key, doc)                                                                                                 \
    {                                                                                                                  \
#key, SETTING_REAL, offsetof(struct item, stage.key), 0, 0x1p53, NULL, NULL, doc                               \
    }
#define SIZE(key, preset, doc)                                                                                         \
    {                                                                                                                  \
#key, SETTING_BYTES, offsetof(struct item, stage.key), 0, 0x1p62, preset, NULL, doc                            \
    }
#define REPEAT                                                                                                         \
    {                                                                                                                  \
        "repeat", SETTING_INT, offsetof(struct item, repeat), 1, CHAIN_STAGES_MAX, "1", NULL, "so many times in a row" \
    }

static const struct setting stage_keys[] = {
    {"name", SETTING_TEXT, offsetof(struct item, stage.name), 0, 0, "", NULL, "for people"},
    TIME(forward, "time, in any unit"),
    TIME(backward, "time, in the same unit"),
    SIZE(output, NULL, "a(i)"),
    SIZE(saved, NULL, "what a forward keeps for the backward besides input and output"),
    SIZE(gradient, NULL, "d(i)"),
    SIZE(forward_scratch, "0", "live within the forward only"),
    SIZE(backward_scratch, "0", "live within the backward only"),
    {"split", SETTING_BOOL, offsetof(struct item, stage.split), 0, 0, "false", NULL, "the backward is two ops"},
    REPEAT,
    {.key = NULL}};

static const struct setting group_keys[] = {REPEAT, {.key = NULL}};
static const char *const also_stages[] = {"stages", NULL};

static const struct setting file_keys[] = {
    {"name", SETTING_TEXT, offsetof(struct chain_file, name), 0, 0, NULL, NULL, "of the chain"},
    {"title", SETTING_TEXT, offsetof(struct chain_file, title), 0, 0, "", NULL, "one line for people"},
    {"drop_dead", SETTING_BOOL, offsetof(struct chain_file, drop_dead), 0, 0, "true", NULL,
     "leave out dead recomputations: those that no op reads"},
    {.key = NULL}};
static const char *const also_file[] = {"rematch", "chain", "policy", NULL};

struct chain_reader {
    struct yaml_reader reading;
    struct chain_file *file;
    const struct yaml_tree **at; /* of each stage: the item that made it */
};

/* Writes stages [from, stages) out times times. */
static void repeat(struct chain_reader *c, const struct yaml_tree *item, const char *path, int from, int64_t times)
{
    struct chain_file *file = c->file;
    const int each = file->stages - from;
    if (times < 2) return;
    if (from + each * times > CHAIN_STAGES_MAX) {
        yaml_read_error(&c->reading, item, path, "repeat", "more than %d stages in all", CHAIN_STAGES_MAX);
        return;
    }
    for (int64_t turn = times; turn >= 1; turn--)
        for (int i = 0; i < each; i++) {
            const int to = from + (int)(turn - 1) * each + i;
            const char *name = file->stage[from + i].name;
            file->stage[to] = file->stage[from + i];
            if (name) file->stage[to].name = region_text(file->region, "%s[%d]", name, (int)turn - 1);
            c->at[to] = c->at[from + i];
        }
    file->stages = from + (int)times * each;
}

static void read_list(struct chain_reader *c, const struct yaml_tree *list, const char *path);

static void read_item(struct chain_reader *c, const struct yaml_tree *tree, const char *path)
{
    struct yaml_reader *r = &c->reading;
    struct chain_file *file = c->file;
    struct item item = {.repeat = 1};
    const struct yaml_tree *stages = yaml_tree_get(tree, "stages");
    const int from = file->stages;
    const bool room = from < CHAIN_STAGES_MAX;
    yaml_read_map(r, tree, path, stages ? "a group" : "a stage", stages ? group_keys : stage_keys, also_stages, &item);
    if (stages) {
        const char *inner = region_text(r->region, "%s.stages", path);
        if (inner) read_list(c, stages, inner);
    } else if (room) {
        file->stage[from] = item.stage;
        c->at[from] = tree;
        file->stages++;
    } else {
        yaml_read_error(r, tree, path, NULL, "more than %d stages in all", CHAIN_STAGES_MAX);
    }
    repeat(c, tree, path, from, item.repeat);
}

static void read_list(struct chain_reader *c, const struct yaml_tree *list, const char *path)
{
    if (list->kind != YAML_LIST || !list->count) {
        yaml_read_error(&c->reading, list, path, NULL, "expected a list of at least one stage");
        return;
    }
    for (int i = 0; i < list->count; i++) {
        const char *item = region_text(c->reading.region, "%s[%d]", path, i);
        if (item) read_item(c, list->item[i], item);
    }
}

/* Stages without a name are called by their number; no two are called the same. */
static enum status name_stages(struct chain_reader *c)
{
    struct abstract_stage *stage = c->file->stage;
    for (int i = 0; i < c->file->stages; i++) {
        if (!stage[i].name) stage[i].name = region_text(c->file->region, "stage%d", i + 1);
        if (!stage[i].name) return ST_FAILED;
        for (int before = 0; before < i; before++) {
            if (strcmp(stage[before].name, stage[i].name) != 0) continue;
            yaml_read_error(&c->reading, c->at[i], "chain", "name", "stages %d and %d are both called '%s'", before + 1,
                            i + 1, stage[i].name);
            return ST_OK;
        }
    }
    return ST_OK;
}

static enum status read_policy(struct yaml_reader *r, const struct yaml_tree *root, struct chain_file *file)
{
    struct spec *spec;
    if (!yaml_tree_get(root, "policy")) return ST_OK;
    NEW(file->region, spec, 1);
    spec_read_section(r, spec_section("policy"), root, spec);
    file->policy = spec->policy;
    file->settings = spec->policy_settings;
    return ST_OK;
}

static enum status read_file(struct chain_reader *c, const struct yaml_tree *root)
{
    struct yaml_reader *r = &c->reading;
    struct chain_file *file = c->file;
    const struct yaml_tree *model = yaml_tree_get(root, "model");
    if (model) {
        yaml_read_error(r, model, NULL, "model", "a chain file has no such key; a spec is planned without --chain");
        return ST_OK;
    }
    yaml_read_map(r, root, NULL, "a chain file", file_keys, also_file, file);
    if (root->kind != YAML_MAP) return ST_OK;
    spec_read_version(r, root);
    TRY(read_policy(r, root, file));
    NEW(file->region, file->stage, CHAIN_STAGES_MAX);
    NEW(file->region, c->at, CHAIN_STAGES_MAX);
    const struct yaml_tree *list = yaml_tree_get(root, "chain");
    if (list)
        read_list(c, list, "chain");
    else
        yaml_read_error(r, root, NULL, "chain", "missing; expected a list of stages");
    if (errors_count(r->errors)) return ST_OK;
    TRY(name_stages(c));
    int at;
    if (abstract_check(file->stage, file->stages, &at) != ST_OK)
        yaml_read_error(r, c->at[at], NULL, NULL, "%s", status_message());
    return ST_OK;
}

static enum status load(struct chain_file *file, const char *path, int count, const char *const *overrides)
{
    struct chain_reader c = {
        .reading = {file->region, errors_create(file->region), yaml_read_folder(path, file->region)}, .file = file};
    struct source *source;
    struct yaml_tree *root;
    const char **keys;
    if (!c.reading.errors || !c.reading.folder) return ST_FAILED;
    NEW(file->region, keys, (size_t)count);
    if (source_read(path, file->region, &source) != ST_OK) return fail(ST_SPEC, "%s", status_message());
    if (!(root = yaml_tree_parse(source, 0, file->region, c.reading.errors)))
        return errors_report(c.reading.errors, stderr);
    if (root->kind == YAML_MAP) overrides_apply(&c.reading, root, count, overrides, keys);
    TRY(read_file(&c, root));
    file->overrides = count;
    file->override = overrides;
    return errors_report(c.reading.errors, stderr);
}

enum status chain_file_load(const char *path, int count, const char *const *overrides, struct chain_file **file)
{
    struct region *region = region_create();
    struct chain_file *f = region ? region_array(region, 1, sizeof *f) : NULL;
    enum status status = f ? ST_OK : fail(ST_FAILED, "out of memory for a chain");
    *file = NULL;
    if (f) {
        f->region = region;
        status = load(f, path, count, overrides);
    }
    if (status == ST_OK)
        *file = f;
    else
        region_destroy(region);
    return status;
}

void chain_file_destroy(struct chain_file *file)
{
    if (file) region_destroy(file->region);
}
