/* batch_norm of the first input, plus the second, then a relu: a residual block's last norm with the sum and its relu,
 * in one pass where they would be three. The backward passes dy' to the second input, which it does not read, as
 * batch_norm's does to the first; the sign of y says where the relu passes it. */
#include "layers/batch_norm.h"

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    TRY(layer_batch_norm.infer(settings, inputs, output));
    return layer_add.infer(NULL, inputs, output);
}

static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    struct flops both = layer_batch_norm.flops(settings, input, output);
    both.forward += (double)shape_elements(input);
    return both;
}

static void measure(const struct reference *r, struct footprint *footprint)
{
    layer_batch_norm.measure(r, footprint);
    activation_footprint(r, footprint);
    footprint->reads[PART_INDEX_INPUT] = footprint->reads[PART_INDEX_PARAMS];
}

/* The norm alone. */
static struct reference norm_of(const struct reference *r)
{
    struct reference norm = *r;
    norm.activation = ACTIVATION_NONE;
    return norm;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    struct reference norm = norm_of(r);
    const float *x = args->x[1];
    float *y = args->y;
    TRY(layer_batch_norm.reference.forward(&norm, args));
    for (int64_t i = 0; i < r->batch * r->x_elements; i++) y[i] += x[i];
    activation_apply(r, y, args->save ? args->saved : NULL);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    struct reference norm = norm_of(r);
    activation_derivative(r, args->y, args->saved, args->dy);
    if (args->parts & PART_INPUT && args->dx[1]) copy_batch(r, args->dx[1], args->dy);
    return layer_batch_norm.reference.backward(&norm, args);
}

const struct layer layer_batch_norm_add = {
    .name = "batch_norm_add",
    .doc = "batch_norm of the first of two branches, plus the second, then the activation",
    .family = "norm",
    .inputs = 2,
    .mixes_samples = true,
    .keys = batch_norm_keys,
    .settings_size = sizeof(struct settings),
    .infer = infer,
    .parameters = batch_norm_parameters,
    .states = batch_norm_states,
    .flops = flops,
    .reference = REFERENCE_KERNEL(forward, backward),
    .footprint = {.reads = {READS_X0, READS_X0}, .y_over_x = true, .dx_over_dy = true},
    .measure = measure};
