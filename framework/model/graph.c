#include "model/graph.h"

#include <stdlib.h>
#include <string.h>

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
    struct graph *g = region ? region_array(region, 1, sizeof *g) : NULL;
    if (!g || !(g->value = region_array(region, 1, sizeof *g->value))) {
        region_destroy(region);
        return fail(ST_FAILED, "out of memory for a graph");
    }
    g->region = region;
    g->batch = batch;
    g->values = 1;
    g->value[0].shape = *input;
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
    if (!node->name) return ST_FAILED;
    if (graph_find_node(graph, node->name) >= 0)
        return fail(ST_SPEC, "two layers are called '%s'; give one another name", node->name);
    return ST_OK;
}

static enum status add_parameters(struct graph *graph, struct node *node, const struct shape *input)
{
    struct parameter_definition definition[NODE_PARAMETERS_MAX];
    int count = node->layer->parameters ? node->layer->parameters(&node->settings, input, definition) : 0;
    node->first_parameter = graph->parameters;
    node->parameters = count;
    for (int i = 0; i < count; i++) {
        region_grow(graph->region, &graph->parameter, graph->parameters, sizeof *graph->parameter);
        struct parameter *p = &graph->parameter[graph->parameters++];
        p->definition = definition[i];
        p->node = node->index;
        p->elements = shape_elements(&definition[i].shape);
        p->name = region_text(graph->region, "%s.%s", node->name, definition[i].name);
        if (!p->name) return ST_FAILED;
        if (p->elements < 0) return fail(ST_SPEC, "%s is too large", p->name);
    }
    return ST_OK;
}

enum status graph_add(struct graph *graph, const struct layer *layer, const struct settings *settings, const char *name,
                      const int *inputs, int *output)
{
    if (graph->nodes >= NODES_MAX) return fail(ST_SPEC, "more than %d layers", NODES_MAX);
    region_grow(graph->region, &graph->node, graph->nodes, sizeof *graph->node);
    region_grow(graph->region, &graph->value, graph->values, sizeof *graph->value);
    struct node *node = &graph->node[graph->nodes];
    memset(node, 0, sizeof *node);
    node->layer = layer;
    node->settings = *settings;
    node->index = graph->nodes;
    node->output = graph->values;
    node->group = -1;
    for (int g = graph->groups - 1; g >= 0; g--) { /* the innermost group still open */
        if (graph->group[g].to >= 0) continue;
        node->group = g;
        break;
    }
    TRY(name_node(graph, node, name));

    struct shape shapes[NODE_INPUTS_MAX], result = {0};
    for (int i = 0; i < layer->inputs; i++) {
        node->inputs[i] = inputs[i];
        shapes[i] = graph->value[inputs[i]].shape;
    }
    if (layer->infer(&node->settings, shapes, &result) != ST_OK)
        return fail(ST_SPEC, "layer '%s': %s", node->name, status_message());
    int64_t elements = shape_elements(&result);
    if (elements < 0 || elements > (INT64_C(1) << 44) / graph->batch)
        return fail(ST_SPEC, "layer '%s': its output is too large", node->name);
    node->draws = layer->draws ? layer->draws(&node->settings, &shapes[0]) : 0;
    if (node->draws < 0 || node->draws > (INT64_C(1) << 44) / graph->batch)
        return fail(ST_SPEC, "layer '%s': it draws too many random numbers", node->name);

    TRY(add_parameters(graph, node, &shapes[0]));
    struct flops per_sample = layer->flops(&node->settings, &shapes[0], &result);
    double batch = (double)graph->batch;
    node->flops = (struct flops){per_sample.forward * batch, per_sample.backward_params * batch,
                                 per_sample.backward_input * batch};
    graph->value[graph->values] = (struct value){.shape = result};
    *output = graph->values++;
    graph->nodes++;
    return ST_OK;
}

enum status graph_group_begin(struct graph *graph, const char *name)
{
    if (graph_find_group(graph, name) >= 0) return fail(ST_SPEC, "two groups are called '%s'", name);
    int parent = -1;
    for (int g = 0; g < graph->groups; g++)
        if (graph->group[g].to < 0) parent = g;
    region_grow(graph->region, &graph->group, graph->groups, sizeof *graph->group);
    const char *copy = region_text(graph->region, "%s", name);
    if (!copy) return ST_FAILED;
    graph->group[graph->groups++] = (struct group){copy, graph->nodes, -1, parent};
    return ST_OK;
}

