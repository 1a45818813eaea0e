/* Launches of our own kernels (.cu), for C.
 *
 * All pointers are the device's, and matrices lie row by row without gaps. Work is queued on the stream. An element is
 * computed by one thread; the order of a sum depends on the shape alone. */
#pragma once

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numerics/element_draw.h"
#include "numerics/element_functions.h"
#include "numerics/element_optimizer.h"
#include "numerics/element_xxh3.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- elements.cu ---- */

/* As enum activation of layer.h. */
enum function { FUNCTION_NONE, FUNCTION_RELU, FUNCTION_TANH };

/* The functions of element_functions.h. */
#define ELEMENT_NUMBER(layer, value, gradient) ELEMENT_##layer,
enum element_function { ELEMENT_FUNCTIONS(ELEMENT_NUMBER) };

/* Bytes of the sign bits of count elements: bit i % 8 of byte i / 8 is 1 where element i is above 0. */
static inline size_t sign_bytes(int64_t count) { return (size_t)((count + 7) / 8); }

/* Which bias belongs to element i of a value: number i / inner % units. Rows of units and images N H W C have inner 1,
 * images N C H W have H * W. */
struct bias {
    const float *values; /* NULL: none */
    int64_t units, inner;
};

/* to = function(from + bias); writes the sign bits of to unless NULL. to may be from. */
void launch_function(cudaStream_t stream, const float *from, struct bias bias, enum function function, int64_t count,
                     float *to, uint8_t *signs);

/* dx = dy times the function's derivative at its output; a relu's from signs unless NULL. dx may be dy. */
void launch_derivative(cudaStream_t stream, const float *dy, const float *at, const uint8_t *signs,
                       enum function function, int64_t count, float *dx);

/* y = an elementwise layer's function of x, and dx by dy and at, with the layer's number. y may be x, dx may be dy. */
void launch_elementwise(cudaStream_t stream, enum element_function function, float number, const float *x,
                        int64_t count, float *y);
void launch_elementwise_gradient(cudaStream_t stream, enum element_function function, float number, const float *dy,
                                 const float *at, int64_t count, float *dx);

/* out[i] = a[i] + b[i]; out may be a or b. */
void launch_add(cudaStream_t stream, const float *a, const float *b, int64_t count, float *out);

/* A value of batch samples and its gate: channels first, channels x pixels each, or pixels x channels. gates: channels,
 * or as many as elements where the second value has the shape of the first. */
struct gate_shape {
    int64_t batch, channels, pixels, gates;
    bool channels_first;
};

/* to = from times the gate, which is x's second factor; to may be from. gradient = the sum of dy x over each gate's
 * pixels, in row order in double. */
void launch_multiply(cudaStream_t stream, struct gate_shape shape, const float *from, const float *gate, float *to);
void launch_gate_gradient(cudaStream_t stream, struct gate_shape shape, const float *x, const float *dy,
                          float *gradient);

/* Sets count words to a 32-bit pattern. */
void launch_fill(cudaStream_t stream, uint32_t pattern, int64_t count, void *to);

/* For each of batch matrices, rows x columns from and columns x rows to: to = the transpose of from; to is not from.
 * N H W C to N C H W: rows = H * W, columns = C; O I H W to O H W I: batch = O, rows = I, columns = H * W. */
void launch_transpose(cudaStream_t stream, const float *from, int64_t batch, int64_t rows, int64_t columns, float *to);

/* A value of batch samples: channels x pixels each where the image lies N C H W, else in logical order, and pixels
 * is 1. */
struct dropout_shape {
    int64_t batch, channels, pixels;
};

/* to = from * factor where rng_keep() keeps an element, else 0; to may be from. */
void launch_dropout(cudaStream_t stream, struct dropout_shape shape, const struct element_draw *draw, float factor,
                    const float *from, float *to);

/* As rng_mask_fill(): sets mask to the bits of draw, whose own mask is not read. */
void launch_dropout_mask(cudaStream_t stream, const struct element_draw *draw, int64_t elements, int64_t batch,
                         uint8_t *mask);

/* *to = *base + offset. */
void launch_stream_position(cudaStream_t stream, const uint64_t *base, uint64_t offset, uint64_t *to);

/* ---- reductions.cu: sums over all but one dimension, in double ---- */

/* x[outer][units][inner]: rows of units and images N H W C have inner 1, images N C H W have outer N and inner H * W.
 */
struct units {
    int64_t outer, units, inner;
};

/* out[u] = the sum of x[o][u][i] over o and i. */
void launch_reduce_units(cudaStream_t stream, const float *x, int64_t outer, int64_t units, int64_t inner, float *out);

/* ---- layernorm_kernels.cu; the formulas are with the layer's definition ---- */

