#include "embedding_kernels.h"

#include "device.cuh"
#include "float_blocks.h"
#include "numerics/token_batch.h"

/* The number that token i of the batch has in a line of text. */
__device__ static int64_t number_at(const float *text, struct divisor tokens, int line, int64_t rows, int64_t i)
{
    const struct divided place = divide(i, tokens);
    return token_row(text[(place.quotient * TOKEN_ROWS + line) * tokens.d + place.rest], rows);
}

__global__ static void look_up(struct embedding_shape shape, struct divisor quads, struct divisor tokens,
                               const float *text, const float *word, const float *position, const float *segment,
                               float *y)
{
    const int64_t count = shape.batch * shape.tokens * quads.d, width = shape.width;
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const struct divided place = divide(i, quads), token = divide(place.quotient, tokens);
        const int64_t at = place.rest * QUAD;
        const int64_t id = number_at(text, tokens, TOKEN_IDS, shape.words, place.quotient);
        const int64_t part = number_at(text, tokens, TOKEN_SEGMENTS, shape.segments, place.quotient);
        struct quad sum = quad_load(word + id * width, at, width);
        const struct quad second = quad_load(position + token.rest * width, at, width);
        const struct quad third = quad_load(segment + part * width, at, width);
        for (int j = 0; j < QUAD; j++) sum.v[j] = sum.v[j] + second.v[j] + third.v[j];
        quad_store(y + place.quotient * width, at, width, sum);
    }
}

void launch_embedding(cudaStream_t stream, struct embedding_shape shape, const float *text, const float *word,
                      const float *position, const float *segment, float *y)
{
    const int64_t quads = (shape.width + QUAD - 1) / QUAD;
    LAUNCH(look_up, blocks_for(shape.batch * shape.tokens * quads), THREADS, stream, shape, divisor_of(quads),
           divisor_of(shape.tokens), text, word, position, segment, y);
}

/* The batch's tokens by number, and in ascending order among those of one number: a token of each place, and the
 * places [from, to) of its number. */
struct sorted {
    int32_t *number; /* by token, unsorted */
    int32_t *token, *from, *to;
    int32_t count;
    int64_t runs;
    float *head, *tail; /* by run: its sum for the id that began before it; for the id that continues after it */
};

static size_t sorted_layout(struct embedding_shape shape, char *scratch, struct sorted *sorted)
{
    const int64_t count = shape.batch * shape.tokens, runs = (count + EMBEDDING_RUN - 1) / EMBEDDING_RUN;
    const size_t list = ((size_t)count * sizeof(int32_t) + 255) / 256 * 256;
    const size_t sums = (size_t)(runs * shape.width) * sizeof(float);
    *sorted = {.number = (int32_t *)scratch,
               .token = (int32_t *)(scratch + list),
               .from = (int32_t *)(scratch + 2 * list),
               .to = (int32_t *)(scratch + 3 * list),
               .count = (int32_t)count,
               .runs = runs,
               .head = (float *)(scratch + 4 * list),
               .tail = (float *)(scratch + 4 * list + sums)};
    return 4 * list + 2 * sums;
}

size_t embedding_scratch(struct embedding_shape shape)
{
    struct sorted sorted;
    return sorted_layout(shape, NULL, &sorted);
}

__global__ static void number_tokens(struct sorted s, const float *text, struct divisor tokens, int line, int64_t rows)
{
    for (int64_t i = thread_first(); i < s.count; i += thread_stride())
        s.number[i] = (int32_t)number_at(text, tokens, line, rows, i);
}

/* A warp finds a token's place: it counts the tokens that come before it, in any order. */
__global__ static void sort_tokens(struct sorted s)
{
    const int lane = threadIdx.x % WARP;
    for (int64_t i = row_first<WARP>(); i < s.count; i += row_stride<WARP>()) {
        const int32_t mine = s.number[i];
        int32_t less = 0, before = 0, same = 0;
#pragma unroll 8
        for (int32_t j = lane; j < s.count; j += WARP) {
            const int32_t other = s.number[j];
            less += other < mine;
            same += other == mine;
            before += other == mine && j < i;
        }
        less = warp_sum(less);
        same = warp_sum(same);
        before = warp_sum(before);
        if (lane > 0) continue;
        s.token[less + before] = (int32_t)i;
        s.from[less + before] = less;
        s.to[less + before] = less + same;
    }
}

