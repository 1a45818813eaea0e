/* Zeros around images, or their margins cut off. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "numerics/shape.h"

/* Row `number` of all rows of to: a row of from, shifted, between zeros. */
static void move_row(const struct shape *from, const float *data, int64_t top, int64_t left, const struct shape *to,
                     float *out, int64_t number)
{
    const int64_t height = from->dim[0], width = from->dim[1], channels = from->dim[2], wide = to->dim[1];
    const int64_t h = number % to->dim[0] - top, first = left > 0 ? left : 0, end = lesser(wide, width + left);
    out += number * wide * channels;
    if (h < 0 || h >= height) {
        memset(out, 0, (size_t)(wide * channels) * sizeof *out);
        return;
    }
    data += ((number / to->dim[0] * height + h) * width + first - left) * channels;
    memset(out, 0, (size_t)(first * channels) * sizeof *out);
    memcpy(out + first * channels, data, (size_t)((end - first) * channels) * sizeof *out);
    memset(out + end * channels, 0, (size_t)((wide - end) * channels) * sizeof *out);
}

static void move(const struct layer_state *s, const struct extent *from, const float *data, int64_t sign,
                 const struct extent *to, float *out)
{
    const int64_t top = sign * node_integer(s->node, "top"), left = sign * node_integer(s->node, "left");
    const int64_t rows = from->batch * to->shape.dim[0];
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < rows; r++) move_row(&from->shape, data, top, left, &to->shape, out, r);
    clock_lap(s->backend, CLOCK_OTHER);
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    move(s, &s->x, args->x[0], 1, &s->y, args->y);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    move(s, &s->y, args->dy, -1, &s->x, args->dx[0]);
    return ST_OK;
}

const struct kernel cpu_pad = {true, layer_state_prepare, forward, backward, free};
