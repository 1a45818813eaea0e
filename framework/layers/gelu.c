/* Gaussian error linear unit (Hendrycks and Gimpel, 2016): y = x P(x), P the distribution function of the standard
 * normal distribution, (1 + erf(x / sqrt 2)) / 2. With approximate: tanh, their y = x (1 + tanh u) / 2,
 * u = sqrt(2 / pi) (x + 0.044715 x^3). The backward reads x; nothing is saved. */
#include "model/reference.h"

#include <math.h>

struct settings {
    int approximate; /* index of approximate_words */
};

static const char *const approximate_words[] = {"none", "tanh", NULL};

static const struct setting keys[] = {{SETTING(approximate), .type = SETTING_CHOICE, .preset = "none",
                                       .values = approximate_words, .doc = "the published approximation by tanh"},
                                      {.key = NULL}};

/* y = x factor: the value of the factor and of its derivative at x. */
struct factor {
    double value, slope;
};

static struct factor exact(double x)
{
    const double root = 0.70710678118654752, density = 0.39894228040143268; /* 1 / sqrt 2, 1 / sqrt(2 pi) */
    return (struct factor){erfc(-root * x) / 2, density * exp(-x * x / 2)};
}

static struct factor by_tanh(double x)
{
    const double root = 0.79788456080286536, cubic = 0.044715; /* sqrt(2 / pi) */
    const double u = root * (x + cubic * x * x * x), t = tanh(u);
    return (struct factor){(1 + t) / 2, (1 - t * t) / 2 * root * (1 + 3 * cubic * x * x)};
}

static struct factor factor_at(const struct reference *r, double x)
{
    return ((const struct settings *)r->settings)->approximate ? by_tanh(x) : exact(x);
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *x = args->x[0];
    float *y = args->y;
    for (int64_t i = 0; i < r->batch * r->x_elements; i++) y[i] = (float)(x[i] * factor_at(r, x[i]).value);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *x = args->x[0], *dy = args->dy;
    float *dx = args->dx[0];
    for (int64_t i = 0; i < r->batch * r->x_elements; i++) {
        const struct factor factor = factor_at(r, x[i]);
        dx[i] = (float)(dy[i] * (factor.value + x[i] * factor.slope));
    }
    return ST_OK;
}

const struct layer layer_gelu = {.name = "gelu",
                                 .doc = "x times the normal distribution function of x",
                                 .inputs = 1,
                                 LAYER_SETTINGS,
                                 .infer = same_infer,
                                 .element_flops = {1, 0, 1},
                                 .reference = REFERENCE_KERNEL(forward, backward),
                                 .footprint = {.reads = {0, READS_X}, .y_over_x = true, .dx_over_dy = true}};
