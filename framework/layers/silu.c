/* Sigmoid linear unit (Elfwing, Uchibe and Doya, 2017), also called swish: y = x s, s = 1 / (1 + exp(-x)). Its
 * derivative is s (1 + x (1 - s)). The backward reads x; nothing is saved. */
#include "layers/elementwise.h"

#include <math.h>

static double value(double x, const void *settings)
{
    (void)settings;
    return x / (1 + exp(-x));
}

static double gradient(double dy, double x, const void *settings)
{
    (void)settings;
    const double s = 1 / (1 + exp(-x));
    return dy * (s * (1 + x / (1 + exp(x))));
}

ELEMENTWISE(silu, "x times the logistic function of x", READS_X, .element_flops = {4, 0, 7});
