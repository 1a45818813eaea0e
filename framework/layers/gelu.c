/* Gaussian error linear unit (Hendrycks and Gimpel, 2016): y = x P(x), P the distribution function of the standard
 * normal distribution, (1 + erf(x / sqrt 2)) / 2. Its derivative is P(x) + x p(x), with the density p(x) =
 * exp(-x x / 2) / sqrt(2 pi). The backward reads x; nothing is saved. */
#include "layers/elementwise.h"

#include <math.h>

/* P(x). */
static double distribution(double x) { return erfc(-0.70710678118654752 * x) / 2; } /* 1 / sqrt 2 */

ELEMENTWISE(gelu, "x times the normal distribution function of x", READS_X, x *distribution(x),
            dy *(distribution(at) + at * (0.39894228040143268 * exp(-at * at / 2))), .element_flops = {1, 0, 1});
