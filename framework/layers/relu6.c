/* min(max(x, 0), 6) (Krizhevsky, 2010). Its derivative is 1 where 0 < y < 6, else 0; a NaN stays one. */
#include "layers/elementwise.h"

static double value(double x, const void *settings)
{
    (void)settings;
    return x <= 0 ? 0 : x >= 6 ? 6 : x;
}

static double gradient(double dy, double y, const void *settings)
{
    (void)settings;
    return y > 0 && y < 6 ? dy : 0;
}

ELEMENTWISE(relu6, "max(x, 0), at most 6", READS_Y, .element_flops = {2, 0, 1});
