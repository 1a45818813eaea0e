/* From the list of layers to a graph. Contract: names are unique. Within a repetition they begin with its group
 * ("block[2].conv1"); elsewhere a name is the given one or the layer and a number. */
#include "spec/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS_MAX = 64 };

/* The range of node numbers: the whole model, or one repetition. */
struct scope {
    const char *group; /* full name of the innermost group; "" */
    const char *nodes; /* prefix of node names; "" */
    int *number;       /* by layer: nodes numbered so far in this scope */
};

struct building {
    const struct spec *spec;
    struct graph *graph;
    struct region *region;
    const struct dataset *data;
    const struct item *at; /* the item being added; errors are reported there */
};

static enum status build_list(struct building *b, struct scope scope, const struct layer_list *list, int *value);

static int layer_index(const struct layer *layer)
{
    int i = 0;
    while (i < LAYERS_MAX - 1 && layer_table[i] && layer_table[i] != layer) i++;
    return i;
}

static const char *node_name(struct building *b, const struct scope *scope, const struct layer *layer, const char *name)
{
    if (name) return region_text(b->region, "%s%s", scope->nodes, name);
    return region_text(b->region, "%s%s%d", scope->nodes, layer->name, ++scope->number[layer_index(layer)]);
}

static enum status add(struct building *b, const struct scope *scope, const struct layer *layer, const void *settings,
                       const char *name, const int *inputs, int *value)
{
    TRY(graph_add(b->graph, layer, settings, node_name(b, scope, layer, name), inputs, value));
    b->graph->node[b->graph->nodes - 1].relu_save = (enum relu_save)b->spec->relu_save;
    return ST_OK;
}

/* The layer's integer setting called key, NULL: it has none. */
static int64_t *integer(const struct item *item, const char *key)
{
    const struct setting *setting = setting_find(item->layer->keys, key);
    return setting ? (int64_t *)(void *)((char *)item->settings + setting->offset) : NULL;
}

/* Every token of the data needs a row of the embedding. */
static enum status check_vocabulary(const struct building *b, const struct item *item)
{
    const int64_t *rows = integer(item, "vocabulary"), tokens = b->data->tokens;
    if (!rows || tokens <= *rows) return ST_OK;
    return fail(ST_SPEC,
                "%s: a vocabulary of %" PRId64 ", but data set %s has %" PRId64 " tokens; expected: at least as many",
                item->layer->name, *rows, b->spec->data->name, tokens);
}

static enum status build_layer(struct building *b, struct scope scope, const struct item *item, int *value)
{
    if (item->classes && b->data->classes < 1)
        return fail(ST_SPEC, "units: classes, but the data set does not say how many it has");
    if (item->classes) *integer(item, "units") = b->data->classes;
    TRY(check_vocabulary(b, item));
    const int inputs[NODE_INPUTS_MAX] = {*value}; /* a second one is the batch, value 0 */
    return add(b, &scope, item->layer, item->settings, item->name, inputs, value);
}

/* scope within the group called name. */
static enum status enter(struct building *b, struct scope *scope, const char *name)
{
    scope->group = region_text(b->region, "%s%s%s", scope->group, *scope->group ? "." : "", name);
    return graph_group_begin(b->graph, scope->group);
}

static enum status build_group(struct building *b, struct scope scope, const struct item *item, int *value)
{
    TRY(enter(b, &scope, item->name));
    TRY(build_list(b, scope, &item->list[0], value));
    graph_group_end(b->graph);
    return ST_OK;
}

static enum status build_repeat(struct building *b, struct scope scope, const struct item *item, int *value)
{
    for (int64_t turn = 0; turn < item->times; turn++) {
        struct scope inner = scope;
        TRY(enter(b, &inner, region_text(b->region, "%s[%" PRId64 "]", item->name, turn)));
        inner.nodes = region_text(b->region, "%s.", inner.group);
        NEW(b->region, inner.number, LAYERS_MAX);
        TRY(build_list(b, inner, &item->list[0], value));
        graph_group_end(b->graph);
    }
    return ST_OK;
}

static enum status build_residual(struct building *b, struct scope scope, const struct item *item, int *value)
{
    int arms[2] = {*value, *value};
    if (item->name) TRY(enter(b, &scope, item->name));
    TRY(build_list(b, scope, &item->list[0], &arms[0]));
    TRY(build_list(b, scope, &item->list[1], &arms[1]));
    b->at = item;
    TRY(add(b, &scope, layer_find("add"), NULL, NULL, arms, value));
    if (item->name) graph_group_end(b->graph);
    return ST_OK;
}

static enum status build_list(struct building *b, struct scope scope, const struct layer_list *list, int *value)
{
    static enum status (*const build[FORMS])(struct building *, struct scope, const struct item *,
                                             int *) = {[FORM_LAYER] = build_layer,
                                                       [FORM_GROUP] = build_group,
                                                       [FORM_REPEAT] = build_repeat,
                                                       [FORM_RESIDUAL] = build_residual};
    for (int i = 0; i < list->count; i++) {
        b->at = &list->item[i];
        TRY(build[b->at->form](b, scope, b->at, value));
    }
    return ST_OK;
}

static enum status build_model(struct building *b, const struct layer_list *model)
{
    struct scope scope = {"", "", NULL};
    int value = 0;
    NEW(b->region, scope.number, LAYERS_MAX);
    TRY(build_list(b, scope, model, &value));
    TRY(add(b, &scope, b->spec->loss, NULL, b->spec->loss->name, &value, &value));
    TRY(graph_finish(b->graph));
    if (b->spec->relu_after_pool) graph_select_first(b->graph);
    return ST_OK;
}

/* Reports the failure as an error at the layer that was being added. */
static enum status report(struct building *b)
{
    struct errors *errors = errors_create(b->region);
    if (!b->at) return ST_SPEC;
    errors_add(errors, b->at->at->mark, NULL, "%s", status_message());
    return errors_report(errors, stderr);
}

enum status model_build(struct spec *spec, const struct dataset *data, struct graph **graph)
{
    struct building b = {.spec = spec, .data = data};
    *graph = NULL;
    TRY(graph_create(&data->shape, spec->batch, &b.graph));
    b.region = region_create();
    enum status status = build_model(&b, spec->layers);
    if (status == ST_SPEC) status = report(&b);
    region_destroy(b.region);
    if (status == ST_OK)
        *graph = b.graph;
    else
        graph_destroy(b.graph);
    return status;
}
