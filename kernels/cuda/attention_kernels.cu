#include "device.cuh"
#include "kernels.h"
#include "numerics/element_exp.h"
#include "numerics/token_batch.h"

/* What dropout leaves of element j of a row. */
__device__ static float survivor(struct attention_shape shape, const struct element_draw *draw, int64_t row, int64_t j,
                                 float p)
{
    const int64_t rows = shape.heads * shape.tokens; /* of a sample */
    const int64_t sample = shape.first + row / rows, place = row % rows * shape.tokens + j;
    return element_keep(draw, rows * shape.tokens, sample, place) ? p * shape.factor : 0.0f;
}

/* A probability, times the sum over its row. most: the row's largest score. */
__device__ static float power_of(bool seen, float score, float most, float scale)
{
    const float power = (score - most) * scale;
    return seen && !(power < -87.0f) ? element_exp(power, 0) : 0.0f;
}

/* Whether the query sees a key. mask NULL: every key is a token. */
__device__ static bool sees(struct attention_shape shape, int64_t row, int64_t key, const float *mask)
{
    return (mask == NULL || mask[key] > 0) && (!shape.causal || key <= row % shape.tokens);
}

/* A warp a row: lanes read an element of scores before they write it. */
__global__ static void softmax(struct attention_shape shape, const float *text, const float *scores, float *p,
                               struct element_draw draw, float *dropped)
{
    const int64_t tokens = shape.tokens, rows = shape.heads * tokens;
    if (dropped != NULL) draw = element_draw_read(draw);
    for (int64_t row = warp_first(); row < shape.batch * rows; row += warp_stride()) {
        const float *mask = text ? text + (row / rows * TOKEN_ROWS + TOKEN_MASK) * tokens : NULL;
        const float *x = scores + row * tokens;
        float most = -INFINITY, sum = 0;
        for (int64_t j = lane(); j < tokens; j += WARP)
            if (sees(shape, row, j, mask) && x[j] > most) most = x[j];
        for (int step = WARP / 2; step > 0; step /= 2) {
            const float other = __shfl_xor_sync(ALL_LANES, most, step);
            most = other > most ? other : most;
        }
        for (int64_t j = lane(); j < tokens; j += WARP)
            sum += power_of(sees(shape, row, j, mask), x[j], most, shape.scale);
        sum = warp_sum(sum);
        const float factor = sum == 0 ? 0 : 1 / sum; /* 0: there is no token */
        for (int64_t j = lane(); j < tokens; j += WARP) {
            const float share = power_of(sees(shape, row, j, mask), x[j], most, shape.scale) * factor;
            if (p != NULL) p[row * tokens + j] = share;
            if (dropped != NULL) dropped[row * tokens + j] = survivor(shape, &draw, row, j, share);
        }
    }
}

__global__ static void slopes(struct attention_shape shape, const float *p, struct element_draw draw, float *dropped,
                              float *slope)
{
    const int64_t tokens = shape.tokens;
    if (dropped != NULL) draw = element_draw_read(draw);
    for (int64_t row = warp_first(); row < shape.batch * shape.heads * tokens; row += warp_stride()) {
        const float *share = p + row * tokens;
        float *out = slope + row * tokens, total = 0;
        for (int64_t j = lane(); j < tokens; j += WARP) {
            const float left = dropped != NULL ? survivor(shape, &draw, row, j, share[j]) : share[j];
            if (dropped != NULL) dropped[row * tokens + j] = left;
            out[j] *= left;
            total += out[j];
        }
        total = warp_sum(total);
        for (int64_t j = lane(); j < tokens; j += WARP) out[j] = (out[j] - share[j] * total) * shape.scale;
    }
}

void launch_attention_softmax(cudaStream_t stream, struct attention_shape shape, const float *text, const float *scores,
                              float *p, const struct element_draw *draw, float *dropped)
{
    const struct element_draw none = {};
    LAUNCH(softmax, blocks_for_rows(shape.batch * shape.heads * shape.tokens), THREADS, stream, shape, text, scores, p,
           dropped != NULL ? *draw : none, dropped);
}

void launch_attention_slope(cudaStream_t stream, struct attention_shape shape, const float *p,
                            const struct element_draw *draw, float *dropped, float *slope)
{
    const struct element_draw none = {};
    LAUNCH(slopes, blocks_for_rows(shape.batch * shape.heads * shape.tokens), THREADS, stream, shape, p,
           dropped != NULL ? *draw : none, dropped, slope);
}
