#include "tests/support/images.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "numerics/rng.h"
#include "numerics/shape.h"

float *random_floats(int64_t count, uint32_t which)
{
    float *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = 2 * rng_uniform(rng_words(5, RNG_DATA, (uint32_t)i, which, 0, 0).word[0]) - 1;
    return x;
}

float *spoiled_floats(size_t bytes)
{
    float *data = malloc(bytes);
    memset(data, 0xff, bytes); /* NaNs */
    return data;
}

struct images images_make(int64_t batch, int64_t height, int64_t width, int64_t channels, uint32_t which)
{
    return (struct images){batch, height, width, channels, random_floats(batch * height * width * channels, which)};
}

float images_pixel(const struct images *x, int64_t sample, int64_t row, int64_t column, int64_t c)
{
    const bool inside = row >= 0 && row < x->height && column >= 0 && column < x->width;
    return inside ? x->data[((sample * x->height + row) * x->width + column) * x->channels + c] : 0;
}

struct extent images_extent(const struct images *x)
{
    const int64_t elements = x->height * x->width * x->channels;
    return (struct extent){x->batch, elements, x->batch * elements, {3, {x->height, x->width, x->channels}}, 0};
}
