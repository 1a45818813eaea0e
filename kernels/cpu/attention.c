/* Multi-head attention, a head of a sample at a time; see framework/layers/attention.c. Products are oneDNN's sgemm,
 * which in a parallel region runs on the calling thread alone; softmax and dropout are loops. Causal attention takes
 * CAUSAL_ROWS queries at a time with the keys up to the last of them: half of the products, and scratch that grows with
 * T alone. Then gradients of keys and values are sums over those blocks in ascending order.
 *
 * Contract: one thread computes a head from start to end and every sum has a fixed order, so the bits of the results
 * depend neither on threads nor on what is saved. A probability below exp(-87) of its row's largest is 0. Scratch is a
 * few blocks of T x T, causal of CAUSAL_ROWS x T, per thread, whatever the batch. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "element_loops.h"
#include "numerics/element_exp.h"
#include "numerics/token_batch.h"

enum { PIECE = 4096, CAUSAL_ROWS = 64 }; /* PIECE: numbers drawn at a time */

struct attention {
    struct backend *backend;
    int64_t batch, heads, tokens, width; /* width: D */
    int64_t rows;                        /* queries at a time */
    bool causal;
    float scale; /* 1 / sqrt(D / heads) */
    double rate;
    int threads;
    size_t room, each; /* bytes of a block of rows x T in scratch; of a thread in the scratch of a backward */
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
    a->causal = node_integer(node, "causal");
    a->rows = a->causal && a->tokens > CAUSAL_ROWS ? CAUSAL_ROWS : a->tokens;
    a->scale = (float)(1 / sqrt((double)head));
    a->room = round_up((size_t)(a->rows * a->tokens) * sizeof(float));
    const bool saves = node_chooses(node, "save", "probabilities"), adds = a->rows < a->tokens;
    const size_t gradient = adds ? round_up((size_t)(a->tokens * head) * sizeof(float)) : 0;
    a->each = a->room * (size_t)(1 + (a->rate > 0) + !saves) + gradient;
    *footprint = (struct footprint){
        .saved = saves ? (size_t)(a->batch * a->heads * a->tokens * a->tokens) * sizeof(float) : 0,
        .forward_scratch = a->room * (size_t)a->threads,
        .backward_scratch = {0, a->each * (size_t)a->threads},
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

/* Some queries of a head, and the keys from the first on that any of them sees. */
struct block {
    struct head head;
    int64_t first, rows, keys;
    float *p, *dropped, *slope; /* rows x T; dropped: p where nothing is dropped */
    float *sum;                 /* T x a head's width: what is added to a gradient */
};

static struct block block_at(const struct attention *a, const struct head *head, int64_t first)
{
    const int64_t left = a->tokens - first, rows = left < a->rows ? left : a->rows;
    return (struct block){.head = *head, .first = first, .rows = rows, .keys = a->causal ? first + rows : a->tokens};
}

/* The keys that a query sees, as far as they are tokens. */
static int64_t keys_of(const struct attention *a, int64_t query) { return a->causal ? query + 1 : a->tokens; }

static float *scratch_at(const struct kernel_args *args, size_t each)
{
    return (float *)(void *)((char *)args->scratch + (size_t)omp_get_thread_num() * each);
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

static enum status make_probabilities(const struct attention *a, const struct kernel_args *args, const struct block *b)
{
    const int64_t stride = 3 * a->width;
    const float *x = args->x[0], *batch = args->x[1];
    const float *mask = batch + (b->head.sample * TOKEN_ROWS + TOKEN_MASK) * a->tokens;
    const struct matrix q = {x + b->head.q + b->first * stride, stride, false}, k = {x + b->head.k, stride, true};
    TRY(gemm(b->rows, b->keys, a->width / a->heads, q, k, b->p, a->tokens));
    for (int64_t i = 0; i < b->rows; i++) {
        const int64_t seen = keys_of(a, b->first + i);
        softmax(b->p + i * a->tokens, mask, seen, a->scale);
        memset(b->p + i * a->tokens + seen, 0, (size_t)(a->tokens - seen) * sizeof *b->p);
    }
    return ST_OK;
}

/* dropped = a block's probabilities after dropout; dropped may be p. */
static void drop(const struct attention *a, const struct draw *draw, const struct block *b)
{
    const int64_t square = a->tokens * a->tokens, from = b->head.index * square + b->first * a->tokens;
    const int64_t all = b->rows * a->tokens;
    const float factor = (float)(1 / (1 - a->rate));
    uint8_t keep[PIECE];
    for (int64_t first = 0; first < all; first += PIECE) {
        const int64_t count = all - first < PIECE ? all - first : PIECE;
        rng_keep(draw, a->rate, a->heads * square, b->head.sample, from + first, count, keep);
        for (int64_t i = 0; i < count; i++) b->dropped[first + i] = masked(b->p[first + i] * factor, keep[i]);
    }
}

/* A head's saved probabilities from a query on; NULL where saved is. */
static float *saved_at(const struct attention *a, void *saved, int64_t task, int64_t query)
{
    return saved != NULL ? (float *)saved + (task * a->tokens + query) * a->tokens : NULL;
}

static enum status forward_block(const struct attention *a, const struct kernel_args *args, int64_t task,
                                 struct block *b)
{
    const int64_t stride = 3 * a->width;
    float *scratch = scratch_at(args, a->room);
    b->p = args->save ? saved_at(a, args->saved, task, b->first) : scratch;
    b->dropped = kernel_drops(args, a->rate) ? scratch : b->p;
    TRY(make_probabilities(a, args, b));
    if (kernel_drops(args, a->rate)) drop(a, &args->draw, b);
    const struct matrix kept = {b->dropped, a->tokens, false};
    const struct matrix v = {(const float *)args->x[0] + b->head.v, stride, false};
    float *y = (float *)args->y + b->head.y + b->first * a->width;
    return gemm(b->rows, a->width / a->heads, b->keys, kept, v, y, a->width);
}

static enum status forward_head(const struct attention *a, const struct kernel_args *args, int64_t task)
{
    const struct head head = head_at(a, task);
    for (int64_t first = 0; first < a->tokens; first += a->rows) {
        struct block b = block_at(a, &head, first);
        TRY(forward_block(a, args, task, &b));
    }
    return ST_OK;
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
static void make_slopes(const struct attention *a, const struct block *b)
{
    for (int64_t i = 0; i < b->rows; i++) {
        const float *restrict pi = b->p + i * a->tokens, *restrict di = b->dropped + i * a->tokens;
        const int64_t seen = keys_of(a, b->first + i);
        float *restrict si = b->slope + i * a->tokens, total = 0;
#pragma omp simd reduction(+ : total)
        for (int64_t j = 0; j < seen; j++) total += di[j] * si[j];
        for (int64_t j = 0; j < seen; j++) si[j] = (di[j] * si[j] - pi[j] * total) * a->scale;
        memset(si + seen, 0, (size_t)(b->keys - seen) * sizeof *si);
    }
}

/* The gradient of keys or values, left^T right of a block: assigned for the keys that no block before saw, added for
 * the others. */
static enum status add_product(const struct attention *a, const struct block *b, const float *left, struct matrix right,
                               float *to)
{
    const int64_t width = a->width / a->heads, stride = 3 * a->width;
    const struct matrix across = {left, a->tokens, true};
    if (b->first == 0) return gemm(b->keys, width, b->rows, across, right, to, stride);
    TRY(gemm(b->keys, width, b->rows, across, right, b->sum, width));
    for (int64_t t = 0; t < b->keys; t++)
        for (int64_t c = 0; c < width; c++)
            to[t * stride + c] = (t < b->first ? to[t * stride + c] : 0) + b->sum[t * width + c];
    return ST_OK;
}

/* All three gradients of a head, as far as they come from a block's probabilities. */
static enum status block_gradients(const struct attention *a, const struct kernel_args *args, const struct block *b)
{
    const int64_t width = a->width / a->heads, stride = 3 * a->width, row = b->first * stride;
    const float *x = args->x[0];
    float *dx = args->dx[0];
    const struct matrix q = {x + b->head.q + row, stride, false}, k = {x + b->head.k, stride, false};
    const struct matrix v = {x + b->head.v, stride, true};
    const struct matrix dy = {(const float *)args->dy + b->head.y + b->first * a->width, a->width, false};
    const struct matrix slope = {b->slope, a->tokens, false};
    TRY(add_product(a, b, b->dropped, dy, dx + b->head.v));
    TRY(gemm(b->rows, b->keys, width, dy, v, b->slope, a->tokens));
    make_slopes(a, b);
    TRY(gemm(b->rows, width, b->keys, slope, k, dx + b->head.q + row, stride));
    return add_product(a, b, b->slope, q, dx + b->head.k);
}

/* Of scratch: slopes, then the probabilities after dropout, then the recomputed probabilities, then sums. */
static enum status backward_block(const struct attention *a, const struct kernel_args *args, int64_t task,
                                  struct block *b)
{
    const size_t room = a->room / sizeof(float);
    const bool drops = kernel_drops(args, a->rate);
    float *free_room = scratch_at(args, a->each);
    b->slope = free_room, free_room += room;
    if (a->rate > 0) b->dropped = free_room, free_room += room;
    b->p = saved_at(a, args->saved, task, b->first);
    if (args->saved == NULL) {
        b->p = free_room, free_room += room;
        TRY(make_probabilities(a, args, b));
    }
    b->sum = free_room;
    if (drops)
        drop(a, &args->draw, b);
    else
        b->dropped = b->p;
    return block_gradients(a, args, b);
}

static enum status backward_head(const struct attention *a, const struct kernel_args *args, int64_t task)
{
    const struct head head = head_at(a, task);
    for (int64_t first = 0; first < a->tokens; first += a->rows) {
        struct block b = block_at(a, &head, first);
        TRY(backward_block(a, args, task, &b));
    }
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct attention *a = state;
    bool failed = false;
#pragma omp parallel for schedule(static) num_threads(a->threads) reduction(|| : failed)
    for (int64_t task = 0; task < a->batch * a->heads; task++) failed = backward_head(a, args, task) != ST_OK || failed;
    clock_lap(a->backend, CLOCK_ATTENTION);
    return failed ? fail(ST_FAILED, "oneDNN: sgemm failed") : ST_OK;
}

const struct kernel cpu_attention = {true, prepare, forward, backward, free};
