/* x times a constant. The backward reads dy alone. */
#include "layers/elementwise.h"

struct settings {
    double by;
};

static const struct setting keys[] = {
    {SETTING(by), .type = SETTING_REAL, .min = -1e6, .max = 1e6, .doc = "the constant"}, {.key = NULL}};

ELEMENTWISE(scale, "x times a constant", 0, number *x, number *dy, .element_flops = {1, 0, 1}, LAYER_SETTINGS);
