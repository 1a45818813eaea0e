/* The decisions that a device makes one by one are those that the host makes by the row. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "numerics/element_draw.h"
#include "numerics/rng.h"

enum { BATCH = 3 };

static struct element_draw element_draw_of(const struct draw *draw, double rate)
{
    const uint64_t key = rng_key(draw->seed, RNG_DROPOUT);
    return (struct element_draw){.key = {(uint32_t)key, (uint32_t)(key >> 32)},
                                 .threshold = rng_threshold(rate),
                                 .node = draw->node,
                                 .step = draw->step,
                                 .sequential = draw->mode != RNG_COUNTER,
                                 .position = draw->position,
                                 .mask = draw->mask};
}

static void check(const struct draw *draw, const struct element_draw *element, double rate, int64_t elements)
{
    uint8_t keep[256];
    for (int64_t n = 0; n < BATCH; n++) {
        rng_keep(draw, rate, elements, n, 0, elements, keep);
        for (int64_t i = 0; i < elements; i++)
            cr_assert(element_keep(element, elements, n, i) == keep[i], "mode %d, element %d of sample %d of %d",
                      (int)draw->mode, (int)i, (int)n, (int)elements);
    }
}

Test(element_draw, equals_the_host_in_every_mode)
{
    static const int64_t elements[] = {1, 3, 4, 7, 8, 13, 64, 203};
    static const double rates[] = {0.1, 0.5, 0.999};
    static const uint64_t positions[] = {0, 1, 6, UINT64_C(0x3ffffffff), UINT64_C(1) << 40};
    for (int e = 0; e < 8; e++)
        for (int r = 0; r < 3; r++)
            for (int p = 0; p < 5; p++)
                for (int mode = RNG_COUNTER; mode <= RNG_UNSAFE; mode++) {
                    struct draw draw = {.mode = (enum rng_mode)mode, .seed = 7, .node = 3, .step = 11};
                    draw.position = positions[p];
                    if (mode == RNG_MASK) {
                        draw.mask = calloc(1, rng_mask_bytes(elements[e], BATCH));
                        rng_mask_fill(&draw, rates[r], elements[e], BATCH);
                    }
                    const struct element_draw element = element_draw_of(&draw, rates[r]);
                    check(&draw, &element, rates[r], elements[e]);
                    free(draw.mask);
                }
}

/* Element 2^34 of a sample: its quad does not fit 32 bits. */
Test(element_draw, counts_far)
{
    const int64_t far = INT64_C(1) << 34;
    const struct draw draw = {.mode = RNG_COUNTER, .seed = 7, .node = 3, .step = 11};
    const struct element_draw element = element_draw_of(&draw, 0.5);
    uint8_t keep[64];
    rng_keep(&draw, 0.5, 2 * far, 2, far - 32, 64, keep);
    for (int i = 0; i < 64; i++) cr_assert(element_keep(&element, 2 * far, 2, far - 32 + i) == keep[i]);
}

Test(element_draw, reads_what_lies_elsewhere)
{
    const uint32_t step = 5;
    const uint64_t position = 77;
    struct element_draw draw = {.step = 1, .position = 2};
    cr_assert(element_draw_read(draw).step == 1 && element_draw_read(draw).position == 2);
    draw.step_there = &step;
    draw.position_there = &position;
    cr_assert(element_draw_read(draw).step == 5 && element_draw_read(draw).position == 77);
}
