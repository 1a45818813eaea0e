/* The mean of each channel over the whole image, or over the tokens of a sequence: {H, W, C} or {T, C} to {C}, ready
 * for a linear layer. */
#include "model/reference.h"

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    char text[96];
    (void)settings;
    if (inputs[0].rank < 2)
        return fail(ST_SPEC, "expects an image (height x width x channels) or a sequence, its input is %s",
                    shape_print(&inputs[0], text));
    *output = (struct shape){1, {shape_width(&inputs[0])}};
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t channels = shape_width(&r->x), pixels = r->x_elements / channels;
    float *y = args->y;
    for (int64_t n = 0; n < r->batch; n++) {
        const float *image = (const float *)args->x[0] + n * r->x_elements;
        for (int64_t c = 0; c < channels; c++) {
            double sum = 0;
            for (int64_t i = 0; i < pixels; i++) sum += image[i * channels + c];
            *y++ = (float)(sum / (double)pixels);
        }
    }
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t channels = shape_width(&r->x), pixels = r->x_elements / channels;
    const float *dy = args->dy;
    float *dx = args->dx[0];
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t i = 0; i < pixels; i++)
            for (int64_t c = 0; c < channels; c++) *dx++ = (float)(dy[n * channels + c] / (double)pixels);
    return ST_OK;
}

const struct layer layer_global_avg_pool = {.name = "global_avg_pool",
                                            .doc =
                                                "mean of each channel over an image, or over the tokens of a sequence",
                                            .family = "pool",
                                            .inputs = 1,
                                            .infer = infer,
                                            .element_flops = {1, 0, 1},
                                            .reference = REFERENCE_KERNEL(forward, backward)};
