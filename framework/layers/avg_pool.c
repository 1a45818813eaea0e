/* The mean of each window and channel over its elements in the image or, with count_padding, over all its places, those
 * in the padding being zeros. */
#include "model/reference.h"

#include <string.h>

struct settings {
    struct window window;
    bool count_padding;
};

static const struct setting keys[] = {
    POOL_KEYS,
    {SETTING(count_padding), .type = SETTING_BOOL, .preset = "false",
     .doc = "means count padding as zeros, as PyTorch's by default (count_include_pad)"},
    {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    return pool_infer(settings, &inputs[0], output); /* its first member */
}

static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    (void)input;
    const struct settings *s = settings;
    double all = (double)shape_elements(output) * (double)(s->window.kernel * s->window.kernel);
    return (struct flops){all, 0, all};
}

static void measure(const struct reference *r, struct footprint *footprint)
{
    const struct settings *s = r->settings;
    footprint->y_over_x = footprint->passes_gradient = pool_identity(r, &s->window);
}

/* Rows [top, bottom) and columns [left, right) of the image. */
struct area {
    int64_t top, bottom, left, right;
};

/* The part of the window of output (p, q) that lies in the image. */
static struct area area_at(const struct reference *r, int64_t p, int64_t q)
{
    const struct window *w = &((const struct settings *)r->settings)->window;
    const int64_t top = p * window_stride(w) - w->padding, left = q * window_stride(w) - w->padding;
    const int64_t bottom = top + w->kernel, right = left + w->kernel;
    return (struct area){top > 0 ? top : 0, bottom < r->x.dim[0] ? bottom : r->x.dim[0], left > 0 ? left : 0,
                         right < r->x.dim[1] ? right : r->x.dim[1]};
}

/* What the sum over the window of output (p, q) is divided by: with ceil_mode it may end outside of the padding. */
static double counted(const struct reference *r, int64_t p, int64_t q)
{
    const struct settings *s = r->settings;
    const struct area a = area_at(r, p, q);
    const int64_t height = window_places(&s->window, p, r->x.dim[0]), width = window_places(&s->window, q, r->x.dim[1]);
    return (double)(s->count_padding ? height * width : (a.bottom - a.top) * (a.right - a.left));
}

static float mean(const struct reference *r, const float *image, int64_t p, int64_t q, int64_t c)
{
    const struct area a = area_at(r, p, q);
    double sum = 0;
    for (int64_t h = a.top; h < a.bottom; h++)
        for (int64_t w = a.left; w < a.right; w++) sum += image[(h * r->x.dim[1] + w) * r->x.dim[2] + c];
    return (float)(sum / counted(r, p, q));
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    float *y = args->y;
    if (pool_identity(r, &((const struct settings *)r->settings)->window)) {
        copy_batch(r, args->y, args->x[0]);
        return ST_OK;
    }
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t p = 0; p < r->y.dim[0]; p++)
            for (int64_t q = 0; q < r->y.dim[1]; q++)
                for (int64_t c = 0; c < r->y.dim[2]; c++)
                    *y++ = mean(r, (const float *)args->x[0] + n * r->x_elements, p, q, c);
    return ST_OK;
}

static void spread(const struct reference *r, float *image, int64_t p, int64_t q, int64_t c, float gradient)
{
    const struct area a = area_at(r, p, q);
    float share = (float)(gradient / counted(r, p, q));
    for (int64_t h = a.top; h < a.bottom; h++)
        for (int64_t w = a.left; w < a.right; w++) image[(h * r->x.dim[1] + w) * r->x.dim[2] + c] += share;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *dy = args->dy;
    memset(args->dx[0], 0, (size_t)(r->batch * r->x_elements) * sizeof(float));
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t p = 0; p < r->y.dim[0]; p++)
            for (int64_t q = 0; q < r->y.dim[1]; q++)
                for (int64_t c = 0; c < r->y.dim[2]; c++)
                    spread(r, (float *)args->dx[0] + n * r->x_elements, p, q, c, *dy++);
    return ST_OK;
}

const struct layer layer_avg_pool = {.name = "avg_pool",
                                     .doc = "mean of each window",
                                     .family = "pool",
                                     .inputs = 1,
                                     LAYER_SETTINGS,
                                     .infer = infer,
                                     .flops = flops,
                                     .reference = REFERENCE_KERNEL(forward, backward),
                                     .measure = measure};
