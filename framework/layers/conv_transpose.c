/* Transposed convolution of an image: its output is what the gradient of a convolution's input is, plus a bias:
 * {H, W, I} to {H', W', O}, H' = (H - 1) stride - 2 padding + (kernel - 1) dilation + 1 + output_padding. So its
 * backward is a convolution, and the gradients of its weights {I, O, kernel, kernel} are a convolution's with input and
 * output exchanged (Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016). */
#include "layers/conv.h"

struct settings {
    struct window window;
    int64_t groups; /* no key: 0 */
    int64_t channels, output_padding;
    int init;
    bool bias;
};

static const struct setting keys[] = {
    {SETTING(channels), .type = SETTING_INT, .min = 1, .max = 1 << 24,
     .doc = "output channels; or classes: as many as the data set has"},
    {WINDOW(kernel), .type = SETTING_INT, .min = 1, .max = 1 << 16, .doc = "side of the square kernel"},
    {WINDOW(stride), .type = SETTING_INT, .min = 1, .max = 1 << 16, .preset = "1",
     .doc = "pixels of the output from one of the input to the next"},
    {WINDOW(padding), .type = SETTING_INT, .max = 1 << 16, .preset = "0",
     .doc = "rows and columns of the output that are cut off on each side"},
    DILATION_KEY,
    {SETTING(output_padding), .type = SETTING_INT, .max = 1 << 16, .preset = "0",
     .doc = "further rows below and columns on the right, less than stride"},
    {SETTING(bias), .type = SETTING_BOOL, .preset = "true", .doc = "adds a constant to each channel"},
    {SETTING(init), .type = SETTING_CHOICE, .preset = "glorot_uniform", .values = init_words, .doc = "of the weights"},
    {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    char text[96];
    const struct settings *s = settings;
    const struct window *w = &s->window;
    TRY(image_expected(&inputs[0]));
    if (s->output_padding >= w->stride)
        return fail(ST_SPEC, "output_padding %lld is not less than the stride %lld", (long long)s->output_padding,
                    (long long)w->stride);
    *output = (struct shape){3, {0, 0, s->channels}};
    for (int i = 0; i < 2; i++) {
        if (inputs[0].dim[i] > INT32_MAX)
            return fail(ST_SPEC, "its input %s is too large", shape_print(&inputs[0], text));
        output->dim[i] = (inputs[0].dim[i] - 1) * w->stride - 2 * w->padding + window_extent(w) + s->output_padding;
        if (output->dim[i] < 1)
            return fail(ST_SPEC, "padding %lld leaves nothing of its input %s under a %lldx%lld kernel",
                        (long long)w->padding, shape_print(&inputs[0], text), (long long)window_extent(w),
                        (long long)window_extent(w));
    }
    return ST_OK;
}

static int parameters(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    const struct settings *s = settings;
    const int64_t k = s->window.kernel, in = input->dim[2], out = s->channels;
    const int64_t fan_in = in * k * k, fan_out = out * k * k;
    definitions[0] = (struct parameter_definition){"weight", {4, {in, out, k, k}}, (enum init)s->init, fan_in, fan_out};
    definitions[1] = (struct parameter_definition){"bias", {1, {out}}, INIT_ZEROS, fan_in, fan_out};
    return s->bias ? 2 : 1;
}

static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    const struct settings *s = settings;
    const double window = (double)(s->window.kernel * s->window.kernel);
    const double all = 2 * (double)shape_elements(input) * window * (double)output->dim[2];
    return (struct flops){all, all, all};
}

/* The convolution whose input is the output here. */
static struct reference turned(const struct reference *r)
{
    struct reference t = *r;
    t.x = r->y, t.x_elements = r->y_elements;
    t.y = r->x, t.y_elements = r->x_elements;
    return t;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state, t = turned(r);
    const bool bias = ((const struct settings *)r->settings)->bias;
    conv_input_gradients(&t, args->x[0], args->parameters[0], bias ? args->parameters[1] : NULL, args->y);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state, t = turned(r);
    const int64_t channels = r->y.dim[2], pixels = r->batch * r->y_elements / channels;
    if (args->parts & PART_PARAMS) conv_weight_gradients(&t, args->dy, args->x[0], args->gradients[0]);
    if (args->parts & PART_PARAMS && ((const struct settings *)r->settings)->bias)
        column_sums(args->dy, pixels, channels, channels, args->gradients[1]);
    if (args->parts & PART_INPUT) conv_outputs(&t, args->dy, args->parameters[0], NULL, args->dx[0]);
    return ST_OK;
}

const struct layer layer_conv_transpose = {.name = "conv_transpose",
                                           .doc = "transposed convolution of images",
                                           .inputs = 1,
                                           LAYER_SETTINGS,
                                           .infer = infer,
                                           .parameters = parameters,
                                           .flops = flops,
                                           .reference = REFERENCE_KERNEL(forward, backward),
                                           .footprint = {.reads = {READS_X, 0}, .split = true}};
