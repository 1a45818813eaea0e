/* Vectors as wide as the processor's, for kernels whose bits do not depend on that width: of AVX-512, AVX2, or any
 * processor by fmaf().
 *
 * Contract: a lane computes what a scalar would, and lanes_fma() rounds once. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined __AVX2__ && defined __FMA__
#include <immintrin.h>
#endif

#if defined __AVX512F__
enum { LANES = 16 };
#define LANES_ISA "avx512"
#else
enum { LANES = 8 };
#if defined __AVX2__ && defined __FMA__
#define LANES_ISA "avx2"
#else
#define LANES_ISA "scalar"
#endif
#endif

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t lane_bits __attribute__((vector_size(LANES * sizeof(int32_t))));

#define INLINED static inline __attribute__((always_inline))

INLINED lanes lanes_load(const float *from)
{
    lanes v;
    memcpy(&v, from, sizeof v);
    return v;
}

INLINED void lanes_store(float *to, lanes v) { memcpy(to, &v, sizeof v); }

/* x in every lane. */
INLINED lanes lanes_all(float x) { return x - (lanes){0}; }

/* a b + c. */
INLINED lanes lanes_fma(lanes a, lanes b, lanes c)
{
#if defined __AVX512F__
    return (lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined __AVX2__ && defined __FMA__
    return (lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    for (int i = 0; i < LANES; i++) c[i] = fmaf(a[i], b[i], c[i]);
    return c;
#endif
}

/* Ones in the first count lanes, 0 to LANES. */
INLINED lane_bits lanes_first(int64_t count)
{
    static const int32_t ones[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    lane_bits bits;
    memcpy(&bits, ones + 16 - count, sizeof bits);
    return bits;
}

/* Lane at[i] of v in lane i. */
INLINED lanes lanes_picked(lanes v, lane_bits at)
{
#if defined __AVX512F__
    return (lanes)_mm512_permutexvar_ps((__m512i)at, (__m512)v);
#elif defined __AVX2__ && defined __FMA__
    return (lanes)_mm256_permutevar8x32_ps((__m256)v, (__m256i)at);
#else
    lanes w = {0};
    for (int i = 0; i < LANES; i++) w[i] = v[at[i]];
    return w;
#endif
}

/* Lane at[i] of v in lane i, or from LANES on lane at[i] - LANES of w. */
INLINED lanes lanes_picked_of_two(lanes v, lanes w, lane_bits at)
{
#if defined __AVX512F__
    return (lanes)_mm512_permutex2var_ps((__m512)v, (__m512i)at, (__m512)w);
#else
    const lane_bits second = at >= LANES;
    return (lanes)(((lane_bits)lanes_picked(v, at & (LANES - 1)) & ~second) |
                   ((lane_bits)lanes_picked(w, at & (LANES - 1)) & second));
#endif
}

/* Lane k of v[i] becomes lane i of v[k]: squares of 1, 2, 4, ... lanes change places. */
INLINED void lanes_transpose(lanes v[LANES])
{
#pragma GCC unroll 4
    for (int step = 1; step < LANES; step *= 2) {
        lane_bits first = {0}, second = {0};
        for (int k = 0; k < LANES; k++) {
            first[k] = k & step ? LANES + k - step : k;
            second[k] = k & step ? LANES + k : k + step;
        }
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) {
            if (i & step) continue;
            const lanes a = v[i], b = v[i + step];
            v[i] = lanes_picked_of_two(a, b, first), v[i + step] = lanes_picked_of_two(a, b, second);
        }
    }
}

/* In each lane the number of the first lane of its group, of so many lanes. */
INLINED lane_bits lanes_groups(int64_t group)
{
    lane_bits first = {0};
    for (int i = 0; i < LANES; i++) first[i] = i / (int)group * (int)group;
    return first;
}

/* Zeros where bits has them. */
INLINED lanes lanes_keep(lanes v, lane_bits bits) { return (lanes)((lane_bits)v & bits); }

/* max(v, 0), NaN for a NaN. */
INLINED lanes lanes_rectified(lanes v) { return lanes_keep(v, ~(v <= (lanes){0})); }

/* The first count floats, zeros behind them; nothing else is read. */
INLINED lanes lanes_load_part(const float *from, int64_t count)
{
#if defined __AVX512F__
    return (lanes)_mm512_maskz_loadu_ps((__mmask16)((1U << count) - 1), from);
#elif defined __AVX2__ && defined __FMA__
    return (lanes)_mm256_maskload_ps(from, (__m256i)lanes_first(count));
#else
    lanes v = {0};
    memcpy(&v, from, (size_t)count * sizeof *from);
    return v;
#endif
}

/* Writes the first count lanes alone. */
INLINED void lanes_store_part(float *to, lanes v, int64_t count)
{
#if defined __AVX512F__
    _mm512_mask_storeu_ps(to, (__mmask16)((1U << count) - 1), (__m512)v);
#elif defined __AVX2__ && defined __FMA__
    if (count == LANES) {
        lanes_store(to, v);
        return;
    }
    __m128 part = _mm256_castps256_ps128((__m256)v);
    if (count & 4) {
        _mm_storeu_ps(to, part);
        part = _mm256_extractf128_ps((__m256)v, 1), to += 4;
    }
    if (count & 2) {
        _mm_storel_pi((__m64 *)(void *)to, part);
        part = _mm_movehl_ps(part, part), to += 2;
    }
    if (count & 1) _mm_store_ss(to, part);
#else
    if (count == LANES)
        lanes_store(to, v);
    else
        memcpy(to, &v, (size_t)count * sizeof *to);
#endif
}
