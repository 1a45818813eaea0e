#include "model/chunked_loss.h"

#include "backend/backend.h"

#include <stdlib.h>

enum { LINEAR, ENTROPY, PARTS };

/* The scratch of products has the bytes of a chunk's logits, but not less than this. */
static const size_t SCRATCH_LEAST = 2 << 20;

/* A kernel that computes a chunk. */
struct chunk_part {
    const struct kernel *kernel;
    void *state;
    struct footprint footprint;
};

/* The two layers for so many rows. */
struct chunk {
    int64_t rows;
    struct graph *graph;
    struct chunk_part part[PARTS];
};

struct chunked_loss {
    struct backend *backend;
    int64_t samples, rows, inputs, units;
    bool bias;
    struct chunk full, last; /* last.rows 0: as the others */
};

/* Where a chunk's results and logits lie in scratch; work: of the two kernels, one after the other. */
struct chunk_room {
    float *y, *bias, *logits;
    void *work;
};

static size_t logits_bytes(const struct chunked_loss *l) { return (size_t)(l->full.rows * l->units) * sizeof(float); }

static size_t y_bytes(void) { return round_up(2 * sizeof(float)); }
static size_t bias_bytes(const struct chunked_loss *l)
{
    return l->bias ? round_up((size_t)l->units * sizeof(float)) : 0;
}

static size_t bytes_before_work(const struct chunked_loss *l)
{
    return y_bytes() + bias_bytes(l) + round_up(logits_bytes(l));
}

static struct chunk_room divide(const struct chunked_loss *l, char *scratch)
{
    return (struct chunk_room){.y = (float *)(void *)scratch,
                               .bias = (float *)(void *)(scratch + y_bytes()),
                               .logits = (float *)(void *)(scratch + y_bytes() + bias_bytes(l)),
                               .work = scratch + bytes_before_work(l)};
}

/* Appends one of the two layers, whose settings are this node's where it has them, else preset. */
static enum status add_layer(struct graph *graph, const char *name, const struct node *node, int *value)
{
    const struct layer *layer = layer_find(name);
    void *settings = region_array(graph->region, 1, layer->settings_size);
    TRY(setting_defaults(layer->keys, settings, graph->region));
    for (const struct setting *f = layer->keys; f->key; f++) {
        const struct setting *own = setting_find(node->layer->keys, f->key);
        if (own && !setting_unset(own, node->settings)) setting_share(f, settings, own, node->settings);
    }
    return graph_add(graph, layer, settings, NULL, value, value);
}

static enum status prepare_part(const struct chunked_loss *l, struct chunk *chunk, int number)
{
    struct chunk_part *part = &chunk->part[number];
    const struct node *node = &chunk->graph->node[number];
    part->kernel = l->backend->kind->kernel(node);
    return part->kernel->prepare(l->backend, chunk->graph, node, &part->footprint, &part->state);
}

static enum status prepare_chunk(const struct chunked_loss *l, const struct node *node, int64_t rows,
                                 struct chunk *chunk)
{
    const struct shape x = {2, {rows, l->inputs}};
    int value = 0;
    chunk->rows = rows;
    if (!rows) return ST_OK;
    TRY(graph_create(&x, 1, &chunk->graph));
    TRY(add_layer(chunk->graph, "linear", node, &value));
    TRY(add_layer(chunk->graph, "cross_entropy", node, &value));
    const size_t logits = logits_bytes(l);
    chunk->graph->node[LINEAR].scratch_limit = logits > SCRATCH_LEAST ? logits : SCRATCH_LEAST;
    for (int i = 0; i < PARTS; i++) TRY(prepare_part(l, chunk, i));
    return ST_OK;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* What the kernels of a chunk need. */
static void count_scratch(const struct chunk *chunk, size_t *forward, size_t *backward)
{
    for (int i = 0; i < PARTS && chunk->rows; i++) {
        const struct footprint *f = &chunk->part[i].footprint;
        *forward = larger(*forward, f->forward_scratch);
        *backward = larger(*backward, larger(f->backward_scratch[0], f->backward_scratch[1]));
    }
}

enum status chunked_loss_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                 struct footprint *footprint, void **state)
{
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    struct chunked_loss *l = *state = allocate(1, sizeof *l);
    size_t forward = 0, backward = 0;
    *l = (struct chunked_loss){.backend = backend,
                               .samples = graph->batch,
                               .rows = graph->batch * shape_elements(x) / shape_width(x),
                               .inputs = shape_width(x),
                               .units = node_integer(node, "units"),
                               .bias = node_integer(node, "bias")};
    const int64_t rows = chunk_rows(l->rows, node_integer(node, "chunks"));
    TRY(prepare_chunk(l, node, rows, &l->full));
    TRY(prepare_chunk(l, node, l->rows % rows, &l->last));
    count_scratch(&l->full, &forward, &backward);
    count_scratch(&l->last, &forward, &backward);
    const size_t before = bytes_before_work(l);
    backward = larger(forward, backward);
    *footprint = (struct footprint){.forward_scratch = before + forward,
                                    .backward_scratch = {before + backward, before + backward},
                                    .reads = {READS_X | READS_Y, 0},
                                    .adds = l->bias ? 3 : 1,
                                    .implementation = l->full.part[LINEAR].footprint.implementation};
    return ST_OK;
}

