/* batch_norm with a second input, which its last pass over x adds, with a relu. Contract: that of batch_norm.c; the
 * backward gives the second input dy before the relu, which the norm then reads. */
#include <stdlib.h>

#include "cpu.h"
#include "element_loops.h"

struct batch_norm_add {
    struct backend *backend;
    struct extent y;
    bool relu;
    void *norm; /* cpu_batch_norm's state */
};

static void release(void *state)
{
    free(((struct batch_norm_add *)state)->norm);
    free(state);
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    void *norm;
    TRY(cpu_batch_norm.prepare(backend, graph, node, footprint, &norm));
    struct batch_norm_add *b = *state = allocate(1, sizeof *b);
    const bool relu = node->activation == ACTIVATION_RELU;
    *b = (struct batch_norm_add){backend, extent_of(graph, node->output), relu, norm};
    footprint->reads[PART_INDEX_PARAMS] = footprint->reads[PART_INDEX_INPUT] = READS_X0 | (relu ? READS_Y : 0u);
    footprint->writes_dy = relu;
    if (relu) footprint->signs = (size_t)b->y.batch * sign_words(b->y.elements) * sizeof(uint32_t);
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct batch_norm_add *b = state;
    TRY(cpu_batch_norm.forward(b->norm, args));
    if (args->save) sign_pack(args->y, b->y.batch, b->y.elements, args->saved);
    clock_lap(b->backend, CLOCK_ACTIVATION);
    return ST_OK;
}

/* dy before the relu is dx[1], or replaces dy. */
static enum status backward(void *state, const struct kernel_args *args)
{
    const struct batch_norm_add *b = state;
    struct kernel_args norm = *args;
    if (args->parts & PART_INPUT && args->dx[1]) norm.dy = args->dx[1];
    if (b->relu && args->saved)
        sign_mask(norm.dy, args->dy, args->saved, b->y.batch, b->y.elements);
    else if (b->relu)
        relu_mask(norm.dy, args->dy, args->y, b->y.count);
    else if (norm.dy != args->dy)
        copy_bytes(norm.dy, args->dy, (size_t)b->y.count * sizeof(float));
    clock_lap(b->backend, CLOCK_ACTIVATION);
    return cpu_batch_norm.backward(b->norm, &norm);
}

const struct kernel cpu_batch_norm_add = {true, prepare, forward, backward, release};
