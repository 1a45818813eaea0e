/* max(x, 0), where it cannot be fused into the layer before it. Its derivative at 0 is 0. */
#include "model/reference.h"

static void measure(const struct reference *r, struct footprint *footprint) { footprint->signs = bits_bytes(r); }

static enum status forward(void *state, const struct kernel_args *args)
{
    copy_batch(state, args->y, args->x[0]);
    reference_relu(state, args->y, args->save ? args->saved : NULL);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    copy_batch(state, args->dx[0], args->dy);
    reference_relu_derivative(state, args->y, args->saved, args->dx[0]);
    return ST_OK;
}

const struct layer layer_relu = {.name = "relu",
                                 .doc = "max(x, 0)",
                                 .inputs = 1,
                                 .element_flops = {1, 0, 1},
                                 .reference = REFERENCE_KERNEL(forward, backward),
                                 .footprint = {.reads = {0, READS_Y}, .y_over_x = true, .dx_over_dy = true},
                                 .measure = measure};