__device__ static void put_row(float *gradient, int64_t at, int64_t width, struct quad sum, bool add)
{
    if (add) {
        const struct quad old = quad_load(gradient, at, width);
        for (int j = 0; j < QUAD; j++) sum.v[j] += old.v[j];
    }
    quad_store(gradient, at, width, sum);
}

/* Sums four columns of a run's tokens, id by id; an id that begins and ends within the run is complete. */
__global__ static void sum_runs(struct sorted s, struct divisor quads, const float *dy, int64_t width, bool add,
                                float *gradient)
{
    const int64_t tasks = s.runs * quads.d;
    for (int64_t i = thread_first(); i < tasks; i += thread_stride()) {
        const struct divided task = divide(i, quads);
        const int64_t at = task.rest * QUAD, first = task.quotient * EMBEDDING_RUN;
        const int64_t last = first + EMBEDDING_RUN < s.count ? first + EMBEDDING_RUN : s.count;
        struct quad sum = {};
#pragma unroll 4
        for (int64_t p = first; p < last; p++) {
            const struct quad one = quad_load(dy + s.token[p] * width, at, width);
            for (int j = 0; j < QUAD; j++) sum.v[j] += one.v[j];
            if (p + 1 < last && p + 1 < s.to[p]) continue;
            if (s.from[p] < first)
                quad_store(s.head + task.quotient * width, at, width, sum);
            else if (s.to[p] > last)
                quad_store(s.tail + task.quotient * width, at, width, sum);
            else
                put_row(gradient + s.number[s.token[p]] * width, at, width, sum, add);
            sum = {};
        }
    }
}

/* For an id that continues after the run in which it begins: a block sums WARP quads of columns, each warp every
 * WARPS-th of the later runs; then the first run and the warps are added in order. */
__global__ static void join_runs(struct sorted s, struct divisor panels, int64_t width, bool add, float *gradient)
{
    __shared__ struct quad sums[WARPS][WARP];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int64_t i = blockIdx.x; i < s.runs * panels.d; i += gridDim.x) {
        const struct divided task = divide(i, panels);
        const int64_t run = task.quotient, last = (run + 1) * EMBEDDING_RUN, at = (task.rest * WARP + lane) * QUAD;
        if (last >= s.count || s.to[last - 1] <= last || s.from[last - 1] < run * EMBEDDING_RUN) continue;
        const int64_t end = (s.to[last - 1] + EMBEDDING_RUN - 1) / EMBEDDING_RUN;
        struct quad sum = {};
#pragma unroll 4
        for (int64_t r = run + 1 + warp; r < end; r += WARPS) {
            const struct quad one = quad_load(s.head + r * width, at, width);
            for (int j = 0; j < QUAD; j++) sum.v[j] += one.v[j];
        }
        sums[warp][lane] = sum;
        __syncthreads();
        if (warp == 0) {
            sum = quad_load(s.tail + run * width, at, width);
            for (int w = 0; w < WARPS; w++)
                for (int j = 0; j < QUAD; j++) sum.v[j] += sums[w][lane].v[j];
            put_row(gradient + s.number[s.token[last - 1]] * width, at, width, sum, add);
        }
        __syncthreads();
    }
}

void launch_embedding_gradient(cudaStream_t stream, struct embedding_shape shape, const float *text, int line,
                               int64_t rows, const float *dy, bool add, void *scratch, float *gradient)
{
    const int64_t width = shape.width, quads = (width + QUAD - 1) / QUAD, panels = (quads + WARP - 1) / WARP;
    struct sorted sorted;
    sorted_layout(shape, (char *)scratch, &sorted);
    if (!add) launch_fill(stream, 0, rows * width, gradient);
    LAUNCH(number_tokens, blocks_for(sorted.count), THREADS, stream, sorted, text, divisor_of(shape.tokens), line,
           rows);
    LAUNCH(sort_tokens, blocks_for_rows(sorted.count, WARP), THREADS, stream, sorted);
    LAUNCH(sum_runs, blocks_for(sorted.runs * quads), THREADS, stream, sorted, divisor_of(quads), dy, width, add,
           gradient);
    LAUNCH(join_runs, blocks_for(sorted.runs * panels * THREADS), THREADS, stream, sorted, divisor_of(panels), width,
           add, gradient);
}
