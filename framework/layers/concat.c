/* Two values side by side: rows along the last dimension, which is the channels of an image, first those of the first
 * input. Each input's gradient is its part of dy. */
#include "model/reference.h"

#include <string.h>

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings;
    char a[96], b[96];
    struct shape other = inputs[1];
    other.dim[other.rank - 1] = shape_width(&inputs[0]);
    if (!shape_equal(&inputs[0], &other))
        return fail(ST_SPEC, "expects two inputs that differ in %s alone, they are %s and %s",
                    inputs[0].rank == 3 ? "channels" : "width", shape_print(&inputs[0], a), shape_print(&inputs[1], b));
    output->dim[output->rank - 1] += shape_width(&inputs[1]);
    return ST_OK;
}

/* Copying an element counts as one, so that no schedule recomputes it for nothing. */
static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    (void)settings;
    (void)input;
    const double all = (double)shape_elements(output);
    return (struct flops){all, 0, all};
}

/* Floats of a row of input k, and where they are in a row of y. */
static int64_t part(const struct reference *r, int k, int64_t *first)
{
    const int64_t width = shape_width(&r->x);
    *first = k ? width : 0;
    return k ? shape_width(&r->y) - width : width;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t row = shape_width(&r->y);
    for (int k = 0; k < 2; k++) {
        int64_t first, width = part(r, k, &first);
        for (int64_t i = 0; i < reference_rows(r); i++)
            memcpy((float *)args->y + i * row + first, (const float *)args->x[k] + i * width,
                   (size_t)width * sizeof(float));
    }
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t row = shape_width(&r->y);
    for (int k = 0; k < 2; k++) {
        int64_t first, width = part(r, k, &first);
        for (int64_t i = 0; args->dx[k] && i < reference_rows(r); i++)
            memcpy((float *)args->dx[k] + i * width, (const float *)args->dy + i * row + first,
                   (size_t)width * sizeof(float));
    }
    return ST_OK;
}

const struct layer layer_concat = {.name = "concat",
                                   .doc = "the channels of two branches side by side",
                                   .inputs = 2,
                                   .infer = infer,
                                   .flops = flops,
                                   .reference = REFERENCE_KERNEL(forward, backward)};
