/* philox4x32 of many counters in parallel, in vector registers: the same numbers, several times faster than the
 * compiled loop, since C cannot express a product of the even 32-bit halves. The lanes are 64 bits wide; only their
 * lower halves count, so that no shuffle is needed.
 *
 * Contract: philox_lanes() gives philox4x32() of each counter, whatever the width of the vectors. */
#pragma once

#include <stdint.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#if defined __AVX512F__
typedef uint64_t philox_vector __attribute__((vector_size(64)));
static inline philox_vector philox_product(philox_vector x, uint32_t factor)
{
    return (philox_vector)_mm512_mul_epu32((__m512i)x, _mm512_set1_epi64(factor));
}
#elif defined __AVX2__
typedef uint64_t philox_vector __attribute__((vector_size(32)));
static inline philox_vector philox_product(philox_vector x, uint32_t factor)
{
    return (philox_vector)_mm256_mul_epu32((__m256i)x, _mm256_set1_epi64x(factor));
}
#else
typedef uint64_t philox_vector __attribute__((vector_size(16)));
static inline philox_vector philox_product(philox_vector x, uint32_t factor)
{
    return (x & UINT32_MAX) * (uint64_t)factor;
}
#endif

/* PHILOX_LANES counters are PHILOX_VECTORS vectors, enough to hide the latency of a product. */
enum {
    PHILOX_LANES = 16,
    PHILOX_WIDTH = sizeof(philox_vector) / sizeof(uint64_t),
    PHILOX_VECTORS = PHILOX_LANES / PHILOX_WIDTH
};

/* Word w of lane i is in the lower half of word[w][i / PHILOX_WIDTH][i % PHILOX_WIDTH]; the upper half is
 * undefined. */
struct philox_lanes {
    philox_vector word[4][PHILOX_VECTORS];
};

/* Counters in, random words out. */
static inline void philox_lanes(uint32_t key0, uint32_t key1, struct philox_lanes *lanes)
{
    philox_vector *a = lanes->word[0], *b = lanes->word[1], *c = lanes->word[2], *d = lanes->word[3];
    philox_vector add0 = (philox_vector){0} + key0, add1 = (philox_vector){0} + key1;
    for (int round = 0; round < 10; round++) {
        for (int v = 0; v < PHILOX_VECTORS; v++) {
            const philox_vector p = philox_product(a[v], 0xD2511F53u), q = philox_product(c[v], 0xCD9E8D57u);
            a[v] = q >> 32 ^ b[v] ^ add0;
            b[v] = q;
            c[v] = p >> 32 ^ d[v] ^ add1;
            d[v] = p;
        }
        add0 += 0x9E3779B9u;
        add1 += 0xBB67AE85u;
    }
}
