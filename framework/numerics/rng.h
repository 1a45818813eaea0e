/* Counter-based random numbers: the purpose of a draw is its counter, so a recomputation draws the same numbers without
 * storing any.
 *
 * Key = (seed, domain); counter = (element / 4 in logical order, sample = index in the global batch, node, step).
 * experiments/README.md describes the modes; only `unsafe` lets a recomputation draw other numbers, in order to be
 * caught. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "numerics/philox.h"
#include "numerics/shape.h"

enum rng_domain { RNG_INIT, RNG_DATA, RNG_DROPOUT, RNG_SHUFFLE };
enum rng_mode { RNG_COUNTER, RNG_STASH, RNG_MASK, RNG_UNSAFE };

/* Where a random node's numbers come from in one forward or backward. */
struct draw {
    enum rng_mode mode;
    uint64_t seed;
    uint32_t node, step;
    int64_t sample;    /* the place in the whole batch of the call's first sample, which may be that of a slice */
    uint64_t position; /* STASH, UNSAFE: position of the call's first element in the sequential stream */
    uint8_t *mask;     /* MASK: kept bits, sample by sample, each sample padded to whole bytes; else NULL */
    /* Where a kernel of a device, queued before they are known, reads step and position from the device's memory; NULL:
     * the members above are valid. */
    const uint32_t *step_there;
    const uint64_t *position_there;
};

/* Four random words; see the head of this file. */
struct philox rng_words(uint64_t seed, enum rng_domain domain, uint32_t quad, uint32_t sample, uint32_t node,
                        uint32_t step);

/* The generator's key, and the threshold below which a word drops its element. */
uint64_t rng_key(uint64_t seed, enum rng_domain domain);
static inline uint32_t rng_threshold(double rate) { return (uint32_t)(rate * 0x1p32); }

/* A float uniform in [0, 1) from the upper 24 bits of word: exact. */
static inline float rng_uniform(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }

/* Sets keep[i] to 1 where element first + i (logical order) of sample survives dropout at rate in [0, 1), else to 0;
 * elements = numbers drawn for a sample, sample = its place in the call. A pure function of its arguments (mode MASK
 * reads draw->mask). */
void rng_keep(const struct draw *draw, double rate, int64_t elements, int64_t sample, int64_t first, int64_t count,
              uint8_t *keep);

/* Bytes of the mask of batch samples of elements each; fills it with mode COUNTER's bits. */
size_t rng_mask_bytes(int64_t elements, int64_t batch);
void rng_mask_fill(const struct draw *draw, double rate, int64_t elements, int64_t batch);

enum init { INIT_GLOROT_UNIFORM, INIT_HE_NORMAL, INIT_ZEROS, INIT_ONES, INIT_NORMAL };

/* Names of enum init, as in YAML. */
extern const char *const init_words[];

/* Fills out with the initial values of elements [first, first + count) of parameter number index in the
 * graph's list; first is a multiple of 4:
 * glorot_uniform: U(-l, l), l = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010); he_normal:
 * N(0, 2 / fan_in) (He et al., 2015), by Box-Muller; zeros; ones; normal: N(0, 0.02^2) (Devlin et al., 2018, after
 * Radford et al., 2018), by Box-Muller. */
void rng_init(enum init init, uint64_t seed, uint32_t index, int64_t fan_in, int64_t fan_out, int64_t first,
              int64_t count, float *out);
