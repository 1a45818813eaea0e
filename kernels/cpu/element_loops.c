/* Work is split into pieces of fixed size, which fit the second-level cache. */
#include "element_loops.h"

#include <string.h>

#include "numerics/shape.h"

enum {
    PIECE = 32 * 1024, /* floats a thread takes at a time */
    WORDS = VECTOR,    /* packed together */
    GROUP = SIGN_GROUP,
    PAGE = 4096,
};

static inline int64_t pieces_of(int64_t count) { return (count + PIECE - 1) / PIECE; }

size_t sign_words(int64_t elements) { return (size_t)((elements + GROUP - 1) / GROUP) * WORDS; }

/* The bits of count <= GROUP elements. */
static inline void pack_group(const float *y, int64_t count, uint32_t *restrict bits)
{
    uint32_t word[WORDS] = {0};
    int64_t rows = count / WORDS;
    for (int64_t k = 0; k < rows; k++)
        for (int j = 0; j < WORDS; j++) word[j] |= y[k * WORDS + j] > 0.0f ? UINT32_C(1) << k : 0;
    for (int64_t i = rows * WORDS; i < count; i++) word[i % WORDS] |= (y[i] > 0.0f ? UINT32_C(1) : 0) << rows;
    memcpy(bits, word, sizeof word);
}

static inline void mask_group(float *dx, const float *dy, int64_t count, const uint32_t *restrict bits)
{
    int64_t rows = count / WORDS;
    for (int64_t k = 0; k < rows; k++)
        for (int j = 0; j < WORDS; j++) dx[k * WORDS + j] = masked(dy[k * WORDS + j], bits[j] >> k & 1);
    for (int64_t i = rows * WORDS; i < count; i++) dx[i] = masked(dy[i], bits[i % WORDS] >> rows & 1);
}

void sign_pack(const float *y, int64_t samples, int64_t elements, uint32_t *bits)
{
    const int64_t words = (int64_t)sign_words(elements), pieces = pieces_of(elements);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < samples; n++)
        for (int64_t p = 0; p < pieces; p++)
            for (int64_t i = p * PIECE; i < lesser((p + 1) * PIECE, elements); i += GROUP)
                pack_group(y + n * elements + i, lesser(GROUP, elements - i), bits + n * words + i / GROUP * WORDS);
}

void sign_mask(float *dx, const float *dy, const uint32_t *bits, int64_t samples, int64_t elements)
{
    const int64_t words = (int64_t)sign_words(elements), pieces = pieces_of(elements);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < samples; n++)
        for (int64_t p = 0; p < pieces; p++)
            for (int64_t i = p * PIECE; i < lesser((p + 1) * PIECE, elements); i += GROUP)
                mask_group(dx + n * elements + i, dy + n * elements + i, lesser(GROUP, elements - i),
                           bits + n * words + i / GROUP * WORDS);
}

void relu_mask(float *dx, const float *dy, const float *y, int64_t count)
{
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < count; i++) dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

void relu_apply(float *out, const float *x, int64_t count)
{
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < count; i++) out[i] = x[i] <= 0.0f ? 0.0f : x[i];
}

void sum_into(float *out, const float *a, const float *b, int64_t count)
{
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < count; i++) out[i] = a[i] + b[i];
}

void copy_bytes(void *to, const void *from, size_t bytes)
{
    const int64_t piece = PIECE * sizeof(float), count = (int64_t)bytes;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i += piece)
        memcpy((char *)to + i, (const char *)from + i, (size_t)lesser(piece, count - i));
}

void copy_rows(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t count, int64_t rows)
{
    const int64_t pieces = pieces_of(count);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t r = 0; r < rows; r++)
        for (int64_t p = 0; p < pieces; p++)
            memcpy(to + r * to_row + p * PIECE, from + r * from_row + p * PIECE,
                   (size_t)lesser(PIECE, count - p * PIECE) * sizeof *to);
}

void fill_words(uint32_t *to, uint32_t pattern, size_t words)
{
#pragma omp parallel for simd schedule(static) if (words > PIECE)
    for (size_t i = 0; i < words; i++) to[i] = pattern;
}

void touch_pages(void *block, size_t bytes)
{
    volatile char *page = block;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < bytes; i += PAGE) page[i] = 0;
}
