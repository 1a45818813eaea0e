/* Sigmoid linear unit (Elfwing, Uchibe and Doya, 2017), also called swish: y = x s, s = 1 / (1 + exp(-x)). Its
 * derivative is s (1 + x (1 - s)). The backward reads x; nothing is saved. */
#include "layers/elementwise.h"

#include <math.h>

ELEMENTWISE(silu, "x times the logistic function of x", READS_X, x / (1 + exp(-x)),
            dy *(1 / (1 + exp(-at)) * (1 + at / (1 + exp(at)))), .element_flops = {4, 0, 7});
