/* Gaussian error linear unit (Hendrycks and Gimpel, 2016): y = x P(x), P the distribution function of the standard
 * normal distribution, (1 + erf(x / sqrt 2)) / 2. The backward reads x; nothing is saved. */
#include "model/reference.h"

#include <math.h>

/* y = x factor: the value of the factor and of its derivative at x. */
struct factor {
    double value, slope;
};

static struct factor factor_at(double x)
{
    const double root = 0.70710678118654752, density = 0.39894228040143268; /* 1 / sqrt 2, 1 / sqrt(2 pi) */
    return (struct factor){erfc(-root * x) / 2, density * exp(-x * x / 2)};
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *x = args->x[0];
    float *y = args->y;
    for (int64_t i = 0; i < r->batch * r->x_elements; i++) y[i] = (float)(x[i] * factor_at(x[i]).value);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *x = args->x[0], *dy = args->dy;
    float *dx = args->dx[0];
    for (int64_t i = 0; i < r->batch * r->x_elements; i++) {
        const struct factor factor = factor_at(x[i]);
        dx[i] = (float)(dy[i] * (factor.value + x[i] * factor.slope));
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
