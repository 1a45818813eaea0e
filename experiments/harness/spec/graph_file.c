/* An item of the list is a node or, with `stages` or `nodes`, a group of items. `repeat: N` stands for N copies of
 * either, whose names become NAME[0], NAME[1] and so on, as in a model. */
#include "spec/graph_file.h"

#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "spec/graph_build.h"
#include "spec/spec_read.h"
#include "spec/trace.h"
#include "yaml/yaml_write.h"

struct item {
    struct abstract_node node;
    struct setting_list inputs, reads;
    int64_t repeat;
};

enum { PREVIOUS = -1, REPEAT_MAX = 1 << 16 }; /* PREVIOUS: an input that is not named yet has no value */

#define NODE(member)  offsetof(struct item, node.member)
#define STAGE(member) NODE(stage.member)
#define REPEAT        "repeat", SETTING_INT, offsetof(struct item, repeat), 1, REPEAT_MAX, "1", NULL, "copies in a row"

static const struct setting node_keys[] = {
    {"name", SETTING_TEXT, STAGE(name), 0, 0, "", NULL, "unique; stage3 for the third if unset"},
    {"forward", SETTING_REAL, STAGE(forward), 0, ABSTRACT_TIME_MAX, NULL, NULL, "time, in any unit"},
    {"backward", SETTING_REAL, STAGE(backward), 0, ABSTRACT_TIME_MAX, NULL, NULL, "time, in the same unit"},
    {"once", SETTING_REAL, NODE(once), 0, ABSTRACT_TIME_MAX, "0", NULL, "time that the first forward takes besides"},
    {"output", SETTING_BYTES, STAGE(output), 0, 0x1p58, NULL, NULL, "a(i)"},
    {"saved", SETTING_BYTES, STAGE(saved), 0, 0x1p58, NULL, NULL, "saved tensors, without input and output"},
    {"gradient", SETTING_BYTES, STAGE(gradient), 0, 0x1p58, NULL, NULL, "d(i)"},
    {"forward_scratch", SETTING_BYTES, STAGE(forward_scratch), 0, 0x1p58, "0", NULL, "live within the forward only"},
    {"backward_scratch", SETTING_BYTES, STAGE(backward_scratch), 0, 0x1p58, "0", NULL, "live within the backward only"},
    {"parameters", SETTING_BYTES, NODE(parameters), 0, 0x1p58, "0", NULL, "static, as are as many of their gradients"},
    {"inputs", SETTING_TEXTS, offsetof(struct item, inputs), 0, 0, "", NULL,
     "names of earlier nodes, or batch; the node before if unset"},
    {"reads", SETTING_TEXTS, offsetof(struct item, reads), 0, 0, "[x, saved]", NULL,
     "what the backward reads besides the gradient: x (the inputs), y, saved, or nothing"},
    {"in_place", SETTING_BOOL, NODE(in_place), 0, 0, "false", NULL, "y may take the place of a dead first input"},
    {"gradient_in_place", SETTING_BOOL, NODE(gradient_in_place), 0, 0, "false", NULL,
     "the first input's gradient may take the place of y's"},
    {"passes_gradient", SETTING_BOOL, NODE(passes_gradient), 0, 0, "false", NULL,
     "the inputs' gradients are y's, the same tensor"},
    {"forward_only", SETTING_BOOL, NODE(forward_only), 0, 0, "false", NULL, "no gradient; backward and gradient are 0"},
    {"split", SETTING_BOOL, STAGE(split), 0, 0, "false", NULL, "the backward is two ops"},
    {REPEAT},
    {.key = NULL}};

static const struct setting group_keys[] = {{REPEAT}, {.key = NULL}};
static const char *const list_keys[] = {"stages", "nodes", NULL};

const struct setting graph_file_keys[] = {
    {"name", SETTING_TEXT, offsetof(struct spec, name), 0, 0, NULL, NULL, "of the graph"},
    {"title", SETTING_TEXT, offsetof(struct spec, title), 0, 0, "", NULL, "one line of text"},
    {"batch", SETTING_INT, offsetof(struct spec, batch), 1, 0x1p31, "0", NULL,
     "samples that the file's sizes and times are of; another batch has them in proportion"},
    {"scaled_from", SETTING_INT, offsetof(struct spec, scaled_from), 1, 0x1p31, "0", NULL,
     "samples that they are of instead, as a plan of another batch has it"},
    {"placed", SETTING_BOOL, offsetof(struct spec, placed), 0, 0, "false", NULL,
     "buffers get addresses, and the peak is that of the arena"},
    {"drop_dead", SETTING_BOOL, offsetof(struct spec, drop_dead), 0, 0, "true", NULL,
     "leave out recomputations whose result no op reads"},
    {.key = NULL}};
/* Between the first and the last one, what the network is made of. */
static const char *const also_file[] = {"rematch",   "stages", "nodes",  "tensors", "operators",
                                        "gradients", "static", "policy", NULL};

/* The list of a file or a group; NULL: it has none. */
static const struct yaml_tree *list_of(const struct yaml_tree *tree, const char **key)
{
    for (int i = 0; list_keys[i]; i++) {
        const struct yaml_tree *list = yaml_tree_get(tree, *key = list_keys[i]);
        if (list) return list;
    }
    return NULL;
}

