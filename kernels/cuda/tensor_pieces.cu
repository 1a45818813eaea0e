#include <float.h>

#include "device.cuh"
#include "kernels.h"
#include "numerics/element_exp.h"

/* ---- digests and squares ----
 *
 * Eight lanes are a team, four teams a warp, and a warp a block. A team walks through its piece block after block of
 * XXH3's; a lane reads its word of every stripe, two of the sixteen lanes in which squares are added. The next
 * block is loaded before the current one is processed. */

enum { TEAMS = (int)WARP / XXH3_LANES, STRIPES = XXH3_STRIPES };

static __device__ struct tensor_piece piece_at(const struct tensor_pieces &s, int64_t i)
{
    if (s.table) return s.table[i];
    const int64_t from = i * PIECE_BYTES, left = s.whole.bytes - from;
    const struct tensor_piece piece = {(const char *)s.whole.data + from, left < PIECE_BYTES ? left : PIECE_BYTES};
    return piece;
}

/* Loads a lane's next words; left: how many there are. */
static __device__ void ask(uint64_t word[STRIPES], const uint64_t *at, int left)
{
#pragma unroll
    for (int s = 0; s < STRIPES; s++) word[s] = s < left ? at[s * XXH3_LANES] : 0;
}

/* A lane's sums. */
struct lane {
    uint64_t sum;
    double squares[2];
};

static __device__ double square(uint32_t bits)
{
    const double wide = element_of_bits(bits);
    return wide * wide;
}

/* Adds the words of a block; left: how many there are. Missing ones are 0, which only the products must leave out. */
template <bool SQUARES>
static __device__ void take(struct lane *lane, const uint64_t word[STRIPES], const uint64_t key[STRIPES + 1], int left)
{
    uint64_t whole = 0; /* first, since the loads ahead cannot be moved past the exchange */
#pragma unroll
    for (int s = 0; s < STRIPES; s++) whole += word[s];
    lane->sum += __shfl_xor_sync(ALL_LANES, whole, 1);
#pragma unroll
    for (int s = 0; s < STRIPES; s++) {
        lane->sum += s < left ? xxh3_product(word[s], key[s]) : 0;
        if (SQUARES) {
            lane->squares[0] += square((uint32_t)word[s]);
            lane->squares[1] += square((uint32_t)(word[s] >> 32));
        }
    }
    if (left >= STRIPES) lane->sum = xxh3_scramble(lane->sum, key[STRIPES]);
}

/* Adds the last stripe and combines all lanes; valid in the first lane. */
static __device__ struct xxh3 digest_lanes(struct tensor_piece piece, uint64_t sum, int number)
{
    const bool is_long = piece.bytes > XXH3_SHORT;
    const uint64_t last = is_long ? xxh3_word((const uint8_t *)piece.data + piece.bytes - XXH3_STRIPE + 8 * number) : 0;
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
    return xxh3_finish(low, high, (uint64_t)piece.bytes);
}

/* Adds the squares after the last full stripe, then the lanes in order; valid in the first lane. */
static __device__ double sum_lanes(struct tensor_piece piece, int stripes, struct lane *lane, int number)
{
    const int64_t from = (int64_t)stripes * XXH3_STRIPE / 4, floats = piece.bytes / 4;
    const uint32_t *bits = (const uint32_t *)piece.data;
    for (int k = 0; k < 2; k++) {
        const int64_t i = from + 2 * number + k;
        if (i < floats) lane->squares[k] += square(bits[i]);
    }
    double total = lane->squares[0];
    total += lane->squares[1];
    for (int other = 1; other < XXH3_LANES; other++) {
        total += __shfl_xor_sync(ALL_LANES, lane->squares[0], other);
        total += __shfl_xor_sync(ALL_LANES, lane->squares[1], other);
    }
    return total;
}

template <bool SQUARES>
static __global__ void __launch_bounds__(WARP)
    digest_pieces_kernel(struct tensor_pieces pieces, int canonical, struct xxh3 *digest, double *squares)
{
    const int number = (int)threadIdx.x % XXH3_LANES;
    const int64_t which = (int64_t)blockIdx.x * TEAMS + threadIdx.x / XXH3_LANES;
    struct tensor_piece piece = {nullptr, 0};
    if (which < pieces.count) piece = piece_at(pieces, which);
    const int stripes = piece.bytes > 0 ? (int)((piece.bytes - 1) / XXH3_STRIPE) : 0;
    int most = stripes; /* of the warp's teams: all its lanes must meet */
    for (int other = XXH3_LANES; other < WARP; other *= 2) {
        const int there = __shfl_xor_sync(ALL_LANES, most, other);
        most = there > most ? there : most;
    }

    uint64_t key[STRIPES + 1], word[STRIPES], next[STRIPES];
    for (int s = 0; s <= STRIPES; s++) key[s] = xxh3_key(s, number);
    struct lane lane = {xxh3_start(number), {0, 0}};
    const uint64_t *at = (const uint64_t *)piece.data + number;
    ask(next, at, stripes);
    for (int done = 0; done < most; done += STRIPES) {
        const int left = stripes - done;
        for (int s = 0; s < STRIPES; s++) word[s] = next[s];
        at += XXH3_STRIPES * XXH3_LANES;
        ask(next, at, left - STRIPES);
        take<SQUARES>(&lane, word, key, left);
    }

    struct xxh3 hash = digest_lanes(piece, lane.sum, number);
    const double sum = SQUARES ? sum_lanes(piece, stripes, &lane, number) : 0;
    if (number > 0 || which >= pieces.count) return;
    if (piece.bytes <= XXH3_SHORT) hash = xxh3_short((const uint8_t *)piece.data, (uint32_t)piece.bytes);
    digest[which] = canonical ? xxh3_canonical(hash) : hash;
    if (SQUARES) squares[which] = sum;
}

