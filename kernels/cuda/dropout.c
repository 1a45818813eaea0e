/* Inverted dropout: y = x / (1 - rate) where an element survives, else 0. Nothing is saved: the backward draws again.
 *
 * Contract: the draw of an element depends on its place in logical order alone, so all backends have equal masks. */
#include <stdlib.h>

#include "cuda.h"
#include "draw.h"
#include "dropout_kernels.h"
#include "float_blocks.h"

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    *state = layer_state_create(backend, graph, node);
    *footprint = (struct footprint){.y_over_x = true, .dx_over_dy = true, .implementation = "own"};
    return ST_OK;
}

static enum status drop(const struct layer_state *s, const struct draw *draw, const float *from, float *to)
{
    const cudaStream_t stream = cuda_queue(s->backend, CLOCK_OTHER);
    const double rate = node_real(s->node, "rate");
    if (rng_drops(draw, rate)) {
        const struct element_draw element_draw = element_draw_of(draw, rate);
        const int64_t channels = channels_first(&s->x) ? s->x.shape.dim[2] : s->x.elements;
        const struct dropout_shape shape = {s->x.batch, channels, s->x.elements / channels};
        launch_dropout(stream, shape, &element_draw, survivor_factor(rate), from, to);
    } else if (to != from) {
        launch_copy(stream, from, s->x.count, to);
    }
    return cuda_queued("dropout");
}

static enum status forward(void *state, const struct kernel_args *args)
{
    return drop(state, &args->draw, args->x[0], args->y);
}

static enum status backward(void *state, const struct kernel_args *args)
{
    return drop(state, &args->draw, args->dy, args->dx[0]);
}

const struct kernel cuda_dropout = {true, prepare, forward, backward, free};
