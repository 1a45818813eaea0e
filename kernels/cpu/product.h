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

/* Rows of an operand that are fetched ahead while they are packed: the processor does not do so by itself, since they
 * are short and far apart. */
enum { AHEAD = 8 };

/* The lines of the cache of count floats, which need not exist. */
INLINED void fetch(const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i += 16) __builtin_prefetch(from + i);
}

/* Where a row's term is packed by term: in panels of ROWS_MOST rows, distance floats apart. */
static inline int64_t place_by_term(int64_t row, int64_t term, int64_t distance)
{
    return row / ROWS_MOST * distance + term * ROWS_MOST + row % ROWS_MOST;
}

/* A result in memory: data[row * stride + column] is the sum plus the column's bias, or plus 0. A relu then makes
 * values <= 0 to 0 and keeps NaN. add: the sum is first added to what is there; only of products with spans, which have
 * scratch for it. bare: nothing is added, and the sum may be -0. */
struct target {
    float *data;
    int64_t stride;
    const float *bias; /* or NULL */
    bool relu, add, bare;
};

/* Stores a part's sums, whose first one becomes the target's first. */
void product_store(const struct target *target, const struct block *part, const float *sums, int64_t stride);

/* A row-major matrix: transposed, it is read as the transpose of what is stored. */
struct matrix {
    const float *data;
    int64_t stride; /* of stored rows; 0: no matrix */
    bool transposed;
};

/* result (rows x columns) = the sums over terms of a row's operand times a column's. Functions copy a part of an
 * operand, or accept a part of the result; threads call them at once for different parts. */
struct product {
    int64_t rows, columns, terms;
    bool spans;           /* sums are divided into spans */
    bool by_term;         /* a term's rows lie together in memory */
    struct matrix source; /* the rows, if they lie in memory; most are then not packed */
    /* Writes to[row * distance + term], or by term to[place_by_term()]; rows and terms count from 0 on in a part. */
    void (*pack_rows)(const void *of, const struct block *part, float *to, int64_t distance);
    /* In panels: to[column / PANEL * distance + term * PANEL + column % PANEL]. */
    void (*pack_columns)(const void *of, const struct block *part, float *to, int64_t distance);
    struct target target; /* where the result goes if the function is NULL */
    /* Takes sums[row * stride + column], all their terms. */
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
