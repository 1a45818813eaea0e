/* The last linear layer and cross_entropy in one node, chunk by chunk of their rows: loss: {chunks: n}. The logits
 * x W^T + b of one chunk are scratch, and become their gradient in place; a chunk's shares of dx, dW and db are
 * computed while it is there, so that no product is computed twice. The order of the work is that of Liger Kernel's
 * fused linear cross entropy (Hsu et al., 2024). model/chunked_loss.h defines the bits. */
#include "model/chunked_loss.h"
#include "model/reference.h"

struct settings {
    int64_t units; /* classes */
    int64_t chunks;
    double label_smoothing;
    struct setting_list class_weights;
    int init;
    bool bias;
};

static const struct setting keys[] = {
    {SETTING(units), .type = SETTING_INT, .min = 1, .max = INT32_MAX, .doc = "output width: the classes"},
    {SETTING(bias), .type = SETTING_BOOL, .preset = "true", .doc = "adds a constant to each output"},
    {SETTING(init), .type = SETTING_CHOICE, .preset = "glorot_uniform", .values = init_words, .doc = "of the weights"},
    {SETTING(chunks), .type = SETTING_INT, .min = 1, .max = 1 << 24, .doc = "parts of the rows, computed one by one"},
    {SETTING(label_smoothing), .type = SETTING_REAL, .min = 1e-9, .max = 0.999999, .preset = "0", .doc = "of the loss"},
    {SETTING(class_weights), .type = SETTING_REALS, .preset = "", .doc = "of the loss"},
    {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    const struct settings *s = settings;
    TRY(rows_expected(&inputs[0]));
    TRY(class_weights_expected(&s->class_weights, s->units));
    *output = (struct shape){1, {2}};
    return ST_OK;
}

static int parameters(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    const struct settings *s = settings;
    return weight_and_bias(shape_width(input), s->units, (enum init)s->init, s->bias, definitions);
}

static double divisor(const void *settings, const struct shape *x, int64_t samples, const int32_t *labels)
{
    const struct settings *s = settings;
    return class_weights_sum(&s->class_weights, labels, samples * shape_elements(x) / shape_width(x));
}

/* All of it in the backward: the logits and dx are two products, the softmax eight operations a logit. */
static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    const double units = (double)((const struct settings *)settings)->units;
    const double product = 2 * units * (double)shape_elements(input);
    (void)output;
    return (struct flops){0, product,
                          2 * product + 8 * units * (double)shape_elements(input) / (double)shape_width(input)};
}

const struct layer layer_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .doc = "linear and cross_entropy in chunks of rows",
    .inputs = 1,
    .loss = true,
    .predicts = true,
    .divisor = divisor,
    .in_backward = true,
    LAYER_SETTINGS,
    .infer = infer,
    .parameters = parameters,
    .flops = flops,
    .reference = {true, chunked_loss_prepare, chunked_loss_forward, chunked_loss_backward, chunked_loss_release, true}};
