/* The forms of a list of layers: `- flatten`, `- conv: {channels: 64, kernel: 3}`, and group, repeat, residual,
 * concat, multiply, cross_attention and auxiliary, which hold lists of their own. */
#include "spec/model.h"

#include <string.h>

#include "base/text.h"
#include "yaml/yaml_write.h"

enum { NODES_MAX = 20000, TIMES_MAX = 10000, NAME_LENGTH = 60, LORA_NODES = 5, FORM_KEYS = 4 };

static enum status check_name(const char *name)
{
    const size_t plain = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    if (!name[plain] && plain <= NAME_LENGTH) return ST_OK;
    return fail(ST_SPEC, "'%.*s' cannot be a name; expected up to %d letters, digits, _ and -",
                text_shown(name, NAME_LENGTH), name, NAME_LENGTH);
}

#define NAME(preset, of)                                                                                               \
    "name", SETTING_TEXT, offsetof(struct item, name), 0, 0, preset, NULL, of " in plans, policies and messages",      \
        check_name
#define TRAINABLE(what) "trainable", SETTING_BOOL, offsetof(struct item, trainable), 1, 0, "true", NULL, what
#define FROM(doc)       "from", SETTING_TEXT, offsetof(struct item, from), 0, 0, "", NULL, doc
#define SLICES                                                                                                         \
    "slices", SETTING_INT, offsetof(struct item, slices), 1, 1, "0", NULL,                                             \
        "1: it computes the whole batch at once, whatever the spec's slices"
static const struct setting named[] = {
    {NAME(NULL, "its name")}, {TRAINABLE("false: no layer in it has its parameters trained")}, {.key = NULL}};
static const struct setting of_layers[] = {
    {NAME("", "its name")},
    {FROM("an earlier name, whose output it reads instead of the one before it")},
    {SLICES},
    {TRAINABLE("false: its parameters stay as they are; no gradient, no optimizer state")},
    {.key = NULL}};
static const struct setting of_products[] = {
    {NAME("", "its name")},
    {FROM("an earlier name, whose output it reads instead of the one before it")},
    {"tied", SETTING_TEXT, offsetof(struct item, tied), 0, 0, "", NULL,
     "an earlier embedding or linear layer, whose weight is its weight, too"},
    {SLICES},
    {TRAINABLE("false: its parameters stay as they are; no gradient, no optimizer state")},
    {.key = NULL}};
static const struct setting of_sums[] = {
    {NAME("", "its name")},
    {SLICES},
    {TRAINABLE("false: its parameters stay as they are; no gradient, no optimizer state")},
    {.key = NULL}};
static const struct setting of_joins[] = {
    {NAME("", "the name of the group of its nodes")},
    {FROM("an earlier name, whose output the shortcut reads instead of the one before")},
    {.key = NULL}};
static const struct setting weighted[] = {
    {"weight", SETTING_REAL, offsetof(struct item, weight), 1e-6, 1e6, NULL, NULL, "factor of this loss in the sum"},
    {NAME("", "the name of the group of its nodes")},
    {FROM("an earlier name, whose output its layers read instead of the one before")},
    {.key = NULL}};
static const struct setting repeated[] = {
    {"times", SETTING_INT, offsetof(struct item, times), 1, TIMES_MAX, NULL, NULL, "repetitions, each a group NAME[i]"},
    {NAME(NULL, "its name")},
    {TRAINABLE("false: no layer in it has its parameters trained")},
    {.key = NULL}};

const struct setting lora_keys[] = {
    {"rank", SETTING_INT, offsetof(struct lora, rank), 1, INT32_MAX, NULL, NULL, "width between the two products"},
    {"alpha", SETTING_REAL, offsetof(struct lora, alpha), 1e-6, 1e6, NULL, NULL, "alpha / rank is their factor"},
    {.key = NULL}};

static const struct form_list body[] = {{"layers", "in their order", true}, {.key = NULL}};
#define LAYERS   "layers", "in their order; without them, their input itself; needed without shortcut and from", false
#define SHORTCUT "shortcut", "layers on the same input, or on from's output; without them, that itself", false
static const struct form_list arms[] = {{LAYERS}, {SHORTCUT}, {.key = NULL}};
static const struct form_list summed[] = {
    {LAYERS},
    {SHORTCUT},
    {"join", "one layer, which adds both outputs: batch_norm_add; without it, a plain sum", false},
    {.key = NULL}};

