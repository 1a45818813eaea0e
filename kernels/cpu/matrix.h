/* Products of matrices in memory, as product.h defines their bits. */
#pragma once

#include "product.h"

/* c = a b. turned, of one without spans: the product computes the transpose of c, which is faster for few rows, and has
 * the same bits. */
struct matrix_product {
    struct matrix a, b;
    struct target c;
    bool turned;
};

/* c (rows x columns) over terms. of: c and turned are set, a and b become the product's operands. */
struct product matrix_product(int64_t rows, int64_t columns, int64_t terms, struct matrix a, struct matrix b,
                              struct matrix_product *of);

/* Copies a part of the columns, as a product's function does. */
void matrix_pack_columns(const struct matrix *b, const struct block *part, float *to, int64_t distance);
