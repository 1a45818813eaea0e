/* Where the pixels of images lie, in any of the backend's layouts. */
#pragma once

#include "backend/layer_state.h"
#include "dnnl.h"

/* How a batch of images lies in memory. Distances are in floats. */
struct image {
    int64_t height, width, channels, padded; /* padded: channels that fill the last block, too */
    int64_t block, plane; /* channels that lie together, and the distance of such blocks; a pixel has a block */
    int64_t sample;       /* the distance of samples */
};

static inline struct image image_of(const struct extent *value)
{
    const int64_t *dim = value->shape.dim, block = order_block((enum order)value->layout);
    struct image image = {.height = dim[0], .width = dim[1], .channels = dim[2], .sample = value->elements};
    image.padded = value->elements / (dim[0] * dim[1]);
    image.block = block > 1 ? block : dim[2];
    image.plane = dim[0] * dim[1] * image.block;
    return image;
}

static inline int64_t channel_at(const struct image *image, int64_t channel)
{
    return channel / image->block * image->plane + channel % image->block;
}
