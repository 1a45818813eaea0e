/* Convolutions as products over patches of pixels.
 *
 * This comment and product.h define every bit of the results. Pixels outside of an image are zeros, and are terms of a
 * sum as the others are.
 *
 * Forward: y is the sum over the taps of the kernel, row by row, and for each over the input channels of the group in
 * ascending order, plus the bias, or 0 where there is none; a relu makes values <= 0 to 0. The gradient of a pixel of x
 * is the sum over those taps by which a pixel of y depends on it, as if y were larger than it is: the last tap first,
 * and for each over the output channels of the group in ascending order; where there is no such tap it is 0; plus a
 * bias, or 0. The gradient of a weight is the sum over the pixels of y, sample by sample and row by row, of the pixel
 * of x under the tap times the gradient, in spans; that of the bias the same sum with ones for x. */
#pragma once

#include "image.h"
#include "product.h"

struct conv_product {
    enum conv_pass pass;
    struct image x, y;
    int64_t batch, kernel, stride, padding, dilation, groups;
    int64_t threads;
    uint64_t limit;
    bool bias;
    size_t scratch; /* of a pass */
};

/* Plans a pass; scratch exceeds the limit where less is not enough, and of
 * groups as grouped.h has them. */
void conv_product_make(enum conv_pass pass, const struct extent *x, const struct extent *y, struct conv_product *conv);

/* y from x, or dx from dy. weights: O I H W; bias may be NULL. */
void conv_product_apply(const struct conv_product *conv, const float *from, const float *weights, const float *bias,
                        bool relu, float *to, void *scratch);
/* Assigns the gradients; that of the bias may be NULL. */
void conv_product_gradients(const struct conv_product *conv, const float *x, const float *dy, float *weights,
                            float *bias, void *scratch);
