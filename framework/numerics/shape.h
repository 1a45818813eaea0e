/* The shape of one sample, in logical order, and its arithmetic. The batch is always the outermost dimension of a value
 * and is stored separately. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHAPE_RANK_MAX = 4, ALIGNMENT = 256 };

/* A value: {H, W, C} an image, {T, D} a sequence, {D} a vector. A parameter: {O, I, H, W}, {O, I}, {O}. */
struct shape {
    int rank;
    int64_t dim[SHAPE_RANK_MAX];
};

/* Product of the dimensions, 1 for rank 0; -1 if a dimension is not positive or the product exceeds 2^46. */
int64_t shape_elements(const struct shape *shape);

bool shape_equal(const struct shape *a, const struct shape *b);

/* The last dimension: the width of a row of {D} or {T, D}. */
static inline int64_t shape_width(const struct shape *shape) { return shape->dim[shape->rank - 1]; }

/* Writes "224x224x3" into text (at least 96 bytes) and returns it. */
char *shape_print(const struct shape *shape, char *text);

/* bytes rounded up to ALIGNMENT, as every buffer is. */
static inline size_t round_up(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/* Of positive numbers, a / b rounded up. */
static inline int64_t ratio_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }
