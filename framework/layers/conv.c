/* Convolution (cross-correlation, as usual in deep learning) of an image with square kernels, zero padding, and an
 * optional fused activation: {H, W, I} to {H', W', O}, H' = (H + 2 padding - extent) / stride + 1, where extent =
 * (kernel - 1) dilation + 1 pixels lie under the kernel (Yu and Koltun, "Multi-scale context aggregation by dilated
 * convolutions", 2016).
 *
 * Channels are divided into groups: each O / groups output channels read I / groups input channels, those of their
 * group. Weights are {O, I / groups, kernel, kernel}. With groups = I the convolution is depthwise.
 *
 * The first part of the backward multiplies dy by the activation's derivative, in place.
 *
 * A max pool may be part of it (graph_fuse_pool()). This kernel then runs the pool's reference kernel between scratch,
 * which has the image before it, and y. */
#include "layers/conv.h"

struct settings {
    struct window window;
    int64_t groups;
    int64_t channels; /* of the output */
    int activation, init;
    bool bias;
};

static const struct setting keys[] = {
    {SETTING(channels), .type = SETTING_INT, .min = 1, .max = 1 << 24,
     .doc = "output channels; or classes: as many as the data set has"},
    {WINDOW(kernel), .type = SETTING_INT, .min = 1, .max = 1 << 16, .doc = "side of the square kernel"},
    {WINDOW(stride), .type = SETTING_INT, .min = 1, .max = 1 << 16, .preset = "1", .doc = "step of the kernel"},
    {WINDOW(padding), .type = SETTING_INT, .max = 1 << 16, .preset = "0",
     .doc = "rows and columns of zeros on each side"},
    DILATION_KEY,
    {SETTING(groups), .type = SETTING_INT, .min = 1, .max = 1 << 24, .preset = "1",
     .doc = "an output channel reads only the input channels of its group"},
    {SETTING(activation), .type = SETTING_CHOICE, .preset = "none", .values = relu_words,
     .doc = "applied to the output"},
    {SETTING(bias), .type = SETTING_BOOL, .preset = "true", .doc = "adds a constant to each channel"},
    {SETTING(init), .type = SETTING_CHOICE, .preset = "glorot_uniform", .values = init_words, .doc = "of the weights"},
    {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    const struct settings *s = settings;
    TRY(window_infer(&s->window, &inputs[0], s->channels, output));
    const int64_t in = inputs[0].dim[2], out = s->channels;
    if (in % s->groups || out % s->groups)
        return fail(ST_SPEC,
                    "groups must divide the channels of input and output: found groups %lld, channels %lld and %lld",
                    (long long)s->groups, (long long)in, (long long)out);
    return ST_OK;
}

static int parameters(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    const struct settings *s = settings;
    const int64_t k = s->window.kernel, in = input->dim[2] / s->groups, out = s->channels;
    const int64_t fan_in = in * k * k, fan_out = out * k * k;
    definitions[0] = (struct parameter_definition){"weight", {4, {out, in, k, k}}, (enum init)s->init, fan_in, fan_out};
    definitions[1] = (struct parameter_definition){"bias", {1, {out}}, INIT_ZEROS, fan_in, fan_out};
    return s->bias ? 2 : 1;
}

static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    const struct settings *s = settings;
    double outputs = (double)shape_elements(output), window = (double)(s->window.kernel * s->window.kernel);
    double all = 2 * outputs * window * (double)input->dim[2] / (double)s->groups;
    return (struct flops){all, all, all};
}

static const struct window *window_of(const struct reference *r)
{
    return &((const struct conv_window *)r->settings)->window;
}

/* Channels in a group of the input, or of the output. */
static int64_t in_group(const struct reference *r, const struct shape *image)
{
    const int64_t groups = ((const struct conv_window *)r->settings)->groups;
    return image->dim[2] / (groups ? groups : 1);
}

