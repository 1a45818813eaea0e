#include "model/graph.h"

#include <assert.h>
#include <string.h>

#include "base/names.h"

enum { NODES_MAX = 1 << 20 };

enum status graph_create(const struct shape *input, int64_t batch, struct graph **graph)
{
    *graph = NULL;
    char text[96];
    int64_t elements = shape_elements(input);
    if (elements < 0) return fail(ST_SPEC, "an input of shape %s has no usable size", shape_print(input, text));
    if (batch < 1 || batch > (INT64_C(1) << 31) / 4 || elements > (INT64_C(1) << 44) / batch)
        return fail(ST_SPEC, "a batch of %lld samples of shape %s is out of range", (long long)batch,
                    shape_print(input, text));
    struct region *region = region_create();
    struct graph *g = region_array(region, 1, sizeof *g);
    NEW(region, g->value, 1);
    g->region = region;
    g->batch = batch;
    g->slices = 1;
    g->values = 1;
    g->value[0].shape = *input;
    g->node_names = names_create(region);
    g->group_names = names_create(region);
    g->open_group = -1;
    *graph = g;
    return ST_OK;
}

void graph_destroy(struct graph *graph)
{
    if (graph) region_destroy(graph->region);
}

static enum status name_node(struct graph *graph, struct node *node, const char *name)
{
    if (name) {
        node->name = region_text(graph->region, "%s", name);
    } else {
        int number = 1;
        for (int i = 0; i < graph->nodes; i++) number += graph->node[i].layer == node->layer;
        node->name = region_text(graph->region, "%s%d", node->layer->name, number);
    }
    if (graph_find_node(graph, node->name) >= 0)
        return fail(ST_SPEC, "two layers are called '%s'; give one another name", node->name);
    names_add(graph->node_names, node->name, node->index);
    return ST_OK;
}

/* Appends tensors of node to a list of parameters or of running state. */
static enum status append(struct graph *graph, const struct node *node, const struct parameter_definition *definition,
                          int tensors, struct parameter **list, int *count)
{
    for (int i = 0; i < tensors; i++) {
        region_grow(graph->region, list, *count, sizeof **list);
        struct parameter *p = &(*list)[(*count)++];
        p->definition = definition[i];
        p->node = node->index;
        p->trained = *count - 1;
        p->elements = shape_elements(&definition[i].shape);
        p->name = region_text(graph->region, "%s.%s", node->name, definition[i].name);
        if (p->elements < 0) return fail(ST_SPEC, "%s is too large", p->name);
    }
    return ST_OK;
}

static enum status add_parameters(struct graph *graph, struct node *node, const struct shape *input)
{
    const struct layer *layer = node->layer;
    struct parameter_definition parameter[NODE_PARAMETERS_MAX] = {{.name = NULL}};
    struct parameter_definition state[NODE_STATES_MAX] = {{.name = NULL}};
    node->first_parameter = graph->parameters;
    node->first_state = graph->states;
    if (layer->parameters) node->parameters = layer->parameters(node->settings, input, parameter);
    if (layer->states) node->states = layer->states(node->settings, input, state);
    TRY(append(graph, node, parameter, node->parameters, &graph->parameter, &graph->parameters));
    return append(graph, node, state, node->states, &graph->state, &graph->states);
}

enum status graph_tie(struct graph *graph, int owner)
{
    struct node *node = &graph->node[graph->nodes - 1], *from = &graph->node[owner];
    if (!node_parameters(from))
        return fail(ST_SPEC, "layer '%s' (%s) has no weight to share", from->name, from->layer->name);
    const int weight = node_parameter(from, 0);
    const struct parameter *shared = &graph->parameter[weight];
    struct parameter *own = &graph->parameter[node->first_parameter];
    char is[96], expected[96];
    if (!shape_equal(&own->definition.shape, &shared->definition.shape))
        return fail(ST_SPEC, "layer '%s': its weight is %s; expected %s, as %s is", node->name,
                    shape_print(&own->definition.shape, is), shape_print(&shared->definition.shape, expected),
                    shared->name);
    memmove(own, own + 1, (size_t)--node->parameters * sizeof *own);
    graph->parameters--;
    for (int i = 0; i + 1 < graph->nodes; i++)
        graph->node[i].shared |= node_parameters(&graph->node[i]) && node_parameter(&graph->node[i], 0) == weight;
    node->tied = 1 + weight;
    return ST_OK;
}

static void set_node(struct graph *graph, struct node *node, const void *settings)
{
    const struct setting *activation = setting_find(node->layer->keys, "activation");
    void *copy = region_array(graph->region, 1, node->layer->settings_size);
    if (settings) memcpy(copy, settings, node->layer->settings_size);
    if (node->layer->settings_size > 0) node->settings = copy;
    if (activation) node->activation = (enum activation)node_integer(node, "activation");
}

