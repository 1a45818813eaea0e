/* Inverted dropout: y = x / (1 - rate) where an element survives, else 0. Nothing is saved: the backward draws again.
 *
 * Contract: the draw of an element depends on its place in its sample alone, so masks are equal for any number of
 * threads. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "element_loops.h"

enum { PIECE = 4096 }; /* elements drawn at a time */

static void drop_row(const uint8_t *keep, float scale, const float *from, float *to, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) to[i] = masked(from[i] * scale, keep[i]);
}

static void drop_elements(const struct layer_state *d, const struct draw *draw, const float *from, float *to)
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

static void drop(struct layer_state *d, const struct kernel_args *args, const float *from, float *to)
{
    if (!kernel_drops(args, node_real(d->node, "rate"))) {
        if (to != from) copy_bytes(to, from, (size_t)d->x.count * sizeof *to);
    } else {
        drop_elements(d, &args->draw, from, to);
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
