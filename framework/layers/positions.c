/* A learnt table of the sequence's shape, {T, D}, added to every sample (Dosovitskiy et al., 2021). Its gradient is the
 * sum of dy over the samples, the input's is dy: the backward reads nothing else. */
#include "model/reference.h"

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings, (void)output;
    return sequence_expected(&inputs[0]);
}

static int parameters(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    (void)settings;
    definitions[0] = (struct parameter_definition){"weight", *input, INIT_NORMAL, input->dim[0], input->dim[1]};
    return 1;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *x = args->x[0];
    float *y = args->y;
    for (int64_t i = 0; i < r->batch * r->x_elements; i++) y[i] = x[i] + args->parameters[0][i % r->x_elements];
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    if (args->parts & PART_PARAMS) column_sums(args->dy, r->batch, r->y_elements, r->y_elements, args->gradients[0]);
    if (args->parts & PART_INPUT) copy_batch(r, args->dx[0], args->dy);
    return ST_OK;
}

const struct layer layer_positions = {.name = "positions",
                                      .doc = "a learnt vector for each place of a sequence, added",
                                      .inputs = 1,
                                      .infer = infer,
                                      .parameters = parameters,
                                      .element_flops = {1, 1, 0},
                                      .reference = REFERENCE_KERNEL(forward, backward),
                                      .footprint = {.y_over_x = true, .dx_over_dy = true}};
