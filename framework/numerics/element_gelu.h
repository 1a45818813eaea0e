/* Gelu of one element and its derivative, for C and CUDA.
 *
 * Contract: no branches and no call but fmaf, so that loops over it vectorise; each operation is rounded once as IEEE
 * 754 says (fmaf too), so equal arguments give equal bits on any machine and in any lane of a vector. A NaN stays one.
 * The errors given below were measured against the C library's functions in double
 * (tests/numerics/test_element_functions.c).
 */
#pragma once

#include "numerics/element_exp.h"

/* below where x has a minus sign, else above; computed on bits, since a conditional may become a branch. */
EVERYWHERE float element_choose(float x, float below, float above)
{
    const uint32_t minus = 0u - (element_bits(x) >> 31);
    return element_of_bits((element_bits(below) & minus) | (element_bits(above) & ~minus));
}

/* The smaller of |x| and limit, which is positive; limit for a NaN. */
EVERYWHERE float element_size(float x, float limit)
{
    const uint32_t size = element_bits(x) & 0x7fffffffu, most = element_bits(limit);
    return element_of_bits(size < most ? size : most);
}

/* Terms of gelu; a = |x|, at most 15 since exp(-15^2 / 2) is 0 in float. */
struct element_tail {
    float a;
    float exp;   /* exp(-a^2 / 2) */
    float ratio; /* (1 - P(a)) / exp: P is the distribution function of the standard normal distribution */
};

/* ratio by a minimax rational function over [0, 15], relative error 6.4e-9. */
EVERYWHERE struct element_tail element_tail(float x)
{
    const float a = element_size(x, 15.0f), square = a * a;
    float p = 4.15355804049e-3f, q = 1.04113143889e-2f;
    p = fmaf(p, a, 4.0883316629e-2f), q = fmaf(q, a, 1.02485392403e-1f);
    p = fmaf(p, a, 1.83975525445e-1f), q = fmaf(q, a, 4.71425562944e-1f);
    p = fmaf(p, a, 4.39291838136e-1f), q = fmaf(q, a, 1.20557447483f);
    p = fmaf(p, a, 5.00000003138e-1f), q = fmaf(q, a, 1.67646868226f);
    q = fmaf(q, a, 1.0f);
    struct element_tail tail = {a, element_exp(-0.5f * square, -0.5f * fmaf(a, a, -square)), p / q};
    return tail;
}

/* x P(x) (Hendrycks and Gimpel, 2016), within 6 ulp; an infinity gives a NaN, so that it is noticed. */
EVERYWHERE float element_gelu(float x)
{
    const struct element_tail t = element_tail(x);
    return (x > 0.0f ? x : 0.0f) - fabsf(x) * t.ratio * t.exp;
}

/* Its derivative, P(x) + x p(x), p the density: within 5 ulp of the larger of the two terms; NaN at an infinity. */
EVERYWHERE float element_gelu_slope(float x)
{
    const struct element_tail t = element_tail(x);
    const float below = t.exp * fmaf(t.a, -0.39894228040f, t.ratio), above = 1.0f - below;
    return element_choose(x, below, above) + 0.0f * x;
}
