/* The reference sums of a convolution, which conv and conv_transpose share. */
#pragma once

#include "model/reference.h"

/* The first members of both layers' settings. */
struct conv_window {
    struct window window;
    int64_t groups; /* 0: 1 */
};

/* Of a convolution from r->x to r->y, weights {O, I / groups, kernel, kernel}: its outputs without activation; the
 * gradients of its weights; and those of its inputs, to which a bias of their channels is added. bias may be NULL. */
void conv_outputs(const struct reference *r, const float *x, const float *weights, const float *bias, float *y);
void conv_weight_gradients(const struct reference *r, const float *x, const float *dy, float *dw);
void conv_input_gradients(const struct reference *r, const float *dy, const float *weights, const float *bias,
                          float *dx);
