/* What the definitions in layers/ and their reference kernels share.
 *
 * Numerical contract of every reference kernel: one thread, logical layouts, sums in double in a fixed order, rounded
 * to float once. One exception: where the windows of a pool overlap, each window's share of a gradient is rounded and
 * then added in float, in the order of the outputs. Other kernels are compared with these, so they are written to be
 * read, not to be fast. */
#pragma once

#include <stdlib.h>

#include "model/graph.h"

#define LAYER(name) extern const struct layer layer_##name;
#include "layers/layers.def"
#undef LAYER

/* The first members of a row of keys: key and offset in the layer's own struct settings, or in its window. */
#define SETTING(name) .key = #name, .offset = offsetof(struct settings, name)
#define WINDOW(name)  .key = #name, .offset = offsetof(struct settings, window.name)

/* The members of a struct layer with keys. */
#define LAYER_SETTINGS .keys = keys, .settings_size = sizeof(struct settings)

/* The words of enum activation, without and with tanh. */
extern const char *const relu_words[], *const activation_words[];

/* A square window that moves over an image; stride 0 stands for kernel. ceil_mode: the last window of a row may end
 * outside the padded image, but begins within the image or the padding before it. */
struct window {
    int64_t kernel, stride, padding;
    int64_t dilation; /* from a place to the next; 0: 1 */
    bool ceil_mode;
};
static inline int64_t window_stride(const struct window *w) { return w->stride ? w->stride : w->kernel; }
static inline int64_t window_dilation(const struct window *w) { return w->dilation ? w->dilation : 1; }

/* Pixels of a side from the first place to the last. */
static inline int64_t window_extent(const struct window *w) { return (w->kernel - 1) * window_dilation(w) + 1; }

/* The row of a convolution's dilation. */
#define DILATION_KEY                                                                                                   \
    {                                                                                                                  \
        WINDOW(dilation), .type = SETTING_INT, .min = 1, .max = 1 << 16, .preset = "1",                                \
                          .doc = "pixels from one of the kernel's places to the next"                                  \
    }

/* The rows of every pool's window. */
#define POOL_KEYS                                                                                                      \
    {WINDOW(kernel), .type = SETTING_INT, .min = 1, .max = 1 << 16, .doc = "side of the square window"},               \
        {WINDOW(stride), .type = SETTING_INT, .max = 1 << 16, .preset = "0",                                           \
         .doc = "step of the window; 0: its side"},                                                                    \
        {WINDOW(padding), .type = SETTING_INT, .max = 1 << 15, .preset = "0",                                          \
         .doc = "rows and columns around the image"},                                                                  \
    {                                                                                                                  \
        WINDOW(ceil_mode), .type = SETTING_BOOL, .preset = "false",                                                    \
                           .doc = "the last window may end outside, as PyTorch's"                                      \
    }

/* The state of every reference kernel. */
struct reference {
    const void *settings; /* the node's */
    const void *pool;     /* struct node's */
    struct shape unpooled;
    enum activation activation;
    struct shape x, y;              /* of one sample */
    int64_t batch;                  /* as the graph's */
    int64_t x_elements, y_elements; /* of one sample */
    int64_t second_elements;        /* of one sample of the last input */
    int second_rank;                /* of the last input's shape */
    double weight;                  /* of a loss */
};

/* What a loss divides its sums by: the batch's divisor, and an auxiliary loss's weight multiplies. */
static inline double loss_divisor(const struct reference *r, const struct kernel_args *args)
{
    return *args->divisor / r->weight;
}

/* The reference kernel of a layer; backward may be NULL. */
#define REFERENCE_KERNEL(forward, backward)                                                                            \
    {                                                                                                                  \
        true, reference_prepare, forward, backward, free                                                               \
    }
/* The same of a layer whose first parameter may be shared. */
#define REFERENCE_KERNEL_ADDS(forward, backward)                                                                       \
    {                                                                                                                  \
        true, reference_prepare, forward, backward, free, true                                                         \
    }
enum status reference_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                              struct footprint *footprint, void **state);

/* Rows of the last dimension in the batch's x. */
static inline int64_t reference_rows(const struct reference *r)
{
    return r->batch * r->x_elements / shape_width(&r->x);
}

/* Bytes of one bit for each element of the batch's y. */
size_t bits_bytes(const struct reference *r);

/* A relu on y in place, writing its sign bits (y > 0) to bits, unless NULL; and dy *= its derivative, 1 where y > 0,
 * else 0, from bits, or from y where they are NULL. */
void reference_relu(const struct reference *r, float *y, uint8_t *bits);
void reference_relu_derivative(const struct reference *r, const float *y, const uint8_t *bits, float *dy);

/* The same for the fused activation; the derivative of tanh is 1 - y * y. */
void activation_apply(const struct reference *r, float *y, uint8_t *bits);
void activation_derivative(const struct reference *r, const float *y, const uint8_t *bits, float *dy);

/* Adds to the footprint of a layer with parameters what its fused activation saves or reads: the part PARAMS multiplies
 * dy by the derivative, in place. */
void activation_footprint(const struct reference *r, struct footprint *footprint);

/* sum[c] = the sum of column c of so many rows, stride apart: the gradient of a bias. */
void column_sums(const float *x, int64_t rows, int64_t stride, int64_t columns, float *sum);

/* ST_SPEC for what is not {H, W, C}; neither {D} nor {T, D}; not {T, D}; not the batch of a text data set
 * (token_batch.h). */
enum status image_expected(const struct shape *x);
enum status rows_expected(const struct shape *x);
enum status sequence_expected(const struct shape *x);
enum status tokens_expected(const struct shape *x);

/* The output {H, W, channels} of a window over an image; ST_SPEC for what is not an image and for a window that is
 * larger than the padded image. */
enum status window_infer(const struct window *w, const struct shape *x, int64_t channels, struct shape *y);

/* Places of window number i along an axis of so many pixels, those in the padding too. */
static inline int64_t window_places(const struct window *w, int64_t i, int64_t pixels)
{
    const int64_t left = pixels + 2 * w->padding - i * window_stride(w);
    return left < w->kernel ? left : w->kernel;
}

/* The same for a pool, none of whose windows may lie wholly in the padding: it must be less than the kernel, as for
 * ONNX's runtime. PyTorch allows half the kernel. */
enum status pool_infer(const struct window *w, const struct shape *x, struct shape *y);

/* A 1x1 window of stride 1 without an activation: the identity. */
static inline bool pool_identity(const struct reference *r, const struct window *w)
{
    return w->kernel == 1 && window_stride(w) == 1 && r->activation == ACTIVATION_NONE;
}

/* Rows of struct layer: of layers of rows, whose output is shaped as the input; of losses of any input; the parameters
 * of a norm, a gain, 1 at first, and a bias, 0 at first, for each channel of x. */
enum status rows_infer(const void *settings, const struct shape *x, struct shape *y);
enum status loss_infer(const void *settings, const struct shape *x, struct shape *y);
int gain_and_bias(const void *settings, const struct shape *x,
                  struct parameter_definition definitions[NODE_PARAMETERS_MAX]);

/* The parameters of a product with a matrix: {units, width}, and a bias. Returns how many. */
int weight_and_bias(int64_t width, int64_t units, enum init init, bool bias,
                    struct parameter_definition definitions[NODE_PARAMETERS_MAX]);

/* y = x for the batch, unless they are the same memory; and as a layer's forward. */
void copy_batch(const struct reference *r, void *y, const void *x);
enum status copy_forward(void *state, const struct kernel_args *args);
