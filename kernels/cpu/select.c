/* One token of each sequence, and its gradient among zeros. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "element_loops.h"

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
    *footprint = (struct footprint){.implementation = "copy"};
    *state = select;
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    struct select *s = state;
    uint64_t lap = clock_now_ns();
    copy_rows(args->y, s->width, (const float *)args->x[0] + s->token * s->width, s->tokens * s->width, s->batch);
    clock_lap(s->backend, CLOCK_OTHER, &lap);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args, unsigned parts)
{
    struct select *s = state;
    const size_t row = (size_t)s->width * sizeof(float);
    uint64_t lap = clock_now_ns();
    if (!(parts & PART_INPUT) || args->dx[0] == NULL) return ST_OK;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < s->batch; n++)
        for (int64_t t = 0; t < s->tokens; t++) {
            char *dx = (char *)args->dx[0] + (size_t)(n * s->tokens + t) * row;
            if (t == s->token)
                memcpy(dx, (const char *)args->dy + (size_t)n * row, row);
            else
                memset(dx, 0, row);
        }
    clock_lap(s->backend, CLOCK_OTHER, &lap);
    return ST_OK;
}

const struct kernel cpu_select = {true, prepare, forward, backward, free};
