#include <float.h>

#include "device.cuh"
#include "kernels.h"
#include "numerics/element_exp.h"

/* ---- pieces: eight lanes are a team, which works on a piece, and a warp is a block. A lane reads its word of every
 * stripe of XXH3, two of the sixteen lanes in which squares are added. ---- */

enum { TEAMS = (int)WARP / XXH3_LANES };

/* A lane's sums. */
struct lane_sums {
    uint64_t digest;
    double squares[2];
};

__device__ static int stripes_of(int64_t bytes) { return bytes > 0 ? (int)((bytes - 1) / XXH3_STRIPE) : 0; }

/* Adds the square of a float. */
__device__ static void add_square(double *sum, uint32_t bits)
{
    const double wide = element_of_bits(bits);
    *sum += wide * wide;
}

/* Adds the last stripe and combines the lanes of a team; valid in its first. */
__device__ static struct xxh3 digest_of_lanes(const uint8_t *data, int64_t bytes, uint64_t sum, int number)
{
    const uint64_t last = bytes > XXH3_SHORT ? xxh3_word(data + bytes - XXH3_STRIPE + 8 * number) : 0;
    sum += xxh3_product(last, xxh3_secret(XXH3_SECRET_LAST + 8 * number));
    sum += __shfl_xor_sync(ALL_LANES, last, 1);
    const uint64_t odd = __shfl_xor_sync(ALL_LANES, sum, 1);
    uint64_t low = 0, high = 0;
    if (number % 2 == 0) {
        low = xxh3_fold_lanes(sum, odd, number, XXH3_SECRET_LOW);
        high = xxh3_fold_lanes(sum, odd, number, XXH3_SECRET_HIGH);
    }
    for (int other = 2; other < XXH3_LANES; other *= 2) {
        low += __shfl_xor_sync(ALL_LANES, low, other);
        high += __shfl_xor_sync(ALL_LANES, high, other);
    }
    return xxh3_finish(low, high, (uint64_t)bytes);
}

/* Adds the squares after the last full stripe, then the lanes in order; valid in the first. */
__device__ static double squares_of_lanes(const uint32_t *bits, int64_t floats, double squares[2], int number)
{
    const int64_t from = (int64_t)stripes_of(4 * floats) * (XXH3_STRIPE / 4) + 2 * number;
    for (int k = 0; k < 2; k++)
        if (from + k < floats) add_square(&squares[k], bits[from + k]);
    double total = squares[0];
    total += squares[1];
    for (int other = 1; other < XXH3_LANES; other++) {
        total += __shfl_xor_sync(ALL_LANES, squares[0], other);
        total += __shfl_xor_sync(ALL_LANES, squares[1], other);
    }
    return total;
}

/* A word of data at a multiple of 4 bytes; even: of 8. */
__device__ static uint64_t word_at(const uint32_t *half, bool even)
{
    return even ? *(const uint64_t *)half : half[0] | (uint64_t)half[1] << 32;
}

/* All teams of a warp walk as many blocks of stripes as the first piece has, since their lanes must meet. */
__global__ static void compute_pieces(const uint8_t *data, int64_t bytes, struct piece_result *result)
{
    const int number = (int)threadIdx.x % XXH3_LANES;
    const int64_t which = (int64_t)blockIdx.x * TEAMS + threadIdx.x / XXH3_LANES, from = which * PIECE_BYTES;
    const int64_t left = from < bytes ? bytes - from : 0, here = left < PIECE_BYTES ? left : PIECE_BYTES;
    const int stripes = stripes_of(here), most = stripes_of(bytes < PIECE_BYTES ? bytes : PIECE_BYTES);
    const uint32_t *halves = (const uint32_t *)(data + from) + 2 * number;
    const bool even = (uintptr_t)data % sizeof(uint64_t) == 0;
    struct lane_sums sums = {xxh3_start(number), {0, 0}};
    for (int first = 0; first < most; first += XXH3_STRIPES) {
        uint64_t plain = 0;
        for (int s = first; s < first + XXH3_STRIPES && s < stripes; s++) {
            const uint64_t word = word_at(halves + 2 * XXH3_LANES * s, even);
            plain += word;
            sums.digest += xxh3_product(word, xxh3_key(s - first, number));
            add_square(&sums.squares[0], (uint32_t)word);
            add_square(&sums.squares[1], (uint32_t)(word >> 32));
        }
        sums.digest += __shfl_xor_sync(ALL_LANES, plain, 1);
        if (first + XXH3_STRIPES <= stripes) sums.digest = xxh3_scramble(sums.digest, xxh3_key(XXH3_STRIPES, number));
    }
    const struct xxh3 digest = digest_of_lanes(data + from, here, sums.digest, number);
    const double squares = squares_of_lanes((const uint32_t *)(data + from), here / 4, sums.squares, number);
    if (number > 0 || here == 0) return;
    result[which].digest = digest;
    result[which].squares = squares;
}

void launch_pieces(cudaStream_t stream, const void *data, int64_t bytes, struct piece_result *result)
{
    const unsigned blocks = (unsigned)((pieces_of(bytes) + TEAMS - 1) / TEAMS);
    if (blocks > 0) LAUNCH(compute_pieces, blocks, WARP, stream, (const uint8_t *)data, bytes, result);
}

/* ---- gradients ---- */

/* A sum of squares is finite only where all elements are. */
__global__ static void judge(int tensor, int64_t pieces, const struct piece_result *result, struct judgement judgement)
{
    double total = 0;
    if (thread_first() > 0) return;
    for (int64_t i = 0; i < pieces; i++) total += result[i].squares;
    if (*judgement.not_finite < 0 && !(total <= DBL_MAX)) *judgement.not_finite = tensor;
    *judgement.squares += total;
}

void launch_judgement(cudaStream_t stream, int tensor, int64_t pieces, const struct piece_result *result,
                      struct judgement judgement)
{
    LAUNCH(judge, 1, WARP, stream, tensor, pieces, result, judgement);
}

/* ---- optimizers ---- */

__global__ static void update(enum update_rule rule, float *parameter, const float *gradient, float *state,
                              float *average, int64_t count, int64_t stride, const struct optimizer_numbers *numbers,
                              struct judgement judgement)
{
    struct optimizer_numbers n = *numbers;
    if (*judgement.not_finite >= 0 || !(fabsf(*judgement.loss) <= FLT_MAX)) return;
    n.scale = (float)optimizer_clip(judgement.clip, sqrt(*judgement.squares));
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        float *p = parameter + i;
        if (rule == UPDATE_SGD) sgd_element(n, p, gradient[i]);
        if (rule == UPDATE_MOMENTUM) momentum_element(n, p, gradient[i], state + i);
        if (rule == UPDATE_ADAM) adam_element(n, p, gradient[i], state + i, state + stride + i);
        if (average) average_element(n, average + i, *p);
    }
}

void launch_update(cudaStream_t stream, enum update_rule rule, float *parameter, const float *gradient, float *state,
                   float *average, int64_t count, int64_t stride, const struct optimizer_numbers *numbers,
                   struct judgement judgement)
{
    LAUNCH(update, blocks_for(count), THREADS, stream, rule, parameter, gradient, state, average, count, stride,
           numbers, judgement);
}