enum status graph_add(struct graph *graph, const struct layer *layer, const void *settings, const char *name,
                      const int *inputs, int *output)
{
    if (graph->nodes >= NODES_MAX) return fail(ST_SPEC, "more than %d layers", NODES_MAX);
    region_grow(graph->region, &graph->node, graph->nodes, sizeof *graph->node);
    region_grow(graph->region, &graph->value, graph->values, sizeof *graph->value);
    struct node *node = &graph->node[graph->nodes];
    *node = (struct node){
        .layer = layer, .index = graph->nodes, .output = graph->values, .group = graph->open_group, .weight = 1};
    set_node(graph, node, settings);
    TRY(name_node(graph, node, name));

    struct shape shapes[NODE_INPUTS_MAX] = {{0}}, result;
    char text[96];
    NEW(graph->region, node->inputs, (size_t)layer->inputs + 1);
    for (int i = 0; i < layer->inputs; i++) {
        node->inputs[i] = inputs[i];
        if (i < NODE_INPUTS_MAX) shapes[i] = graph->value[inputs[i]].shape;
    }
    result = shapes[0];
    if (layer->infer && layer->infer(node->settings, shapes, &result) != ST_OK)
        return fail(ST_SPEC, "layer '%s': %s", node->name, status_message());
    int64_t elements = shape_elements(&result);
    if (elements < 0 || elements > (INT64_C(1) << 44) / graph->batch)
        return fail(ST_SPEC, "layer '%s': its output is too large", node->name);
    if (layer->mixes_samples && graph->batch * shape_elements(&shapes[0]) == shape_width(&shapes[0]))
        return fail(ST_SPEC,
                    "layer '%s': it normalises each channel over the batch, and one value has no variance; expected a "
                    "larger batch than 1, or an image of more than one pixel, its input is %s",
                    node->name, shape_print(&shapes[0], text));
    node->draws = layer->draws ? layer->draws(node->settings, &shapes[0]) : 0;
    if (node->draws < 0 || node->draws > (INT64_C(1) << 44) / graph->batch)
        return fail(ST_SPEC, "layer '%s': it draws too many random numbers", node->name);

    TRY(add_parameters(graph, node, &shapes[0]));
    const double batch = (double)graph->batch;
    const struct flops f = layer->flops ? layer->flops(node->settings, &shapes[0], &result) : layer->element_flops;
    const double times = layer->flops ? batch : batch * (double)shape_elements(&shapes[0]);
    node->flops =
        (struct flops){f.forward * times, f.backward_params * times, f.backward_input * times, f.once * times};
    graph->value[graph->values] = (struct value){.shape = result};
    *output = graph->values++;
    graph->nodes++;
    return ST_OK;
}

enum status graph_group_begin(struct graph *graph, const char *name)
{
    if (graph_find_group(graph, name) >= 0)
        return fail(ST_SPEC, "two groups are called '%s'; expected a name of its own", name);
    region_grow(graph->region, &graph->group, graph->groups, sizeof *graph->group);
    struct group *group = &graph->group[graph->groups];
    *group = (struct group){region_text(graph->region, "%s", name), graph->nodes, -1, graph->open_group};
    names_add(graph->group_names, group->name, graph->groups);
    graph->open_group = graph->groups++;
    return ST_OK;
}

void graph_group_end(struct graph *graph)
{
    if (graph->open_group < 0) return;
    struct group *group = &graph->group[graph->open_group];
    group->to = graph->nodes;
    graph->open_group = group->parent;
}

static int64_t classes_of(const struct graph *graph, const struct node *loss)
{
    const int64_t width = shape_width(&graph->value[loss->inputs[0]].shape);
    if (loss->layer->in_backward) return node_integer(loss, "units");
    return loss->layer->binary && width == 1 ? 2 : width;
}

/* Numbers a loss before the last node, which reads the labels of that. */
static enum status number_auxiliary(struct graph *graph, struct node *node)
{
    const struct node *last = &graph->node[graph->nodes - 1];
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    const long long rows = shape_elements(x) / shape_width(x), classes = classes_of(graph, node);
    char text[96];
    if (graph->value[node->output].consumers)
        return fail(ST_SPEC, "layer '%s': a loss is read by no layer", node->name);
    if (!node->layer->predicts || !last->layer->predicts)
        return fail(ST_SPEC, "layer '%s': expected losses that read labels, as cross_entropy; they are %s and %s",
                    node->name, node->layer->name, last->layer->name);
    if (rows != graph_labels(graph) || classes != graph_classes(graph))
        return fail(ST_SPEC,
                    "layer '%s': its input is %s; expected as many classes and labels as the last loss has, "
                    "%lld and %lld",
                    node->name, shape_print(x, text), (long long)graph_classes(graph), (long long)graph_labels(graph));
    if (graph->auxiliary == AUXILIARY_MAX)
        return fail(ST_SPEC, "layer '%s': more than %d auxiliary losses", node->name, AUXILIARY_MAX);
    node->auxiliary = ++graph->auxiliary;
    return ST_OK;
}