/* One filter on its group's channels, from the first of them on, at the window whose corner is (top, left). */
static double filter_at(const struct reference *r, const float *filter, const float *image, int64_t top, int64_t left)
{
    const int64_t k = window_of(r)->kernel, height = r->x.dim[0], width = r->x.dim[1], channels = r->x.dim[2];
    const int64_t dilation = window_dilation(window_of(r));
    double sum = 0;
    for (int64_t i = 0; i < in_group(r, &r->x); i++)
        for (int64_t u = 0; u < k; u++)
            for (int64_t v = 0; v < k; v++) {
                int64_t h = top + u * dilation, w = left + v * dilation;
                if (h < 0 || h >= height || w < 0 || w >= width) continue;
                sum += (double)image[(h * width + w) * channels + i] * filter[(i * k + u) * k + v];
            }
    return sum;
}

void conv_outputs(const struct reference *r, const float *x, const float *weights, const float *bias, float *y)
{
    const struct window *window = window_of(r);
    const int64_t in = in_group(r, &r->x), out = in_group(r, &r->y), filter = in * window->kernel * window->kernel;
    const int64_t stride = window->stride, padding = window->padding;
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t h = 0; h < r->y.dim[0]; h++)
            for (int64_t w = 0; w < r->y.dim[1]; w++)
                for (int64_t o = 0; o < r->y.dim[2]; o++) {
                    const float *image = x + n * r->x_elements + o / out * in, *weight = weights + o * filter;
                    *y++ = (float)((bias ? bias[o] : 0) +
                                   filter_at(r, weight, image, h * stride - padding, w * stride - padding));
                }
}

static enum status convolve(const struct reference *r, const struct kernel_args *args)
{
    const bool bias = ((const struct settings *)r->settings)->bias;
    conv_outputs(r, args->x[0], args->parameters[0], bias ? args->parameters[1] : NULL, args->y);
    activation_apply(r, args->y, args->save ? args->saved : NULL);
    return ST_OK;
}

/* The convolution before the pool, and the pool after it. */
static struct reference before_pool(const struct reference *r)
{
    struct reference conv = *r;
    conv.y = r->unpooled;
    conv.y_elements = shape_elements(&r->unpooled);
    conv.activation = ACTIVATION_NONE;
    return conv;
}

static struct reference pool_of(const struct reference *r)
{
    struct reference pool = *r;
    pool.settings = r->pool;
    pool.x = r->unpooled;
    pool.x_elements = shape_elements(&r->unpooled);
    return pool;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    if (!r->pool) return convolve(r, args);
    const struct reference conv = before_pool(r);
    struct reference pool = pool_of(r);
    struct kernel_args inner = *args;
    inner.y = args->scratch;
    inner.save = false;
    TRY(convolve(&conv, &inner));
    inner = *args;
    inner.x[0] = args->scratch;
    return layer_max_pool.reference.forward(&pool, &inner);
}

/* The gradient of one weight: of channel o, input channel i, at (u, v) in the kernel. */
static double weight_gradient(const struct reference *r, const float *x, const float *dy, int64_t o, int64_t i,
                              int64_t u, int64_t v)
{
    const struct window *window = window_of(r);
    double sum = 0;
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t p = 0; p < r->y.dim[0]; p++)
            for (int64_t q = 0; q < r->y.dim[1]; q++) {
                int64_t h = p * window->stride - window->padding + u * window_dilation(window);
                int64_t w = q * window->stride - window->padding + v * window_dilation(window);
                if (h < 0 || h >= r->x.dim[0] || w < 0 || w >= r->x.dim[1]) continue;
                sum += (double)dy[n * r->y_elements + (p * r->y.dim[1] + q) * r->y.dim[2] + o] *
                       x[n * r->x_elements + (h * r->x.dim[1] + w) * r->x.dim[2] + i];
            }
    return sum;
}

void conv_weight_gradients(const struct reference *r, const float *x, const float *dy, float *dw)
{
    const int64_t k = window_of(r)->kernel, in = in_group(r, &r->x), out = in_group(r, &r->y);
    for (int64_t o = 0; o < r->y.dim[2]; o++)
        for (int64_t i = o / out * in; i < (o / out + 1) * in; i++)
            for (int64_t u = 0; u < k; u++)
                for (int64_t v = 0; v < k; v++) *dw++ = (float)weight_gradient(r, x, dy, o, i, u, v);
}

