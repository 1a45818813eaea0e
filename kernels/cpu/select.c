/* One token of each sequence, and its gradient among zeros. */
#include <stdlib.h>
#include <string.h>

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
    const int64_t width = s->y.elements, token = node_integer(s->node, "token");
    copy_rows(args->y, width, (const float *)args->x[0] + token * width, s->x.elements, width, s->x.batch);
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t tokens = s->x.shape.dim[0], token = node_integer(s->node, "token");
    const size_t row = (size_t)s->y.elements * sizeof(float);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < s->x.batch; n++)
        for (int64_t t = 0; t < tokens; t++) {
            char *dx = (char *)args->dx[0] + (size_t)(n * tokens + t) * row;
            if (t == token)
                memcpy(dx, (const char *)args->dy + (size_t)n * row, row);
            else
                memset(dx, 0, row);
        }
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

const struct kernel cpu_select = {true, prepare, forward, backward, free};
