/* The sum of two values of one shape: where the arms of a residual block meet. Both inputs get dy as it is. */
#include "model/reference.h"

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings, (void)output;
    char a[96], b[96];
    if (!shape_equal(&inputs[0], &inputs[1]))
        return fail(ST_SPEC, "expects two inputs of one shape, they are %s and %s", shape_print(&inputs[0], a),
                    shape_print(&inputs[1], b));
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *a = args->x[0], *b = args->x[1];
    float *y = args->y;
    for (int64_t i = 0; i < r->batch * r->x_elements; i++) y[i] = a[i] + b[i];
    return ST_OK;
}

const struct layer layer_add = {.name = "add",
                                .doc = "sum of two branches",
                                .inputs = 2,
                                .infer = infer,
                                .element_flops = {1, 0, 0},
                                .reference = REFERENCE_KERNEL(forward, NULL),
                                .footprint = {.y_over_x = true, .passes_gradient = true}};
