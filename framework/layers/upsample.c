/* Nearest neighbour by an integer factor: {H, W, C} to {factor H, factor W, C}, each pixel a square of equal ones. The
 * gradient of a pixel is the sum over its square, in row order; the backward reads nothing else. */
#include "model/reference.h"

struct settings {
    int64_t factor;
};

static const struct setting keys[] = {
    {SETTING(factor), .type = SETTING_INT, .min = 2, .max = 16, .doc = "side of the square that a pixel becomes"},
    {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    const struct settings *s = settings;
    TRY(image_expected(&inputs[0]));
    for (int i = 0; i < 2; i++) output->dim[i] *= s->factor;
    return ST_OK;
}

static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    (void)settings, (void)input;
    const double all = (double)shape_elements(output);
    return (struct flops){all, 0, all};
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t factor = ((const struct settings *)r->settings)->factor;
    const int64_t height = r->y.dim[0], width = r->y.dim[1], channels = r->y.dim[2];
    const float *x = args->x[0];
    float *y = args->y;
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t h = 0; h < height; h++)
            for (int64_t w = 0; w < width; w++)
                for (int64_t c = 0; c < channels; c++)
                    *y++ = x[n * r->x_elements + (h / factor * r->x.dim[1] + w / factor) * channels + c];
    return ST_OK;
}

/* The sum over the square of pixel (h, w) of one sample. */
static double square(const struct reference *r, const float *dy, int64_t h, int64_t w, int64_t c)
{
    const int64_t factor = ((const struct settings *)r->settings)->factor;
    double sum = 0;
    for (int64_t p = h * factor; p < (h + 1) * factor; p++)
        for (int64_t q = w * factor; q < (w + 1) * factor; q++) sum += dy[(p * r->y.dim[1] + q) * r->y.dim[2] + c];
    return sum;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    float *dx = args->dx[0];
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t h = 0; h < r->x.dim[0]; h++)
            for (int64_t w = 0; w < r->x.dim[1]; w++)
                for (int64_t c = 0; c < r->x.dim[2]; c++)
                    *dx++ = (float)square(r, (const float *)args->dy + n * r->y_elements, h, w, c);
    return ST_OK;
}

const struct layer layer_upsample = {.name = "upsample",
                                     .doc = "nearest neighbour by an integer factor",
                                     .inputs = 1,
                                     LAYER_SETTINGS,
                                     .infer = infer,
                                     .flops = flops,
                                     .reference = REFERENCE_KERNEL(forward, backward)};
