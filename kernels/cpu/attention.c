/* Multi-head attention, a head of a sample at a time; see framework/layers/attention.c, of cross_attention too, whose
 * keys and values are the second input. Products are those of matrix.h on the calling thread; softmax and dropout are
 * loops. Causal attention takes CAUSAL_ROWS queries at a time with the keys up to the last of them: half of the
 * products, and scratch that grows with T alone. Then gradients of keys and values are sums over those blocks in
 * ascending order, where several heads of queries read them over all heads' blocks. With rope, turned queries and keys
 * lie in scratch, and gradients are turned back in place.
 *
 * Contract: one thread computes the heads that share keys from start to end. Sums of products are as product.h says,
 * others as row_sums.h, so the bits of the results depend neither on threads or vectors nor on what is saved. A
 * probability below exp(-87) of its row's largest is 0. Scratch is a few blocks of T x T, causal of CAUSAL_ROWS x T,
 * per thread, whatever the batch. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "element_loops.h"
#include "matrix.h"
#include "numerics/element_exp.h"
#include "numerics/token_batch.h"
#include "row_sums.h"

enum { PIECE = 4096, CAUSAL_ROWS = 64 }; /* PIECE: numbers drawn at a time */

struct attention {
    struct backend *backend;
    int64_t batch, heads, kv_heads, tokens, keys; /* tokens: queries */
    int64_t width, stride, kv_stride, out;        /* of a head; of rows of queries, of keys and values; of y: D */
    bool cross;                                   /* keys and values are x[1] */
    int64_t rows;                                 /* queries at a time */
    bool causal, rope;
    float *turn; /* rope: cos and sin of token t and pair i at 2 (t d / 2 + i) */
    float *ones; /* the mask of keys without padding; NULL: the batch has masks */
    float scale; /* 1 / sqrt(D / heads) */
    double rate;
    int threads;
    size_t packed;            /* bytes of scratch: for products */
    size_t room;              /* of a block of rows x T */
    size_t rotated;           /* of a head's turned queries or keys; 0: they are not turned */
    size_t forward, backward; /* of a thread */
};

/* The angles, in double. */
static float *make_turns(int64_t tokens, int64_t width)
{
    float *turn = allocate((size_t)(tokens * width), sizeof *turn);
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t c = 0; c < width; c += 2) {
            const double angle = (double)t * pow(10000, -(double)c / (double)width);
            turn[t * width + c] = (float)cos(angle);
            turn[t * width + c + 1] = (float)sin(angle);
        }
    return turn;
}

