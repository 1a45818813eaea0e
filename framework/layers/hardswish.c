/* x min(max(x + 3, 0), 6) / 6 (Howard et al., 2019). Its derivative is 0 where x <= -3, 1 where x >= 3, and x / 3 + 1/2
 * between. The backward reads x: y does not determine it. */
#include "layers/elementwise.h"

static double value(double x, const void *settings)
{
    (void)settings;
    return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6;
}

static double gradient(double dy, double x, const void *settings)
{
    (void)settings;
    return x <= -3 ? 0 : x >= 3 ? dy : dy * (x / 3 + 0.5);
}

ELEMENTWISE(hardswish, "x relu6(x + 3) / 6", READS_X, .element_flops = {4, 0, 3});