void graph_group_end(struct graph *graph)
{
    for (int g = graph->groups - 1; g >= 0; g--) {
        if (graph->group[g].to >= 0) continue;
        graph->group[g].to = graph->nodes;
        return;
    }
}

enum status graph_finish(struct graph *graph)
{
    if (!graph->nodes || !graph->node[graph->nodes - 1].layer->loss)
        return fail(ST_SPEC, "the last layer of a network must be a loss");
    if (!graph->parameters) return fail(ST_SPEC, "no layer of the network has parameters: there is nothing to train");
    for (int i = 0; i < graph->nodes; i++) {
        struct node *node = &graph->node[i];
        bool wants = node->parameters > 0;
        for (int k = 0; k < node->layer->inputs; k++) {
            struct value *x = &graph->value[node->inputs[k]];
            x->consumers++;
            wants |= x->wants_gradient;
        }
        graph->value[node->output].wants_gradient = wants;
        if (node->layer->loss && i + 1 < graph->nodes)
            return fail(ST_SPEC, "layer '%s': a loss must be the last layer", node->name);
    }
    for (int v = 0; v + 1 < graph->values; v++)
        if (!graph->value[v].consumers)
            return fail(ST_SPEC, "the output of layer '%s' is never used", v ? graph->node[v - 1].name : "input");
    return ST_OK;
}

static bool read_by_parameters(const struct graph *graph, int value)
{
    for (int i = value; i < graph->nodes; i++)
        for (int k = 0; k < graph->node[i].layer->inputs; k++)
            if (graph->node[i].inputs[k] == value && graph->node[i].parameters) return true;
    return false;
}

/* Whether the relu of the layer before node can be taken after node, and no more is kept for it till the backward. */
static bool relu_can_follow(const struct graph *graph, const struct node *node)
{
    const int x = node->inputs[0];
    if (!node->layer->selects || node->settings.kernel < 2 || x == 0 || graph->value[x].consumers != 1) return false;
    if (shape_elements(&graph->value[x].shape) < shape_elements(&graph->value[node->output].shape)) return false;
    const struct node *before = &graph->node[x - 1];
    return before->settings.activation == ACTIVATION_RELU && node->settings.activation == ACTIVATION_NONE &&
           !before->layer->selects && (before->relu_save == RELU_OUTPUT || read_by_parameters(graph, node->output));
}

void graph_select_first(struct graph *graph)
{
    for (int i = 0; i < graph->nodes; i++) {
        struct node *node = &graph->node[i];
        if (!relu_can_follow(graph, node)) continue;
        struct node *before = &graph->node[node->inputs[0] - 1];
        before->settings.activation = ACTIVATION_NONE;
        node->settings.activation = ACTIVATION_RELU;
        node->relu_of_input = true;
    }
}

int graph_find_node(const struct graph *graph, const char *name)
{
    for (int i = 0; i < graph->nodes; i++)
        if (!strcmp(graph->node[i].name, name)) return i;
    return -1;
}

int graph_find_group(const struct graph *graph, const char *name)
{
    for (int g = 0; g < graph->groups; g++)
        if (!strcmp(graph->group[g].name, name)) return g;
    return -1;
}

static char *add_value(char *key, const struct graph *graph, const char *before, int value, struct region *region)
{
    const struct value *v = &graph->value[value];
    char shape[96];
    return key ? region_text(region, "%s%s%s layout %d, %zu bytes", key, before, shape_print(&v->shape, shape),
                             v->layout, v->bytes)
               : NULL;
}

static char *add_settings(char *key, const struct node *node, struct region *region)
{
    int printed = 0;
    for (const struct setting *f = node->layer->keys; key && f->key; f++) {
        if (f->offset == offsetof(struct settings, init)) continue; /* no kernel depends on initial values */
        const char *value = setting_print(f, &node->settings, region);
        key = value ? region_text(region, "%s%s%s %s", key, printed++ ? ", " : " ", f->key, value) : NULL;
    }
    return key;
}

char *graph_node_key(const struct graph *graph, int node, struct region *region)
{
    const struct node *n = &graph->node[node];
    char *key = add_settings(region_text(region, "%s", n->layer->name), n, region);
    for (int k = 0; k < n->layer->inputs; k++) key = add_value(key, graph, k ? " + " : "; ", n->inputs[k], region);
    key = add_value(key, graph, " -> ", n->output, region);
    return key ? region_text(region, "%s; batch %lld", key, (long long)graph->batch) : NULL;
}
