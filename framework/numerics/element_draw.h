/* Which elements dropout keeps, one or four adjacent ones at a time, for C and CUDA.
 *
 * Contract: the decisions are rng_keep()'s, in every mode that draws; a pure function of the arguments. */
#ifndef REMATCH_NUMERICS_ELEMENT_DRAW_H
#define REMATCH_NUMERICS_ELEMENT_DRAW_H

#include <stdbool.h>
#include <stddef.h>

#include "numerics/philox.h"

#ifdef __CUDACC__
#define ELEMENT_DRAW __host__ __device__ static inline
#else
#define ELEMENT_DRAW static inline
#endif

/* A struct draw with the key of rng_key() and the threshold of its layer's rate; see rng.h. */
struct element_draw {
    uint32_t key[2];
    uint32_t threshold;
    uint32_t node, step;
    bool sequential; /* one stream of numbers, from position on; else counters */
    uint64_t position;
    const uint8_t *mask; /* if not NULL, the kept bits */
    const uint32_t *step_there;
    const uint64_t *position_there;
};

/* draw with step and position read from the memory that it points to, which must be accessible. */
ELEMENT_DRAW struct element_draw element_draw_read(struct element_draw draw)
{
    if (draw.step_there != NULL) draw.step = *draw.step_there;
    if (draw.position_there != NULL) draw.position = *draw.position_there;
    return draw;
}

/* Kept bits of the four words of a counter. */
ELEMENT_DRAW unsigned element_keep_words(const struct element_draw *draw, struct philox counter)
{
    const struct philox w = philox4x32(draw->key[0], draw->key[1], counter);
    return (unsigned)(w.word[0] >= draw->threshold) | (unsigned)(w.word[1] >= draw->threshold) << 1 |
           (unsigned)(w.word[2] >= draw->threshold) << 2 | (unsigned)(w.word[3] >= draw->threshold) << 3;
}

/* Words 4 quad to 4 quad + 3 of the sequential stream. */
ELEMENT_DRAW unsigned element_keep_stream(const struct element_draw *draw, uint64_t quad)
{
    const struct philox counter = {{(uint32_t)quad, (uint32_t)(quad >> 32), 0, 0}};
    return element_keep_words(draw, counter);
}

/* Bit j: whether element index + j of a sample survives, where elements are drawn for each sample; index is a multiple
 * of 4. Bits beyond the sample's last element are undefined. */
ELEMENT_DRAW unsigned element_keep_quad(const struct element_draw *draw, int64_t elements, int64_t sample,
                                        int64_t index)
{
    if (draw->mask != NULL) return draw->mask[sample * ((elements + 7) / 8) + index / 8] >> index % 8 & 15u;
    if (draw->sequential) {
        const uint64_t first = draw->position + (uint64_t)(sample * elements + index);
        const unsigned skip = (unsigned)(first % 4), bits = element_keep_stream(draw, first / 4);
        return skip == 0 ? bits : (bits >> skip | element_keep_stream(draw, first / 4 + 1) << (4 - skip)) & 15u;
    }
    const uint64_t quad = (uint64_t)index / 4;
    const struct philox counter = {{(uint32_t)quad, (uint32_t)(quad >> 32) + (uint32_t)sample, draw->node, draw->step}};
    return element_keep_words(draw, counter);
}

/* 1 where element index of a sample survives, else 0. */
ELEMENT_DRAW unsigned element_keep(const struct element_draw *draw, int64_t elements, int64_t sample, int64_t index)
{
    if (!draw->sequential || draw->mask != NULL)
        return element_keep_quad(draw, elements, sample, index & ~(int64_t)3) >> (index & 3) & 1u;
    const uint64_t at = draw->position + (uint64_t)(sample * elements + index);
    return element_keep_stream(draw, at / 4) >> at % 4 & 1u;
}

#endif
