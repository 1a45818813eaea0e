/* Multi-head attention, a head of a sample at a time; see framework/layers/attention.c. Products are oneDNN's sgemm,
 * which in a parallel region runs on the calling thread alone; softmax and dropout are loops.
 *
 * Contract: one thread computes a head from start to end and every sum has a fixed order, so the bits of the results
 * depend neither on threads nor on what is saved. A probability below exp(-87) of its row's largest is 0. Scratch is a
 * few T x T blocks per thread, whatever the batch. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "cpu.h"
#include "element_loops.h"
#include "numerics/element_exp.h"
#include "numerics/token_batch.h"

enum { PIECE = 4096 }; /* numbers drawn at a time */

struct attention {
    struct backend *backend;
    int64_t batch, heads, tokens, width; /* width: D */
    int64_t block;                       /* T x T */
    float scale;                         /* 1 / sqrt(D / heads) */
    double rate;
    int threads;
    size_t room; /* bytes of a block in scratch */
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const struct shape *y = &graph->value[node->output].shape;
    struct attention *a = *state = allocate(1, sizeof *a);
    *a = (struct attention){.backend = backend,
                            .batch = graph->batch,
                            .heads = node_integer(node, "heads"),
                            .tokens = y->dim[0],
                            .width = y->dim[1],
                            .rate = node_real(node, "rate"),
                            .threads = (int)backend->options.threads};
    const int64_t head = a->width / a->heads;
    expect_product(backend, a->tokens, a->tokens, head);
    a->block = a->tokens * a->tokens;
    a->scale = (float)(1 / sqrt((double)head));
    a->room = round_up((size_t)a->block * sizeof(float));
    const size_t each = a->room * (size_t)a->threads;
    const bool saves = node_chooses(node, "save", "probabilities");
    *footprint = (struct footprint){
        .saved = saves ? (size_t)(a->batch * a->heads * a->block) * sizeof(float) : 0,
        .forward_scratch = each,
        .backward_scratch = {0, each * (size_t)(1 + (a->rate > 0) + !saves)},
        .reads = {0, saves ? READS_X | READS_SAVED : READS_X},
        .implementation = saves ? "sgemm a head" : "sgemm a head, probabilities recomputed",
    };
    return ST_OK;
}

/* Where a head's rows start: q, k and v in the fused value or its gradient, y in the output or its gradient. */
struct head {
    int64_t sample, index, q, k, v, y;
};

static struct head head_at(const struct attention *a, int64_t task)
{
    const int64_t n = task / a->heads, h = task % a->heads, first = h * (a->width / a->heads);
    const int64_t q = n * a->tokens * 3 * a->width + first;
    return (struct head){n, h, q, q + a->width, q + 2 * a->width, n * a->tokens * a->width + first};
}

/* Block number i of the calling thread's scratch. */
static float *scratch_block(const struct attention *a, const struct kernel_args *args, int blocks, int i)
{
    const size_t at = ((size_t)omp_get_thread_num() * (size_t)blocks + (size_t)i) * a->room;
    return (float *)(void *)((char *)args->scratch + at);
}

/* Turns scores into probabilities over the keys whose mask is above 0; the others get 0. */
static void softmax(float *restrict x, const float *restrict mask, int64_t count, float scale)
{
    float most = -INFINITY, sum = 0;
#pragma omp simd reduction(max : most)
    for (int64_t j = 0; j < count; j++) {
        const float score = mask[j] > 0 ? x[j] : -INFINITY;
        most = score > most ? score : most;
    }
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < count; j++) {
        const float power = (x[j] - most) * scale, least = power < -87.0f ? -87.0f : power;
        const uint32_t token = mask[j] > 0 ? UINT32_MAX : 0, large = power < -87.0f ? 0 : UINT32_MAX;
        x[j] = element_of_bits(element_bits(element_exp(least, 0)) & token & large);
        sum += x[j];
    }
    const float factor = sum == 0 ? 0 : 1 / sum; /* 0: there is no token */
    for (int64_t j = 0; j < count; j++) x[j] *= factor;
}

static enum status make_probabilities(const struct attention *a, const struct kernel_args *args,
                                      const struct head *head, float *p)
{
    const int64_t stride = 3 * a->width;
    const float *x = args->x[0], *batch = args->x[1];
    const float *mask = batch + (head->sample * TOKEN_ROWS + TOKEN_MASK) * a->tokens;
    const struct matrix q = {x + head->q, stride, false}, k = {x + head->k, stride, true};
    TRY(gemm(a->tokens, a->tokens, a->width / a->heads, q, k, p, a->tokens));
    for (int64_t i = 0; i < a->tokens; i++) softmax(p + i * a->tokens, mask, a->tokens, a->scale);
    return ST_OK;
}

