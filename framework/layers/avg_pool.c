/* The mean of each window and channel, over those of its places that lie in the image: padding is not counted. */
#include "model/reference.h"

#include <stdlib.h>
#include <string.h>

static const struct setting keys[] = {POOL_FIELDS, {.key = NULL}};

static enum status infer(const struct settings *settings, const struct shape *inputs, struct shape *output)
{
    return pool_infer(settings, &inputs[0], output);
}

static struct flops flops(const struct settings *settings, const struct shape *input, const struct shape *output)
{
    (void)input;
    double all = (double)shape_elements(output) * (double)(settings->kernel * settings->kernel);
    return (struct flops){all, 0, all};
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    (void)backend;
    bool identity = pool_identity(&node->settings);
    *footprint = (struct footprint){.y_over_x = identity, .passes_gradient = identity};
    return reference_state(graph, node, state);
}

struct window {
    int64_t top, bottom, left, right; /* rows [top, bottom) and columns [left, right) of the image */
};

static struct window window_at(const struct reference *r, int64_t p, int64_t q)
{
    const int64_t k = r->settings.kernel, stride = pool_stride(&r->settings);
    int64_t top = p * stride - r->settings.padding, left = q * stride - r->settings.padding;
    return (struct window){top > 0 ? top : 0, top + k < r->x.dim[0] ? top + k : r->x.dim[0], left > 0 ? left : 0,
                           left + k < r->x.dim[1] ? left + k : r->x.dim[1]};
}

static double places(struct window a) { return (double)((a.bottom - a.top) * (a.right - a.left)); }

static float mean(const struct reference *r, const float *image, struct window a, int64_t c)
{
    double sum = 0;
    for (int64_t h = a.top; h < a.bottom; h++)
        for (int64_t w = a.left; w < a.right; w++) sum += image[(h * r->x.dim[1] + w) * r->x.dim[2] + c];
    return (float)(sum / places(a));
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    float *y = args->y;
    if (pool_identity(&r->settings)) {
        copy_batch(r, args->y, args->x[0]);
        return ST_OK;
    }
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t p = 0; p < r->y.dim[0]; p++)
            for (int64_t q = 0; q < r->y.dim[1]; q++)
                for (int64_t c = 0; c < r->y.dim[2]; c++)
                    *y++ = mean(r, (const float *)args->x[0] + n * r->x_elements, window_at(r, p, q), c);
    return ST_OK;
}

static void spread(const struct reference *r, float *image, struct window a, int64_t c, float gradient)
{
    float share = (float)(gradient / places(a));
    for (int64_t h = a.top; h < a.bottom; h++)
        for (int64_t w = a.left; w < a.right; w++) image[(h * r->x.dim[1] + w) * r->x.dim[2] + c] += share;
}

static enum status backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct reference *r = state;
    const float *dy = args->dy;
    if (!(parts & PART_INPUT) || !args->dx[0]) return ST_OK;
    memset(args->dx[0], 0, (size_t)(r->batch * r->x_elements) * sizeof(float));
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t p = 0; p < r->y.dim[0]; p++)
            for (int64_t q = 0; q < r->y.dim[1]; q++)
                for (int64_t c = 0; c < r->y.dim[2]; c++)
                    spread(r, (float *)args->dx[0] + n * r->x_elements, window_at(r, p, q), c, *dy++);
    return ST_OK;
}

static const struct kernel reference = {
    .deterministic = true, .prepare = prepare, .forward = forward, .backward = backward, .release = free};

const struct layer layer_avg_pool = {.name = "avg_pool",
                                     .doc = "mean of each window",
                                     .family = "pool",
                                     .inputs = 1,
                                     .keys = keys,
                                     .infer = infer,
                                     .flops = flops,
                                     .reference = &reference};