/* Replaces nodes [from, nodes) by so many copies of them. What one reads of its own copy is renamed, too. */
static void repeat(struct graph_build *b, const struct yaml_tree *item, const char *path, int from, int64_t times)
{
    const int each = b->nodes - from;
    if (times < 2 || b->full) return;
    if (from + each * times > GRAPH_NODES_MAX) {
        yaml_read_error(&b->yaml, item, path, "repeat", "more than %d nodes in all", GRAPH_NODES_MAX);
        b->full = true;
        return;
    }
    for (int64_t turn = 1; turn < times; turn++)
        for (int i = 0; i < each; i++) {
            struct abstract_node node = b->node[from + i];
            if (node.stage.name) node.stage.name = region_text(b->yaml.region, "%s[%d]", node.stage.name, (int)turn);
            for (int k = 0; k < node.inputs; k++)
                if (node.input[k] > from) node.input[k] += (int)turn * each;
            graph_build_append(b, &node, b->at[from + i]);
        }
    for (int i = from; i < from + each; i++)
        if (b->node[i].stage.name) graph_build_name(b, i, region_text(b->yaml.region, "%s[0]", b->node[i].stage.name));
}

/* Whether an item of list, or of a group in it, has that name and comes after at. */
static bool named_after(const struct yaml_tree *list, const struct yaml_tree *at, const char *name)
{
    for (int i = 0; list && list->kind == YAML_LIST && i < list->count; i++) {
        const struct yaml_tree *own = yaml_tree_get(list->item[i], "name");
        const char *key;
        const bool named = own && own->kind == YAML_TEXT && !strcmp(own->text, name);
        if (named &&
            (own->mark.line > at->mark.line || (own->mark.line == at->mark.line && own->mark.column > at->mark.column)))
            return true;
        if (named_after(list_of(list->item[i], &key), at, name)) return true;
    }
    return false;
}

/* The value of a name: the last node of that name so far. */
static int find_value(struct graph_build *b, const struct yaml_tree *at, const char *path, const char *name)
{
    if (!strcmp(name, "batch")) return 0;
    for (int entry = -1; (entry = names_next(b->names, name, entry)) >= 0;) {
        const int i = names_number(b->names, entry);
        if (!strcmp(b->node[i].stage.name, name)) return i + 1; /* else it was renamed */
    }
    if (named_after(b->list, at, name))
        yaml_read_error(&b->yaml, at, path, "inputs",
                        "'%.*s' is not written yet; expected batch or an earlier node, since a graph has no cycle",
                        text_shown(name, 60), name);
    else
        yaml_read_error(&b->yaml, at, path, "inputs", "no earlier node is called '%.*s'", text_shown(name, 60), name);
    return 0;
}

static const char *const reads_words[] = {"x", "y", "saved", "nothing", NULL};
static const unsigned reads_meaning[] = {READS_X, READS_Y, READS_SAVED, 0};

static unsigned read_reads(struct graph_build *b, const struct yaml_tree *tree, const char *path,
                           const struct setting_list *list)
{
    unsigned reads = 0;
    for (size_t k = 0; k < list->count; k++) {
        int word = 0;
        while (reads_words[word] && strcmp(reads_words[word], list->texts[k]) != 0) word++;
        if (reads_words[word])
            reads |= reads_meaning[word];
        else
            yaml_read_error(&b->yaml, graph_build_item(tree, "reads", k), path, "reads", "%s",
                            yaml_read_unknown(&b->yaml, list->texts[k], reads_words, ""));
    }
    return reads;
}

static void read_node(struct graph_build *b, const struct yaml_tree *tree, const char *path, struct item *item)
{
    const int inputs = (int)item->inputs.count;
    int *input;
    NEW(b->yaml.region, input, (size_t)inputs + 1);
    input[0] = PREVIOUS;
    for (int k = 0; k < inputs; k++)
        input[k] = find_value(b, graph_build_item(tree, "inputs", (size_t)k), path, item->inputs.texts[k]);
    item->node.reads = read_reads(b, tree, path, &item->reads);
    graph_build_add(b, &item->node, inputs ? inputs : 1, input, tree);
}

static void read_list(struct graph_build *b, const struct yaml_tree *list, const char *path);

static void read_item(struct graph_build *b, const struct yaml_tree *tree, const char *path)
{
    struct item item = {.repeat = 1};
    const char *key;
    const struct yaml_tree *list = list_of(tree, &key);
    const int from = b->nodes;
    yaml_read_map(&b->yaml, tree, path, list ? "a group" : "a node", list ? group_keys : node_keys, list_keys, &item);
    if (list)
        read_list(b, list, region_text(b->yaml.region, "%s.%s", path, key));
    else
        read_node(b, tree, path, &item);
    repeat(b, tree, path, from, item.repeat);
}