const struct form_rows model_forms[FORMS] = {
    [FORM_LAYER] = {"", "a layer", of_layers},
    [FORM_GROUP] = {"group", "layers under a name, for policies and plans", named, body},
    [FORM_REPEAT] = {"repeat", "the layers several times in a row, each repetition a group", repeated, body},
    [FORM_RESIDUAL] = {"residual", "the sum of the layers' output and the shortcut's", of_joins, summed, "add"},
    [FORM_CONCAT] = {"concat", "the channels of the layers' output, then those of the shortcut's", of_joins, arms,
                     "concat"},
    [FORM_MULTIPLY] = {"multiply", "the product of the layers' output and the shortcut's, or its gate of channels",
                       of_joins, arms, "multiply"},
    [FORM_CROSS] = {"cross_attention", "attention of the layers' output, queries, to the shortcut's keys and values",
                    of_joins, arms, "cross_attention"},
    [FORM_AUXILIARY] = {"auxiliary",
                        "a head with a loss of its own, of the same labels; what follows reads the output before it",
                        weighted, body}};

/* ---- reading ---- */

/* Which layers a list may hold. */
typedef bool lists(const struct layer *);

bool model_lists(const struct layer *layer) { return !layer->loss && layer->inputs <= 1 + layer->reads_batch; }

bool model_joins(const struct layer *layer)
{
    for (int f = FORM_CONCAT; f < FORMS; f++)
        if (model_forms[f].joins && layer == layer_find(model_forms[f].joins)) return false;
    return !layer->loss && layer->inputs == 2 && !layer->reads_batch;
}

bool model_adapts(const struct layer *layer) { return layer == layer_find("linear"); }

const struct setting *model_keys(const struct layer *layer)
{
    return model_joins(layer) ? of_sums : model_adapts(layer) ? of_products : of_layers;
}

/* The names of all layers and forms that a list of such layers may hold, in the order of the tables. */
static const char *const *all_names(lists *allows, struct region *region)
{
    const char **names = NULL;
    int count = 0;
    for (int i = 0; layer_table[i]; i++) {
        if (!allows(layer_table[i])) continue;
        region_grow(region, &names, count, sizeof *names);
        names[count++] = layer_table[i]->name;
    }
    for (int f = allows == model_lists ? FORM_GROUP : FORMS; f <= FORMS; f++) {
        region_grow(region, &names, count, sizeof *names);
        names[count++] = f < FORMS ? model_forms[f].name : NULL;
    }
    return names;
}

/* Sets item's form, and its layer, by name; false: an error was reported. */
static bool find_form(struct yaml_reader *r, const struct yaml_tree *name, const char *path, lists *allows,
                      struct item *item)
{
    for (int f = FORM_GROUP; allows == model_lists && f < FORMS; f++)
        if (!strcmp(name->text, model_forms[f].name)) return item->form = (enum form)f, true;
    item->layer = layer_find(name->text);
    if (item->layer && allows(item->layer)) return true;
    if (item->layer && item->layer->loss)
        yaml_read_error(r, name, path, NULL, "%s is a loss; it is chosen by the spec's loss:", name->text);
    else if (item->layer && allows == model_lists)
        yaml_read_error(r, name, path, NULL, "%s joins two branches; write residual: {layers: [...]%s}", name->text,
                        item->layer->keys ? region_text(r->region, ", join: [%s]", name->text) : "");
    else
        yaml_read_error(r, name, path, NULL, "%s",
                        yaml_read_unknown(r, name->text, all_names(allows, r->region),
                                          allows == model_lists ? "; a network of other layers can be planned as a "
                                                                  "graph file (rematch plan --graph)"
                                                                : ""));
    return false;
}

const char *model_width_key(const struct setting *keys)
{
    return setting_find(keys, "units") ? "units" : setting_find(keys, "channels") ? "channels" : NULL;
}

/* Whether the layer's width is `classes`, the data set's number of them: read as 1, set when building. */
static bool is_classes(const struct yaml_tree *map, const struct setting *keys)
{
    const char *key = model_width_key(keys);
    const struct yaml_tree *width = key ? yaml_tree_get(map, key) : NULL;
    return width && width->kind == YAML_TEXT && !strcmp(width->text, "classes");
}