void chunked_loss_release(void *state)
{
    struct chunked_loss *l = state;
    struct chunk *chunk[] = {&l->full, &l->last};
    for (int c = 0; c < 2; c++) {
        for (int i = 0; i < PARTS; i++) {
            const struct chunk_part *part = &chunk[c]->part[i];
            if (part->state && part->kernel->release) part->kernel->release(part->state);
        }
        graph_destroy(chunk[c]->graph);
    }
    free(l);
}

/* The logits of the rows from first on, and what they add to y. */
static enum status chunk_forward(const struct chunked_loss *l, const struct chunk *chunk, int64_t first,
                                 const struct kernel_args *args, const struct chunk_room *room)
{
    const struct chunk_part *linear = &chunk->part[LINEAR], *entropy = &chunk->part[ENTROPY];
    const struct kernel_args product = {.x = {(const float *)args->x[0] + first * l->inputs},
                                        .y = room->logits,
                                        .scratch = room->work,
                                        .parameters = {args->parameters[0], args->parameters[1]}};
    const struct kernel_args loss = {.x = {room->logits},
                                     .y = first ? room->y : args->y,
                                     .scratch = room->work,
                                     .labels = args->labels + first,
                                     .divisor = args->divisor};
    TRY(linear->kernel->forward(linear->state, &product));
    TRY(entropy->kernel->forward(entropy->state, &loss));
    if (first) l->backend->kind->add(l->backend, args->y, args->y, room->y, 2);
    return ST_OK;
}

/* The gradients of what chunk_forward() computed, added to those of the chunks before. */
static enum status chunk_backward(const struct chunked_loss *l, const struct chunk *chunk, int64_t first,
                                  const struct kernel_args *args, const struct chunk_room *room)
{
    const struct chunk_part *linear = &chunk->part[LINEAR], *entropy = &chunk->part[ENTROPY];
    const unsigned adds = first > 0 ? 3 : args->adds;
    const bool sums_bias = l->bias && adds & 2 && args->parts & PART_PARAMS;
    const struct kernel_args loss = {.x = {room->logits},
                                     .dx = {room->logits},
                                     .scratch = room->work,
                                     .labels = args->labels + first,
                                     .divisor = args->divisor,
                                     .parts = PART_INPUT};
    const struct kernel_args product = {.x = {(const float *)args->x[0] + first * l->inputs},
                                        .dx = {args->dx[0] ? (float *)args->dx[0] + first * l->inputs : NULL},
                                        .dy = room->logits,
                                        .scratch = room->work,
                                        .parameters = {args->parameters[0], args->parameters[1]},
                                        .gradients = {args->gradients[0], sums_bias ? room->bias : args->gradients[1]},
                                        .adds = adds & 1,
                                        .parts = args->parts};
    TRY(entropy->kernel->backward(entropy->state, &loss));
    TRY(linear->kernel->backward(linear->state, &product));
    if (sums_bias)
        l->backend->kind->add(l->backend, args->gradients[1], args->gradients[1], room->bias, (size_t)l->units);
    return ST_OK;
}

/* Both for one chunk after the other; or the forward alone. */
static enum status run(const struct chunked_loss *l, const struct kernel_args *args, bool backward)
{
    const struct chunk_room room = divide(l, args->scratch);
    TRY(labels_expected(args->labels, l->samples, l->rows / l->samples, l->units));
    for (int64_t first = 0; first < l->rows; first += l->full.rows) {
        const struct chunk *chunk = l->rows - first < l->full.rows ? &l->last : &l->full;
        TRY(chunk_forward(l, chunk, first, args, &room));
        if (backward) TRY(chunk_backward(l, chunk, first, args, &room));
    }
    return ST_OK;
}

enum status chunked_loss_forward(void *state, const struct kernel_args *args)
{
    const struct chunked_loss *l = state;
    if (args->evaluate) return run(l, args, false);
    l->backend->kind->fill(l->backend, args->y, 0, 2 * sizeof(float));
    return ST_OK;
}

enum status chunked_loss_backward(void *state, const struct kernel_args *args) { return run(state, args, true); }
