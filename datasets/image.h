/* From 8-bit pixels in planes to the floats a network takes: resized, normalised, channels last.
 *
 * Numerical contract: x = (bilinear interpolation in float, rows before columns) * scale + shift, each pixel by itself:
 * the same bits in any order, batch or thread. */
#pragma once

#include "dataset.h"

enum { IMAGE_CHANNELS_MAX = 4, IMAGE_SIDE_MAX = 4096 };

/* The settings of data sets of images. */
extern const struct setting image_keys[];

/* Mean and deviation of pixels in 0..1, by channel, over a data set's training split. */
struct image_statistics {
    double mean[IMAGE_CHANNELS_MAX], deviation[IMAGE_CHANNELS_MAX];
};

struct image_format {
    int64_t channels, height, width; /* of the planes */
    int64_t to_height, to_width;     /* as delivered */
    float scale[IMAGE_CHANNELS_MAX], shift[IMAGE_CHANNELS_MAX];
};

/* The format by dataset's settings, of channels planes of height x width; also sets dataset->shape. */
void image_format(struct dataset *dataset, int64_t channels, int64_t height, int64_t width,
                  const struct image_statistics *statistics, struct image_format *format);

/* planes[channels][height][width] -> x[to_height][to_width][channels]. Bilinear with half-pixel centres: output i looks
 * at (i + 1/2) * from / to - 1/2, kept within the image. */
void image_deliver(const struct image_format *format, const uint8_t *planes, float *x);
