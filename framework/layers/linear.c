/* y = W x + b with an optional fused activation: {D} to {units}, or each row of {T, D} to one of {T, units}. Weights
 * are {units, D}.
 *
 * The backward takes the activation's derivative in place on dy, once, in its first part. */
#include "model/reference.h"

#include <stdlib.h>

static const struct setting keys[] = {
    {SETTING(units), .type = SETTING_INT, .min = 1, .max = INT32_MAX,
     .doc = "output width; or classes: as many as the data set has"},
    {SETTING(activation), .type = SETTING_CHOICE, .preset = "none", .values = activation_words,
     .doc = "applied to the output"},
    {SETTING(bias), .type = SETTING_BOOL, .preset = "true", .doc = "adds a constant to each output"},
    {SETTING(init), .type = SETTING_CHOICE, .preset = "glorot_uniform", .values = init_words, .doc = "of the weights"},
    {.key = NULL}};

static enum status infer(const struct settings *settings, const struct shape *inputs, struct shape *output)
{
    TRY(rows_expected(&inputs[0]));
    *output = inputs[0];
    output->dim[output->rank - 1] = settings->units;
    return ST_OK;
}

static int parameters(const struct settings *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    const int64_t in = shape_width(input), out = settings->units;
    definitions[0] = (struct parameter_definition){"weight", {2, {out, in}}, (enum init)settings->init, in, out};
    definitions[1] = (struct parameter_definition){"bias", {1, {out}}, INIT_ZEROS, in, out};
    return settings->bias ? 2 : 1;
}

static struct flops flops(const struct settings *settings, const struct shape *input, const struct shape *output)
{
    (void)output;
    double all = 2 * (double)settings->units * (double)shape_elements(input);
    return (struct flops){all, all, all};
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    (void)backend;
    TRY(reference_state(graph, node, state));
    *footprint = (struct footprint){
        .reads = {READS_X, 0}, .split = true, .writes_dy = node->settings.activation != ACTIVATION_NONE};
    activation_footprint(*state, PART_INDEX_PARAMS, footprint);
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t in = shape_width(&r->x), out = shape_width(&r->y), rows = reference_rows(r);
    float *y = args->y;
    for (int64_t n = 0; n < rows; n++) {
        const float *x = (const float *)args->x[0] + n * in;
        for (int64_t u = 0; u < out; u++) {
            double sum = r->settings.bias ? args->parameters[1][u] : 0;
            for (int64_t i = 0; i < in; i++) sum += (double)x[i] * args->parameters[0][u * in + i];
            *y++ = (float)sum;
        }
    }
    activate(r, args->y, args->save ? args->saved : NULL);
    return ST_OK;
}

static void backward_params(const struct reference *r, const struct kernel_args *args)
{
    const int64_t in = shape_width(&r->x), out = shape_width(&r->y), rows = reference_rows(r);
    const float *x = args->x[0], *dy = args->dy;
    for (int64_t u = 0; u < out; u++)
        for (int64_t i = 0; i < in; i++) {
            double sum = 0;
            for (int64_t n = 0; n < rows; n++) sum += (double)dy[n * out + u] * x[n * in + i];
            put_gradient(&args->gradients[0][u * in + i], sum, args->accumulate);
        }
    bias_gradient(r, args, out);
}

static void backward_input(const struct reference *r, const struct kernel_args *args)
{
    const int64_t in = shape_width(&r->x), out = shape_width(&r->y), rows = reference_rows(r);
    const float *dy = args->dy;
    float *dx = args->dx[0];
    for (int64_t n = 0; n < rows; n++)
        for (int64_t i = 0; i < in; i++) {
            double sum = 0;
            for (int64_t u = 0; u < out; u++) sum += (double)dy[n * out + u] * args->parameters[0][u * in + i];
            dx[n * in + i] = (float)sum;
        }
}

static enum status backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct reference *r = state;
    if (parts & PART_PARAMS) {
        activation_derivative(r, args->y, args->saved, args->dy);
        backward_params(r, args);
    }
    if (parts & PART_INPUT && args->dx[0]) backward_input(r, args);
    return ST_OK;
}

static const struct kernel reference = {
    .deterministic = true, .prepare = prepare, .forward = forward, .backward = backward, .release = free};

const struct layer layer_linear = {.name = "linear",
                                   .doc = "product with a matrix, of each row",
                                   .inputs = 1,
                                   .keys = keys,
                                   .infer = infer,
                                   .parameters = parameters,
                                   .flops = flops,
                                   .reference = &reference};
