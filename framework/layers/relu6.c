/* min(max(x, 0), 6) (Krizhevsky, 2010). Its derivative is 1 where 0 < y < 6, else 0; a NaN stays one. */
#include "model/reference.h"

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *x = args->x[0];
    float *y = args->y;
    for (int64_t i = 0; i < r->batch * r->x_elements; i++) y[i] = x[i] <= 0 ? 0 : x[i] >= 6 ? 6 : x[i];
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *y = args->y, *dy = args->dy;
    float *dx = args->dx[0];
    for (int64_t i = 0; i < r->batch * r->x_elements; i++) dx[i] = y[i] > 0 && y[i] < 6 ? dy[i] : 0;
    return ST_OK;
}

const struct layer layer_relu6 = {.name = "relu6",
                                  .doc = "max(x, 0), at most 6",
                                  .inputs = 1,
                                  .infer = same_infer,
                                  .element_flops = {2, 0, 1},
                                  .reference = REFERENCE_KERNEL(forward, backward),
                                  .footprint = {.reads = {0, READS_Y}, .y_over_x = true, .dx_over_dy = true}};
