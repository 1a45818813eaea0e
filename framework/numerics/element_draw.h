/* Which elements dropout keeps, one at a time, for C and CUDA.
 *
 * Contract: the decisions are rng_keep()'s, in every mode that draws; a pure function of the arguments. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "numerics/philox.h"

/* A struct draw with the key of rng_key() and the threshold of its layer's rate; see rng.h. */
struct element_draw {
    uint32_t key[2];
    uint32_t threshold;
    uint32_t node, step;
    int64_t sample;  /* the place in the whole batch of the call's first sample */
    bool sequential; /* one stream of numbers, from position on; else counters */
    uint64_t position;
    const uint8_t *mask; /* if not NULL, the kept bits */
    const uint32_t *step_there;
    const uint64_t *position_there;
};

/* draw with step and position read from the memory that it points to, which must be accessible. */
EVERYWHERE struct element_draw element_draw_read(struct element_draw draw)
{
    if (draw.step_there != NULL) draw.step = *draw.step_there;
    if (draw.position_there != NULL) draw.position = *draw.position_there;
    return draw;
}

/* 1 where element index of a sample survives, where elements are drawn for each sample, else 0. */
EVERYWHERE unsigned element_keep(const struct element_draw *draw, int64_t elements, int64_t sample, int64_t index)
{
    if (draw->mask != NULL) return (unsigned)draw->mask[sample * ((elements + 7) / 8) + index / 8] >> index % 8 & 1u;
    const uint64_t at = draw->sequential ? draw->position + (uint64_t)(sample * elements + index) : (uint64_t)index;
    struct philox counter = {{(uint32_t)(at / 4), (uint32_t)(at / 4 >> 32), 0, 0}};
    if (!draw->sequential) {
        counter.word[1] += (uint32_t)(draw->sample + sample);
        counter.word[2] = draw->node;
        counter.word[3] = draw->step;
    }
    return philox4x32(draw->key[0], draw->key[1], counter).word[at % 4] >= draw->threshold;
}
