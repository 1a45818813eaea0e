/* Products of matrices: of linear layers, attention, and convolutions over gathered pixels.
 *
 * This comment defines every bit of the results, on any processor, with any number of threads.
 *
 * Arithmetic is that of IEEE 754 floats; fma(p, q, s) rounds p q + s once. A sum over terms is divided into blocks of
 * SUM_BLOCK consecutive terms. A block is s = fma(p, q, s) over its terms in ascending order, from s = 0. The second
 * block is added to the first, the third to that sum, and so on.
 *
 * Where the definition of a kernel says so, the terms are first divided into spans of SUM_SPAN consecutive terms. Each
 * is such a sum; the second span is added to the first, the third to that sum, and so on. These are the gradients of
 * weights, whose sums over a batch are long: three levels are more accurate, and threads share the spans. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "panel.h"

enum { SUM_BLOCK = 256, SUM_SPAN = 8 * SUM_BLOCK };

/* A part of a product: rows and columns of the result, and terms of its sums. */
struct block {
    int64_t row, rows, column, columns, term, terms;
};

/* from NULL: there are no more. Lines that do not exist may be named. */
struct stream {
    const float *from;
    int64_t step;
};

/* Number *number of the streams that fetch lines lines each of so many columns of lines, of which each has length:
 * *column and the first line *at. False: there is none, and *number is that of what follows. */
static inline bool stream_place(int64_t columns, int64_t length, int64_t lines, int64_t *number, int64_t *column,
                                int64_t *at)
{
    const int64_t each = (length + lines - 1) / lines, all = columns * each;
    if (*number >= all) {
        *number -= all;
        return false;
    }
    *column = *number / each, *at = *number % each * lines;
    return true;
}

/* result (rows x columns) = the sums over terms of a row's operand times a column's. Functions copy a part of an
 * operand, or accept a part of the result; threads call them at once for different parts. */
struct product {
    int64_t rows, columns, terms;
    bool spans;   /* sums are divided into spans */
    bool by_term; /* pack_rows() writes to[term * stride + row], else to[row * stride + term]; from 0 on in a part */
    void (*pack_rows)(const void *of, const struct block *part, float *to, int64_t stride);
    /* In panels: to[column / PANEL * distance + term * PANEL + column % PANEL], zeros for what the last one lacks. */
    void (*pack_columns)(const void *of, const struct block *part, float *to, int64_t distance);
    /* Where a part of the operands and of the result lies, to be fetched before it is used: number number of its
     * streams, which have a line of the cache every step floats, of which lines are fetched. */
    struct stream (*stream)(const void *of, const struct block *part, int64_t lines, int64_t number);
    /* sums[row * stride + column], all their terms. */
    void (*result)(const void *of, const struct block *part, const float *sums, int64_t stride);
};

/* How the work is divided, which changes no bit. */
struct product_plan {
    int64_t rows, columns; /* of a block of the result, whose sums one thread computes */
    int64_t terms;         /* packed at once */
    int64_t turn;          /* columns packed once for all blocks of rows; 0: every block packs its own */
    int64_t together;      /* spans that are summed at once, in scratch; 0: a block sums its spans in order */
    int64_t workers;       /* threads with scratch */
    size_t scratch;        /* bytes; depends on shape, threads and limit alone */
};

/* limit: bytes of scratch; of a plan that needs more, it is the least that this finds. */
struct product_plan product_plan(const struct product *product, int64_t threads, uint64_t limit);
/* Also of a product with fewer rows than the planned one. of: passed to the product's functions. */
void product_run(const struct product *product, const struct product_plan *plan, const void *of, void *scratch);
/* The same of a product without spans, on the calling thread alone, as planned for one thread without a limit. */
void product_alone(const struct product *product, const void *of, void *scratch);
