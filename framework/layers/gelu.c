/* Gaussian error linear unit (Hendrycks and Gimpel, 2016): y = x P(x), P the distribution function of the standard
 * normal distribution, (1 + erf(x / sqrt 2)) / 2. The backward reads x; nothing is saved. */
#include "layers/elementwise.h"

#include <math.h>

/* P(x). */
static double distribution(double x) { return erfc(-0.70710678118654752 * x) / 2; } /* 1 / sqrt 2 */

static double value(double x, const void *settings)
{
    (void)settings;
    return x * distribution(x);
}

static double gradient(double dy, double x, const void *settings)
{
    (void)settings;
    const double density = 0.39894228040143268 * exp(-x * x / 2); /* 1 / sqrt(2 pi) */
    return dy * (distribution(x) + x * density);
}

ELEMENTWISE(gelu, "x times the normal distribution function of x", READS_X, .element_flops = {1, 0, 1});
