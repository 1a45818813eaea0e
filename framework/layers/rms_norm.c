/* Root mean square normalisation (Zhang and Sennrich, 2019) of each vector {D}, or of each row of {T, D}:
 *
 *     y = w * h,   h = x * rstd,   rstd = 1 / sqrt(mean(x x) + epsilon)
 *
 * over the row's D elements. Saved: rstd of each row. dw is the sum over the rows of dy h; dx = rstd * (g - h mean(g
 * h)), g = dy w. The backward is one op, as layernorm's. */
#include "model/reference.h"

#include <math.h>

struct settings {
    double epsilon; /* added to the mean of squares */
};

static const struct setting keys[] = {{SETTING(epsilon), .type = SETTING_REAL, .min = 1e-30, .max = 1, .preset = "1e-6",
                                       .doc = "added to the mean square"},
                                      {.key = NULL}};

static int parameters(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    (void)settings;
    const int64_t width = shape_width(input);
    definitions[0] = (struct parameter_definition){"weight", {1, {width}}, INIT_ONES, width, width};
    return 1;
}

static void measure(const struct reference *r, struct footprint *footprint)
{
    footprint->saved = (size_t)reference_rows(r) * sizeof(float);
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t width = shape_width(&r->x);
    const double epsilon = ((const struct settings *)r->settings)->epsilon;
    for (int64_t n = 0; n < reference_rows(r); n++) {
        const float *x = (const float *)args->x[0] + n * width;
        float *y = (float *)args->y + n * width;
        double squares = 0;
        for (int64_t i = 0; i < width; i++) squares += (double)x[i] * x[i];
        const float rstd = (float)(1 / sqrt(squares / (double)width + epsilon));
        if (args->save) ((float *)args->saved)[n] = rstd;
        for (int64_t i = 0; i < width; i++) y[i] = (float)((double)x[i] * rstd * args->parameters[0][i]);
    }
    return ST_OK;
}

static void backward_params(const struct reference *r, const struct kernel_args *args)
{
    const int64_t width = shape_width(&r->x), rows = reference_rows(r);
    const float *x = args->x[0], *dy = args->dy, *rstd = args->saved;
    for (int64_t i = 0; i < width; i++) {
        double sum = 0;
        for (int64_t n = 0; n < rows; n++) sum += (double)dy[n * width + i] * x[n * width + i] * rstd[n];
        args->gradients[0][i] = (float)sum;
    }
}

static void backward_row(double rstd, const float *w, const float *x, const float *dy, float *dx, int64_t width)
{
    double product = 0;
    for (int64_t i = 0; i < width; i++) product += (double)dy[i] * w[i] * (x[i] * rstd);
    for (int64_t i = 0; i < width; i++)
        dx[i] = (float)(rstd * ((double)dy[i] * w[i] - x[i] * rstd * product / (double)width));
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t width = shape_width(&r->x), rows = reference_rows(r);
    if (args->parts & PART_PARAMS) backward_params(r, args);
    for (int64_t n = 0; args->parts & PART_INPUT && n < rows; n++)
        backward_row((double)((const float *)args->saved)[n], args->parameters[0],
                     (const float *)args->x[0] + n * width, (const float *)args->dy + n * width,
                     (float *)args->dx[0] + n * width, width);
    return ST_OK;
}

const struct layer layer_rms_norm = {
    .name = "rms_norm",
    .doc = "each row with mean square 1, then gain",
    .family = "norm",
    .inputs = 1,
    LAYER_SETTINGS,
    .infer = rows_infer,
    .parameters = parameters,
    .element_flops = {4, 3, 7}, /* {squares, scale}, {h, sum}, {g, h, sum, combination} */
    .reference = REFERENCE_KERNEL(forward, backward),
    .footprint = {.reads = {READS_X | READS_SAVED, READS_X | READS_SAVED}, .y_over_x = true, .dx_over_dy = true},
    .measure = measure};
