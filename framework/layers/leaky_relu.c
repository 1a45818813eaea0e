/* x where x > 0, else slope x (Maas, Hannun and Ng, 2013). Since the slope is not negative, y > 0 exactly where x > 0:
 * the backward reads y alone. */
#include "layers/elementwise.h"

struct settings {
    double slope; /* the derivative below 0 */
};

static const struct setting keys[] = {
    {SETTING(slope), .type = SETTING_REAL, .max = 1, .preset = "0.01", .doc = "derivative where x <= 0"},
    {.key = NULL}};

ELEMENTWISE(leaky_relu, "x above 0, below it a fraction of x", READS_Y, x > 0 ? x : number * x,
            at > 0 ? dy : number * dy, .element_flops = {2, 0, 1}, LAYER_SETTINGS);
