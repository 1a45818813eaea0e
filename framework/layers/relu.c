/* max(x, 0), where it cannot be fused into the layer before it. Its derivative at 0 is 0. */
#include "model/reference.h"

static void footprint(const struct reference *r, struct footprint *footprint)
{
    *footprint =
        (struct footprint){.signs = bits_bytes(r), .reads = {0, READS_Y}, .y_over_x = true, .dx_over_dy = true};
}

static enum status forward(void *state, const struct kernel_args *args)
{
    copy_batch(state, args->y, args->x[0]);
    reference_relu(state, args->y, args->save ? args->saved : NULL);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args, unsigned parts)
{
    if (!(parts & PART_INPUT) || !args->dx[0]) return ST_OK;
    copy_batch(state, args->dx[0], args->dy);
    reference_relu_derivative(state, args->y, args->saved, args->dx[0]);
    return ST_OK;
}

static const struct kernel reference = {REFERENCE_KERNEL, .forward = forward, .backward = backward};

const struct layer layer_relu = {.name = "relu",
                                 .doc = "max(x, 0)",
                                 .inputs = 1,
                                 .infer = same_infer,
                                 .flops = element_flops,
                                 .reference = &reference,
                                 .footprint = footprint};
