/* What the definitions in layers/ and their reference kernels share.
 *
 * Numerical contract of every reference kernel: one thread, logical layouts, sums in double in a fixed order and
 * rounded to float once; but where windows of a pool overlap, what each hands to a gradient is rounded and then added
 * in float, in the order of the outputs. They are the oracle that other kernels are judged by, so they are written to
 * be read, not to be fast. */
#ifndef REMATCH_MODEL_REFERENCE_H
#define REMATCH_MODEL_REFERENCE_H

#include "model/graph.h"

#define LAYER(name) extern const struct layer layer_##name;
#include "layers/layers.def"
#undef LAYER

/* The first members of a row of keys: key and offset in struct settings. */
#define SETTING(name) .key = #name, .offset = offsetof(struct settings, name)

/* Words of enum activation, without and with tanh. */
extern const char *const relu_words[], *const activation_words[];

/* Fields of layers that have none; rows of every pooling layer's. */
extern const struct setting no_keys[];
#define POOL_FIELDS                                                                                                    \
    {SETTING(kernel), .type = SETTING_INT, .min = 1, .max = 1 << 16, .doc = "side of the square window"},              \
        {SETTING(stride), .type = SETTING_INT, .max = 1 << 16, .preset = "0",                                          \
         .doc = "step of the window; 0: its side"},                                                                    \
    {                                                                                                                  \
        SETTING(padding), .type = SETTING_INT, .max = 1 << 15, .preset = "0",                                          \
                          .doc = "rows and columns around the image"                                                   \
    }

/* The state of every reference kernel; freed by free(). */
struct reference {
    struct settings settings;
    struct shape x, y; /* of one sample */
    int64_t batch;
    int64_t x_elements, y_elements; /* of one sample */
};

enum status reference_state(const struct graph *graph, const struct node *node, void **state);

/* Rows of the last dimension in the batch's x. */
static inline int64_t reference_rows(const struct reference *r)
{
    return r->batch * r->x_elements / shape_width(&r->x);
}

/* Bytes of one bit for each element of the batch's y. */
size_t bits_bytes(const struct reference *r);

/* Applies settings.activation to y in place; writes a relu's sign bits (y > 0) to bits, unless NULL. */
void activate(const struct reference *r, float *y, uint8_t *bits);

/* dy *= the activation's derivative, from bits, or from y where they are NULL: for a relu 1 where y > 0, else 0; for
 * tanh 1 - y * y. */
void activation_derivative(const struct reference *r, const float *y, const uint8_t *bits, float *dy);

/* Adds to a footprint what a fused activation saves or reads: its derivative is applied by the part of that index. */
void activation_footprint(const struct reference *r, int part_index, struct footprint *footprint);

/* gradient = or += value. */
static inline void put_gradient(float *gradient, double value, bool accumulate)
{
    *gradient = accumulate ? *gradient + (float)value : (float)value;
}

/* The gradient of a layer's second parameter, one for each of so many outputs; nothing without a bias. */
void bias_gradient(const struct reference *r, const struct kernel_args *args, int64_t outputs);

/* One operation an element of the input, forward and backward. */
struct flops element_flops(const struct settings *settings, const struct shape *input, const struct shape *output);

/* ST_SPEC for what is not {H, W, C}; neither {D} nor {T, D}; not {T, D}; not the batch of a text data set
 * (token_batch.h).
 */
enum status image_expected(const struct shape *x);
enum status rows_expected(const struct shape *x);
enum status sequence_expected(const struct shape *x);
enum status tokens_expected(const struct shape *x);

/* The output {H, W, channels} of a window of settings.kernel, padding and the given stride over an image; ST_SPEC for
 * what is not an image and for a window that is larger than the padded image. */
enum status window_infer(const struct settings *settings, int64_t stride, const struct shape *x, int64_t channels,
                         struct shape *y);

/* window_infer for pooling: stride 0 stands for kernel, and no window may lie wholly in the padding. */
enum status pool_infer(const struct settings *settings, const struct shape *x, struct shape *y);
static inline int64_t pool_stride(const struct settings *s) { return s->stride ? s->stride : s->kernel; }

/* A 1x1 window of stride 1 without an activation: the identity. */
static inline bool pool_identity(const struct settings *s)
{
    return s->kernel == 1 && pool_stride(s) == 1 && s->activation == ACTIVATION_NONE;
}

/* Output = input, for element-wise layers. */
enum status same_infer(const struct settings *settings, const struct shape *x, struct shape *y);

/* y = x for the batch, where they are not the same memory. */
void copy_batch(const struct reference *r, void *y, const void *x);

#endif
