/* The product of two values of one shape; or of a value and a gate, one number for each of its channels, by which all
 * pixels (or tokens) of a sample are multiplied (Hu, Shen and Sun, 2018). The gradient of an input is dy times the
 * other one, a gate's summed over the pixels in row order: the backward reads both inputs. */
#include "model/reference.h"

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings, (void)output;
    char a[96], b[96];
    const bool gated =
        shape_elements(&inputs[1]) == shape_width(&inputs[0]) && shape_width(&inputs[1]) == shape_width(&inputs[0]);
    if (!gated && !shape_equal(&inputs[0], &inputs[1]))
        return fail(ST_SPEC,
                    "expects two inputs of one shape, or a second one (the shortcut) with a number for each channel of "
                    "the first, they are %s and %s",
                    shape_print(&inputs[0], a), shape_print(&inputs[1], b));
    return ST_OK;
}

/* The factor of element i of the batch's x[0]. */
static int64_t factor(const struct reference *r, int64_t i)
{
    if (r->second_elements == r->x_elements) return i;
    return i / r->x_elements * r->second_elements + i % r->second_elements;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *a = args->x[0], *b = args->x[1];
    float *y = args->y;
    for (int64_t i = 0; i < r->batch * r->x_elements; i++) y[i] = a[i] * b[factor(r, i)];
    return ST_OK;
}

/* dx[1]; before dx[0], which may be dy. */
static void backward_second(const struct reference *r, const float *a, const float *dy, float *db)
{
    const int64_t width = r->second_elements;
    for (int64_t i = 0; i < r->batch * width; i++) {
        const int64_t first = i / width * r->x_elements + i % width;
        double sum = 0;
        for (int64_t k = 0; k < r->x_elements; k += width) sum += (double)dy[first + k] * a[first + k];
        db[i] = (float)sum;
    }
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *b = args->x[1], *dy = args->dy;
    float *da = args->dx[0];
    if (args->dx[1]) backward_second(r, args->x[0], dy, args->dx[1]);
    for (int64_t i = 0; da && i < r->batch * r->x_elements; i++) da[i] = dy[i] * b[factor(r, i)];
    return ST_OK;
}

const struct layer layer_multiply = {.name = "multiply",
                                     .doc = "product of two branches, or of one and a gate of its channels",
                                     .inputs = 2,
                                     .infer = infer,
                                     .element_flops = {1, 0, 3},
                                     .reference = REFERENCE_KERNEL(forward, backward),
                                     .footprint = {.reads = {0, READS_X}, .y_over_x = true, .dx_over_dy = true}};
