/* The channels of two values side by side. */
#include <stdlib.h>

#include "cpu.h"
#include "element_loops.h"

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    TRY(layer_state_prepare(backend, graph, node, footprint, state));
    footprint->implementation = "copy";
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t a = shape_width(&s->x.shape), b = shape_width(&s->second.shape), pixels = s->x.count / a;
    copy_rows(args->y, a + b, args->x[0], a, a, pixels);
    copy_rows((float *)args->y + a, a + b, args->x[1], b, b, pixels);
    clock_lap(s->backend, CLOCK_REORDER);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t a = shape_width(&s->x.shape), b = shape_width(&s->second.shape), pixels = s->x.count / a;
    if (args->dx[0]) copy_rows(args->dx[0], a, args->dy, a + b, a, pixels);
    if (args->dx[1]) copy_rows(args->dx[1], b, (const float *)args->dy + a, a + b, b, pixels);
    clock_lap(s->backend, CLOCK_REORDER);
    return ST_OK;
}

const struct kernel cpu_concat = {true, prepare, forward, backward, free};