struct layernorm_shape {
    int64_t rows, width;
    float epsilon;
};

/* Of a row; saved for each row. */
struct layernorm_statistics {
    float mean, rstd;
};

/* A warp computes a row in two passes, so that the variance does not cancel. statistics NULL: not wanted. y may be
 * x. */
void launch_layernorm(cudaStream_t stream, struct layernorm_shape shape, const float *x, const float *w, const float *b,
                      struct layernorm_statistics *statistics, float *y);

/* dx may be dy. */
void launch_layernorm_gradient(cudaStream_t stream, struct layernorm_shape shape, const float *x,
                               const struct layernorm_statistics *statistics, const float *w, const float *dy,
                               float *dx);

/* The gradient of w; that of b is the sum over rows. In reductions.cu. */
void launch_layernorm_weights(cudaStream_t stream, struct layernorm_shape shape, const float *x,
                              const struct layernorm_statistics *statistics, const float *dy, float *dw);

/* ---- batch_norm_kernels.cu; the formulas are with the layer's definition. Units are channels. ---- */

/* Statistics of the batch as the backward reads them: the means of all channels, then their rstds. running_mean NULL:
 * the running state is not moved; unbias: the factor of the variance that goes into it. */
struct batch_norm_statistics {
    float *once; /* NULL: not wanted */
    float *running_mean, *running_variance;
    double epsilon, momentum, unbias;
};

void launch_batch_norm_statistics(cudaStream_t stream, struct units shape, const float *x,
                                  struct batch_norm_statistics statistics);

/* What elements are normalised with, by channel. */
struct batch_norm_scaling {
    const float *mean, *rstd, *variance; /* rstd NULL: from the variance */
    const float *weight, *bias;          /* NULL: 1 and 0 */
    double epsilon;
    bool relu;
};

/* y may be x. */
void launch_batch_norm(cudaStream_t stream, struct units shape, struct batch_norm_scaling scaling, const float *x,
                       float *y);

/* means: 2 floats a channel, mean(dy') of all channels and then mean(dy' h). dw and db NULL: not wanted. */
void launch_batch_norm_sums(cudaStream_t stream, struct units shape, struct batch_norm_scaling scaling, const float *x,
                            const float *dy, float *means, float *dw, float *db);

/* dx may be dy. */
void launch_batch_norm_gradient(cudaStream_t stream, struct units shape, struct batch_norm_scaling scaling,
                                const float *x, const float *dy, const float *means, float *dx);

/* ---- attention_kernels.cu: softmax and dropout over all heads of a batch, and their backward; see
 * framework/layers/attention.c. Blocks of scores, probabilities and slopes are batch x heads x tokens x tokens. ---- */

struct attention_shape {
    int64_t first, batch, heads, tokens; /* first: sample, where these are a part of the batch */
    float scale;                         /* of scores: 1 / sqrt of a head's width */
    float factor;                        /* survivor_factor() */
    bool causal;                         /* a query sees no later key */
};

/* From scores Q K^T, not yet scaled, the probabilities p over the keys that a query sees, and what dropout leaves
 * of them; p or dropped may be NULL, where it is not wanted, and either may be scores. A probability below exp(-87) of
 * its row's largest is 0. text: value 0, see token_batch.h; NULL: every key is a token. draw is read where dropped is
 * not NULL. */
void launch_attention_softmax(cudaStream_t stream, struct attention_shape shape, const float *text, const float *scores,
                              float *p, const struct element_draw *draw, float *dropped);

/* slope, dP of what was dropped, becomes dS, and dropped what dropout leaves of p; NULL: nothing is dropped. */
void launch_attention_slope(cudaStream_t stream, struct attention_shape shape, const float *p,
                            const struct element_draw *draw, float *dropped, float *slope);

/* ---- embedding_kernels.cu: rows of tables by number ---- */

/* text: value 0, see token_batch.h; tables of so many rows, width floats each. What is no row of its table is row 0. */
struct embedding_shape {
    int64_t batch, tokens, width;
    int64_t words, segments;
};

/* y = word's row + position's row + segment's row. */
void launch_embedding(cudaStream_t stream, struct embedding_shape shape, const float *text, const float *word,
                      const float *position, const float *segment, float *y);

/* gradient = for each of rows rows the sum of dy over the tokens whose number in line (TOKEN_IDS, TOKEN_SEGMENTS) is
 * that row, in their order. */
void launch_embedding_gradient(cudaStream_t stream, struct embedding_shape shape, const float *text, int line,
                               int64_t rows, const float *dy, float *gradient);