/* c = a b. */
static void multiply_matrices(int64_t rows, int64_t columns, int64_t terms, struct matrix a, struct matrix b, float *c,
                              int64_t stride, float *scratch)
{
    struct matrix_product of = {.c = {c, stride}};
    const struct product product = matrix_product(rows, columns, terms, a, b, &of);
    product_alone(&product, &of, scratch);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* The most scratch of a product of these sizes. */
static size_t packing(int64_t rows, int64_t columns, int64_t terms)
{
    size_t most = 0;
    for (int transposed = 0; transposed < 2; transposed++) {
        struct matrix_product of = {.c.stride = columns};
        const struct product product = matrix_product(rows, columns, terms, (struct matrix){.transposed = transposed},
                                                      (struct matrix){.data = NULL}, &of);
        most = larger(most, product_plan(&product, 1, UINT64_MAX).scratch);
    }
    return round_up(most);
}

/* Of all products of a head. */
static size_t packing_of(const struct attention *a)
{
    size_t most = 0;
    for (int64_t first = 0; first < a->tokens; first += a->rows) {
        const int64_t rows = a->tokens - first < a->rows ? a->tokens - first : a->rows;
        const int64_t keys = a->causal ? first + rows : a->keys;
        most = larger(most, packing(rows, keys, a->width));
        most = larger(most, packing(rows, a->width, keys));
        most = larger(most, packing(keys, a->width, rows));
    }
    return most;
}

/* Bytes of scratch; adds: a gradient is a sum of several products. */
static void choose_scratch(struct attention *a, bool saves, bool adds)
{
    const size_t rows = round_up((size_t)(a->keys * a->width) * sizeof(float));
    a->room = round_up((size_t)(a->rows * a->keys) * sizeof(float));
    a->rotated = a->rope ? rows : 0;
    a->packed = packing_of(a);
    a->forward = a->packed + a->room + 2 * a->rotated;
    a->backward = a->packed + a->room * (size_t)(1 + (a->rate > 0) + !saves) + 2 * a->rotated + (adds ? rows : 0);
}

/* Of cross_attention, or of one value with queries, keys and values. */
static void set_sizes(struct attention *a, const struct graph *graph, const struct node *node)
{
    const struct shape *x = &graph->value[node->inputs[0]].shape, *y = &graph->value[node->output].shape,
                       *second = &graph->value[node->inputs[1]].shape;
    const int64_t heads = node_integer(node, "heads"), kv_heads = node_integer(node, "kv_heads");
    a->cross = setting_find(node->layer->keys, "causal") == NULL;
    a->batch = graph->batch;
    a->heads = heads;
    a->kv_heads = kv_heads ? kv_heads : heads;
    a->out = shape_width(y);
    a->width = a->out / heads;
    a->tokens = shape_elements(y) / a->out;
    a->keys = a->cross ? second->dim[0] : a->tokens;
    a->stride = shape_width(x);
    a->kv_stride = a->cross ? shape_width(second) : a->stride;
    a->causal = !a->cross && node_integer(node, "causal");
    a->rope = !a->cross && node_integer(node, "rope");
    a->rows = a->causal && a->tokens > CAUSAL_ROWS ? CAUSAL_ROWS : a->tokens;
    if (a->cross || second->rank == 3) a->ones = allocate((size_t)a->keys, sizeof *a->ones);
    for (int64_t t = 0; a->ones && t < a->keys; t++) a->ones[t] = 1;
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    struct attention *a = *state = allocate(1, sizeof *a);
    *a = (struct attention){
        .backend = backend, .rate = node_real(node, "rate"), .threads = (int)backend->options.threads};
    set_sizes(a, graph, node);
    a->scale = (float)(1 / sqrt((double)a->width));
    if (a->rope) a->turn = make_turns(a->tokens, a->width);
    const bool saves = node_chooses(node, "save", "probabilities");
    choose_scratch(a, saves, a->rows < a->tokens || a->kv_heads < a->heads);
    *footprint = (struct footprint){
        .saved = saves ? (size_t)(a->batch * a->heads * a->tokens * a->keys) * sizeof(float) : 0,
        .forward_scratch = a->forward * (size_t)a->threads,
        .backward_scratch = {0, a->backward * (size_t)a->threads},
        .reads = {0, saves ? READS_X | READS_SAVED : READS_X},
        .implementation = saves ? "product a head" : "product a head, probabilities recomputed",
    };
    return ST_OK;
}

static void release(void *state)
{
    struct attention *a = state;
    free(a->turn);
    free(a->ones);
    free(a);
}

/* A head of queries, with its keys and values: where their rows start in their input or its gradient, y's in the output
 * or its gradient. */
struct head {
    int64_t sample, index, q, k, v, y;
    bool first;                 /* of those that read the same keys */
    const float *q_at, *k_at;   /* its queries and keys, turned with rope */
    int64_t q_stride, k_stride; /* floats from row to row of them */
};

/* Heads of queries that read the same keys. */
static int64_t group_of(const struct attention *a) { return a->heads / a->kv_heads; }

/* rotated: room for turned queries, then keys. task: a sample's head of keys. */
static struct head head_at(const struct attention *a, const struct kernel_args *args, int64_t task, int64_t of_group,
                           float *rotated)
{
    const int64_t n = task / a->kv_heads, kv = task % a->kv_heads, index = kv * group_of(a) + of_group;
    const int64_t k = n * a->keys * a->kv_stride + ((a->cross ? 0 : a->heads) + kv) * a->width;
    struct head head = {.sample = n,
                        .index = index,
                        .q = n * a->tokens * a->stride + index * a->width,
                        .k = k,
                        .v = k + a->kv_heads * a->width,
                        .y = n * a->tokens * a->out + index * a->width,
                        .first = of_group == 0,
                        .q_stride = a->rope ? a->width : a->stride,
                        .k_stride = a->rope ? a->width : a->kv_stride};
    head.q_at = a->rope ? rotated : (const float *)args->x[0] + head.q;
    head.k_at = a->rope ? rotated + a->rotated / sizeof *rotated : (const float *)args->x[a->cross] + head.k;
    return head;
}

/* to = rows of queries or keys of a head, turned, or by sign -1 turned back; to may be from. */
static void turn_rows(const struct attention *a, const float *from, int64_t from_stride, float sign, float *to,
                      int64_t to_stride)
{
    for (int64_t t = 0; t < a->tokens; t++) {
        const float *turn = a->turn + t * a->width, *row = from + t * from_stride;
        for (int64_t c = 0; c < a->width; c += 2) {
            const float cosine = turn[c], sine = sign * turn[c + 1], even = row[c], odd = row[c + 1];
            to[t * to_stride + c] = even * cosine - odd * sine;
            to[t * to_stride + c + 1] = odd * cosine + even * sine;
        }
    }
}

/* Turns a head's queries and, where they are new, keys into their room. */
static void turn_head(const struct attention *a, const float *x, const struct head *head)
{
    if (!a->rope) return;
    turn_rows(a, x + head->q, a->stride, 1, (float *)head->q_at, a->width);
    if (head->first) turn_rows(a, x + head->k, a->stride, 1, (float *)head->k_at, a->width);
}

/* Some queries of a head, and the keys from the first on that any of them sees. */
struct queries {
    struct head head;
    int64_t first, rows, keys;
    float *p, *dropped, *slope; /* rows x all keys; dropped: p where nothing is dropped */
    float *sum;                 /* keys x a head's width: what is added to a gradient */
    float *packed;              /* for products */
};

static struct queries block_at(const struct attention *a, const struct head *head, int64_t first, float *packed)
{
    const int64_t left = a->tokens - first, rows = left < a->rows ? left : a->rows;
    const int64_t keys = a->causal ? first + rows : a->keys;
    return (struct queries){.head = *head, .first = first, .rows = rows, .keys = keys, .packed = packed};
}

/* The keys that a query sees, as far as they are tokens. */
static int64_t keys_of(const struct attention *a, int64_t query) { return a->causal ? query + 1 : a->keys; }

static float *scratch_at(const struct kernel_args *args, size_t each)
{
    return (float *)(void *)((char *)args->scratch + (size_t)omp_get_thread_num() * each);
}

/* Turns scores into probabilities over the keys whose mask is above 0; the others get 0. */
static void softmax(float *restrict x, const float *restrict mask, int64_t count, float scale)
{
    float most = -INFINITY;
#pragma omp simd reduction(max : most)
    for (int64_t j = 0; j < count; j++) {
        const float score = mask[j] > 0 ? x[j] : -INFINITY;
        most = score > most ? score : most;
    }
#pragma omp simd
    for (int64_t j = 0; j < count; j++) {
        const float power = (x[j] - most) * scale, least = power < -87.0f ? -87.0f : power;
        const uint32_t token = mask[j] > 0 ? UINT32_MAX : 0, large = power < -87.0f ? 0 : UINT32_MAX;
        x[j] = element_of_bits(element_bits(element_exp(least, 0)) & token & large);
    }
    const float sum = row_sum(x, count);
    const float factor = sum == 0 ? 0 : 1 / sum; /* 0: there is no token */
    for (int64_t j = 0; j < count; j++) x[j] *= factor;
}

static void make_probabilities(const struct attention *a, const struct kernel_args *args, const struct queries *b)
{
    const struct head *h = &b->head;
    const float *mask = a->ones;
    if (mask == NULL) mask = (const float *)args->x[1] + (h->sample * TOKEN_ROWS + TOKEN_MASK) * a->keys;
    const struct matrix q = {h->q_at + b->first * h->q_stride, h->q_stride, false}, k = {h->k_at, h->k_stride, true};
    multiply_matrices(b->rows, b->keys, a->width, q, k, b->p, a->keys, b->packed);
    for (int64_t i = 0; i < b->rows; i++) {
        const int64_t seen = keys_of(a, b->first + i);
        softmax(b->p + i * a->keys, mask, seen, a->scale);
        memset(b->p + i * a->keys + seen, 0, (size_t)(a->keys - seen) * sizeof *b->p);
    }
}

/* dropped = a block's probabilities after dropout; dropped may be p. */
static void drop(const struct attention *a, const struct draw *draw, const struct queries *b)
{
    const int64_t block = a->tokens * a->keys, from = b->head.index * block + b->first * a->keys;
    const int64_t all = b->rows * a->keys;
    const float factor = (float)(1 / (1 - a->rate));
    uint8_t keep[PIECE];
    for (int64_t first = 0; first < all; first += PIECE) {
        const int64_t count = all - first < PIECE ? all - first : PIECE;
        rng_keep(draw, a->rate, a->heads * block, b->head.sample, from + first, count, keep);
        for (int64_t i = 0; i < count; i++) b->dropped[first + i] = masked(b->p[first + i] * factor, keep[i]);
    }
}

/* A head's saved probabilities from the block on; NULL where saved is. */
static float *saved_at(const struct attention *a, void *saved, const struct queries *b)
{
    const int64_t head = b->head.sample * a->heads + b->head.index;
    return saved != NULL ? (float *)saved + (head * a->tokens + b->first) * a->keys : NULL;
}

static void forward_block(const struct attention *a, const struct kernel_args *args, float *room, struct queries *b)
{
    b->p = args->save ? saved_at(a, args->saved, b) : room;
    b->dropped = kernel_drops(args, a->rate) ? room : b->p;
    make_probabilities(a, args, b);
    if (kernel_drops(args, a->rate)) drop(a, &args->draw, b);
    const struct matrix kept = {b->dropped, a->keys, false};
    const struct matrix v = {(const float *)args->x[a->cross] + b->head.v, a->kv_stride, false};
    float *y = (float *)args->y + b->head.y + b->first * a->out;
    multiply_matrices(b->rows, a->width, b->keys, kept, v, y, a->out, b->packed);
}

/* The heads of queries of a sample that read the same keys. */
static void forward_heads(const struct attention *a, const struct kernel_args *args, int64_t task)
{
    float *packed = scratch_at(args, a->forward), *rotated = packed + a->packed / sizeof *packed;
    float *room = rotated + 2 * a->rotated / sizeof *room;
    for (int64_t g = 0; g < group_of(a); g++) {
        const struct head head = head_at(a, args, task, g, rotated);
        turn_head(a, args->x[0], &head);
        for (int64_t first = 0; first < a->tokens; first += a->rows) {
            struct queries b = block_at(a, &head, first, packed);
            forward_block(a, args, room, &b);
        }
    }
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct attention *a = state;
#pragma omp parallel for schedule(static) num_threads(a->threads)
    for (int64_t task = 0; task < a->batch * a->kv_heads; task++) forward_heads(a, args, task);
    clock_lap(a->backend, CLOCK_ATTENTION);
    return ST_OK;
}

/* slope, dP of what was dropped, becomes dS. */
static void make_slopes(const struct attention *a, const struct queries *b)
{
    for (int64_t i = 0; i < b->rows; i++) {
        const float *restrict pi = b->p + i * a->keys, *restrict di = b->dropped + i * a->keys;
        const int64_t seen = keys_of(a, b->first + i);
        float *restrict si = b->slope + i * a->keys;
        const float total = row_dot(di, si, seen);
        for (int64_t j = 0; j < seen; j++) si[j] = (di[j] * si[j] - pi[j] * total) * a->scale;
        memset(si + seen, 0, (size_t)(b->keys - seen) * sizeof *si);
    }
}

/* The gradient of keys or values, left^T right of a block: assigned for the keys that no block before saw, added for
 * the others. */
static void add_product(const struct attention *a, const struct queries *b, const float *left, struct matrix right,
                        float *to)
{
    const struct matrix across = {left, a->keys, true};
    const int64_t seen = b->head.first ? b->first : a->keys;
    if (seen == 0) {
        multiply_matrices(b->keys, a->width, b->rows, across, right, to, a->kv_stride, b->packed);
        return;
    }
    multiply_matrices(b->keys, a->width, b->rows, across, right, b->sum, a->width, b->packed);
    for (int64_t t = 0; t < b->keys; t++)
        for (int64_t c = 0; c < a->width; c++)
            to[t * a->kv_stride + c] = (t < seen ? to[t * a->kv_stride + c] : 0) + b->sum[t * a->width + c];
}

/* All three gradients of a head that are wanted, as far as they come from a block's probabilities. */
static void block_gradients(const struct attention *a, const struct kernel_args *args, const struct queries *b)
{
    const struct head *h = &b->head;
    float *dq = args->dx[0], *dkv = args->dx[a->cross];
    const struct matrix q = {h->q_at + b->first * h->q_stride, h->q_stride, false}, k = {h->k_at, h->k_stride, false};
    const struct matrix v = {(const float *)args->x[a->cross] + h->v, a->kv_stride, true};
    const struct matrix dy = {(const float *)args->dy + h->y + b->first * a->out, a->out, false};
    const struct matrix slope = {b->slope, a->keys, false};
    if (dkv != NULL) add_product(a, b, b->dropped, dy, dkv + h->v);
    multiply_matrices(b->rows, b->keys, a->width, dy, v, b->slope, a->keys, b->packed);
    make_slopes(a, b);
    if (dq != NULL)
        multiply_matrices(b->rows, a->width, b->keys, slope, k, dq + h->q + b->first * a->stride, a->stride, b->packed);
    if (dkv != NULL) add_product(a, b, b->slope, q, dkv + h->k);
}

/* Of room: slopes, then the probabilities after dropout, then the recomputed probabilities, then sums. */
static void backward_block(const struct attention *a, const struct kernel_args *args, float *room, struct queries *b)
{
    const size_t next = a->room / sizeof *room;
    const bool drops = kernel_drops(args, a->rate);
    b->slope = room, room += next;
    if (a->rate > 0) b->dropped = room, room += next;
    b->p = saved_at(a, args->saved, b);
    if (args->saved == NULL) {
        b->p = room, room += next;
        make_probabilities(a, args, b);
    }
    b->sum = room;
    if (drops)
        drop(a, &args->draw, b);
    else
        b->dropped = b->p;
    block_gradients(a, args, b);
}

static void backward_heads(const struct attention *a, const struct kernel_args *args, int64_t task)
{
    float *packed = scratch_at(args, a->backward), *rotated = packed + a->packed / sizeof *packed;
    float *room = rotated + 2 * a->rotated / sizeof *room, *dx = args->dx[0];
    int64_t k = 0;
    for (int64_t g = 0; g < group_of(a); g++) {
        const struct head head = head_at(a, args, task, g, rotated);
        turn_head(a, args->x[0], &head);
        for (int64_t first = 0; first < a->tokens; first += a->rows) {
            struct queries b = block_at(a, &head, first, packed);
            backward_block(a, args, room, &b);
        }
        if (a->rope) turn_rows(a, dx + head.q, a->stride, -1, dx + head.q, a->stride);
        k = head.k;
    }
    if (a->rope) turn_rows(a, dx + k, a->stride, -1, dx + k, a->stride);
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct attention *a = state;
#pragma omp parallel for schedule(static) num_threads(a->threads)
    for (int64_t task = 0; task < a->batch * a->kv_heads; task++) backward_heads(a, args, task);
    clock_lap(a->backend, CLOCK_ATTENTION);
    return ST_OK;
}

const struct kernel cpu_attention = {true, prepare, forward, backward, release};
