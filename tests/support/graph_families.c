#include "graph_families.h"

const char *const family_names[FAMILIES] = {"one shortcut",    "nested",       "additive U-Net", "concatenating U-Net",
                                            "residual blocks", "dense blocks", "any graph"};

/* How the bytes of values differ, and what backwards read. */
enum bytes_style { BYTES_ALIKE, BYTES_EQUAL, BYTES_UNEVEN, BYTES_STYLES };

struct drawing {
    struct sketch *sketch;
    struct source *source;
    int left; /* nodes still to come */
    enum bytes_style bytes;
    bool reads_input; /* of layers, as convolutions do */
};

static size_t bytes_of(const struct drawing *d, int value)
{
    return sizeof(float) * (size_t)d->sketch->graph->value[value].shape.dim[0];
}

static int add(struct drawing *d, int x, int other, size_t bytes, struct footprint footprint, bool parameters)
{
    d->left--;
    return sketch_add(d->sketch, &(struct sketch_node){{x, other}, bytes, parameters, false, footprint});
}

static size_t some_bytes(const struct drawing *d)
{
    if (d->bytes == BYTES_EQUAL) return 1024;
    if (d->bytes == BYTES_UNEVEN) return (size_t)256 << draw_below(d->source, 8);
    return 256 * (size_t)(1 + draw_below(d->source, 8));
}

/* A layer with parameters; some of them with a relu, some with saved tensors. */
static int layer(struct drawing *d, int x, size_t bytes)
{
    struct footprint f = {.reads = {READS_X, 0}, .split = draw_below(d->source, 3) > 0};
    if (!d->reads_input) f.reads[PART_INDEX_PARAMS] = draw_below(d->source, 4), f.saved = some_bytes(d);
    if (!draw_below(d->source, 4)) f.reads[PART_INDEX_PARAMS] |= READS_Y;
    if (!draw_below(d->source, 6)) f.saved = some_bytes(d), f.reads[PART_INDEX_INPUT] |= READS_SAVED;
    if (!draw_below(d->source, 4)) f.forward_scratch = f.backward_scratch[0] = some_bytes(d);
    return add(d, x, -1, bytes, f, true);
}

/* A layer, or an activation in the place of its input. */
static int step(struct drawing *d, int x)
{
    if (x && !draw_below(d->source, 4))
        return add(d, x, -1, bytes_of(d, x),
                   (struct footprint){.reads = {0, READS_Y}, .y_over_x = true, .dx_over_dy = true}, false);
    return layer(d, x, some_bytes(d));
}

static int sum(struct drawing *d, int x, int other)
{
    return add(d, x, other, bytes_of(d, x), (struct footprint){.y_over_x = true, .passes_gradient = true}, false);
}

static int join(struct drawing *d, int x, int other)
{
    return add(d, x, other, bytes_of(d, x) + bytes_of(d, other), (struct footprint){.split = false}, false);
}

/* A layer with the sum behind it and its relu, whose backward reads the first input alone. */
static int layer_and_sum(struct drawing *d, int x, int other)
{
    const struct footprint f = {.reads = {READS_X0 | READS_Y, READS_X0 | READS_Y}, .dx_over_dy = true};
    return add(d, x, other, bytes_of(d, other), f, true);
}

/* Layers, and a shortcut around them from their input. */
static int block(struct drawing *d, int x, int layers)
{
    int v = x;
    for (int i = 1; i < layers; i++) v = step(d, v);
    return draw_below(d->source, 2) ? sum(d, layer(d, v, bytes_of(d, x)), x) : layer_and_sum(d, v, x);
}

static int unet(struct drawing *d, int x, bool adds)
{
    int skip[SKETCH_NODES_MAX], depth = 0, v = x;
    while (d->left > 2 * depth + 3) v = skip[depth++] = layer(d, v, some_bytes(d));
    v = step(d, v);
    while (depth-- > 0)
        v = adds ? sum(d, layer(d, v, bytes_of(d, skip[depth])), skip[depth])
                 : layer(d, join(d, v, skip[depth]), some_bytes(d));
    return v;
}

static int nest(struct drawing *d, int x)
{
    if (d->left < 4) return step(d, x);
    const int v = layer(d, x, bytes_of(d, x));
    d->left--; /* the sum */
    const int inner = nest(d, v);
    d->left++;
    return sum(d, bytes_of(d, inner) == bytes_of(d, x) ? inner : layer(d, inner, bytes_of(d, x)), x);
}

static int body(struct drawing *d, enum family family, int v)
{
    if (family == ONE_SHORTCUT) return block(d, v, d->left - 2);
    if (family == NESTED) return nest(d, v);
    if (family == ADDITIVE_UNET || family == CONCAT_UNET) return unet(d, v, family == ADDITIVE_UNET);
    while (d->left > 3) v = family == RESIDUAL_BLOCKS ? block(d, v, 2) : join(d, step(d, v), v);
    return v;
}

/* Recomputations as long as each other or not, and beside long backwards or none. */
static void draw_times(struct network *network, struct source *source)
{
    const uint32_t most[] = {12, 1, 200}, backward = 5 * draw_below(source, 3);
    const uint32_t below = most[draw_below(source, 3)];
    for (int i = 0; i < network->graph->nodes; i++)
        network->cost[i] = (struct cost){1 + draw_below(source, below), 0, {backward, backward}};
}

/* Some values of no bytes, as those that operators pass on in the place of their inputs. */
static void empty_values(struct sketch *sketch, struct source *source)
{
    struct value *value = sketch->graph->value;
    for (int v = 1; v + 1 < sketch->graph->values; v++) {
        bool passes = sketch->footprint[v - 1].passes_gradient;
        for (int n = 0; n < sketch->graph->nodes; n++)
            for (int k = 0; k < sketch->graph->node[n].layer->inputs; k++)
                passes |= sketch->graph->node[n].inputs[k] == v && sketch->footprint[n].passes_gradient;
        if (!passes && !draw_below(source, 5)) value[v].bytes = value[v].gradient_bytes = 0;
    }
}

void family_draw(struct sketch *sketch, struct source *source, enum family family, int nodes)
{
    if (family == ANY_GRAPH) {
        sketch_random(sketch, source, nodes - 2);
    } else {
        struct drawing d = {sketch, source, nodes - 1, draw_below(source, BYTES_STYLES), draw_below(source, 3) > 0};
        sketch_begin(sketch, 256);
        int v = body(&d, family, layer(&d, 0, some_bytes(&d)));
        while (d.left > 0) v = step(&d, v);
        sketch_finish(sketch, v);
    }
    if (!draw_below(source, 6)) empty_values(sketch, source);
    draw_times(sketch->network, source);
}