enum status graph_finish(struct graph *graph)
{
    if (!graph->nodes || !graph->node[graph->nodes - 1].layer->loss)
        return fail(ST_SPEC, "the last layer of a network must be a loss");
    if (!graph->parameters) return fail(ST_SPEC, "no layer of the network has parameters: there is nothing to train");
    graph->trained = 0;
    for (int p = 0; p < graph->parameters; p++) {
        const bool frozen = graph->node[graph->parameter[p].node].frozen;
        graph->parameter[p].trained = frozen ? -1 : graph->trained++;
    }
    if (!graph->trained)
        return fail(ST_SPEC, "every layer with parameters has trainable: false: there is nothing to train");
    for (int i = 0; i < graph->nodes; i++) {
        struct node *node = &graph->node[i];
        bool wants = node_trains(node);
        for (int k = 0; k < node->layer->inputs; k++) {
            struct value *x = &graph->value[node->inputs[k]];
            x->consumers++;
            wants |= x->wants_gradient;
        }
        graph->value[node->output].wants_gradient = wants;
    }
    for (int v = 0; v + 1 < graph->values; v++)
        if (!graph->value[v].consumers && !(v && graph->node[v - 1].layer->loss))
            return fail(ST_SPEC, "the output of layer '%s' is never used", v ? graph->node[v - 1].name : "input");
    for (int i = 0; i + 1 < graph->nodes; i++)
        if (graph->node[i].layer->loss) TRY(number_auxiliary(graph, &graph->node[i]));
    return ST_OK;
}

static bool read_by_parameters(const struct graph *graph, int value)
{
    for (int i = value; i < graph->nodes; i++)
        for (int k = 0; k < graph->node[i].layer->inputs; k++)
            if (graph->node[i].inputs[k] == value && node_trains(&graph->node[i])) return true;
    return false;
}

/* Whether a fused relu makes its layer keep its signs or its output: batch_norm's backward computes them again. */
static bool keeps_for_relu(const struct graph *graph, const struct node *node)
{
    struct footprint footprint;
    void *state;
    if (node->layer->reference.prepare(NULL, graph, node, &footprint, &state) != ST_OK) return false;
    node->layer->reference.release(state);
    return footprint.signs > 0;
}

/* Whether the relu of the layer before node can move behind node without more memory held for it until the backward. */
static bool relu_can_follow(const struct graph *graph, const struct node *node)
{
    const int x = node->inputs[0];
    if (x == 0 || graph->value[x].consumers != 1) return false;
    if (!node->layer->selects || !node->layer->selects(node->settings)) return false;
    if (shape_elements(&graph->value[x].shape) < shape_elements(&graph->value[node->output].shape)) return false;
    const struct node *before = &graph->node[x - 1];
    return before->activation == ACTIVATION_RELU && node->activation == ACTIVATION_NONE && !before->layer->selects &&
           keeps_for_relu(graph, before) &&
           (before->relu_save == RELU_OUTPUT || read_by_parameters(graph, node->output));
}

void graph_select_first(struct graph *graph)
{
    for (int i = 0; i < graph->nodes; i++) {
        struct node *node = &graph->node[i];
        if (!relu_can_follow(graph, node)) continue;
        struct node *before = &graph->node[node->inputs[0] - 1];
        before->activation = ACTIVATION_NONE;
        node->activation = ACTIVATION_RELU;
        node->relu_of_input = true;
    }
}

bool graph_pool_fusible(const struct graph *graph, const struct node *node)
{
    if (!node->layer->selects || node->inputs[0] == 0 || graph->value[node->inputs[0]].consumers != 1) return false;
    const int64_t stride = node_integer(node, "stride");
    return node_integer(node, "kernel") == 2 && (stride == 0 || stride == 2) && node_integer(node, "padding") == 0 &&
           !node_integer(node, "ceil_mode");
}

static void set_integer(const struct node *node, void *settings, const char *key, int64_t number)
{
    const struct setting *setting = setting_find(node->layer->keys, key);
    *(int64_t *)(void *)((char *)settings + setting->offset) = number;
}

