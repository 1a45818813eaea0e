/* Group normalisation (Wu and He, 2018) of an image's groups of consecutive channels, each sample on its own:
 *
 *     y = w[c] * h + b[c],   h = (x - mean) * rstd,   rstd = 1 / sqrt(variance + epsilon)
 *
 * over all pixels of the group's channels, the variance divided by their number. As many groups as channels: instance
 * normalisation (Ulyanov, Vedaldi and Lempitsky, 2016). Saved: mean and rstd of each sample's groups. The gradients
 * are layernorm's, of a group in place of a row. The backward is one op. */
#include "model/reference.h"

#include <math.h>

struct settings {
    int64_t groups;
    double epsilon; /* added to the variance */
};

static const struct setting keys[] = {
    {SETTING(groups), .type = SETTING_INT, .max = 1 << 20,
     .doc = "groups that the channels are divided into; 0: as many as channels, instance normalisation"},
    {SETTING(epsilon), .type = SETTING_REAL, .min = 1e-30, .max = 1, .preset = "1e-5", .doc = "added to the variance"},
    {.key = NULL}};

static int64_t groups_of(const void *settings, const struct shape *x)
{
    const int64_t groups = ((const struct settings *)settings)->groups;
    return groups ? groups : x->dim[2];
}

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)output;
    TRY(image_expected(&inputs[0]));
    if (inputs[0].dim[2] % groups_of(settings, &inputs[0]))
        return fail(ST_SPEC, "groups %lld do not divide the %lld channels of its input; expected a divisor of them",
                    (long long)groups_of(settings, &inputs[0]), (long long)inputs[0].dim[2]);
    return ST_OK;
}

struct statistics {
    float mean, rstd;
};

static void measure(const struct reference *r, struct footprint *footprint)
{
    footprint->saved = (size_t)(r->batch * groups_of(r->settings, &r->x)) * sizeof(struct statistics);
}

/* Element i of a group, from the group's first element on. */
static int64_t place(const struct reference *r, int64_t i)
{
    const int64_t channels = r->x.dim[2], width = channels / groups_of(r->settings, &r->x);
    return i / width * channels + i % width;
}

static double normal(struct statistics s, float x) { return ((double)x - s.mean) * s.rstd; }

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t groups = groups_of(r->settings, &r->x), width = r->x.dim[2] / groups, count = r->x_elements / groups;
    for (int64_t n = 0; n < r->batch * groups; n++) {
        const int64_t channel = n % groups * width, first = n / groups * r->x_elements + channel;
        const float *x = (const float *)args->x[0] + first;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < count; i++) mean += x[place(r, i)] / (double)count;
        for (int64_t i = 0; i < count; i++) variance += (x[place(r, i)] - mean) * (x[place(r, i)] - mean);
        const double epsilon = ((const struct settings *)r->settings)->epsilon;
        const struct statistics s = {(float)mean, (float)(1 / sqrt(variance / (double)count + epsilon))};
        if (args->save) ((struct statistics *)args->saved)[n] = s;
        for (int64_t i = 0; i < count; i++)
            ((float *)args->y)[first + place(r, i)] =
                (float)(normal(s, x[place(r, i)]) * args->parameters[0][channel + i % width] +
                        args->parameters[1][channel + i % width]);
    }
    return ST_OK;
}

static void backward_params(const struct reference *r, const struct kernel_args *args)
{
    const int64_t channels = r->x.dim[2], groups = groups_of(r->settings, &r->x);
    const float *x = args->x[0], *dy = args->dy;
    for (int64_t c = 0; c < channels; c++) {
        double weight = 0, bias = 0;
        for (int64_t i = c; i < r->batch * r->x_elements; i += channels) {
            const int64_t n = i / r->x_elements * groups + c / (channels / groups);
            weight += dy[i] * normal(((const struct statistics *)args->saved)[n], x[i]);
            bias += dy[i];
        }
        args->gradients[0][c] = (float)weight;
        args->gradients[1][c] = (float)bias;
    }
}

static void backward_group(const struct reference *r, struct statistics s, const float *w, const float *x,
                           const float *dy, float *dx)
{
    const int64_t groups = groups_of(r->settings, &r->x), width = r->x.dim[2] / groups, count = r->x_elements / groups;
    double sum = 0, product = 0;
    for (int64_t i = 0; i < count; i++) {
        const double g = (double)dy[place(r, i)] * w[i % width];
        sum += g / (double)count;
        product += g * normal(s, x[place(r, i)]) / (double)count;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = place(r, i);
        dx[at] = (float)(s.rstd * ((double)dy[at] * w[i % width] - sum - normal(s, x[at]) * product));
    }
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t groups = groups_of(r->settings, &r->x), width = r->x.dim[2] / groups;
    if (args->parts & PART_PARAMS) backward_params(r, args);
    for (int64_t n = 0; args->parts & PART_INPUT && n < r->batch * groups; n++) {
        const int64_t channel = n % groups * width, first = n / groups * r->x_elements + channel;
        backward_group(r, ((const struct statistics *)args->saved)[n], args->parameters[0] + channel,
                       (const float *)args->x[0] + first, (const float *)args->dy + first,
                       (float *)args->dx[0] + first);
    }
    return ST_OK;
}

const struct layer layer_group_norm = {
    .name = "group_norm",
    .doc = "groups of channels of each sample with mean 0 and variance 1, then gain and bias",
    .family = "norm",
    .inputs = 1,
    LAYER_SETTINGS,
    .infer = infer,
    .parameters = gain_and_bias,
    .element_flops = {8, 5, 10}, /* as layernorm's */
    .reference = REFERENCE_KERNEL(forward, backward),
    .footprint = {.reads = {READS_X | READS_SAVED, READS_X | READS_SAVED}, .y_over_x = true, .dx_over_dy = true},
    .measure = measure};
