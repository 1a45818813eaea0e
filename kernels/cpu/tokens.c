/* Layers of sequences: a learnt token before the others, a learnt table added, and learnt tokens alone; in logical
 * order.
 *
 * Contract: gradients of parameters are summed over the samples in ascending order in float. */
#include <stdlib.h>

#include "cpu.h"
#include "element_loops.h"
#include "reductions.h"

static enum status class_token_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t width = shape_width(&s->x.shape);
    copy_rows(args->y, s->y.elements, args->parameters[0], 0, width, s->y.batch);
    copy_rows((float *)args->y + width, s->y.elements, args->x[0], s->x.elements, s->x.elements, s->x.batch);
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

static enum status class_token_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t width = shape_width(&s->x.shape);
    const float *dy = args->dy;
    if (args->parts & PART_PARAMS) reduce_pieces(dy, s->y.batch, s->y.elements, width, args->gradients[0]);
    if (args->parts & PART_INPUT)
        copy_rows(args->dx[0], s->x.elements, dy + width, s->y.elements, s->x.elements, s->x.batch);
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

static enum status positions_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    for (int64_t n = 0; n < s->x.batch; n++)
        sum_into((float *)args->y + n * s->x.elements, (const float *)args->x[0] + n * s->x.elements,
                 args->parameters[0], s->x.elements);
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

static enum status positions_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t all = s->x.elements;
    if (args->parts & PART_PARAMS) reduce_pieces(args->dy, s->x.batch, all, all, args->gradients[0]);
    if (args->parts & PART_INPUT && args->dx[0] != args->dy)
        copy_bytes(args->dx[0], args->dy, (size_t)s->x.count * sizeof(float));
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

static enum status latents_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    for (int64_t n = 0; n < s->y.batch; n++)
        copy_bytes((float *)args->y + n * s->y.elements, args->parameters[0], (size_t)s->y.elements * sizeof(float));
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

static enum status latents_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t all = s->y.elements;
    if (args->parts & PART_PARAMS) reduce_pieces(args->dy, s->y.batch, all, all, args->gradients[0]);
    if (args->parts & PART_INPUT) fill_words(args->dx[0], 0, (size_t)s->x.count);
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

const struct kernel cpu_latents = {true, layer_state_prepare, latents_forward, latents_backward, free};
const struct kernel cpu_class_token = {true, layer_state_prepare, class_token_forward, class_token_backward, free};
const struct kernel cpu_positions = {true, layer_state_prepare, positions_forward, positions_backward, free};
