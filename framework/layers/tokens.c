/* The pixels of an image as the tokens of a sequence, row by row: {H, W, C} to {H W, C}. No arithmetic; in logical
 * order both are the same bytes. Patches of an image are a convolution whose stride is its kernel, then this layer. */
#include "model/reference.h"

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings;
    TRY(image_expected(&inputs[0]));
    *output = (struct shape){2, {inputs[0].dim[0] * inputs[0].dim[1], inputs[0].dim[2]}};
    return ST_OK;
}

const struct layer layer_tokens = {.name = "tokens",
                                   .doc = "the pixels of an image as tokens of a sequence",
                                   .inputs = 1,
                                   .infer = infer,
                                   .reference = REFERENCE_KERNEL(copy_forward, NULL),
                                   .footprint = {.y_over_x = true, .passes_gradient = true, .implementation = "copy"}};
