/* The tokens of a sequence as the pixels of an image, row by row: {H W, C} to {H, W, C}, what the layer tokens makes
 * undone. No arithmetic. */
#include "model/reference.h"

struct settings {
    int64_t height;
};

static const struct setting keys[] = {{SETTING(height), .type = SETTING_INT, .max = 1 << 24, .preset = "0",
                                       .doc = "rows of the image; 0: as many as columns"},
                                      {.key = NULL}};

/* The rows of a square of so many pixels; 0: there is none. */
static int64_t side_of(int64_t pixels)
{
    int64_t side = 1;
    while (side < pixels / side) side++;
    return side * side == pixels ? side : 0;
}

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    char text[96];
    const int64_t given = ((const struct settings *)settings)->height;
    TRY(sequence_expected(&inputs[0]));
    const int64_t tokens = inputs[0].dim[0], height = given ? given : side_of(tokens);
    if (!height)
        return fail(ST_SPEC, "the %lld tokens of its input %s are no square; expected: a height", (long long)tokens,
                    shape_print(&inputs[0], text));
    if (tokens % height)
        return fail(ST_SPEC, "height %lld does not divide the %lld tokens of its input %s", (long long)height,
                    (long long)tokens, shape_print(&inputs[0], text));
    *output = (struct shape){3, {height, tokens / height, inputs[0].dim[1]}};
    return ST_OK;
}

const struct layer layer_pixels = {.name = "pixels",
                                   .doc = "the tokens of a sequence as pixels of an image",
                                   .inputs = 1,
                                   LAYER_SETTINGS,
                                   .infer = infer,
                                   .reference = REFERENCE_KERNEL(copy_forward, NULL),
                                   .footprint = {.y_over_x = true, .passes_gradient = true, .implementation = "copy"}};
