/* The hyperbolic tangent. Its derivative is 1 - y y: the backward reads y alone. */
#include "layers/elementwise.h"

#include <math.h>

static double value(double x, const void *settings)
{
    (void)settings;
    return tanh(x);
}

static double gradient(double dy, double y, const void *settings)
{
    (void)settings;
    return dy * (1 - y * y);
}

ELEMENTWISE(tanh, "the hyperbolic tangent", READS_Y, .element_flops = {5, 0, 3});
