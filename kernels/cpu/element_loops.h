/* Loops over floats without a vendor call: multi-threaded, and the compiler vectorizes them.
 *
 * Contract: elements are independent, so the bits of the results depend neither on threads nor on pieces. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

/* bit ? x : 0. As a conditional, gcc 12 compiles it to wrong AVX2 code at -O3, and to a branch if x is computed. */
static inline float masked(float x, uint32_t bit)
{
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    word &= 0U - bit;
    memcpy(&x, &word, sizeof x);
    return x;
}

/* Results of more floats than this leave the second-level cache before they are read. */
enum { STREAM_LEAST = 1024 * 1024 };

/* 16 floats at a time, wherever they lie. */
enum { VECTOR = 16 };
typedef float vector __attribute__((vector_size(VECTOR * sizeof(float))));

static inline vector vector_at(const float *from)
{
    vector v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* v <= bottom ? bottom : v. */
static inline vector vector_above(vector v, vector bottom)
{
    typedef int32_t words __attribute__((vector_size(VECTOR * sizeof(int32_t))));
    const words below = v <= bottom;
    return (vector)(((words)v & ~below) | ((words)bottom & below));
}

/* past: past the caches, as stream_floats() does; to must then be a multiple of the vector's bytes. */
static inline void vector_put(float *to, vector v, bool past)
{
#if defined __AVX512F__
    if (past) {
        _mm512_stream_ps(to, (__m512)v);
        return;
    }
#elif defined __AVX__
    if (past) {
        __m256 half[2];
        memcpy(half, &v, sizeof half);
        _mm256_stream_ps(to, half[0]), _mm256_stream_ps(to + 8, half[1]);
        return;
    }
#endif
    (void)past;
    memcpy(to, &v, sizeof v);
}

/* to = from past the caches, where a plain store would first read the line that it writes. A thread calls stream_end()
 * after its last one, before others read. */
static inline void stream_floats(float *restrict to, const float *restrict from, int64_t count)
{
    int64_t i = 0;
#if defined __AVX512F__
    if ((uintptr_t)to % 64 == 0)
        for (; i + 16 <= count; i += 16) _mm512_stream_ps(to + i, _mm512_loadu_ps(from + i));
#elif defined __AVX__
    if ((uintptr_t)to % 32 == 0)
        for (; i + 8 <= count; i += 8) _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
#endif
    memcpy(to + i, from + i, (size_t)(count - i) * sizeof *to);
}

static inline void stream_end(void)
{
#ifdef __AVX__
    _mm_sfence();
#endif
}

/* Sign bits: bit k of word j of a group is its element 16 k + j. */
enum { SIGN_GROUP = 32 * VECTOR };

/* Words of the sign bits of one sample. */
size_t sign_words(int64_t elements);

typedef uint32_t sign_vector __attribute__((vector_size(sizeof(vector))));

/* The bit of a vector at that place, in each word of its group. */
static inline sign_vector sign_bit(int64_t place)
{
    return (sign_vector){0} + (UINT32_C(1) << place % SIGN_GROUP / VECTOR);
}

/* Writes the sign bits of a vector at that place in a sample, a multiple of VECTOR; a group's in ascending order. */
static inline void sign_put(uint32_t *bits, int64_t place, vector y)
{
    sign_vector word = {0};
    uint32_t *to = bits + place / SIGN_GROUP * VECTOR;
    if (place % SIGN_GROUP) memcpy(&word, to, sizeof word);
    word |= (sign_vector)(y > (vector){0}) & sign_bit(place);
    memcpy(to, &word, sizeof word);
}

/* x where the sign bits of that place are set, else 0. */
static inline vector sign_kept(const uint32_t *bits, int64_t place, vector x)
{
    sign_vector word;
    memcpy(&word, bits + place / SIGN_GROUP * VECTOR, sizeof word);
    return (vector)((sign_vector)x & (sign_vector)((word & sign_bit(place)) != (sign_vector){0}));
}

/* Sets a bit for each y > 0 of samples samples; bits has samples * sign_words(elements) words. */
void sign_pack(const float *y, int64_t samples, int64_t elements, uint32_t *bits);

/* dx = dy where the bit is set, or where y > 0, else 0; dx may be dy. */
void sign_mask(float *dx, const float *dy, const uint32_t *bits, int64_t samples, int64_t elements);
void relu_mask(float *dx, const float *dy, const float *y, int64_t count);

/* out = max(x, 0), NaN for a NaN; out = a + b. out may be an input. */
void relu_apply(float *out, const float *x, int64_t count);
void sum_into(float *out, const float *a, const float *b, int64_t count);

void copy_bytes(void *to, const void *from, size_t bytes);
/* Copies the first count floats of rows rows, which are so many floats apart. */
void copy_rows(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t count, int64_t rows);
void fill_words(uint32_t *to, uint32_t pattern, size_t words);
/* Writes to each page, from all threads. */
void touch_pages(void *block, size_t bytes);
