/* The passes of a convolution as conv and conv_transpose run them. */
#pragma once

#include "conv_product.h"
#include "winograd.h"

/* A pass, by one of the two; the other's scratch is 0. */
struct conv_plan {
    struct winograd winograd;
    struct conv_product product;
};

/* y from x, or dx from dy; and the gradients of the parameters: as winograd_apply() and winograd_gradients(). */
void conv_plan_apply(const struct conv_plan *plan, const float *from, const float *weights, const float *bias,
                     bool relu, float *to, uint8_t *places, void *scratch);
void conv_plan_gradients(const struct conv_plan *plan, const float *x, const float *dy, const uint8_t *places,
                         float *weights, float *bias, void *scratch);

/* A convolution from x to y; conv_transpose's is from its output to its input. */
struct conv {
    struct backend *backend;
    struct extent x, y; /* y: before the pool */
    int64_t groups;
    bool relu, bias, pooled;
    struct conv_plan pass[CONV_PASSES];
    struct conv_product sums; /* of conv_transpose: sums of the output's gradient, for the bias */
    char implementation[96];
};

/* Plans a pass with the node's kernel, stride and padding; bias: PARAMS computes its gradient. Returns bytes of
 * scratch.
 */
size_t conv_plan_pass(const struct conv *conv, const struct node *node, enum conv_pass pass, bool bias,
                      struct conv_plan *plan);
/* "winograd f4x4 avx512 | winograd f2x2 pooled avx512 | product avx512" of passes from first on. */
void conv_describe(struct conv *conv, int first, int passes);
