/* Sums along a row, in an order that no vector width changes: number i is added to place i % 16, in ascending order;
 * then place i + 8 to place i, for i < 8, then i + 4 for i < 4, and so on. */
#pragma once

#include <stdint.h>
#include <string.h>

enum { PLACES = 16 };
typedef float places __attribute__((vector_size(PLACES * sizeof(float))));

/* The next numbers of a row, zeros behind its end. */
static inline places places_load(const float *from, int64_t left)
{
    places v = {0};
    if (left >= PLACES)
        memcpy(&v, from, sizeof v);
    else
        memcpy(&v, from, (size_t)left * sizeof *from);
    return v;
}

static inline float places_sum(places v)
{
    for (int half = PLACES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) v[i] += v[i + half];
    return v[0];
}

static inline float row_sum(const float *x, int64_t count)
{
    places sum = {0};
    for (int64_t i = 0; i < count; i += PLACES) sum += places_load(x + i, count - i);
    return places_sum(sum);
}

/* Of products, each rounded. */
static inline float row_dot(const float *x, const float *y, int64_t count)
{
    places sum = {0};
    for (int64_t i = 0; i < count; i += PLACES) sum += places_load(x + i, count - i) * places_load(y + i, count - i);
    return places_sum(sum);
}