void graph_fuse_pool(struct graph *graph, struct node *pool)
{
    struct node *before = &graph->node[pool->inputs[0] - 1];
    struct value *value = &graph->value[before->output];
    char *identity;
    NEW(graph->region, identity, pool->layer->settings_size);
    memcpy(identity, pool->settings, pool->layer->settings_size);
    set_integer(pool, identity, "kernel", 1);
    set_integer(pool, identity, "stride", 1);
    before->pool = pool->settings;
    before->unpooled = value->shape;
    if (pool->activation == ACTIVATION_RELU) before->activation = ACTIVATION_RELU;
    before->flops.forward += pool->flops.forward;
    *(graph->value[before->inputs[0]].wants_gradient ? &before->flops.backward_input
                                                     : &before->flops.backward_params) += pool->flops.backward_input;
    value->shape = graph->value[pool->output].shape;
    value->bytes = graph->value[pool->output].bytes;
    pool->settings = identity;
    pool->activation = ACTIVATION_NONE;
    pool->relu_of_input = false;
    pool->flops = (struct flops){0};
}

size_t graph_parameter_bytes(const struct graph *graph)
{
    size_t bytes = 0;
    for (int i = 0; i < graph->parameters; i++) bytes += parameter_static_bytes(&graph->parameter[i]);
    return bytes;
}

size_t graph_trained_bytes(const struct graph *graph)
{
    size_t bytes = 0;
    for (int i = 0; i < graph->parameters; i++)
        if (graph->parameter[i].trained >= 0) bytes += parameter_static_bytes(&graph->parameter[i]);
    return bytes;
}

int64_t graph_labels(const struct graph *graph)
{
    const struct node *last = graph->nodes ? &graph->node[graph->nodes - 1] : NULL;
    if (!last || (!last->layer->predicts && !last->layer->targets)) return 1;
    const struct shape *x = &graph->value[last->inputs[0]].shape;
    return shape_elements(x) / (last->layer->targets ? 1 : shape_width(x));
}

bool graph_targets(const struct graph *graph) { return graph->nodes && graph->node[graph->nodes - 1].layer->targets; }

int64_t graph_classes(const struct graph *graph) { return classes_of(graph, &graph->node[graph->nodes - 1]); }

int graph_find_node(const struct graph *graph, const char *name) { return names_find(graph->node_names, name); }

int graph_find_group(const struct graph *graph, const char *name) { return names_find(graph->group_names, name); }

int64_t node_integer(const struct node *node, const char *key)
{
    const struct setting *setting = setting_find(node->layer->keys, key);
    assert(setting && node->settings);
    const void *at = (const char *)node->settings + setting->offset;
    if (setting->type == SETTING_BOOL) return *(const bool *)at;
    return setting->type == SETTING_CHOICE ? *(const int *)at : *(const int64_t *)at;
}

double node_real(const struct node *node, const char *key)
{
    const struct setting *setting = setting_find(node->layer->keys, key);
    assert(setting && node->settings && setting->type == SETTING_REAL);
    return *(const double *)(const void *)((const char *)node->settings + setting->offset);
}

const struct setting_list *node_list(const struct node *node, const char *key)
{
    const struct setting *setting = setting_find(node->layer->keys, key);
    assert(setting && node->settings && setting_is_list(setting));
    return (const void *)((const char *)node->settings + setting->offset);
}

bool node_chooses(const struct node *node, const char *key, const char *word)
{
    const struct setting *setting = setting_find(node->layer->keys, key);
    assert(setting && setting->type == SETTING_CHOICE);
    return !strcmp(setting->values[node_integer(node, key)], word);
}

static char *add_value(char *key, const struct graph *graph, const char *before, int value, struct region *region)
{
    const struct value *v = &graph->value[value];
    char shape[96];
    return region_text(region, "%s%s%s layout %d, %zu bytes", key, before, shape_print(&v->shape, shape), v->layout,
                       v->bytes);
}

static char *add_settings(char *key, const struct node *node, struct region *region)
{
    int printed = 0;
    for (const struct setting *f = node->layer->keys; f && f->key; f++) {
        const bool fused = !strcmp(f->key, "activation");
        if (!strcmp(f->key, "init") || setting_unset(f, node->settings)) continue; /* no kernel depends on these */
        const char *value = fused ? f->values[node->activation] : setting_print(f, node->settings, region);
        key = region_text(region, "%s%s%s %s", key, printed++ ? ", " : " ", f->key, value);
    }
    return key;
}

char *graph_node_key(const struct graph *graph, int node, struct region *region)
{
    const struct node *n = &graph->node[node];
    char *key = add_settings(region_text(region, "%s", n->layer->name), n, region);
    for (int k = 0; k < n->layer->inputs; k++) key = add_value(key, graph, k ? " + " : "; ", n->inputs[k], region);
    key = add_value(key, graph, " -> ", n->output, region);
    if (n->weight != 1) key = region_text(region, "%s, weight %.17g", key, n->weight);
    if (n->pool) key = region_text(region, "%s, max pool 2x2", key);
    return region_text(region, "%s; batch %lld", key, (long long)graph->batch);
}