/* to = a head's probabilities after dropout; to may be p. */
static void drop(const struct attention *a, const struct draw *draw, const struct head *head, const float *p, float *to)
{
    const float factor = (float)(1 / (1 - a->rate));
    uint8_t keep[PIECE];
    for (int64_t first = 0; first < a->block; first += PIECE) {
        const int64_t count = a->block - first < PIECE ? a->block - first : PIECE;
        rng_keep(draw, a->rate, a->heads * a->block, head->sample, head->index * a->block + first, count, keep);
        for (int64_t i = 0; i < count; i++) to[first + i] = masked(p[first + i] * factor, keep[i]);
    }
}

static enum status forward_head(const struct attention *a, const struct kernel_args *args, int64_t task)
{
    const struct head head = head_at(a, task);
    float *dropped = scratch_block(a, args, 1, 0), *p = args->save ? (float *)args->saved + task * a->block : dropped;
    TRY(make_probabilities(a, args, &head, p));
    if (kernel_drops(args, a->rate))
        drop(a, &args->draw, &head, p, dropped);
    else
        dropped = p;
    const struct matrix kept = {dropped, a->tokens, false};
    const struct matrix v = {(const float *)args->x[0] + head.v, 3 * a->width, false};
    return gemm(a->tokens, a->width / a->heads, a->tokens, kept, v, (float *)args->y + head.y, a->width);
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct attention *a = state;
    bool failed = false;
#pragma omp parallel for schedule(static) num_threads(a->threads) reduction(|| : failed)
    for (int64_t task = 0; task < a->batch * a->heads; task++) failed = forward_head(a, args, task) != ST_OK || failed;
    clock_lap(a->backend, CLOCK_ATTENTION);
    return failed ? fail(ST_FAILED, "oneDNN: sgemm failed") : ST_OK;
}

/* slope, dP of what was dropped, becomes dS. */
static void make_slopes(const struct attention *a, const float *p, const float *dropped, float *slope)
{
    for (int64_t i = 0; i < a->tokens; i++) {
        const float *restrict pi = p + i * a->tokens, *restrict di = dropped + i * a->tokens;
        float *restrict si = slope + i * a->tokens, total = 0;
#pragma omp simd reduction(+ : total)
        for (int64_t j = 0; j < a->tokens; j++) total += di[j] * si[j];
        for (int64_t j = 0; j < a->tokens; j++) si[j] = (di[j] * si[j] - pi[j] * total) * a->scale;
    }
}

/* All three gradients of a head, from its probabilities before and after dropout. */
static enum status head_gradients(const struct attention *a, const struct kernel_args *args, const struct head *head,
                                  const float *p, const float *dropped, float *slope)
{
    const int64_t tokens = a->tokens, width = a->width / a->heads, stride = 3 * a->width;
    const float *x = args->x[0];
    float *dx = args->dx[0];
    const struct matrix q = {x + head->q, stride, false}, k = {x + head->k, stride, false};
    const struct matrix v = {x + head->v, stride, true}, dy = {(const float *)args->dy + head->y, a->width, false};
    TRY(gemm(tokens, width, tokens, (struct matrix){dropped, tokens, true}, dy, dx + head->v, stride));
    TRY(gemm(tokens, tokens, width, dy, v, slope, tokens));
    make_slopes(a, p, dropped, slope);
    TRY(gemm(tokens, width, tokens, (struct matrix){slope, tokens, false}, k, dx + head->q, stride));
    return gemm(tokens, width, tokens, (struct matrix){slope, tokens, true}, q, dx + head->k, stride);
}

/* saved NULL: the probabilities are recomputed. */
static enum status backward_head(const struct attention *a, const struct kernel_args *args, const float *saved,
                                 int64_t task)
{
    const struct head head = head_at(a, task);
    const bool drops = kernel_drops(args, a->rate);
    const int blocks = 1 + (a->rate > 0) + (saved == NULL);
    float *slope = scratch_block(a, args, blocks, 0), *dropped = scratch_block(a, args, blocks, drops);
    float *again = scratch_block(a, args, blocks, blocks - 1);
    const float *p = saved != NULL ? saved + task * a->block : again;
    if (saved == NULL) TRY(make_probabilities(a, args, &head, again));
    if (drops) drop(a, &args->draw, &head, p, dropped);
    return head_gradients(a, args, &head, p, drops ? dropped : p, slope);
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct attention *a = state;
    bool failed = false;
#pragma omp parallel for schedule(static) num_threads(a->threads) reduction(|| : failed)
    for (int64_t task = 0; task < a->batch * a->heads; task++)
        failed = backward_head(a, args, args->saved, task) != ST_OK || failed;
    clock_lap(a->backend, CLOCK_ATTENTION);
    return failed ? fail(ST_FAILED, "oneDNN: sgemm failed") : ST_OK;
}

const struct kernel cpu_attention = {true, prepare, forward, backward, free};
