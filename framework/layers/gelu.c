/* Gaussian error linear unit (Hendrycks and Gimpel, 2016): y = x P(x), P the distribution function of the standard
 * normal distribution, (1 + erf(x / sqrt 2)) / 2. The backward reads x; nothing is saved. */
#include "model/reference.h"

#include <math.h>

/* P(x). */
static double distribution(double x) { return erfc(-0.70710678118654752 * x) / 2; } /* 1 / sqrt 2 */

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *x = args->x[0];
    float *y = args->y;
    for (int64_t i = 0; i < r->batch * r->x_elements; i++) y[i] = (float)(x[i] * distribution(x[i]));
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *x = args->x[0], *dy = args->dy;
    float *dx = args->dx[0];
    for (int64_t i = 0; i < r->batch * r->x_elements; i++) {
        const double density = 0.39894228040143268 * exp(-(double)x[i] * x[i] / 2); /* 1 / sqrt(2 pi) */
        dx[i] = (float)(dy[i] * (distribution(x[i]) + x[i] * density));
    }
    return ST_OK;
}

const struct layer layer_gelu = {.name = "gelu",
                                 .doc = "x times the normal distribution function of x",
                                 .inputs = 1,
                                 .infer = same_infer,
                                 .element_flops = {1, 0, 1},
                                 .reference = REFERENCE_KERNEL(forward, backward),
                                 .footprint = {.reads = {0, READS_X}, .y_over_x = true, .dx_over_dy = true}};
