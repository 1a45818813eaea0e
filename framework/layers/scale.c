/* x times a constant. The backward reads dy alone. */
#include "layers/elementwise.h"

struct settings {
    double by;
};

static const struct setting keys[] = {
    {SETTING(by), .type = SETTING_REAL, .min = -1e6, .max = 1e6, .doc = "the constant"}, {.key = NULL}};

/* Kernels compute in float. */
static double by(const void *settings) { return (float)((const struct settings *)settings)->by; }

static double value(double x, const void *settings) { return by(settings) * x; }

static double gradient(double dy, double at, const void *settings)
{
    (void)at;
    return by(settings) * dy;
}

ELEMENTWISE(scale, "x times a constant", 0, .element_flops = {1, 0, 1}, LAYER_SETTINGS);
