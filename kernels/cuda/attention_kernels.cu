#include "attention_kernels.h"

#include "device.cuh"
#include "numerics/element_exp.h"
#include "numerics/token_batch.h"

/* What all rows share. */
struct rows {
    int64_t first;         /* sample */
    int64_t tokens, count; /* of rows: batch * heads * tokens */
    struct divisor each;   /* rows of a sample */
    float scale, factor;
};

static struct rows rows_of(struct attention_shape shape)
{
    const int64_t each = shape.heads * shape.tokens;
    return {shape.first, shape.tokens, shape.batch * each, divisor_of(each), shape.scale, shape.factor};
}

/* A thread's bits of its quads of a row: bit 4 q + j is element j of its quad q. */
__device__ static unsigned bits_of(uint64_t bits, int q) { return (unsigned)(bits >> QUAD * q) & 15u; }

/* Those that dropout keeps; place: the row's sample, and its place in that. */
template <int LANES, int QUADS>
__device__ static uint64_t kept(const struct element_draw *draw, const struct rows *rows, struct divided place)
{
    const int64_t elements = rows->each.d * rows->tokens, first = place.rest * rows->tokens;
    const int64_t sample = rows->first + place.quotient;
    uint64_t bits = 0;
#pragma unroll 1 /* one generator is code enough */
    for (int q = 0; q < QUADS; q++) {
        const int64_t j = (q * LANES + threadIdx.x % LANES) * QUAD;
        unsigned four = 0;
        if (rows->tokens % QUAD == 0) {
            if (j < rows->tokens) four = element_keep_quad(draw, elements, sample, first + j);
        } else {
#pragma unroll 1
            for (int i = 0; i < QUAD; i++)
                if (j + i < rows->tokens) four |= element_keep(draw, elements, sample, first + j + i) << i;
        }
        bits |= (uint64_t)four << QUAD * q;
    }
    return bits;
}

__device__ static struct quad drop(struct quad p, unsigned bits, float factor)
{
    for (int j = 0; j < QUAD; j++) p.v[j] = bits >> j & 1u ? p.v[j] * factor : 0.0f;
    return p;
}

/* A thread's quads of a row of scores and, as bits, which of them are tokens'; the result is the largest of those. */
template <int LANES, int QUADS>
__device__ static float load_scores(const float *scores, const float *mask, int64_t tokens, struct quad *x,
                                    uint64_t *bits)
{
    float most = -INFINITY;
    *bits = 0;
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        const int64_t j = (q * LANES + threadIdx.x % LANES) * QUAD;
        const struct quad m = quad_load(mask, j, tokens);
        x[q] = quad_load(scores, j, tokens);
        for (int i = 0; i < QUAD; i++) {
            const bool token = m.v[i] > 0;
            *bits |= (uint64_t)token << (QUAD * q + i);
            if (token && x[q].v[i] > most) most = x[q].v[i];
        }
    }
    return most;
}

/* Scores become unscaled probabilities; the result is this thread's share of their sum. */
template <int QUADS> __device__ static float exponentials(struct quad *x, uint64_t tokens, float most, float scale)
{
    float sum = 0;
#pragma unroll
    for (int q = 0; q < QUADS; q++)
        for (int j = 0; j < QUAD; j++) {
            const float power = (x[q].v[j] - most) * scale;
            const bool counts = bits_of(tokens, q) >> j & 1u && !(power < -87.0f);
            x[q].v[j] = counts ? element_exp(power, 0) : 0.0f;
            sum += x[q].v[j];
        }
    return sum;
}

template <int LANES, int QUADS>
__global__ static void softmax(struct rows rows, const float *text, const float *scores, float *p,
                               struct element_draw draw, float *dropped)
{
    __shared__ float room[WARPS];
    const int64_t tokens = rows.tokens;
    if (dropped != NULL) draw = element_draw_read(draw);
    for (int64_t row = row_first<LANES>(); row < rows.count; row += row_stride<LANES>()) {
        const struct divided place = divide(row, rows.each);
        const float *mask = text + (place.quotient * TOKEN_ROWS + TOKEN_MASK) * tokens;
        struct quad x[QUADS];
        uint64_t bits;
        float most = load_scores<LANES, QUADS>(scores + row * tokens, mask, tokens, x, &bits);
        most = row_most<LANES>(most, room);
        const float sum = row_sum<LANES>(exponentials<QUADS>(x, bits, most, rows.scale), room);
        const float factor = sum == 0 ? 0 : 1 / sum; /* 0: there is no token */
        if (dropped != NULL) bits = kept<LANES, QUADS>(&draw, &rows, place);
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            const int64_t j = (q * LANES + threadIdx.x % LANES) * QUAD;
            for (int i = 0; i < QUAD; i++) x[q].v[i] *= factor;
            if (p != NULL) quad_store(p + row * tokens, j, tokens, x[q]);
            if (dropped != NULL)
                quad_store(dropped + row * tokens, j, tokens, drop(x[q], bits_of(bits, q), rows.factor));
        }
    }
}

template <int LANES, int QUADS>
__global__ static void slopes(struct rows rows, const float *p, bool drops, struct element_draw draw, float *dropped,
                              float *slope)
{
    __shared__ float room[WARPS];
    const int64_t tokens = rows.tokens;
    if (drops) draw = element_draw_read(draw);
    for (int64_t row = row_first<LANES>(); row < rows.count; row += row_stride<LANES>()) {
        const uint64_t bits = drops ? kept<LANES, QUADS>(&draw, &rows, divide(row, rows.each)) : 0;
        struct quad x[QUADS], product[QUADS];
        float total = 0;
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            const int64_t j = (q * LANES + threadIdx.x % LANES) * QUAD;
            x[q] = quad_load(p + row * tokens, j, tokens);
            product[q] = quad_load(slope + row * tokens, j, tokens);
        }
        /* Apart, since a load cannot be moved before a store that might write there. */
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            const int64_t j = (q * LANES + threadIdx.x % LANES) * QUAD;
            const struct quad left = drops ? drop(x[q], bits_of(bits, q), rows.factor) : x[q];
            if (dropped != NULL) quad_store(dropped + row * tokens, j, tokens, left);
            for (int i = 0; i < QUAD; i++) {
                product[q].v[i] *= left.v[i];
                total += product[q].v[i];
            }
        }
        total = row_sum<LANES>(total, room);
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            const int64_t j = (q * LANES + threadIdx.x % LANES) * QUAD;
            for (int i = 0; i < QUAD; i++) product[q].v[i] = (product[q].v[i] - x[q].v[i] * total) * rows.scale;
            quad_store(slope + row * tokens, j, tokens, product[q]);
        }
    }
}

void launch_attention_softmax(cudaStream_t stream, struct attention_shape shape, const float *text, const float *scores,
                              float *p, const struct element_draw *draw, float *dropped)
{
    const struct rows rows = rows_of(shape);
    const struct element_draw none = {};
    LAUNCH_BY_WIDTH(softmax, blocks_for_rows, rows.count, rows.tokens, stream, rows, text, scores, p,
                    dropped != NULL ? *draw : none, dropped);
}

void launch_attention_slope(cudaStream_t stream, struct attention_shape shape, const float *p,
                            const struct element_draw *draw, float *dropped, float *slope)
{
    const struct rows rows = rows_of(shape);
    const struct element_draw none = {};
    LAUNCH_BY_WIDTH(slopes, blocks_for_rows, rows.count, rows.tokens, stream, rows, p, draw != NULL,
                    draw != NULL ? *draw : none, dropped, slope);
}
