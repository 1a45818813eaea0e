/* A learnt row before the tokens of a sequence, {T, D} to {T + 1, D}, from which a classifier reads (Dosovitskiy et
 * al., 2021; Devlin et al., 2018). Its gradient is the sum over the samples of dy's first row; the backward reads
 * nothing else. */
#include "model/reference.h"

#include <string.h>

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings;
    TRY(sequence_expected(&inputs[0]));
    *output = (struct shape){2, {inputs[0].dim[0] + 1, inputs[0].dim[1]}};
    return ST_OK;
}

static int parameters(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    (void)settings;
    definitions[0] = (struct parameter_definition){"weight", {1, {input->dim[1]}}, INIT_NORMAL, 1, input->dim[1]};
    return 1;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const size_t row = (size_t)shape_width(&r->x) * sizeof(float), rest = (size_t)r->x_elements * sizeof(float);
    for (int64_t n = 0; n < r->batch; n++) {
        float *y = (float *)args->y + n * r->y_elements;
        memcpy(y, args->parameters[0], row);
        memcpy(y + shape_width(&r->x), (const float *)args->x[0] + n * r->x_elements, rest);
    }
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t width = shape_width(&r->x);
    const float *dy = args->dy;
    if (args->parts & PART_PARAMS) column_sums(dy, r->batch, r->y_elements, width, args->gradients[0]);
    for (int64_t n = 0; args->parts & PART_INPUT && n < r->batch; n++)
        memcpy((float *)args->dx[0] + n * r->x_elements, dy + n * r->y_elements + width,
               (size_t)r->x_elements * sizeof(float));
    return ST_OK;
}

/* A copied element counts as one, as concat's. */
const struct layer layer_class_token = {.name = "class_token",
                                        .doc = "a learnt token before those of a sequence",
                                        .inputs = 1,
                                        .infer = infer,
                                        .parameters = parameters,
                                        .element_flops = {1, 0, 1},
                                        .reference = REFERENCE_KERNEL(forward, backward)};
