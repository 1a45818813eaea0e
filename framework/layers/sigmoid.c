/* The logistic function y = 1 / (1 + exp(-x)). Its derivative is y (1 - y): the backward reads y alone. */
#include "layers/elementwise.h"

#include <math.h>

static double value(double x, const void *settings)
{
    (void)settings;
    return 1 / (1 + exp(-x));
}

static double gradient(double dy, double y, const void *settings)
{
    (void)settings;
    return dy * (y * (1 - y));
}

ELEMENTWISE(sigmoid, "the logistic function, 1 / (1 + exp(-x))", READS_Y, .element_flops = {3, 0, 3});
