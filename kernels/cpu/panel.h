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

/* How ROWS x PANEL sums are stored, the first rows and columns of them: added to what is there or not, then, if it ends
 * there, to the column's bias, or 0; then through a relu or not. */
struct ending {
    int64_t rows, columns;
    bool add, ends, relu;
    const float *bias; /* or NULL */
};

/* In what follows, vectors, 1 or 2 a row, whole and by_term are constants of a call; whole: all rows and lanes are
 * stored, else the first rows, and some lanes of the last vector. */

/* Adds what lies in memory, rows distance apart. */
INLINED void add_rows(int vectors, bool whole, lanes s[ROWS][2], int64_t rows, int64_t some, const float *from,
                      int64_t distance)
{
#pragma GCC unroll 12
    for (int r = 0; r < ROWS; r++, from += distance) {
        if (!whole && r >= rows) break;
        if (vectors > 1) s[r][0] += lanes_load(from);
        const float *last = from + (vectors - 1) * LANES;
        s[r][vectors - 1] += whole ? lanes_load(last) : lanes_load_part(last, some);
    }
}

INLINED void rectify_rows(int vectors, lanes s[ROWS][2])
{
#pragma GCC unroll 12
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < vectors; v++) s[r][v] = lanes_rectified(s[r][v]);
}

INLINED void store_some(int vectors, bool whole, lanes s[ROWS][2], const struct ending *ending, int64_t some,
                        float *sums, int64_t to)
{
    static const float zeros[2 * LANES];
    if (ending->add) add_rows(vectors, whole, s, ending->rows, some, sums, to);
    if (ending->ends) add_rows(vectors, whole, s, ROWS, some, ending->bias != NULL ? ending->bias : zeros, 0);
    if (ending->relu) rectify_rows(vectors, s);
#pragma GCC unroll 12
    for (int r = 0; r < ROWS; r++, sums += to) {
        if (!whole && r >= ending->rows) break;
        if (vectors > 1) lanes_store(sums, s[r][0]);
        float *last = sums + (vectors - 1) * LANES;
        if (whole)
            lanes_store(last, s[r][vectors - 1]);
        else
            lanes_store_part(last, s[r][vectors - 1], some);
    }
}

INLINED void store_sums(int vectors, lanes s[ROWS][2], const struct ending *ending, float *sums, int64_t to)
{
    const int64_t last = ending->columns - (vectors - 1) * LANES;
    if (ending->rows >= ROWS && last >= LANES)
        store_some(vectors, true, s, ending, LANES, sums, to);
    else
        store_some(vectors, false, s, ending, last < LANES ? last : LANES, sums, to);
}

/* Adds a term to each sum, as one fma: rows lie distance floats apart, or, by_term, beside each other. */
INLINED void multiply_term(int vectors, bool by_term, lanes s[ROWS][2], const float *a, int64_t distance,
                           const float *b)
{
    const lanes b0 = lanes_load(b), b1 = vectors > 1 ? lanes_load(b + LANES) : (lanes){0};
    const int64_t row = by_term ? 1 : distance;
#pragma GCC unroll 4
    for (int q = 0; q < ROWS; q += THIRD, a += THIRD * row) {
#pragma GCC unroll 3
        for (int r = 0; r < THIRD; r++) {
            const lanes x = lanes_all(a[r * row]);
            s[q + r][0] = lanes_fma(x, b0, s[q + r][0]);
            if (vectors > 1) s[q + r][1] = lanes_fma(x, b1, s[q + r][1]);
        }
    }
}

/* sums[r * to + c] = what the ending makes of the sum of a[r * row + i * term] b[i * PANEL + c] over i < terms,
 * ascending, for the rows and columns that it names, of at most vectors * LANES. Row and term are distance and 1, or,
 * by_term, 1 and distance. What lies from next on, one place every step floats a term, is fetched meanwhile. */
INLINED void multiply_vectors(int vectors, bool by_term, int64_t terms, const float *a, int64_t distance,
                              const float *b, float *sums, int64_t to, const struct ending *ending, const float *next,
                              int64_t step)
{
    const int64_t term = by_term ? distance : 1;
    const int turn = by_term ? 1 : 2; /* terms; rows that lie apart have several pointers, which move once a turn */
    lanes s[ROWS][2];
#pragma GCC unroll 12
    for (int r = 0; r < ROWS; r++) s[r][0] = s[r][1] = (lanes){0};
#pragma GCC unroll 12
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < PANEL; c += 16) __builtin_prefetch(sums + r * to + c, 1);
    for (int64_t i = turn; i <= terms; i += turn, a += turn * term, b += turn * PANEL, next += turn * step)
#pragma GCC unroll 2
        for (int t = 0; t < turn; t++) {
            __builtin_prefetch(next + t * step);
            multiply_term(vectors, by_term, s, a + t * term, distance, b + t * PANEL);
        }
    if (terms % turn != 0) multiply_term(vectors, by_term, s, a, distance, b);
    store_sums(vectors, s, ending, sums, to);
}

INLINED void multiply_panel(bool by_term, int64_t terms, const float *a, int64_t distance, const float *b, float *sums,
                            int64_t to, const struct ending *ending, const float *next, int64_t step)
{
    if (ending->columns > LANES)
        multiply_vectors(2, by_term, terms, a, distance, b, sums, to, ending, next, step);
    else
        multiply_vectors(1, by_term, terms, a, distance, b, sums, to, ending, next, step);
}
