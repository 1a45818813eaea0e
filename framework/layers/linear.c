/* y = W x + b with an optional fused activation: {D} to {units}, or each row of {T, D} to one of {T, units}. Weights
 * are {units, D}.
 *
 * The first op of the backward, which alone gets y or its sign bits, multiplies dy by the activation's derivative, in
 * place. */
#include "model/reference.h"

struct settings {
    int64_t units; /* output width */
    int activation, init;
    bool bias;
};

static const struct setting keys[] = {
    {SETTING(units), .type = SETTING_INT, .min = 1, .max = INT32_MAX,
     .doc = "output width; or classes: as many as the data set has"},
    {SETTING(activation), .type = SETTING_CHOICE, .preset = "none", .values = activation_words,
     .doc = "applied to the output"},
    {SETTING(bias), .type = SETTING_BOOL, .preset = "true", .doc = "adds a constant to each output"},
    {SETTING(init), .type = SETTING_CHOICE, .preset = "glorot_uniform", .values = init_words, .doc = "of the weights"},
    {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    TRY(rows_expected(&inputs[0]));
    output->dim[output->rank - 1] = ((const struct settings *)settings)->units;
    return ST_OK;
}

static int parameters(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    const struct settings *s = settings;
    return weight_and_bias(shape_width(input), s->units, (enum init)s->init, s->bias, definitions);
}

static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    (void)settings;
    double all = 2 * (double)shape_width(output) * (double)shape_elements(input);
    return (struct flops){all, all, all};
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t in = shape_width(&r->x), out = shape_width(&r->y), rows = reference_rows(r);
    const bool bias = ((const struct settings *)r->settings)->bias;
    float *y = args->y;
    for (int64_t n = 0; n < rows; n++) {
        const float *x = (const float *)args->x[0] + n * in;
        for (int64_t u = 0; u < out; u++) {
            double sum = bias ? args->parameters[1][u] : 0;
            for (int64_t i = 0; i < in; i++) sum += (double)x[i] * args->parameters[0][u * in + i];
            *y++ = (float)sum;
        }
    }
    activation_apply(r, args->y, args->save ? args->saved : NULL);
    return ST_OK;
}

static void backward_params(const struct reference *r, const struct kernel_args *args)
{
    const int64_t in = shape_width(&r->x), out = shape_width(&r->y), rows = reference_rows(r);
    const float *x = args->x[0], *dy = args->dy;
    const int64_t units = args->rows ? args->rows : out;
    float *dw = args->gradients[0];
    for (int64_t u = args->row; u < args->row + units; u++)
        for (int64_t i = 0; i < in; i++) {
            double sum = 0;
            for (int64_t n = 0; n < rows; n++) sum += (double)dy[n * out + u] * x[n * in + i];
            *dw = (args->adds & 1 ? *dw : 0) + (float)sum;
            dw++;
        }
    if (((const struct settings *)r->settings)->bias && !args->row) column_sums(dy, rows, out, out, args->gradients[1]);
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

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    if (args->y || args->saved) activation_derivative(r, args->y, args->saved, args->dy);
    if (args->parts & PART_PARAMS) backward_params(r, args);
    if (args->parts & PART_INPUT) backward_input(r, args);
    return ST_OK;
}

const struct layer layer_linear = {.name = "linear",
                                   .doc = "product with a matrix, of each row",
                                   .inputs = 1,
                                   LAYER_SETTINGS,
                                   .infer = infer,
                                   .parameters = parameters,
                                   .flops = flops,
                                   .reference = REFERENCE_KERNEL_ADDS(forward, backward),
                                   .footprint = {.reads = {READS_X, 0}, .split = true, .by_rows = true},
                                   .measure = activation_footprint};
