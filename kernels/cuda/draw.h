/* A draw in the form that kernels take. */
#ifndef REMATCH_CUDA_DRAW_H
#define REMATCH_CUDA_DRAW_H

#include "numerics/element_draw.h"
#include "numerics/rng.h"

/* The draw of a layer with this rate; not for mode OFF: see rng_drops(). */
static inline struct element_draw element_draw_of(const struct draw *draw, double rate)
{
    const uint64_t key = rng_key(draw->seed, RNG_DROPOUT);
    return (struct element_draw){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .threshold = rng_threshold(rate),
        .node = draw->node,
        .step = draw->step,
        .sequential = draw->mode == RNG_STASH || draw->mode == RNG_UNSAFE,
        .position = draw->position,
        .mask = draw->mode == RNG_MASK ? draw->mask : NULL,
        .step_there = draw->step_there,
        .position_there = draw->position_there,
    };
}

/* The factor of surviving elements. */
static inline float survivor_factor(double rate) { return (float)(1 / (1 - rate)); }

#endif
