/* Nearest neighbour by an integer factor.
 *
 * Contract: an input's gradient is summed in row order in float. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

struct images {
    int64_t count, height, width, channels, factor;
};

static struct images images_of(const struct layer_state *s)
{
    return (struct images){.count = s->x.batch,
                           .height = s->x.shape.dim[0],
                           .width = s->x.shape.dim[1],
                           .channels = s->x.shape.dim[2],
                           .factor = node_integer(s->node, "factor")};
}

/* The rows of y that row r of all rows of x becomes. */
static void spread(struct images m, int64_t r, const float *x, float *y)
{
    const int64_t row = m.width * m.factor * m.channels;
    const size_t pixel = (size_t)m.channels * sizeof *x;
    x += r * m.width * m.channels, y += r * m.factor * row;
    for (int64_t i = 0; i < m.width * m.factor; i++) memcpy(y + i * m.channels, x + i / m.factor * m.channels, pixel);
    for (int64_t i = 1; i < m.factor; i++) memcpy(y + i * row, y, (size_t)row * sizeof *y);
}

/* Row r of all rows of dx. */
static void collect(struct images m, int64_t r, const float *dy, float *dx)
{
    const int64_t row = m.width * m.factor * m.channels;
    dx += r * m.width * m.channels, dy += r * m.factor * row;
    memset(dx, 0, (size_t)(m.width * m.channels) * sizeof *dx);
    for (int64_t p = 0; p < m.factor; p++)
        for (int64_t q = 0; q < m.width * m.factor; q++) {
            float *to = dx + q / m.factor * m.channels;
            const float *from = dy + p * row + q * m.channels;
            for (int64_t c = 0; c < m.channels; c++) to[c] += from[c];
        }
}

static enum status upsample_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const struct images m = images_of(s);
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < m.count * m.height; r++) spread(m, r, args->x[0], args->y);
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

static enum status upsample_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const struct images m = images_of(s);
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < m.count * m.height; r++) collect(m, r, args->dy, args->dx[0]);
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

const struct kernel cpu_upsample = {true, layer_state_prepare, upsample_forward, upsample_backward, free};
