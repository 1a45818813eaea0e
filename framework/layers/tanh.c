/* The hyperbolic tangent. Its derivative is 1 - y y: the backward reads y alone. */
#include "layers/elementwise.h"

#include <math.h>

ELEMENTWISE(tanh, "the hyperbolic tangent", READS_Y, tanh(x), dy *(1 - at * at), .element_flops = {5, 0, 3});
