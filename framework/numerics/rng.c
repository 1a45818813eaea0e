#include "numerics/rng.h"

#include "numerics/philox_lanes.h"

#include <math.h>
#include <string.h>

const char *const init_words[] = {"glorot_uniform", "he_normal", "zeros", "ones", "normal", NULL};

/* SplitMix64's finaliser (Steele, Lea and Flood, 2014): spreads the domains of one seed over all keys. */
uint64_t rng_key(uint64_t seed, enum rng_domain domain)
{
    uint64_t key = seed + (uint64_t)(domain + 1) * UINT64_C(0x9E3779B97F4A7C15);
    key = (key ^ key >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    key = (key ^ key >> 27) * UINT64_C(0x94D049BB133111EB);
    return key ^ key >> 31;
}

struct philox rng_words(uint64_t seed, enum rng_domain domain, uint32_t quad, uint32_t sample, uint32_t node,
                        uint32_t step)
{
    uint64_t key = rng_key(seed, domain);
    return philox4x32((uint32_t)key, (uint32_t)(key >> 32), (struct philox){{quad, sample, node, step}});
}

/* A run of words: word w is word w % 4 of the counter base + w / 4. */
struct run {
    uint64_t key;
    struct philox base;
};

/* keep of the 4 * PHILOX_LANES words from quad on: the four of a quad are the bytes of a little-endian word. */
static void keep_lanes(const struct run *run, uint64_t quad, uint32_t threshold, uint8_t *keep)
{
    static const uint64_t count[PHILOX_LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    struct philox_lanes lanes;
    for (int v = 0; v < PHILOX_VECTORS; v++) {
        philox_vector first;
        memcpy(&first, count + v * PHILOX_WIDTH, sizeof first);
        lanes.word[0][v] = first + quad;
        lanes.word[1][v] = (lanes.word[0][v] >> 32) + run->base.word[1];
        lanes.word[2][v] = (philox_vector){0} + run->base.word[2];
        lanes.word[3][v] = (philox_vector){0} + run->base.word[3];
    }
    philox_lanes((uint32_t)run->key, (uint32_t)(run->key >> 32), &lanes);
    const uint64_t below = (uint64_t)threshold - 1; /* minus a word: its top bit is set where the word is kept */
    uint32_t quads[PHILOX_LANES];
    for (int v = 0; v < PHILOX_VECTORS; v++) {
        philox_vector bytes = {0};
        for (int w = 0; w < 4; w++) bytes |= (below - (lanes.word[w][v] & UINT32_MAX)) >> 63 << 8 * w;
        for (int i = 0; i < PHILOX_WIDTH; i++) quads[v * PHILOX_WIDTH + i] = (uint32_t)bytes[i];
    }
    memcpy(keep, quads, sizeof quads);
}

/* keep of words [first, first + count): full sets of lanes directly, the rest through a small buffer. */
static void keep_words(const struct run *run, uint64_t first, int64_t count, uint32_t threshold, uint8_t *keep)
{
    uint8_t buffer[4 * PHILOX_LANES];
    while (count > 0) {
        int64_t skip = (int64_t)(first % 4), made = 4 * PHILOX_LANES - skip;
        if (!skip && count >= made) {
            keep_lanes(run, first / 4, threshold, keep);
        } else {
            if (made > count) made = count;
            keep_lanes(run, first / 4, threshold, buffer);
            memcpy(keep, buffer + skip, (size_t)made);
        }
        first += (uint64_t)made;
        keep += made;
        count -= made;
    }
}

void rng_keep(const struct draw *draw, double rate, int64_t elements, int64_t sample, int64_t first, int64_t count,
              uint8_t *keep)
{
    const uint32_t threshold = rng_threshold(rate);
    struct run run = {.key = rng_key(draw->seed, RNG_DROPOUT)};
    if (draw->mode == RNG_MASK) {
        const uint8_t *mask = draw->mask + sample * ((elements + 7) / 8);
        for (int64_t i = 0; i < count; i++) keep[i] = mask[(first + i) / 8] >> (first + i) % 8 & 1;
    } else if (draw->mode == RNG_COUNTER) {
        run.base = (struct philox){{0, (uint32_t)(draw->sample + sample), draw->node, draw->step}};
        keep_words(&run, (uint64_t)first, count, threshold, keep);
    } else {
        keep_words(&run, draw->position + (uint64_t)(sample * elements + first), count, threshold, keep);
    }
}

size_t rng_mask_bytes(int64_t elements, int64_t batch) { return (size_t)((elements + 7) / 8 * batch); }

void rng_mask_fill(const struct draw *draw, double rate, int64_t elements, int64_t batch)
{
    enum { PIECE = 4096 };
    const int64_t row = (elements + 7) / 8;
    struct draw counter = *draw;
    counter.mode = RNG_COUNTER;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t sample = 0; sample < batch; sample++)
        for (int64_t first = 0; first < elements; first += PIECE) {
            uint8_t keep[PIECE] = {0};
            int64_t count = elements - first < PIECE ? elements - first : PIECE;
            rng_keep(&counter, rate, elements, sample, first, count, keep);
            uint8_t *mask = draw->mask + sample * row + first / 8;
            for (int64_t i = 0; i < count; i += 8) {
                unsigned bits = 0;
                for (int j = 0; j < 8; j++) bits |= (unsigned)keep[i + j] << j;
                mask[i / 8] = (uint8_t)bits;
            }
        }
}

static float uniform_within(float limit, uint32_t word) { return (2 * rng_uniform(word) - 1) * limit; }

/* Two normal numbers from two words, in double: 1 - u is in (0, 1], so its logarithm is finite. */
static void normal_pair(double deviation, uint32_t word0, uint32_t word1, float out[2])
{
    const double turn = 6.283185307179586;
    double radius = deviation * sqrt(-2 * log(1 - (double)rng_uniform(word0)));
    out[0] = (float)(radius * cos(turn * (double)rng_uniform(word1)));
    out[1] = (float)(radius * sin(turn * (double)rng_uniform(word1)));
}

void rng_init(enum init init, uint64_t seed, uint32_t index, int64_t fan_in, int64_t fan_out, int64_t first,
              int64_t count, float *out)
{
    const float limit = (float)sqrt(6 / ((double)fan_in + (double)fan_out));
    const double deviation = init == INIT_NORMAL ? 0.02 : sqrt(2 / (double)fan_in);
    if (init == INIT_ZEROS || init == INIT_ONES) {
        for (int64_t i = 0; i < count; i++) out[i] = init == INIT_ONES ? 1 : 0;
        return;
    }
#pragma omp parallel for schedule(static)
    for (int64_t at = 0; at < count; at += 4) {
        struct philox words = rng_words(seed, RNG_INIT, (uint32_t)((first + at) / 4), 0, index, 0);
        float quad[4];
        if (init == INIT_HE_NORMAL || init == INIT_NORMAL) {
            normal_pair(deviation, words.word[0], words.word[1], quad);
            normal_pair(deviation, words.word[2], words.word[3], quad + 2);
        } else {
            for (int j = 0; j < 4; j++) quad[j] = uniform_within(limit, words.word[j]);
        }
        for (int64_t j = 0; j < 4 && at + j < count; j++) out[at + j] = quad[j];
    }
}