static void read_list(struct graph_build *b, const struct yaml_tree *list, const char *path)
{
    if (list->kind != YAML_LIST || !list->count) {
        yaml_read_error(&b->yaml, list, path, NULL, "expected a list of at least one node");
        return;
    }
    for (int i = 0; i < list->count && !b->full; i++)
        read_item(b, list->item[i], region_text(b->yaml.region, "%s[%d]", path, i));
}

static void read_file(struct graph_build *b, const struct yaml_tree *root, struct spec *spec)
{
    static const struct setting always_there = {
        "static", SETTING_BYTES, 0, 0, 0x1p58, "0", NULL, "bytes that are always there: the batch, constants"};
    struct yaml_reader *r = &b->yaml;
    const struct yaml_tree *model = yaml_tree_get(root, "model");
    const char *key;
    struct trace trace;
    if (model) {
        yaml_read_error(r, model, NULL, "model", "a graph file has no such key; a spec is planned without --graph");
        return;
    }
    yaml_read_map(r, root, NULL, "a graph file", graph_file_keys, also_file, spec);
    if (root->kind != YAML_MAP) return;
    if (!spec->title) spec->title = spec->name;
    yaml_read_version(r, root, "rematch", SPEC_VERSION, "a graph file");
    if (yaml_tree_get(root, "static"))
        yaml_read_value(r, yaml_tree_get(root, "static"), NULL, &always_there, &b->always);
    if (yaml_tree_get(root, "policy")) spec_read_section(r, spec_section("policy"), root, spec);
    if (yaml_tree_get(root, "operators")) {
        trace_read(b, root, &trace);
        if (!errors_count(r->errors)) trace_to_step(&trace);
    } else if ((b->list = list_of(root, &key))) {
        read_list(b, b->list, key);
    } else {
        yaml_read_error(r, root, NULL, "nodes", "missing; expected nodes, the stages of a chain, or operators");
    }
    for (int i = 0; i < b->nodes; i++)
        for (int k = 0; k < b->node[i].inputs; k++)
            if (b->node[i].input[k] == PREVIOUS) b->node[i].input[k] = i;
}

static enum status load(struct spec *spec, struct network **network)
{
    struct graph_build *b;
    struct source *source;
    struct yaml_tree *root;
    const char **keys;
    int at;
    NEW(spec->region, b, 1);
    spec->graph = b;
    NEW(spec->region, keys, (size_t)spec->overrides);
    b->names = names_create(spec->region);
    b->yaml =
        (struct yaml_reader){spec->region, errors_create(spec->region), yaml_read_folder(spec->path, spec->region)};
    struct errors *errors = b->yaml.errors;
    if (source_read(spec->path, spec->region, &source) != ST_OK) return ST_SPEC;
    spec->text = source->text;
    if (!(root = yaml_tree_parse(source, 0, spec->region, errors))) return errors_report(errors, stderr);
    if (yaml_tree_get(root, "batch")) /* before an override of it */
        yaml_read_value(&b->yaml, yaml_tree_get(root, "batch"), NULL, setting_find(graph_file_keys, "batch"), spec);
    b->batch = spec->batch;
    if (root->kind == YAML_MAP) overrides_apply(&b->yaml, root, spec->overrides, spec->override, keys);
    spec->root = root;
    read_file(b, root, spec);
    if (spec->scaled_from && !spec->batch)
        yaml_read_error(&b->yaml, yaml_tree_get(root, "scaled_from"), NULL, "scaled_from",
                        "needs the key batch, to which sizes and times are scaled");
    if (spec->scaled_from) b->batch = spec->scaled_from;
    if (b->batch != spec->batch) spec->scaled_from = b->batch;
    if (!errors_count(errors) && graph_build_network(b, spec->batch, &at, network) != ST_OK)
        yaml_read_error(&b->yaml, b->at[at], NULL, NULL, "%s", status_message());
    return errors_report(errors, stderr);
}

enum status graph_file_load(const char *path, int count, const char *const *overrides, struct spec **spec,
                            struct network **network)
{
    struct region *region = region_create();
    NEW(region, *spec, 1);
    **spec = (struct spec){.region = region, .path = path, .overrides = count, .override = overrides};
    *network = NULL;
    const enum status status = load(*spec, network);
    if (status != ST_OK) spec_destroy(*spec), *spec = NULL;
    return status;
}

/* ---- printing ---- */

char *graph_file_print(const struct spec *spec, struct region *region)
{
    freed_auto char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    fprintf(out, "rematch: %d\n", SPEC_VERSION);
    yaml_write_settings(graph_file_keys, spec, "", "\n", region, out);
    fputc('\n', out);
    if (spec->policy) spec_print_section(spec, spec_section("policy"), region, out);
    for (const char *const *key = also_file + 1; key[1]; key++) {
        const struct yaml_tree *value = yaml_tree_get(spec->root, *key);
        if (!value) continue;
        const bool list = value->kind == YAML_LIST;
        fprintf(out, "%s:%s%s\n", *key, list ? "" : " ", list ? "" : yaml_tree_print(value, region));
        for (int i = 0; list && i < value->count; i++)
            fprintf(out, "  - %s\n", yaml_tree_print(value->item[i], region));
    }
    fclose(out);
    return region_text(region, "%s", text);
}
