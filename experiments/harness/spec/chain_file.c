/* An item of the list is a stage or, with `stages`, a group of items. `repeat: N` stands for N copies of either, whose
 * names become NAME[0], NAME[1] and so on, as in a model. */
#include "spec/chain_file.h"

#include "backend/abstract_chain.h"
#include "spec/spec_read.h"

struct item {
    struct abstract_stage stage;
    int64_t repeat;
};

#define STAGE(member) offsetof(struct item, stage.member)
#define REPEAT                                                                                                         \
    {                                                                                                                  \
        "repeat", SETTING_INT, offsetof(struct item, repeat), 1, CHAIN_STAGES_MAX, "1", NULL, "copies in a row"        \
    }

static const struct setting stage_keys[] = {
    {"name", SETTING_TEXT, STAGE(name), 0, 0, "", NULL, "unique; stage3 for the third if unset"},
    {"forward", SETTING_REAL, STAGE(forward), 0, 0x1p53, NULL, NULL, "time, in any unit"},
    {"backward", SETTING_REAL, STAGE(backward), 0, 0x1p53, NULL, NULL, "time, in the same unit"},
    {"output", SETTING_BYTES, STAGE(output), 0, 0x1p62, NULL, NULL, "a(i)"},
    {"saved", SETTING_BYTES, STAGE(saved), 0, 0x1p62, NULL, NULL, "saved tensors, without input and output"},
    {"gradient", SETTING_BYTES, STAGE(gradient), 0, 0x1p62, NULL, NULL, "d(i)"},
    {"forward_scratch", SETTING_BYTES, STAGE(forward_scratch), 0, 0x1p62, "0", NULL, "live within the forward only"},
    {"backward_scratch", SETTING_BYTES, STAGE(backward_scratch), 0, 0x1p62, "0", NULL, "live within the backward only"},
    {"split", SETTING_BOOL, STAGE(split), 0, 0, "false", NULL, "the backward is two ops"},
    REPEAT,
    {.key = NULL}};

static const struct setting group_keys[] = {REPEAT, {.key = NULL}};
static const char *const also_stages[] = {"stages", NULL};

static const struct setting file_keys[] = {
    {"name", SETTING_TEXT, offsetof(struct spec, name), 0, 0, NULL, NULL, "of the chain"},
    {"title", SETTING_TEXT, offsetof(struct spec, title), 0, 0, "", NULL, "one line of text"},
    {"drop_dead", SETTING_BOOL, offsetof(struct spec, drop_dead), 0, 0, "true", NULL,
     "leave out recomputations whose result no op reads"},
    {.key = NULL}};
static const char *const also_file[] = {"rematch", "chain", "policy", NULL};

struct chain_reader {
    struct yaml_reader yaml;
    int stages;
    struct abstract_stage stage[CHAIN_STAGES_MAX];
    const struct yaml_tree *at[CHAIN_STAGES_MAX]; /* of each stage: the item that made it */
};

/* Replaces stages [from, stages) by so many copies of them. */
static void repeat(struct chain_reader *c, const struct yaml_tree *item, const char *path, int from, int64_t times)
{
    const int each = c->stages - from;
    if (times < 2) return;
    if (from + each * times > CHAIN_STAGES_MAX) {
        yaml_read_error(&c->yaml, item, path, "repeat", "more than %d stages in all", CHAIN_STAGES_MAX);
        return;
    }
    for (int64_t turn = times; turn >= 1; turn--)
        for (int i = 0; i < each; i++) {
            const int to = from + (int)(turn - 1) * each + i;
            const char *name = c->stage[from + i].name;
            c->stage[to] = c->stage[from + i];
            if (name) c->stage[to].name = region_text(c->yaml.region, "%s[%d]", name, (int)turn - 1);
            c->at[to] = c->at[from + i];
        }
    c->stages = from + (int)times * each;
}

static void read_list(struct chain_reader *c, const struct yaml_tree *list, const char *path);

static void read_item(struct chain_reader *c, const struct yaml_tree *tree, const char *path)
{
    struct yaml_reader *r = &c->yaml;
    struct item item = {.repeat = 1};
    const struct yaml_tree *stages = yaml_tree_get(tree, "stages");
    const int from = c->stages;
    yaml_read_map(r, tree, path, stages ? "a group" : "a stage", stages ? group_keys : stage_keys, also_stages, &item);
    if (stages) {
        read_list(c, stages, region_text(r->region, "%s.stages", path));
    } else if (from < CHAIN_STAGES_MAX) {
        c->stage[from] = item.stage;
        c->at[from] = tree;
        c->stages++;
    } else {
        yaml_read_error(r, tree, path, NULL, "more than %d stages in all", CHAIN_STAGES_MAX);
    }
    repeat(c, tree, path, from, item.repeat);
}

static void read_list(struct chain_reader *c, const struct yaml_tree *list, const char *path)
{
    if (list->kind != YAML_LIST || !list->count) {
        yaml_read_error(&c->yaml, list, path, NULL, "expected a list of at least one stage");
        return;
    }
    for (int i = 0; i < list->count; i++) read_item(c, list->item[i], region_text(c->yaml.region, "%s[%d]", path, i));
}

static void read_file(struct chain_reader *c, const struct yaml_tree *root, struct spec *spec)
{
    struct yaml_reader *r = &c->yaml;
    const struct yaml_tree *model = yaml_tree_get(root, "model"), *list = yaml_tree_get(root, "chain");
    if (model) {
        yaml_read_error(r, model, NULL, "model", "a chain file has no such key; a spec is planned without --chain");
        return;
    }
    yaml_read_map(r, root, NULL, "a chain file", file_keys, also_file, spec);
    if (root->kind != YAML_MAP) return;
    if (!spec->title) spec->title = spec->name;
    yaml_read_version(r, root, "rematch", SPEC_VERSION, "a spec");
    if (yaml_tree_get(root, "policy")) spec_read_section(r, spec_section("policy"), root, spec);
    if (list)
        read_list(c, list, "chain");
    else
        yaml_read_error(r, root, NULL, "chain", "missing; expected a list of stages");
}

static enum status load(struct spec *spec, struct network **network)
{
    struct chain_reader *c;
    struct source *source;
    struct yaml_tree *root;
    const char **keys;
    int at;
    NEW(spec->region, c, 1);
    NEW(spec->region, keys, (size_t)spec->overrides);
    c->yaml =
        (struct yaml_reader){spec->region, errors_create(spec->region), yaml_read_folder(spec->path, spec->region)};
    struct errors *errors = c->yaml.errors;
    if (source_read(spec->path, spec->region, &source) != ST_OK) return ST_SPEC;
    if (!(root = yaml_tree_parse(source, 0, spec->region, errors))) return errors_report(errors, stderr);
    if (root->kind == YAML_MAP) overrides_apply(&c->yaml, root, spec->overrides, spec->override, keys);
    read_file(c, root, spec);
    if (!errors_count(errors) && abstract_create(c->stage, c->stages, &at, network) != ST_OK)
        yaml_read_error(&c->yaml, c->at[at], NULL, NULL, "%s", status_message());
    return errors_report(errors, stderr);
}

enum status chain_file_load(const char *path, int count, const char *const *overrides, struct spec **spec,
                            struct network **network)
{
    struct region *region = region_create();
    NEW(region, *spec, 1);
    **spec = (struct spec){.region = region, .path = path, .overrides = count, .override = overrides};
    *network = NULL;
    const enum status status = load(*spec, network);
    if (status == ST_OK) return ST_OK;
    spec_destroy(*spec);
    *spec = NULL;
    return status;
}
