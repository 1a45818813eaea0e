/* Equality in every bit: what this project claims, -0 and NaN included. */
#pragma once

#include <stdbool.h>
#include <string.h>

/* Either may be NULL where bytes is 0. */
static inline bool same_bits(const void *a, const void *b, size_t bytes)
{
    return !bytes || (a && b && !memcmp(a, b, bytes));
}
