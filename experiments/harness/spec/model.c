/* The forms of a list of layers: `- flatten`, `- conv: {channels: 64, kernel: 3}`, and group, repeat and residual,
 * which hold lists of their own. */
#include "spec/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { NODES_MAX = 20000, TIMES_MAX = 10000, NAME_LENGTH = 60 };

#define NAME(preset)                                                                                                   \
    {                                                                                                                  \
        "name", SETTING_TEXT, offsetof(struct item, name), 0, 0, preset, NULL,                                         \
            "what plans, policies and messages call it"                                                                \
    }
static const struct setting named[] = {NAME(NULL), {.key = NULL}};
static const struct setting may_be_named[] = {NAME(""), {.key = NULL}};
static const struct setting repeated[] = {
    {"times", SETTING_INT, offsetof(struct item, times), 1, TIMES_MAX, NULL, NULL, "turns, each a group NAME[turn]"},
    NAME(NULL),
    {.key = NULL}};

const struct form_rows model_forms[FORMS] = {
    [FORM_LAYER] = {"", "a layer", may_be_named, {NULL}},
    [FORM_GROUP] = {"group", "layers under a name that policies and plans know", named, {"layers", NULL}},
    [FORM_REPEAT] = {"repeat", "the layers over and over, each turn a group", repeated, {"layers", NULL}},
    [FORM_RESIDUAL] = {"residual",
                       "the sum of the layers' output and the shortcut's, or their input",
                       may_be_named,
                       {"layers", "shortcut", NULL}}};

/* ---- reading ---- */