static void backward_params(const struct reference *r, const struct kernel_args *args)
{
    const int64_t channels = r->y.dim[2], pixels = r->batch * r->y_elements / channels;
    conv_weight_gradients(r, args->x[0], args->dy, args->gradients[0]);
    if (((const struct settings *)r->settings)->bias)
        column_sums(args->dy, pixels, channels, channels, args->gradients[1]);
}

/* The gradient of one input element of one sample: the sum over the windows that cover it. */
static double input_gradient(const struct reference *r, const float *weight, const float *dy, int64_t h, int64_t w,
                             int64_t i)
{
    const int64_t k = window_of(r)->kernel, stride = window_of(r)->stride, padding = window_of(r)->padding;
    const int64_t in = in_group(r, &r->x), out = in_group(r, &r->y), group = i / in;
    const int64_t dilation = window_dilation(window_of(r));
    double sum = 0;
    for (int64_t u = 0; u < k; u++)
        for (int64_t v = 0; v < k; v++) {
            int64_t p = h + padding - u * dilation, q = w + padding - v * dilation;
            if (p < 0 || q < 0 || p % stride || q % stride) continue;
            p /= stride, q /= stride;
            if (p >= r->y.dim[0] || q >= r->y.dim[1]) continue;
            for (int64_t o = group * out; o < (group + 1) * out; o++)
                sum +=
                    (double)dy[(p * r->y.dim[1] + q) * r->y.dim[2] + o] * weight[((o * in + i % in) * k + u) * k + v];
        }
    return sum;
}

void conv_input_gradients(const struct reference *r, const float *dy, const float *weights, const float *bias,
                          float *dx)
{
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t h = 0; h < r->x.dim[0]; h++)
            for (int64_t w = 0; w < r->x.dim[1]; w++)
                for (int64_t i = 0; i < r->x.dim[2]; i++)
                    *dx++ = (float)((bias ? bias[i] : 0) + input_gradient(r, weights, dy + n * r->y_elements, h, w, i));
}

static enum status convolve_back(const struct reference *r, const struct kernel_args *args)
{
    if (args->parts & PART_PARAMS) backward_params(r, args);
    if (args->parts & PART_INPUT) conv_input_gradients(r, args->dy, args->parameters[0], NULL, args->dx[0]);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    if (!r->pool) {
        if (args->y || args->saved) activation_derivative(r, args->y, args->saved, args->dy);
        return convolve_back(r, args);
    }
    const struct reference conv = before_pool(r);
    struct reference pool = pool_of(r);
    struct kernel_args inner = *args;
    if (!args->y) pool.activation = ACTIVATION_NONE; /* the other part has applied its derivative */
    inner.dx[0] = args->scratch;
    TRY(layer_max_pool.reference.backward(&pool, &inner));
    inner = *args;
    inner.dy = args->scratch;
    return convolve_back(&conv, &inner);
}

static void measure(const struct reference *r, struct footprint *footprint)
{
    if (!r->pool) {
        activation_footprint(r, footprint);
        return;
    }
    const size_t image = (size_t)(r->batch * shape_elements(&r->unpooled)) * sizeof(float);
    const bool relu = r->activation == ACTIVATION_RELU;
    footprint->saved = (size_t)(r->batch * r->y_elements);
    footprint->forward_scratch = footprint->backward_scratch[0] = footprint->backward_scratch[1] = image;
    footprint->reads[PART_INDEX_PARAMS] |= READS_SAVED | (relu ? READS_Y : 0u);
    footprint->reads[PART_INDEX_INPUT] |= READS_SAVED;
    footprint->writes_dy = relu;
}

const struct layer layer_conv = {.name = "conv",
                                 .doc = "convolution of images, with zeros around",
                                 .inputs = 1,
                                 LAYER_SETTINGS,
                                 .infer = infer,
                                 .parameters = parameters,
                                 .flops = flops,
                                 .reference = REFERENCE_KERNEL(forward, backward),
                                 .footprint = {.reads = {READS_X, 0}, .split = true},
                                 .measure = measure};
