/* One token of each sequence, and its gradient among zeros. */
#include <stdlib.h>

#include "float_blocks.h"
#include "value_layout.h"

struct select {
    struct backend *backend;
    int64_t batch, tokens, width, token;
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    struct select *select = calloc(1, sizeof *select);
    if (select == NULL) return fail(ST_FAILED, "out of memory");
    *select = (struct select){backend, graph->batch, x->dim[0], x->dim[1], node_integer(node, "token")};
    *footprint = (struct footprint){.implementation = "own"};
    *state = select;
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct select *s = state;
    cuda_clock(s->backend, CLOCK_OTHER);
    launch_select(cuda_of(s->backend)->stream, args->x[0], s->batch, s->tokens, s->width, s->token, args->y);
    return cuda_queued("select");
}

static enum status backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct select *s = state;
    if (!(parts & PART_INPUT) || args->dx[0] == NULL) return ST_OK;
    cuda_clock(s->backend, CLOCK_OTHER);
    launch_select_gradient(cuda_of(s->backend)->stream, args->dy, s->batch, s->tokens, s->width, s->token, args->dx[0]);
    return cuda_queued("gradient of select");
}

const struct kernel cuda_select = {true, prepare, forward, backward, free};
