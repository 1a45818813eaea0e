/* Products of matrices in memory, as product.h defines their bits. */
#pragma once

#include "product.h"

/* c = a b, plus a bias for every column of c, or 0; a relu then makes values <= 0 to 0 and keeps NaN. add: c + a b, of
 * a product that is not turned. */
struct matrix_product {
    struct matrix a, b;
    float *c;
    int64_t stride;
    const float *bias; /* or NULL */
    bool relu, add;
    bool turned; /* the columns of the product are the rows of c */
};

/* c (rows x columns) over terms; turned: the product computes the transpose of c, which is faster for few rows, and has
 * the same bits. */
struct product matrix_product(int64_t rows, int64_t columns, int64_t terms, struct matrix a, struct matrix b,
                              struct matrix_product *of);

/* Copy a part of an operand, as a product's functions do. */
void matrix_pack_rows(const struct matrix *a, const struct block *part, float *to, int64_t distance);
void matrix_pack_columns(const struct matrix *b, const struct block *part, float *to, int64_t distance);
