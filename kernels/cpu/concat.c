/* The channels of two values side by side. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

enum { PIECE = 64 }; /* pixels a thread takes at a time */

struct concat {
    struct backend *backend;
    int64_t pixels, channels[2]; /* pixels of the batch */
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    struct concat *c = *state = allocate(1, sizeof *c);
    c->backend = backend;
    for (int k = 0; k < 2; k++) {
        const struct extent x = extent_of(graph, node->inputs[k]);
        c->channels[k] = shape_width(&x.shape);
        c->pixels = x.count / c->channels[k];
    }
    *footprint = (struct footprint){.implementation = "copy"};
    return ST_OK;
}

/* Copies some channels of every pixel between values whose pixels have more. */
static void copy_channels(float *to, int64_t to_pixel, const float *from, int64_t from_pixel, int64_t channels,
                          int64_t pixels)
{
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < pixels; first += PIECE)
        for (int64_t p = first; p < pixels && p < first + PIECE; p++)
            memcpy(to + p * to_pixel, from + p * from_pixel, (size_t)channels * sizeof *to);
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct concat *c = state;
    const int64_t *channels = c->channels, all = channels[0] + channels[1];
    for (int k = 0; k < 2; k++)
        copy_channels((float *)args->y + k * channels[0], all, args->x[k], channels[k], channels[k], c->pixels);
    clock_lap(c->backend, CLOCK_REORDER);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct concat *c = state;
    const int64_t *channels = c->channels, all = channels[0] + channels[1];
    for (int k = 0; k < 2; k++)
        if (args->dx[k])
            copy_channels(args->dx[k], channels[k], (const float *)args->dy + k * channels[0], all, channels[k],
                          c->pixels);
    clock_lap(c->backend, CLOCK_REORDER);
    return ST_OK;
}

const struct kernel cpu_concat = {true, prepare, forward, backward, free};