/* The layer's own keys. */
static void read_layer(struct yaml_reader *r, const struct yaml_tree *map, const char *path, struct item *item,
                       int init)
{
    const struct setting *shared = model_keys(item->layer), *keys = item->layer->keys,
                         *own = setting_find(keys, "init");
    enum { SHARED = sizeof of_products / sizeof *of_products };
    const char *also[SHARED + 1] = {NULL};
    item->trainable = true;
    int count = 0;
    for (; shared[count].key; count++) also[count] = shared[count].key;
    if (model_adapts(item->layer)) also[count] = "lora";
    struct yaml_tree *read = yaml_tree_copy(map, r->region);
    item->classes = is_classes(map, keys);
    if (item->classes) {
        const char *key = model_width_key(keys);
        const struct mark mark = yaml_tree_get(map, key)->mark;
        yaml_tree_set(read, key, mark, yaml_tree_make(YAML_TEXT, "1", mark, r->region), r->region);
    }
    item->settings = region_array(r->region, 1, item->layer->settings_size);
    yaml_read_map(r, read, path, item->layer->name, keys, also, item->settings);
    if (own && yaml_tree_find(map, "init") < 0) memcpy((char *)item->settings + own->offset, &init, sizeof init);
    const struct yaml_tree *lora = model_adapts(item->layer) ? yaml_tree_get(map, "lora") : NULL;
    if (lora) yaml_read_map(r, lora, region_text(r->region, "%s.lora", path), "lora", lora_keys, NULL, &item->lora);
    for (const struct setting *f = shared; f->key; f++) {
        const struct yaml_tree *value = yaml_tree_get(map, f->key);
        if (value) yaml_read_value(r, value, path, f, item);
    }
}

static struct layer_list read_list(struct yaml_reader *r, const struct yaml_tree *list, const char *path, int init,
                                   lists *allows);

static const char *const *list_keys(struct yaml_reader *r, const struct form_rows *form)
{
    const char **keys;
    NEW(r->region, keys, LISTS + 1);
    for (int i = 0; form->lists && form->lists[i].key; i++) keys[i] = form->lists[i].key;
    return keys;
}

static void read_lists(struct yaml_reader *r, const struct yaml_tree *map, const char *path, int init,
                       const struct form_rows *form, struct item *item)
{
    for (int i = 0; form->lists && form->lists[i].key; i++) {
        const char *key = form->lists[i].key;
        const struct yaml_tree *list = yaml_tree_get(map, key);
        if (list)
            item->list[i] = read_list(r, list, region_text(r->region, "%s.%s", path, key), init,
                                      i == LIST_JOIN ? model_joins : model_lists);
        else if (i == 0 && !yaml_tree_get(map, "from") && !yaml_tree_get(map, "shortcut"))
            yaml_read_error(r, map, path, key, "missing; expected a list of layers%s",
                            form->lists[i].needed ? "" : ", a shortcut, or from: NAME");
    }
    if (item->list[LIST_JOIN].count > 1)
        yaml_read_error(r, yaml_tree_get(map, "join"), path, "join", "%d layers; expected one",
                        item->list[LIST_JOIN].count);
}

/* The keys of a form, and those of the layer that joins its lists. */
static void read_form(struct yaml_reader *r, const struct yaml_tree *map, const char *path,
                      const struct form_rows *form, struct item *item)
{
    const struct layer *layer = form->joins ? layer_find(form->joins) : NULL;
    const char *name = item->at->text;
    if (!layer || !layer->keys) {
        yaml_read_map(r, map, path, name, form->keys, list_keys(r, form), item);
        return;
    }
    const char **also;
    int count = 0;
    NEW(r->region, also, LISTS + FORM_KEYS + 1);
    for (const struct setting *f = form->keys; f->key; f++) also[count++] = f->key;
    for (const char *const *key = list_keys(r, form); *key; key++) also[count++] = *key;
    item->settings = region_array(r->region, 1, layer->settings_size);
    yaml_read_map(r, map, path, name, layer->keys, also, item->settings);
    for (const struct setting *f = form->keys; f->key; f++) {
        const struct yaml_tree *value = yaml_tree_get(map, f->key);
        if (value) yaml_read_value(r, value, path, f, item);
    }
}

