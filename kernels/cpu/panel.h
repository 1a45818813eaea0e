/* The innermost loop of every product: ROWS x PANEL sums at once, which fill most of the processor's registers. */
#pragma once

#include <stdbool.h>

#include "lanes.h"

/* Columns of a product that are computed together; the most of any build, by which scratch is reported. */
enum { PANEL = 2 * LANES, PANEL_MOST = 32 };

enum { ROWS_MOST = 12, ROWS = LANES == 16 ? ROWS_MOST : ROWS_MOST / 2, THIRD = 3 };

/* Floats that are added to rows of scratch, so that rows do not lie a multiple of 4 KiB apart, where they would evict
 * each other from caches. */
enum { SKEW = 16 };

/* Bytes of scratch that a pass of a convolution or of a linear layer takes at most, where its plan can keep a limit. */
enum { SCRATCH_MOST = 32 << 20 };

static inline uint64_t scratch_within(uint64_t limit) { return limit < SCRATCH_MOST ? limit : SCRATCH_MOST; }

static inline int64_t multiple(int64_t a, int64_t of) { return (a + of - 1) / of * of; }

/* sums[r * to + c] = (add: +=) the sum of a[r * row + i * term] b[i * PANEL + c] over i < terms, ascending, for
 * c < vectors * LANES; vectors is 1 or 2, a constant of a call. What lies from next on, one place every step floats a
 * term, is fetched meanwhile. */
INLINED void multiply_vectors(int vectors, int64_t terms, const float *a, int64_t row, int64_t term, const float *b,
                              float *sums, int64_t to, bool add, const float *next, int64_t step)
{
    lanes s[ROWS][2];
#pragma GCC unroll 12
    for (int r = 0; r < ROWS; r++) s[r][0] = s[r][1] = (lanes){0};
    for (int r = 0; r < ROWS * PANEL; r += 16) __builtin_prefetch(sums + r / PANEL * to + r % PANEL, 1);
    for (int64_t i = 0; i < terms; i++, b += PANEL, a += term, next += step) {
        const lanes b0 = lanes_load(b), b1 = vectors > 1 ? lanes_load(b + LANES) : (lanes){0};
        const float *third = a;
        __builtin_prefetch(next);
#pragma GCC unroll 4
        for (int q = 0; q < ROWS; q += THIRD, third += THIRD * row) {
#pragma GCC unroll 3
            for (int r = 0; r < THIRD; r++) {
                const lanes x = lanes_all(third[r * row]);
                s[q + r][0] = lanes_fma(x, b0, s[q + r][0]);
                if (vectors > 1) s[q + r][1] = lanes_fma(x, b1, s[q + r][1]);
            }
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < ROWS; r++) {
        float *at = sums + r * to;
        for (int v = 0; v < vectors; v++) {
            if (add) s[r][v] += lanes_load(at + v * LANES);
            lanes_store(at + v * LANES, s[r][v]);
        }
    }
}

/* Of a panel of which columns exist. */
INLINED void multiply_panel(int64_t columns, int64_t terms, const float *a, int64_t row, int64_t term, const float *b,
                            float *sums, int64_t to, bool add, const float *next, int64_t step)
{
    if (columns > LANES)
        multiply_vectors(2, terms, a, row, term, b, sums, to, add, next, step);
    else
        multiply_vectors(1, terms, a, row, term, b, sums, to, add, next, step);
}
