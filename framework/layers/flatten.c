/* An image or sequence as one vector, in logical order: no arithmetic, and no copy where y is written over x. */
#include "model/reference.h"

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings;
    *output = (struct shape){1, {shape_elements(&inputs[0])}};
    return ST_OK;
}

const struct layer layer_flatten = {.name = "flatten",
                                    .doc = "an image as one row",
                                    .inputs = 1,
                                    .infer = infer,
                                    .reference = REFERENCE_KERNEL(copy_forward, NULL),
                                    .footprint = {.y_over_x = true, .passes_gradient = true, .implementation = "copy"}};
