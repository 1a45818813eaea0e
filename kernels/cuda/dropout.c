/* Inverted dropout: y = x / (1 - rate) where an element survives, else 0. Nothing is saved: the backward draws again.
 *
 * Contract: what is drawn for an element depends on its place in logical order alone, so masks are equal to those of
 * every other backend. */
#include <stdlib.h>

#include "draw.h"
#include "dropout_kernels.h"
#include "float_blocks.h"
#include "value_layout.h"

struct dropout {
    struct backend *backend;
    struct extent x;
    double rate;
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    struct dropout *dropout = calloc(1, sizeof *dropout);
    if (dropout == NULL) return fail(ST_FAILED, "out of memory");
    *dropout = (struct dropout){backend, extent_of(graph, node->inputs[0]), node_real(node, "rate")};
    *footprint = (struct footprint){.y_over_x = true, .dx_over_dy = true, .implementation = "own"};
    *state = dropout;
    return ST_OK;
}

static enum status drop(const struct dropout *d, const struct draw *draw, const float *from, float *to)
{
    cudaStream_t stream = cuda_of(d->backend)->stream;
    cuda_clock(d->backend, CLOCK_OTHER);
    if (rng_drops(draw, d->rate)) {
        const struct element_draw element_draw = element_draw_of(draw, d->rate);
        const int64_t channels = d->x.channels_first ? d->x.shape.dim[2] : d->x.elements;
        const struct drop_shape shape = {d->x.batch, channels, d->x.elements / channels};
        launch_dropout(stream, shape, &element_draw, survivor_factor(d->rate), from, to);
    } else if (to != from) {
        launch_copy(stream, from, d->x.count, to);
    }
    return cuda_queued("dropout");
}

static enum status forward(void *state, const struct kernel_args *args)
{
    return drop(state, &args->draw, args->x[0], args->y);
}

static enum status backward(void *state, const struct kernel_args *args, unsigned parts)
{
    return parts & PART_INPUT && args->dx[0] != NULL ? drop(state, &args->draw, args->dy, args->dx[0]) : ST_OK;
}

const struct kernel cuda_dropout = {true, prepare, forward, backward, free};
