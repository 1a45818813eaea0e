/* Batch normalisation (Ioffe and Szegedy, 2015) of each channel of images {H, W, C}, or of each element of vectors {D},
 * with an optional fused relu:
 *
 *     y = w h + b,   h = (x - mean) rstd,   rstd = 1 / sqrt(variance + epsilon)
 *
 * over the channel's n values in the batch, the variance divided by n. A training step moves the running state,
 * running = (1 - momentum) running + momentum * the batch's, and an evaluation normalises with it. With statistics:
 * slice, a call's samples are a slice of the batch, and a step moves the running state once a slice, in ascending
 * order, as gradient accumulation does (Hoffer et al., "Train longer, generalize better", 2017: ghost batch
 * normalisation).
 *
 * The first forward of a training step computes the statistics, mean and rstd of each channel, and then normalises from
 * them; a recomputation only normalises, which gives the same bits. The backward reads x and the statistics: it finds
 * a relu's derivative by computing y again. With dy' = dy where y > 0, else 0: dw and db are the sums of dy' h and dy',
 * and dx = rstd w (dy' - mean(dy') - h mean(dy' h)). It is one op, and dx may be written over dy. */
#include "layers/batch_norm.h"

#include <math.h>

enum { UNBIASED, POPULATION };

static const char *const variance_words[] = {"unbiased", "population", NULL};
static const char *const statistics_words[] = {"batch", "slice", NULL};

const struct setting batch_norm_keys[] = {
    {SETTING(epsilon), .type = SETTING_REAL, .min = 1e-30, .max = 1, .preset = "1e-5", .doc = "added to the variance"},
    {SETTING(momentum), .type = SETTING_REAL, .max = 1, .preset = "0.1",
     .doc = "share of the batch's statistics when the running ones move"},
    {SETTING(variance), .type = SETTING_CHOICE, .preset = "unbiased", .values = variance_words,
     .doc = "the running variance: divided by n - 1 (PyTorch), or by n (ONNX)"},
    {SETTING(statistics), .type = SETTING_CHOICE, .preset = "batch", .values = statistics_words,
     .doc = "of the whole batch, or of each slice alone; the running state then moves once a slice, in their order"},
    {SETTING(affine), .type = SETTING_BOOL, .preset = "true", .doc = "multiplies by a weight and adds a bias"},
    {SETTING(activation), .type = SETTING_CHOICE, .preset = "none", .values = relu_words,
     .doc = "applied to the output"},
    {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    char text[96];
    (void)settings, (void)output;
    if (inputs[0].rank == 2)
        return fail(ST_SPEC, "expects an image (height x width x channels) or a vector, its input is %s",
                    shape_print(&inputs[0], text));
    return ST_OK;
}

int batch_norm_parameters(const void *settings, const struct shape *input,
                          struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    return ((const struct settings *)settings)->affine ? gain_and_bias(settings, input, definitions) : 0;
}

int batch_norm_states(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_STATES_MAX])
{
    (void)settings;
    const int64_t channels = shape_width(input);
    definitions[0] = (struct parameter_definition){"running_mean", {1, {channels}}, INIT_ZEROS, channels, channels};
    definitions[1] = (struct parameter_definition){"running_var", {1, {channels}}, INIT_ONES, channels, channels};
    return 2;
}

/* Forward: y from x; once, the sum and the squares. Backward: h and the two sums, then dx from x, dy and the sums,
 * which an input's gradient needs with or without parameters. */
static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    (void)output;
    const double elements = (double)shape_elements(input), sums = 5 * elements, combination = 5 * elements;
    const bool affine = ((const struct settings *)settings)->affine;
    return (struct flops){3 * elements, affine ? sums : 0, affine ? combination : sums + combination, 4 * elements};
}

static int64_t elements_of(const struct reference *r) { return r->batch * r->x_elements; }

/* The statistics lie as all means, then all rstds. */
static void measure(const struct reference *r, struct footprint *footprint)
{
    footprint->once = (size_t)(2 * shape_width(&r->x)) * sizeof(float);
}

static void move(float *running, double momentum, double batch)
{
    *running = (float)((1 - momentum) * *running + momentum * batch);
}

