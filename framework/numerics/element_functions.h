/* The elementwise layers' functions in float, and their gradients, for C and CUDA.
 *
 * Contract: as element_exp.h: no branches and no call but fmaf and fabsf, each operation rounded once, so equal
 * arguments give equal bits on any machine and in any lane of a vector. A NaN stays one. The errors given below were
 * measured against the C library's functions in double (tests/numerics/test_element_functions.c). */
#pragma once

#include "numerics/element_gelu.h"

/* x where keep is 1, 0 where it is 0; on bits, since a product would make a NaN of an infinity. */
EVERYWHERE float element_where(uint32_t keep, float x) { return element_of_bits(element_bits(x) & (0u - keep)); }

EVERYWHERE float element_relu6(float x)
{
    const float above = x <= 0.0f ? 0.0f : x;
    return above >= 6.0f ? 6.0f : above;
}

/* 1 / (1 + exp(-x)) and 1 / (1 + exp(x)), whose sum is 1; each within 3 ulp where it is not subnormal. */
struct element_logistic {
    float rising, falling;
};

EVERYWHERE struct element_logistic element_logistic(float x)
{
    const float size = fabsf(x), a = size > 110.0f ? 110.0f : size; /* exp(-110) is 0 in float */
    const float e = element_exp(-a, 0.0f), near = 1.0f / (1.0f + e), far = e * near;
    const struct element_logistic both = {element_choose(x, far, near), element_choose(x, near, far)};
    return both;
}

EVERYWHERE float element_sigmoid(float x) { return element_logistic(x).rising; }

/* x / (1 + exp(-x)) within 4 ulp; an infinity below 0 gives a NaN. */
EVERYWHERE float element_silu(float x) { return x * element_logistic(x).rising; }

/* Its derivative s (1 + x (1 - s)), within 5 ulp of the larger of s and s (1 - s) x; NaN at an infinity. */
EVERYWHERE float element_silu_slope(float x)
{
    const struct element_logistic s = element_logistic(x);
    return s.rising * fmaf(x, s.falling, 1.0f);
}

/* tanh(x) within 3 ulp: below 5/8 x + x^3 p(x^2), p fitted at Chebyshev's points, else by exp(-2 |x|). */
EVERYWHERE float element_tanh(float x)
{
    const float size = fabsf(x), a = size > 16.0f ? 16.0f : size, z = a * a; /* tanh(16) rounds to 1 */
    const float e = element_exp(-2.0f * a, 0.0f), far = (1.0f - e) / (1.0f + e);
    float p = fmaf(-6.10494801241e-3f, z, 2.10036412213e-2f);
    p = fmaf(p, z, -5.38524974685e-2f), p = fmaf(p, z, 1.33327822640e-1f), p = fmaf(p, z, -3.33333290996e-1f);
    const float near = fmaf(a * z, p, a), y = a < 0.625f ? near : far;
    return element_choose(x, -y, y);
}

/* x min(max(x + 3, 0), 6) / 6, within 3 ulp. */
EVERYWHERE float element_hardswish(float x)
{
    return x <= -3.0f ? 0.0f : x >= 3.0f ? x : x * (x + 3.0f) * (1.0f / 6.0f);
}

EVERYWHERE float element_hardswish_slope(float x)
{
    return x <= -3.0f ? 0.0f : x >= 3.0f ? 1.0f : fmaf(x, 1.0f / 3.0f, 0.5f);
}

/* A row for each elementwise layer: its name, y of x, and dx of dy and at, which is x or y, as the layer's backward
 * reads, or dy where it reads neither. number: the value of the layer's one key, 0 where it has none. */
#define ELEMENT_FUNCTIONS(ROW)                                                                                         \
    ROW(relu6, element_relu6(x), element_where((uint32_t)((at > 0.0f) & (at < 6.0f)), dy))                             \
    ROW(leaky_relu, x > 0.0f ? x : number * x, at > 0.0f ? dy : number * dy)                                           \
    ROW(scale, number *x, number *dy)                                                                                  \
    ROW(gelu, element_gelu(x), dy *element_gelu_slope(at))                                                             \
    ROW(silu, element_silu(x), dy *element_silu_slope(at))                                                             \
    ROW(hardswish, element_hardswish(x), dy *element_hardswish_slope(at))                                              \
    ROW(sigmoid, element_sigmoid(x), dy *(at * (1.0f - at)))                                                           \
    ROW(tanh, element_tanh(x), dy *(1.0f - at * at))
