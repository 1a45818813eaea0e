/* Convolutions whose groups have one channel of each image, with the bits that conv_product.h defines: vectors run over
 * channels. Kernels have SUM_BLOCK taps at most. */
#pragma once

#include "patches.h"
#include "product.h"

/* Where the weights of a patch's taps lie: weights[channel * taps + first + row * tap_y + column * tap_x]. */
struct taps {
    const float *weights;
    int64_t taps, first, tap_y, tap_x;
};

size_t depthwise_scratch(const struct patches *patches);
/* pixels = the sums over the patches, of all channels. */
void depthwise_apply(const struct patches *patches, const struct pixels *pixels, int64_t batch, const struct taps *taps,
                     float *scratch);

size_t depthwise_gradients_scratch(const struct patches *patches, int64_t batch);
/* weights[channel * taps + tap] and, unless it is NULL, bias; dy: a pixel a patch. */
void depthwise_gradients(const struct patches *patches, const struct patches *dy, int64_t batch, float *weights,
                         float *bias, float *scratch);
