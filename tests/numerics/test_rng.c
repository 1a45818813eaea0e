/* The generator against its authors' known answers, and dropout's draws against the definition at the head of random.h.
 */
#include "numerics/rng.h"
#include "tests/support/same_bits.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* From the known-answer file of Random123 (Salmon et al., 2011): Philox4x32-10. */
static const struct {
    uint32_t key[2];
    struct philox counter, words;
} known[] = {
    {{0, 0}, {{0, 0, 0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
    {{0xffffffff, 0xffffffff},
     {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
     {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
    {{0xa4093822, 0x299f31d0},
     {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
     {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
};

Test(rng, philox_gives_the_known_answers)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct philox words = philox4x32(known[i].key[0], known[i].key[1], known[i].counter);
        cr_assert(!memcmp(&words, &known[i].words, sizeof words), "vector %zu", i);
    }
}

Test(rng, every_coordinate_matters)
{
    struct philox words[] = {
        rng_words(1, RNG_DROPOUT, 0, 0, 0, 0), rng_words(2, RNG_DROPOUT, 0, 0, 0, 0),
        rng_words(1, RNG_INIT, 0, 0, 0, 0),    rng_words(1, RNG_DATA, 0, 0, 0, 0),
        rng_words(1, RNG_SHUFFLE, 0, 0, 0, 0), rng_words(1, RNG_DROPOUT, 1, 0, 0, 0),
        rng_words(1, RNG_DROPOUT, 0, 1, 0, 0), rng_words(1, RNG_DROPOUT, 0, 0, 1, 0),
        rng_words(1, RNG_DROPOUT, 0, 0, 0, 1), rng_words(1 + (UINT64_C(1) << 32), RNG_DROPOUT, 0, 0, 0, 0),
    };
    enum { COUNT = sizeof words / sizeof *words };
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < i; j++) cr_assert(memcmp(&words[i], &words[j], sizeof *words), "%d and %d", i, j);
}

/* Numbers that must never change: results of other days would no longer be comparable. */
Test(rng, the_streams_stay_what_they_are)
{
    struct philox dropout = rng_words(123, RNG_DROPOUT, 1, 2, 3, 4), init = rng_words(123, RNG_INIT, 1, 2, 3, 4);
    cr_assert(dropout.word[0] == 0xa6dd1a90 && init.word[3] == 0xf901fca5, "%08x %08x", dropout.word[0], init.word[3]);
}

Test(rng, uniform_is_exact)
{
    cr_assert(rng_uniform(0) == 0 && rng_uniform(255) == 0 && rng_uniform(256) == 0x1p-24f);
    cr_assert(rng_uniform(0xffffffff) == 1 - 0x1p-24f && rng_uniform(0x80000000) == 0.5f);
}

static const double rates[] = {0, 0.1, 0.25, 0.5, 0.9, 0.999};

/* One element at a time, from the definition. */
static int keeps(const struct draw *draw, double rate, int64_t elements, int64_t sample, int64_t element)
{
    uint64_t at = draw->position + (uint64_t)(sample * elements + element);
    struct philox words;
    if (draw->mode == RNG_COUNTER) {
        at = (uint64_t)element;
        words = rng_words(draw->seed, RNG_DROPOUT, (uint32_t)(at / 4), (uint32_t)(draw->sample + sample), draw->node,
                          draw->step);
    } else {
        words = rng_words(draw->seed, RNG_DROPOUT, (uint32_t)(at / 4), (uint32_t)(at / 4 >> 32), 0, 0);
    }
    return words.word[at % 4] / 0x1p32 >= rate - 0x1p-32;
}

Test(rng, keep_is_its_definition_from_any_place)
{
    static const int64_t firsts[] = {0, 1, 3, 4, 63, 64, 65, 130}, counts[] = {1, 2, 5, 63, 64, 65, 200};
    static const enum rng_mode modes[] = {RNG_COUNTER, RNG_STASH, RNG_UNSAFE};
    static const uint64_t positions[] = {0, 1, 6,
                                         UINT64_C(0x3fffffff0)}; /* the last runs into the counter's second word */
    uint8_t keep[256 + 1];
    for (int m = 0; m < 3; m++)
        for (int p = 0; p < 4; p++)
            for (int f = 0; f < 8; f++)
                for (int c = 0; c < 7; c++) {
                    struct draw draw = {modes[m], 11, 2, 3, 7 * p, positions[p], NULL};
                    double rate = rates[(f + c) % 6];
                    memset(keep, 7, sizeof keep);
                    rng_keep(&draw, rate, 331, 2, firsts[f], counts[c], keep);
                    for (int64_t i = 0; i < counts[c]; i++)
                        cr_assert(keep[i] == keeps(&draw, rate, 331, 2, firsts[f] + i),
                                  "mode %d, first %d, count %d, %d", m, f, c, (int)i);
                    cr_assert(keep[counts[c]] == 7, "written too far");
                }
}

Test(rng, masks_hold_what_counters_draw)
{
    enum { ELEMENTS = 9001, SAMPLES = 3 };
    static uint8_t keep[ELEMENTS], expected[ELEMENTS];
    size_t bytes = rng_mask_bytes(ELEMENTS, SAMPLES);
    cr_assert(bytes == SAMPLES * 1126);
    struct draw counter = {.mode = RNG_COUNTER, .seed = 5, .node = 6, .step = 7, .sample = 4}, mask = counter;
    mask.mode = RNG_MASK;
    mask.mask = malloc(bytes);
    cr_assert(mask.mask);
    rng_mask_fill(&mask, 0.3, ELEMENTS, SAMPLES);
    for (int64_t sample = 0; sample < SAMPLES; sample++) {
        rng_keep(&counter, 0.3, ELEMENTS, sample, 0, ELEMENTS, expected);
        rng_keep(&mask, 0.3, ELEMENTS, sample, 0, ELEMENTS, keep);
        cr_assert(!memcmp(keep, expected, ELEMENTS));
        rng_keep(&mask, 0.3, ELEMENTS, sample, 4097, 77, keep);
        cr_assert(!memcmp(keep, expected + 4097, 77));
    }
    free(mask.mask);
}

/* Within five standard deviations of 1 - rate, and unlike the next sample's. */
Test(rng, as_many_survive_as_should)
{
    enum { COUNT = 1 << 20 };
    static uint8_t keep[2][COUNT];
    for (int r = 0; r < 6; r++) {
        struct draw draw = {.mode = RNG_COUNTER, .seed = 1, .node = 1};
        double sum = 0, both = 0, q = 1 - rates[r];
        for (int s = 0; s < 2; s++) rng_keep(&draw, rates[r], COUNT, s, 0, COUNT, keep[s]);
        for (int i = 0; i < COUNT; i++) sum += keep[0][i], both += keep[0][i] & keep[1][i];
        cr_assert(fabs(sum / COUNT - q) <= 5 * sqrt(q * rates[r] / COUNT), "rate %g: %g", rates[r], sum / COUNT);
        cr_assert(fabs(both / COUNT - q * q) <= 5 * sqrt(q * q * (1 - q * q) / COUNT));
    }
}

static void moments(const float *x, int count, double *mean, double *variance)
{
    *mean = *variance = 0;
    for (int i = 0; i < count; i++) *mean += x[i] / (double)count;
    for (int i = 0; i < count; i++) *variance += (x[i] - *mean) * (x[i] - *mean) / count;
}

Test(rng, initial_values_have_their_distributions)
{
    enum { COUNT = 400003 };
    static float x[COUNT], again[COUNT];
    double mean, variance, limit = sqrt(6.0 / (300 + 100));
    rng_init(INIT_GLOROT_UNIFORM, 1, 4, 300, 100, 0, COUNT, x);
    moments(x, COUNT, &mean, &variance);
    for (int i = 0; i < COUNT; i++) cr_assert(fabs(x[i]) <= limit);
    cr_assert(fabs(mean) < 5 * limit / sqrt(3.0 * COUNT) && fabs(variance / (limit * limit / 3) - 1) < 0.01);

    rng_init(INIT_HE_NORMAL, 1, 4, 300, 100, 0, COUNT, x);
    moments(x, COUNT, &mean, &variance);
    int within = 0;
    for (int i = 0; i < COUNT; i++) within += fabs(x[i]) < sqrt(2.0 / 300);
    cr_assert(fabs(mean) < 5 * sqrt(2.0 / 300 / COUNT) && fabs(variance / (2.0 / 300) - 1) < 0.01);
    cr_assert(fabs(within / (double)COUNT - 0.6827) < 0.005); /* one standard deviation of a normal distribution */

    rng_init(INIT_HE_NORMAL, 1, 4, 300, 100, 0, 7, again); /* a shorter one is a prefix; another index is another one */
    cr_assert(same_bits(x, again, 7 * sizeof *x));
    rng_init(INIT_HE_NORMAL, 1, 5, 300, 100, 0, 7, again);
    cr_assert(!same_bits(x, again, 7 * sizeof *x));
    rng_init(INIT_NORMAL, 1, 4, 300, 100, 0, COUNT, x);
    moments(x, COUNT, &mean, &variance);
    cr_assert(fabs(mean) < 5 * 0.02 / sqrt(COUNT) && fabs(variance / 0.0004 - 1) < 0.01);

    rng_init(INIT_ONES, 1, 4, 300, 100, 0, COUNT, x);
    for (int i = 0; i < COUNT; i++) cr_assert(x[i] == 1);
    rng_init(INIT_ZEROS, 1, 4, 300, 100, 0, COUNT, x);
    for (int i = 0; i < COUNT; i++) cr_assert(x[i] == 0 && !signbit(x[i]));
}