static bool read_item(struct yaml_reader *r, const struct yaml_tree *tree, const char *path, int init, lists *allows,
                      struct item *item)
{
    const bool bare = tree->kind == YAML_TEXT, mapped = tree->kind == YAML_MAP && tree->count == 1;
    item->at = bare ? tree : mapped ? tree->key[0] : tree;
    if (!bare && !mapped) {
        yaml_read_error(r, tree, path, NULL, "expected one layer, as in `- flatten` or `- conv: {kernel: 3}`");
        return false;
    }
    if (!find_form(r, item->at, path, allows, item)) return false;
    const struct form_rows *form = &model_forms[item->form];
    const char *below = region_text(r->region, "%s.%s", path, item->at->text);
    const struct yaml_tree *map = mapped ? tree->item[0] : tree;
    if (map->kind == YAML_NULL || bare) map = yaml_tree_make(YAML_MAP, NULL, map->mark, r->region);
    if (map->kind != YAML_MAP || item->form != FORM_LAYER)
        read_form(r, map, below, form, item);
    else
        read_layer(r, map, below, item, init);
    item->from_at = yaml_tree_get(map, "from");
    if (map->kind == YAML_MAP) read_lists(r, map, below, init, form, item);
    return true;
}

static struct layer_list read_list(struct yaml_reader *r, const struct yaml_tree *list, const char *path, int init,
                                   lists *allows)
{
    struct layer_list items = {.count = 0};
    if (list->kind != YAML_LIST || !list->count) {
        yaml_read_error(r, list, path, NULL, "expected a list of layers, at least one");
        return items;
    }
    NEW(r->region, items.item, (size_t)list->count);
    for (int i = 0; i < list->count; i++)
        items.count += read_item(r, list->item[i], region_text(r->region, "%s[%d]", path, i), init, allows,
                                 &items.item[items.count]);
    return items;
}

/* The number of nodes that the items become, at most NODES_MAX + 1, which is reported once as an error. */
static int64_t count_nodes(struct yaml_reader *r, const struct layer_list *list)
{
    int64_t nodes = 0;
    for (int i = 0; i < list->count && nodes <= NODES_MAX; i++) {
        const struct item *it = &list->item[i];
        const int64_t inner = count_nodes(r, &it->list[0]) + count_nodes(r, &it->list[1]);
        nodes +=
            it->form == FORM_REPEAT ? inner * it->times : inner + (it->lora.rank ? LORA_NODES : it->form != FORM_GROUP);
        if (inner <= NODES_MAX && nodes > NODES_MAX)
            yaml_read_error(r, it->at, "model", NULL, "more than %d layers up to here", NODES_MAX);
    }
    return nodes <= NODES_MAX ? nodes : NODES_MAX + 1;
}

struct layer_list *model_read(struct yaml_reader *r, const struct yaml_tree *list, int init)
{
    struct layer_list *layers;
    NEW(r->region, layers, 1);
    *layers = read_list(r, list, "layers", init, model_lists);
    count_nodes(r, layers);
    return layers;
}

/* ---- printing ---- */

static void print_layer(const struct item *item, struct region *region, FILE *out)
{
    const char *between = " {";
    for (const struct setting *f = item->layer->keys; f && f->key; f++) {
        if (setting_unset(f, item->settings)) continue;
        const bool classes = item->classes && !strcmp(f->key, model_width_key(item->layer->keys));
        fprintf(out, "%s%s: %s", between, f->key, classes ? "classes" : yaml_write_value(f, item->settings, region));
        between = ", ";
    }
    if (item->lora.rank) {
        fprintf(out, "%slora: {", between);
        yaml_write_settings(lora_keys, &item->lora, "", ", ", region, out);
        fputc('}', out);
        between = ", ";
    }
    if (!yaml_write_settings(model_keys(item->layer), item, between, ", ", region, out) && *between == ' ')
        fputs(" {", out);
    fputs("}\n", out);
}

void model_print(const struct layer_list *list, int indent, struct region *region, FILE *out)
{
    for (int i = 0; i < list->count; i++) {
        const struct item *item = &list->item[i];
        const struct form_rows *form = &model_forms[item->form];
        const char *line = region_text(region, "\n%*s", indent + 4, "");
        fprintf(out, "%*s- %s:", indent, "", item->layer ? item->layer->name : form->name);
        if (item->layer) {
            print_layer(item, region, out);
            continue;
        }
        fputs(line, out);
        const int written = yaml_write_settings(form->keys, item, "", line, region, out);
        const struct setting *keys = item->settings ? layer_find(form->joins)->keys : NULL;
        yaml_write_settings(keys, item->settings, written ? line : "", line, region, out);
        fputc('\n', out);
        for (int k = 0; form->lists[k].key; k++) {
            if (!item->list[k].count) continue;
            fprintf(out, "%*s%s:\n", indent + 4, "", form->lists[k].key);
            model_print(&item->list[k], indent + 6, region, out);
        }
    }
}
