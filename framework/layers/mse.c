/* The mean of (x - target)^2 over all numbers of the whole batch. The data give a target for each number of a sample,
 * as floats in the place of labels. y = {loss, 0}. */
#include "model/reference.h"

static double divisor(const void *settings, const struct shape *x, int64_t samples, const int32_t *labels)
{
    (void)settings, (void)labels;
    return (double)(samples * shape_elements(x));
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *x = args->x[0], *target = (const void *)args->labels;
    double loss = 0;
    for (int64_t i = 0; i < r->batch * r->x_elements; i++) {
        const double distance = (double)x[i] - target[i];
        loss += distance * distance;
    }
    ((float *)args->y)[0] = (float)(loss / loss_divisor(r, args));
    ((float *)args->y)[1] = 0;
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *x = args->x[0], *target = (const void *)args->labels;
    float *dx = args->dx[0];
    for (int64_t i = 0; i < r->batch * r->x_elements; i++)
        dx[i] = (float)(2 * ((double)x[i] - target[i]) / loss_divisor(r, args));
    return ST_OK;
}

const struct layer layer_mse = {.name = "mse",
                                .doc = "mean of the squares of the differences from the targets that the data give",
                                .inputs = 1,
                                .loss = true,
                                .targets = true,
                                .divisor = divisor,
                                .infer = loss_infer,
                                .element_flops = {3, 0, 3},
                                .reference = REFERENCE_KERNEL(forward, backward),
                                .footprint = {.reads = {0, READS_X}}};
