/* Layer normalisation (Ba, Kiros and Hinton, 2016) of each vector {D}, or of each row of {T, D}:
 *
 *     y = w * (x - mean) * rstd + b,   rstd = 1 / sqrt(variance + epsilon)
 *
 * over the row's D elements, the variance divided by D. Saved tensors: mean and rstd of each row. With h = (x - mean)
 * rstd, dw and db are the sums over the rows of dy h and dy; dx = rstd * (g - mean(g) - h mean(g h)), g = dy w. The
 * backward is one op: both of its parts read x, and dx may be written over dy. */
#include "model/reference.h"

#include <math.h>

struct settings {
    double epsilon; /* added to the variance */
};

static const struct setting keys[] = {
    {SETTING(epsilon), .type = SETTING_REAL, .min = 1e-30, .max = 1, .preset = "1e-12", .doc = "added to the variance"},
    {.key = NULL}};

struct statistics {
    float mean, rstd;
};

static void measure(const struct reference *r, struct footprint *footprint)
{
    footprint->saved = (size_t)reference_rows(r) * sizeof(struct statistics);
}

static struct statistics statistics_of(const float *x, int64_t width, double epsilon)
{
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < width; i++) mean += x[i];
    mean /= (double)width;
    for (int64_t i = 0; i < width; i++) variance += (x[i] - mean) * (x[i] - mean);
    return (struct statistics){(float)mean, (float)(1 / sqrt(variance / (double)width + epsilon))};
}

/* The element after normalisation, before scale and shift. */
static double normal(struct statistics s, float x) { return ((double)x - s.mean) * s.rstd; }

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t width = shape_width(&r->x), rows = reference_rows(r);
    const double epsilon = ((const struct settings *)r->settings)->epsilon;
    for (int64_t n = 0; n < rows; n++) {
        const float *x = (const float *)args->x[0] + n * width;
        float *y = (float *)args->y + n * width;
        const struct statistics s = statistics_of(x, width, epsilon);
        if (args->save) ((struct statistics *)args->saved)[n] = s;
        for (int64_t i = 0; i < width; i++)
            y[i] = (float)(normal(s, x[i]) * args->parameters[0][i] + args->parameters[1][i]);
    }
    return ST_OK;
}

static void backward_params(const struct reference *r, const struct kernel_args *args)
{
    const int64_t width = shape_width(&r->x), rows = reference_rows(r);
    const float *x = args->x[0], *dy = args->dy;
    const struct statistics *s = args->saved;
    for (int64_t i = 0; i < width; i++) {
        double weight = 0, bias = 0;
        for (int64_t n = 0; n < rows; n++) {
            weight += dy[n * width + i] * normal(s[n], x[n * width + i]);
            bias += dy[n * width + i];
        }
        args->gradients[0][i] = (float)weight;
        args->gradients[1][i] = (float)bias;
    }
}

static void backward_row(struct statistics s, const float *w, const float *x, const float *dy, float *dx, int64_t width)
{
    double sum = 0, product = 0;
    for (int64_t i = 0; i < width; i++) {
        const double g = (double)dy[i] * w[i];
        sum += g;
        product += g * normal(s, x[i]);
    }
    for (int64_t i = 0; i < width; i++) {
        const double g = (double)dy[i] * w[i];
        dx[i] = (float)(s.rstd * (g - sum / (double)width - normal(s, x[i]) * product / (double)width));
    }
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t width = shape_width(&r->x), rows = reference_rows(r);
    if (args->parts & PART_PARAMS) backward_params(r, args);
    for (int64_t n = 0; args->parts & PART_INPUT && n < rows; n++)
        backward_row(((const struct statistics *)args->saved)[n], args->parameters[0],
                     (const float *)args->x[0] + n * width, (const float *)args->dy + n * width,
                     (float *)args->dx[0] + n * width, width);
    return ST_OK;
}

const struct layer layer_layernorm = {
    .name = "layernorm",
    .doc = "each row with mean 0 and variance 1, then gain and bias",
    .family = "norm",
    .inputs = 1,
    LAYER_SETTINGS,
    .infer = rows_infer,
    .parameters = gain_and_bias,
    .element_flops = {8, 5, 10}, /* {sums of x and of squares, scale and shift}, {h, sums}, {h, g, sums, combination} */
    .reference = REFERENCE_KERNEL(forward, backward),
    .footprint = {.reads = {READS_X | READS_SAVED, READS_X | READS_SAVED}, .y_over_x = true, .dx_over_dy = true},
    .measure = measure};
