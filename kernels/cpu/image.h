/* Batches of images as they lie in memory: N H W C. */
#pragma once

#include "backend/layer_state.h"

/* The passes of a convolution: y, and the gradients of its parameters and of x. */
enum conv_pass { CONV_FORWARD, CONV_PARAMS, CONV_INPUT, CONV_PASSES };

/* Distances are in floats. */
struct image {
    int64_t height, width, channels;
    int64_t sample; /* the distance of samples */
};

static inline struct image image_of(const struct extent *value)
{
    const int64_t *dim = value->shape.dim;
    return (struct image){.height = dim[0], .width = dim[1], .channels = dim[2], .sample = value->elements};
}
