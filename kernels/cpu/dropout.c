/* Inverted dropout: y = x / (1 - rate) where an element survives, else 0. Nothing is saved: the backward draws again.
 *
 * Contract: the draw of an element depends on its place in logical order alone, so masks are equal in every layout and
 * for any number of threads; padded channels become zero. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "element_loops.h"

enum { PIECE = 4096 }; /* elements drawn at a time; whole blocks */

static void drop_row(const uint8_t *keep, float scale, const float *from, float *to, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) to[i] = masked(from[i] * scale, keep[i]);
}

static void drop_logical(const struct layer_state *d, const struct draw *draw, const float *from, float *to)
{
    const double rate = node_real(d->node, "rate");
    const float scale = (float)(1 / (1 - rate));
    const int64_t elements = d->x.elements;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < d->x.batch; n++)
        for (int64_t first = 0; first < elements; first += PIECE) {
            uint8_t keep[PIECE];
            const int64_t count = elements - first < PIECE ? elements - first : PIECE;
            const int64_t at = n * elements + first;
            rng_keep(draw, rate, elements, n, first, count, keep);
            drop_row(keep, scale, from + at, to + at, count);
        }
}

/* Pixel by pixel, since a pixel's channels are contiguous in logical order; its blocks are pixels * block apart. */
static void drop_blocked(const struct layer_state *d, const struct draw *draw, const float *from, float *to)
{
    const double rate = node_real(d->node, "rate");
    const float scale = (float)(1 / (1 - rate));
    const int64_t channels = d->x.shape.dim[2], pixels = image_pixels(&d->x);
    const int64_t elements = channels * pixels, block = order_block(d->x.layout);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < d->x.batch; n++)
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t c = 0; c < channels; c += PIECE) {
                uint8_t keep[PIECE + BLOCK_MOST];
                const int64_t count = channels - c < PIECE ? channels - c : PIECE;
                rng_keep(draw, rate, elements, n, p * channels + c, count, keep);
                memset(keep + count, 0, BLOCK_MOST);
                for (int64_t j = 0; j < count; j += block) {
                    const int64_t at = n * d->x.elements + ((c + j) * pixels + p * block);
                    drop_row(keep + j, scale, from + at, to + at, block);
                }
            }
}

static void drop(struct layer_state *d, const struct kernel_args *args, const float *from, float *to)
{
    if (!kernel_drops(args, node_real(d->node, "rate"))) {
        if (to != from) copy_bytes(to, from, (size_t)d->x.count * sizeof *to);
    } else if (order_block(d->x.layout) > 1) {
        drop_blocked(d, &args->draw, from, to);
    } else {
        drop_logical(d, &args->draw, from, to);
    }
    clock_lap(d->backend, CLOCK_OTHER);
}

static enum status forward(void *state, const struct kernel_args *args)
{
    drop(state, args, args->x[0], args->y);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    drop(state, args, args->dy, args->dx[0]);
    return ST_OK;
}

const struct kernel cpu_dropout = {true, layer_state_prepare, forward, backward, free};
