/* The channels of two values side by side, in any layouts.
 *
 * Contract: padded channels are zero. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "element_loops.h"

enum { PIECE = 64 }; /* pixels a thread takes at a time */

struct concat {
    struct backend *backend;
    struct extent x[2], y;
};

static int64_t channels_of(const struct extent *e) { return shape_width(&e->shape); }
static int64_t pixels_of(const struct extent *e) { return shape_elements(&e->shape) / channels_of(e); }

/* Some channels of a value. */
struct slice {
    const struct extent *of;
    float *data; /* of the whole value */
    int64_t first;
    int64_t block; /* channels of a pixel that lie together; in logical order all of them */
};

static struct slice slice_of(const struct extent *of, const void *data, int64_t first)
{
    const int64_t block = order_block(of->layout);
    return (struct slice){of, (float *)(uintptr_t)data, first, block > 1 ? block : channels_of(of)};
}

/* Channel c of the slice. */
static float *place(const struct slice *s, int64_t sample, int64_t pixel, int64_t c)
{
    c += s->first;
    return s->data + sample * s->of->elements + (c / s->block * pixels_of(s->of) + pixel) * s->block + c % s->block;
}

/* How many channels lie together from channel c of the slice on. */
static int64_t together(const struct slice *s, int64_t c) { return s->block - (s->first + c) % s->block; }

/* Copies channels channels of some pixels, and zeros the padding after the last channel. */
static void copy_piece(const struct slice *to, const struct slice *from, int64_t channels, int64_t sample,
                       int64_t pixel, int64_t pixels)
{
    const bool last = to->first + channels == channels_of(to->of);
    const int64_t padding = last ? (to->block - channels_of(to->of) % to->block) % to->block : 0;
    for (int64_t c = 0, run; c < channels; c += run) {
        run = lesser(channels - c, lesser(together(to, c), together(from, c)));
        float *out = place(to, sample, pixel, c);
        const float *in = place(from, sample, pixel, c);
        if (run == to->block && run == from->block)
            stream_floats(out, in, pixels * run);
        else
            for (int64_t p = 0; p < pixels; p++)
                memcpy(out + p * to->block, in + p * from->block, (size_t)run * sizeof *out);
    }
    for (int64_t p = 0; padding > 0 && p < pixels; p++)
        memset(place(to, sample, pixel + p, channels), 0, (size_t)padding * sizeof *to->data);
    stream_end();
}

static void copy_channels(struct slice to, struct slice from, int64_t channels)
{
    const int64_t samples = to.of->batch, pixels = pixels_of(to.of);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < samples; n++)
        for (int64_t p = 0; p < pixels; p += PIECE) copy_piece(&to, &from, channels, n, p, lesser(PIECE, pixels - p));
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    struct concat *c = *state = allocate(1, sizeof *c);
    *c = (struct concat){backend,
                         {extent_of(graph, node->inputs[0]), extent_of(graph, node->inputs[1])},
                         extent_of(graph, node->output)};
    *footprint = (struct footprint){.implementation = "copy"};
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct concat *c = state;
    for (int k = 0; k < 2; k++)
        copy_channels(slice_of(&c->y, args->y, k ? channels_of(&c->x[0]) : 0), slice_of(&c->x[k], args->x[k], 0),
                      channels_of(&c->x[k]));
    clock_lap(c->backend, CLOCK_REORDER);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct concat *c = state;
    for (int k = 0; k < 2; k++)
        if (args->dx[k])
            copy_channels(slice_of(&c->x[k], args->dx[k], 0), slice_of(&c->y, args->dy, k ? channels_of(&c->x[0]) : 0),
                          channels_of(&c->x[k]));
    clock_lap(c->backend, CLOCK_REORDER);
    return ST_OK;
}

const struct kernel cpu_concat = {true, prepare, forward, backward, free};
