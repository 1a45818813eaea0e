/* Operands of kernels that tests compare with scalar programs: random numbers, and images. */
#pragma once

#include "backend/layer_state.h"

/* count numbers in [-1, 1), of that stream, and bytes of NaNs; to be freed. */
float *random_floats(int64_t count, uint32_t which);
float *spoiled_floats(size_t bytes);

/* A batch in the order N H W C. */
struct images {
    int64_t batch, height, width, channels;
    float *data;
};

/* With random numbers of that stream; data is to be freed. */
struct images images_make(int64_t batch, int64_t height, int64_t width, int64_t channels, uint32_t which);
/* 0 outside of the image. */
float images_pixel(const struct images *x, int64_t sample, int64_t row, int64_t column, int64_t c);

struct extent images_extent(const struct images *x);