/* ---- pooling_kernels.cu: the maximum and the mean of each window and channel, in either layout, and their gradients.
 * Of equal elements the first in row order is the maximum, and a NaN wins; padding is ignored. An element of the
 * gradient is summed over the windows that contain it, in row order. ---- */

struct pooling_shape {
    int64_t batch, channels, height, width; /* of x */
    int64_t out_height, out_width;          /* of y */
    int64_t kernel, stride, padding;
    bool count_padding; /* a mean counts it as zeros */
    bool channels_first;
};

/* Bytes of the index of a window's maximum, which is saved for each element of y: 1 where 8 bits suffice, else 4. */
static inline size_t pooling_index_bytes(int64_t kernel) { return kernel * kernel <= 256 ? 1 : sizeof(int32_t); }

/* indices NULL: not wanted. */
void launch_max_pool(cudaStream_t stream, struct pooling_shape shape, const float *x, void *indices, float *y);
void launch_avg_pool(cudaStream_t stream, struct pooling_shape shape, const float *x, float *y);

/* indices NULL: windows of one place. */
void launch_max_pool_gradient(cudaStream_t stream, struct pooling_shape shape, const float *dy, const void *indices,
                              float *dx);
void launch_avg_pool_gradient(cudaStream_t stream, struct pooling_shape shape, const float *dy, float *dx);

/* ---- upsample_kernels.cu: nearest neighbour by an integer factor ---- */

/* Images of x; those of y are factor times as high and as wide. */
struct upsample_shape {
    int64_t images, height, width, channels; /* images N C H W: N * C of one channel */
    int64_t factor;
};

void launch_upsample(cudaStream_t stream, struct upsample_shape shape, const float *x, float *y);

/* dx = the sum of dy over a pixel's square, in row order. */
void launch_upsample_gradient(cudaStream_t stream, struct upsample_shape shape, const float *dy, float *dx);

/* ---- loss_kernels.cu: softmax cross-entropy; a warp sums a row in double ---- */

enum { NO_LABEL = -1 }; /* as LABEL_NONE of layer.h: the row adds nothing and has no gradient */

/* Rows of x and the class of each; divisor: as struct kernel_args has it. pixels: of images N C H W, H * W; else 1. */
struct labelled {
    const float *x;
    const int32_t *labels;
    const double *divisor;
    int64_t rows, classes, pixels;
};

/* y = {sum of losses / *divisor, correct predictions}; scratch: cross_entropy_scratch() bytes. A label that is not a
 * class makes the loss a NaN, since a kernel cannot report an error. */
void launch_cross_entropy(cudaStream_t stream, struct labelled rows, void *scratch, float *y);
static inline size_t cross_entropy_scratch(int64_t rows) { return (size_t)rows * 2 * sizeof(double); }

/* dx = (softmax of x - 1 at the label) / *divisor. */
void launch_cross_entropy_gradient(cudaStream_t stream, struct labelled rows, float *dx);

/* ---- parameter_update_kernels.cu: digests, sums of squares, optimizers. A tensor is cut into pieces of 64 KiB, as by
 * digest_tensor() and sum_of_squares(), whose bits the results have; an element is updated as element_optimizer.h says.
 * ---- */

enum { PIECE_BYTES = 64 * 1024 };

static inline int64_t pieces_of(int64_t bytes) { return bytes / PIECE_BYTES + (bytes % PIECE_BYTES != 0); }

struct piece_result {
    struct xxh3 digest; /* XXH3-128; undefined for at most XXH3_SHORT bytes */
    double squares;     /* the sum of squares, as of floats */
};

/* Of every piece of bytes bytes at a multiple of 8. */
void launch_pieces(cudaStream_t stream, const void *data, int64_t bytes, struct piece_result *result);

/* What decides whether and how to update; all in device memory but clip. */
struct judgement {
    double clip;
    const float *loss;
    double *squares;     /* of all gradients */
    int32_t *not_finite; /* the last tensor whose gradient is not finite, -1: none */
};

/* Takes in the gradient of a tensor; for all tensors in descending order, from squares 0 and not_finite -1. In a fused
 * update the pieces of a part, for not_finite alone. */
void launch_judgement(cudaStream_t stream, int tensor, int64_t pieces, const struct piece_result *result,
                      struct judgement judgement);

enum update_rule { UPDATE_SGD, UPDATE_MOMENTUM, UPDATE_ADAM };

/* Updates count elements, if the loss and all gradients taken in are finite. state: stride floats further, the next
 * copy; average: moved by the updated parameter, NULL: none. */
void launch_update(cudaStream_t stream, enum update_rule rule, float *parameter, const float *gradient, float *state,
                   float *average, int64_t count, int64_t stride, const struct optimizer_numbers *numbers,
                   struct judgement judgement);

#ifdef __cplusplus
}
#endif
