#include "planned_networks.h"

#include <criterion/criterion.h>

struct settings {
    int64_t units;
    bool parameters;
};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)inputs;
    *output = (struct shape){1, {((const struct settings *)settings)->units}};
    return ST_OK;
}

static int parameters(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    definitions[0] = (struct parameter_definition){"weight", *input, INIT_ZEROS, 1, 1};
    return ((const struct settings *)settings)->parameters;
}

static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    (void)settings, (void)input, (void)output;
    return (struct flops){1, 1, 1};
}

/* More than it writes. */
static int64_t draws(const void *settings, const struct shape *input)
{
    (void)input;
    return 3 * ((const struct settings *)settings)->units + 5;
}

/* By number of inputs less one, and random or not. */
#define SKETCH_LAYER .settings_size = sizeof(struct settings), .infer = infer, .parameters = parameters, .flops = flops
static const struct layer layers[2][2] = {
    {{.name = "one", .inputs = 1, SKETCH_LAYER}, {.name = "draw", .inputs = 1, .draws = draws, SKETCH_LAYER}},
    {{.name = "two", .inputs = 2, SKETCH_LAYER}, {.name = "draw2", .inputs = 2, .draws = draws, SKETCH_LAYER}}};
static const struct layer loss = {.name = "end", .inputs = 1, .loss = true, SKETCH_LAYER};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    (void)graph, (void)state;
    *footprint = ((const struct footprint *)backend->vendor)[node->index];
    return ST_OK;
}

static const struct kernel kernel = {.deterministic = true, .prepare = prepare};

static const struct kernel *kernel_of(const struct node *node)
{
    (void)node;
    return &kernel;
}

static enum status arrange(struct backend *backend, struct graph *graph)
{
    (void)backend;
    for (int v = 0; v < graph->values; v++)
        graph->value[v].bytes = sizeof(float) * (size_t)graph->value[v].shape.dim[0];
    return ST_OK;
}

static const struct backend_kind kind = {.name = "sketch", .kernel = kernel_of, .arrange = arrange};

void sketch_begin(struct sketch *sketch, size_t bytes)
{
    struct shape shape = {1, {(int64_t)(bytes / sizeof(float))}};
    *sketch = (struct sketch){.backend = {.kind = &kind}};
    sketch->backend.vendor = sketch->footprint;
    cr_assert(graph_create(&shape, 1, &sketch->graph) == ST_OK, "%s", status_message());
}

static int add(struct sketch *sketch, const struct layer *layer, const struct sketch_node *node)
{
    struct settings settings = {(int64_t)(node->bytes / sizeof(float)), node->parameters};
    int y = -1;
    cr_assert(sketch->graph->nodes < SKETCH_NODES_MAX);
    sketch->footprint[sketch->graph->nodes] = node->footprint;
    cr_assert(graph_add(sketch->graph, layer, &settings, NULL, node->x, &y) == ST_OK, "%s", status_message());
    return y;
}

int sketch_add(struct sketch *sketch, const struct sketch_node *node)
{
    return add(sketch, &layers[node->x[1] >= 0][node->random], node);
}

void sketch_finish(struct sketch *sketch, int value)
{
    add(sketch, &loss, &(struct sketch_node){.x = {value, -1}, .bytes = 8, .footprint = {.reads = {0, READS_X}}});
    cr_assert(graph_finish(sketch->graph) == ST_OK, "%s", status_message());
    cr_assert(network_prepare(sketch->graph, &sketch->backend, &sketch->network) == ST_OK, "%s", status_message());
}

void sketch_end(struct sketch *sketch)
{
    network_destroy(sketch->network);
    graph_destroy(sketch->graph);
}

uint32_t draw_below(struct source *source, uint32_t below)
{
    return philox4x32(source->seed, 0, (struct philox){{source->count++}}).word[0] % below;
}

static struct footprint random_footprint(struct source *s)
{
    struct footprint f = {.y_over_x = draw_below(s, 2), .dx_over_dy = draw_below(s, 2)};
    if (draw_below(s, 5) == 0) {
        f.passes_gradient = true;
        return f;
    }
    f.saved = draw_below(s, 3) ? 0 : 4 + 4 * draw_below(s, 200);
    for (int part = 0; part < 2; part++) {
        f.reads[part] = draw_below(s, 16);
        f.backward_scratch[part] = draw_below(s, 3) ? 0 : 1 + draw_below(s, 1000);
    }
    f.forward_scratch = draw_below(s, 3) ? 0 : 1 + draw_below(s, 1000);
    f.split = draw_below(s, 2);
    f.writes_dy = draw_below(s, 2);
    return f;
}

void sketch_make_relu(struct source *source, struct sketch_node *node)
{
    struct footprint *f = &node->footprint;
    f->saved = 0;
    f->signs = node->bytes >> (1 + draw_below(source, 5)); /* many, so that they matter */
    for (int part = 0; part < 2; part++) f->reads[part] &= READS_X | READS_X0;
    f->reads[node->parameters ? PART_INDEX_PARAMS : PART_INDEX_INPUT] |= READS_Y;
}

static size_t bytes_of(const struct sketch *sketch, int value)
{
    return sizeof(float) * (size_t)sketch->graph->value[value].shape.dim[0];
}

void sketch_random(struct sketch *sketch, struct source *s, int nodes)
{
    static const size_t sizes[] = {1024, 1024, 512, 16384};
    int unread[SKETCH_NODES_MAX], count = 1; /* values that somebody must still read */
    unread[0] = 0;
    sketch_begin(sketch, 1024);
    for (int i = 0; i < nodes || count > 1; i++) {
        int x0 = unread[--count], x1 = -1;
        if (i >= nodes || !draw_below(s, 3)) x1 = count ? unread[--count] : (int)draw_below(s, (uint32_t)i + 1);
        struct sketch_node node = {{x0, x1}, sizes[draw_below(s, 4)], i == 0, !draw_below(s, 4), random_footprint(s)};
        if (x1 >= 0 && draw_below(s, 2)) node.footprint = (struct footprint){.y_over_x = true, .passes_gradient = true};
        if (i == 0 || (x1 >= 0 && bytes_of(sketch, x1) != bytes_of(sketch, x0))) node.footprint.passes_gradient = false;
        if (node.footprint.passes_gradient) { /* dx is dy; what draws has something to do in its backward */
            node.bytes = bytes_of(sketch, x0);
            node.random = false;
        }
        if (!node.footprint.passes_gradient && draw_below(s, 2)) node.parameters = true;
        if (!node.footprint.passes_gradient && !draw_below(s, 3)) sketch_make_relu(s, &node);
        if (i + 1 < nodes && !draw_below(s, 4)) unread[count++] = x0; /* a second reader */
        unread[count++] = sketch_add(sketch, &node);
    }
    for (int i = 0; i < sketch->graph->nodes; i++) sketch->graph->node[i].relu_save = (enum relu_save)draw_below(s, 2);
    sketch_finish(sketch, unread[0]);
}