/* Writes a channel's statistics, or moves its running state. */
static void measure_channel(const struct reference *r, const struct kernel_args *args, int64_t c)
{
    const struct settings *s = r->settings;
    const int64_t channels = shape_width(&r->x);
    const double n = (double)reference_rows(r);
    const float *x = args->x[0];
    double mean = 0, squares = 0;
    for (int64_t i = c; i < elements_of(r); i += channels) mean += x[i];
    mean /= n;
    for (int64_t i = c; i < elements_of(r); i += channels) squares += (x[i] - mean) * (x[i] - mean);
    if (args->first) {
        ((float *)args->once)[c] = (float)mean;
        ((float *)args->once)[channels + c] = (float)(1 / sqrt(squares / n + s->epsilon));
    }
    if (args->commit) {
        move(&args->states[0][c], s->momentum, mean);
        move(&args->states[1][c], s->momentum, squares / (s->variance == UNBIASED ? n - 1 : n));
    }
}

/* What a channel's elements are normalised with. */
struct channel {
    double mean, rstd, weight, bias;
    bool relu;
};

static struct channel channel_of(const struct reference *r, const struct kernel_args *args, int64_t c)
{
    const struct settings *s = r->settings;
    const float *once = args->once;
    struct channel channel = {.weight = s->affine ? args->parameters[0][c] : 1,
                              .bias = s->affine ? args->parameters[1][c] : 0,
                              .relu = r->activation == ACTIVATION_RELU};
    channel.mean = args->evaluate ? args->states[0][c] : once[c];
    channel.rstd = args->evaluate ? 1 / sqrt(args->states[1][c] + s->epsilon) : once[shape_width(&r->x) + c];
    return channel;
}

static double normal(const struct channel *c, float x) { return (x - c->mean) * c->rstd; }

/* The output before the relu. */
static float scaled(const struct channel *c, float x) { return (float)(normal(c, x) * c->weight + c->bias); }

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t channels = shape_width(&r->x);
    const float *x = args->x[0];
    float *y = args->y;
    for (int64_t c = 0; c < channels; c++) {
        if (args->first || args->commit) measure_channel(r, args, c);
        const struct channel channel = channel_of(r, args, c);
        for (int64_t i = c; i < elements_of(r); i += channels) y[i] = scaled(&channel, x[i]);
    }
    activation_apply(r, y, NULL);
    return ST_OK;
}

/* dy before the relu. */
static double slope(const struct channel *c, float x, float dy) { return !c->relu || scaled(c, x) > 0 ? dy : 0; }

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t channels = shape_width(&r->x);
    const double n = (double)reference_rows(r);
    const float *x = args->x[0], *dy = args->dy;
    for (int64_t c = 0; c < channels; c++) {
        const struct channel channel = channel_of(r, args, c);
        double sum = 0, product = 0;
        for (int64_t i = c; i < elements_of(r); i += channels) {
            sum += slope(&channel, x[i], dy[i]);
            product += slope(&channel, x[i], dy[i]) * normal(&channel, x[i]);
        }
        if (args->parts & PART_PARAMS) {
            args->gradients[0][c] = (float)product;
            args->gradients[1][c] = (float)sum;
        }
        for (int64_t i = c; args->parts & PART_INPUT && args->dx[0] && i < elements_of(r); i += channels)
            ((float *)args->dx[0])[i] =
                (float)(channel.rstd * channel.weight *
                        (slope(&channel, x[i], dy[i]) - sum / n - normal(&channel, x[i]) * product / n));
    }
    return ST_OK;
}

const struct layer layer_batch_norm = {.name = "batch_norm",
                                       .doc =
                                           "each channel of the batch with mean 0 and variance 1, then gain and bias",
                                       .family = "norm",
                                       .inputs = 1,
                                       .mixes_samples = true,
                                       .keys = batch_norm_keys,
                                       .settings_size = sizeof(struct settings),
                                       .infer = infer,
                                       .parameters = batch_norm_parameters,
                                       .states = batch_norm_states,
                                       .flops = flops,
                                       .reference = REFERENCE_KERNEL(forward, backward),
                                       .footprint = {.reads = {READS_X, READS_X}, .y_over_x = true, .dx_over_dy = true},
                                       .measure = measure};
