/* The exponential of one element, for C and CUDA.
 *
 * Contract: no branches and no call but fmaf, so that loops over it vectorise; each operation is rounded once as IEEE
 * 754 says (fmaf too), so equal arguments give equal bits on any machine and in any lane of a vector. A NaN stays one.
 * The error given below was measured against the C library's function in double
 * (tests/numerics/test_element_functions.c).
 */
#pragma once

#include <math.h>
#include <string.h>

#include "numerics/everywhere.h"

EVERYWHERE uint32_t element_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

EVERYWHERE float element_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^k for k in [-126, 127]. */
EVERYWHERE float element_power_of_two(int32_t k) { return element_of_bits((uint32_t)(k + 127) << 23); }

/* exp(x + rest) for x in [-170, 88] and a rest far smaller than 1, for example the rounding error of x.
 * x = n log 2 + r with |r| <= log(2) / 2; exp(r) by a minimax polynomial of degree 6; within 1.25 ulp where the result
 * is not subnormal. */
EVERYWHERE float element_exp(float x, float rest)
{
    const float round = 0x1.8p23f; /* adding it leaves the nearest integer in the low bits */
    const float shifted = fmaf(x, 0x1.715476p0f, round), n = shifted - round;
    const float r = fmaf(n, 1.90465429996e-9f, fmaf(n, -0x1.62e430p-1f, x)) + rest; /* log 2 in two parts */
    const float r2 = r * r, q = fmaf(fmaf(1.38146082823e-3f, r2, fmaf(8.36871029566e-3f, r, 4.16683874654e-2f)), r2,
                                     fmaf(1.66665206848e-1f, r, 4.99999934512e-1f)); /* (exp(r) - 1 - r) / r^2 */
    const int32_t k = (int32_t)(element_bits(shifted) - element_bits(round));        /* n */
    const int32_t half = k >> 1; /* in two steps, since 2^n may be subnormal */
    return (1.0f + fmaf(r2, q, r)) * element_power_of_two(half) * element_power_of_two(k - half);
}
