/* The logistic function y = 1 / (1 + exp(-x)). Its derivative is y (1 - y): the backward reads y alone. */
#include "layers/elementwise.h"

#include <math.h>

ELEMENTWISE(sigmoid, "the logistic function, 1 / (1 + exp(-x))", READS_Y, 1 / (1 + exp(-x)), dy *(at *(1 - at)),
            .element_flops = {3, 0, 3});