void launch_digests(cudaStream_t stream, struct tensor_pieces pieces, int canonical, struct xxh3 *digest,
                    double *squares)
{
    const unsigned blocks = (unsigned)((pieces.count + TEAMS - 1) / TEAMS);
    if (blocks == 0) return;
    if (squares)
        LAUNCH(digest_pieces_kernel<true>, blocks, WARP, stream, pieces, canonical, digest, squares);
    else
        LAUNCH(digest_pieces_kernel<false>, blocks, WARP, stream, pieces, canonical, digest, squares);
}

/* ---- sums ---- */

enum { AT_ONCE = 4 * THREADS };

/* All threads load what one thread adds. */
static __device__ void fetch(double *shared, const double *from, int64_t count)
{
    __syncthreads();
    for (int i = (int)threadIdx.x; i < AT_ONCE && i < count; i += THREADS) shared[i] = from[i];
    __syncthreads();
}

static __global__ void __launch_bounds__(THREADS) add_pieces(const int64_t *first, const double *squares, double *sum)
{
    __shared__ double shared[AT_ONCE];
    const int64_t end = first[blockIdx.x + 1];
    double total = 0;
    for (int64_t from = first[blockIdx.x]; from < end; from += AT_ONCE) {
        fetch(shared, squares + from, end - from);
        if (threadIdx.x > 0) continue;
        for (int i = 0; i < AT_ONCE && i < end - from; i++) total += shared[i];
    }
    if (threadIdx.x == 0) sum[blockIdx.x] = total;
}

void launch_squares(cudaStream_t stream, int count, const int64_t *first, const double *squares, double *sum)
{
    if (count > 0) LAUNCH(add_pieces, (unsigned)count, THREADS, stream, first, squares, sum);
}

/* A sum of squares is finite only where all elements are. */
static __global__ void __launch_bounds__(THREADS) judge(int count, const double *sum, struct judgement j)
{
    __shared__ double shared[AT_ONCE];
    double total = 0;
    int last = -1;
    for (int end = count; end > 0; end -= AT_ONCE) {
        const int from = end > AT_ONCE ? end - AT_ONCE : 0;
        fetch(shared, sum + from, end - from);
        if (threadIdx.x > 0) continue;
        for (int i = end - 1; i >= from; i--) {
            if (last < 0 && !(shared[i - from] <= DBL_MAX)) last = i;
            total += shared[i - from];
        }
    }
    if (threadIdx.x > 0) return;
    *j.squares = total;
    *j.not_finite = last;
    j.verdict->scale = (float)optimizer_clip(j.clip, sqrt(total));
    j.verdict->go = last < 0 && *j.loss >= -FLT_MAX && *j.loss <= FLT_MAX;
}

void launch_judgement(cudaStream_t stream, int count, const double *sum, struct judgement judgement)
{
    LAUNCH(judge, 1, THREADS, stream, count, sum, judgement);
}

/* ---- optimizers ---- */

enum { PARTS = 4, PART = PIECE_FLOATS / PARTS }; /* blocks a piece, and their elements: small nets have few pieces */

template <enum update_rule RULE>
static __device__ void update_element(struct optimizer_numbers n, float *p, float g, float *first, float *second)
{
    if (RULE == UPDATE_SGD) sgd_element(n, p, g);
    if (RULE == UPDATE_MOMENTUM) momentum_element(n, p, g, first);
    if (RULE == UPDATE_ADAM) adam_element(n, p, g, first, second);
}

template <enum update_rule RULE>
static __global__ void __launch_bounds__(THREADS)
    update_pieces(const struct update_piece *pieces, const struct optimizer_numbers *numbers,
                  const struct verdict *verdict)
{
    if (!verdict->go) return;
    const struct update_piece piece = pieces[blockIdx.x / PARTS];
    struct optimizer_numbers n = numbers[piece.numbers];
    n.scale = verdict->scale;
    const int from = (int)(blockIdx.x % PARTS) * PART;
    const int end = from + PART < piece.elements ? from + PART : piece.elements;
    for (int i = from + (int)threadIdx.x; i < end; i += THREADS)
        update_element<RULE>(n, piece.parameter + i, piece.gradient[i], piece.state + i, piece.state + piece.copy + i);
}

void launch_update(cudaStream_t stream, enum update_rule rule, int64_t count, const struct update_piece *piece,
                   const struct optimizer_numbers *numbers, const struct verdict *verdict)
{
    static void (*const kernel[])(const struct update_piece *, const struct optimizer_numbers *,
                                  const struct verdict *) = {update_pieces<UPDATE_SGD>, update_pieces<UPDATE_MOMENTUM>,
                                                             update_pieces<UPDATE_ADAM>};
    if (count > 0) LAUNCH(kernel[rule], (unsigned)(count * PARTS), THREADS, stream, piece, numbers, verdict);
}