static void check_name(struct yaml_reader *r, const struct item *item, const struct yaml_tree *map, const char *path)
{
    const struct yaml_tree *at = yaml_tree_get(map, "name");
    if (!item->name || !at) return;
    size_t plain = strspn(item->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    if (item->name[plain] || plain > NAME_LENGTH)
        yaml_read_error(r, at, path, "name", "'%.*s' cannot be a name; expected up to %d letters, digits, _ and -",
                        text_shown(item->name, NAME_LENGTH), item->name, NAME_LENGTH);
}

bool model_lists(const struct layer *layer) { return !layer->loss && layer->inputs == 1 + layer->reads_batch; }

/* Everything a list may hold, in the order of the tables. */
static const char *const *words_of(struct region *region)
{
    size_t count = 0, at = 0;
    const char **words;
    while (layer_table[count]) count++;
    if (NEWLY(region, words, count + FORMS + 1) != ST_OK) return NULL;
    for (size_t i = 0; i < count; i++)
        if (model_lists(layer_table[i])) words[at++] = layer_table[i]->name;
    for (int f = FORM_GROUP; f < FORMS; f++) words[at++] = model_forms[f].name;
    return words;
}

/* What word stands for; false: nothing that can stand in a list. */
static bool find_form(struct yaml_reader *r, const struct yaml_tree *word, const char *path, struct item *item)
{
    for (int f = FORM_GROUP; f < FORMS; f++)
        if (!strcmp(word->text, model_forms[f].name)) return item->form = (enum form)f, true;
    item->layer = layer_find(word->text);
    if (item->layer && model_lists(item->layer)) return true;
    const char *const *words = words_of(r->region);
    const char *unknown = words ? yaml_read_unknown(r, word->text, words) : NULL;
    if (item->layer && item->layer->loss)
        yaml_read_error(r, word, path, NULL, "%s is a loss; it is chosen by the spec's loss:", word->text);
    else if (item->layer)
        yaml_read_error(r, word, path, NULL, "%s joins two branches; write residual: {layers: [...]}", word->text);
    else
        yaml_read_error(r, word, path, NULL, "%s", unknown ? unknown : "not a layer");
    return false;
}

/* The layer's own keys. `units: classes` is as many as the data set has: read as 1, filled in when building. */
static void read_layer(struct yaml_reader *r, const struct yaml_tree *map, const char *path, struct item *item,
                       int init)
{
    static const char *const also[] = {"name", NULL};
    const struct setting *keys = item->layer->keys, *own = setting_find(keys, "init");
    const struct yaml_tree *units = yaml_tree_get(map, "units");
    item->classes = units && setting_find(keys, "units") && units->kind == YAML_TEXT && !strcmp(units->text, "classes");
    struct yaml_tree *read = yaml_tree_copy(map, r->region);
    if (item->classes)
        yaml_tree_set(read, "units", units->mark, yaml_tree_make(YAML_TEXT, "1", units->mark, r->region), r->region);
    item->settings = region_array(r->region, 1, item->layer->settings_size);
    yaml_read_map(r, read, path, item->layer->name, keys, also, item->settings);
    if (own && yaml_tree_find(map, "init") < 0) memcpy((char *)item->settings + own->offset, &init, sizeof init);
    const struct yaml_tree *name = yaml_tree_get(map, "name");
    if (name) yaml_read_value(r, name, path, may_be_named, item);
}

static int read_list(struct yaml_reader *r, const struct yaml_tree *list, const char *path, int init,
                     struct item **items);

static void read_lists(struct yaml_reader *r, const struct yaml_tree *map, const char *path, struct item *item,
                       int init)
{
    for (int i = 0; model_forms[item->form].lists[i]; i++) {
        const char *key = model_forms[item->form].lists[i];
        const struct yaml_tree *list = yaml_tree_get(map, key);
        const char *below = region_text(r->region, "%s.%s", path, key);
        if (!list && i == 0) yaml_read_error(r, map, path, key, "missing; expected a list of layers");
        if (!list || !below) continue;
        if (i == 0) item->body_count = read_list(r, list, below, init, &item->body);
        if (i == 1) item->shortcut_count = read_list(r, list, below, init, &item->shortcut);
    }
}

static bool read_item(struct yaml_reader *r, const struct yaml_tree *tree, const char *path, int init,
                      struct item *item)
{
    bool bare = tree->kind == YAML_TEXT, mapped = tree->kind == YAML_MAP && tree->count == 1;
    item->at = bare ? tree : mapped ? tree->key[0] : tree;
    if (!bare && !mapped) {
        yaml_read_error(r, tree, path, NULL, "expected one layer, as in `- flatten` or `- conv: {kernel: 3}`");
        return false;
    }
    if (!find_form(r, item->at, path, item)) return false;
    const struct yaml_tree *map = mapped ? tree->item[0] : yaml_tree_make(YAML_MAP, NULL, tree->mark, r->region);
    const char *below = region_text(r->region, "%s.%s", path, item->at->text);
    if (!map || !below) return false;
    if (map->kind == YAML_NULL) map = yaml_tree_make(YAML_MAP, NULL, map->mark, r->region); /* `- flatten:` */
    if (map->kind != YAML_MAP || item->form != FORM_LAYER)
        yaml_read_map(r, map, below, item->at->text, model_forms[item->form].keys, model_forms[item->form].lists, item);
    else
        read_layer(r, map, below, item, init);
    check_name(r, item, map, below);
    if (map->kind == YAML_MAP) read_lists(r, map, below, item, init);
    return true;
}

/* Returns how many items there are. */
static int read_list(struct yaml_reader *r, const struct yaml_tree *list, const char *path, int init,
                     struct item **items)
{
    int count = 0;
    if (list->kind != YAML_LIST || !list->count) {
        yaml_read_error(r, list, path, NULL, "expected a list of layers, at least one");
        return 0;
    }
    if (NEWLY(r->region, *items, (size_t)list->count) != ST_OK) return 0;
    for (int i = 0; i < list->count; i++) {
        const char *at = region_text(r->region, "%s[%d]", path, i);
        count += at && read_item(r, list->item[i], at, init, &(*items)[count]);
    }
    return count;
}

/* Nodes that the items become, at most NODES_MAX + 1; says once where there are too many. */
static int64_t count_nodes(struct yaml_reader *r, const struct item *item, int count)
{
    int64_t nodes = 0;
    for (int i = 0; i < count && nodes <= NODES_MAX; i++) {
        const struct item *it = &item[i];
        int64_t inner = count_nodes(r, it->body, it->body_count) + count_nodes(r, it->shortcut, it->shortcut_count);
        nodes += it->form == FORM_REPEAT ? inner * it->times : inner + (it->form != FORM_GROUP);
        if (inner <= NODES_MAX && nodes > NODES_MAX)
            yaml_read_error(r, it->at, "model", NULL, "more than %d layers up to here", NODES_MAX);
    }
    return nodes <= NODES_MAX ? nodes : NODES_MAX + 1;
}

struct model *model_read(struct yaml_reader *r, const struct yaml_tree *list, int init)
{
    struct model *model = region_array(r->region, 1, sizeof *model);
    if (!model) return NULL;
    model->count = read_list(r, list, "layers", init, &model->item);
    count_nodes(r, model->item, model->count);
    return model;
}

/* ---- printing ---- */

/* "key: value, " of every setting that is set. */
static void print_keys(const struct setting *keys, const void *object, const char *between, bool classes,
                       struct region *region, FILE *out, int *printed)
{
    for (const struct setting *f = keys; f && f->key; f++) {
        if (setting_unset(f, object)) continue;
        const char *value = classes && !strcmp(f->key, "units") ? "classes" : setting_print(f, object, region);
        fprintf(out, "%s%s: %s", (*printed)++ ? between : "", f->key, value ? value : "");
    }
}

static void print_items(const struct item *item, int count, int indent, struct region *region, FILE *out);

static void print_lists(const struct item *item, int indent, struct region *region, FILE *out)
{
    fprintf(out, "\n%*slayers:\n", indent, "");
    print_items(item->body, item->body_count, indent + 2, region, out);
    if (!item->shortcut_count) return;
    fprintf(out, "%*sshortcut:\n", indent, "");
    print_items(item->shortcut, item->shortcut_count, indent + 2, region, out);
}

static void print_items(const struct item *item, int count, int indent, struct region *region, FILE *out)
{
    for (; count > 0; item++, count--) {
        bool layer = item->form == FORM_LAYER;
        int printed = 0;
        fprintf(out, "%*s- %s:", indent, "", layer ? item->layer->name : model_forms[item->form].name);
        char *between = region_text(region, layer ? ", " : "\n%*s", indent + 4, "");
        if (layer) fputs(" {", out);
        if (!layer) fprintf(out, "\n%*s", indent + 4, "");
        if (layer) print_keys(item->layer->keys, item->settings, between, item->classes, region, out, &printed);
        print_keys(model_forms[item->form].keys, item, between, false, region, out, &printed);
        if (layer)
            fputs("}\n", out);
        else
            print_lists(item, indent + 4, region, out);
    }
}

void model_print(const struct model *model, int indent, struct region *region, FILE *out)
{
    print_items(model->item, model->count, indent, region, out);
}
