/* Multi-head attention; see framework/layers/attention.c. Products are cuBLAS's, a batch of samples for each head;
 * softmax, dropout and slopes are our own.
 *
 * Contract: samples are taken in chunks of fixed size, the same in every pass, so that the library chooses the same
 * kernels and no bit depends on what is saved. */
#include <math.h>
#include <stdlib.h>

#include "cuda.h"
#include "kernels.h"
#include "numerics/token_batch.h"

/* BLOCKS: of scores, for which every chunk leaves room. PRODUCTS_MOST: in a batch of the library. */
enum { BLOCKS = 3, PRODUCTS_MOST = UINT16_MAX };

struct attention {
    struct backend *backend;
    int64_t batch, heads, tokens, width, head; /* width: D; head: D / heads */
    int64_t chunk;                             /* samples */
    float scale;                               /* 1 / sqrt head */
    double rate;
    bool causal, tf32, masked; /* masked: the batch has masks, an image none */
    size_t block;              /* bytes of the scores of a chunk */
};

/* The largest chunk that keeps the limit. */
static void choose_chunk(struct attention *a)
{
    for (int64_t turns = 1;; turns++) {
        a->chunk = ratio_up(a->batch, turns);
        a->block = round_up((size_t)(a->chunk * a->heads * a->tokens * a->tokens) * sizeof(float));
        const bool fits = BLOCKS * a->block <= a->backend->options.scratch_limit;
        if (a->chunk == 1 || (a->chunk <= PRODUCTS_MOST && fits)) return;
    }
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const struct shape *y = &graph->value[node->output].shape;
    if (y->dim[0] > INT32_MAX || y->dim[1] > INT32_MAX / 3)
        return fail(ST_SPEC, "attention on cuda takes at most %d tokens and a width of %d; here are %lld and %lld",
                    INT32_MAX, INT32_MAX / 3, (long long)y->dim[0], (long long)y->dim[1]);
    const int64_t kv_heads = node_integer(node, "kv_heads");
    if (node_integer(node, "rope") || (kv_heads && kv_heads != node_integer(node, "heads")))
        return fail(ST_SPEC,
                    "attention on cuda has neither rope nor fewer kv_heads than heads yet; expected backend: cpu, "
                    "or neither of them");
    struct attention *a = *state = allocate(1, sizeof *a);
    *a = (struct attention){.backend = backend,
                            .batch = graph->batch,
                            .heads = node_integer(node, "heads"),
                            .tokens = y->dim[0],
                            .width = y->dim[1],
                            .head = y->dim[1] / node_integer(node, "heads"),
                            .rate = node_real(node, "rate"),
                            .causal = node_integer(node, "causal"),
                            .masked = graph->value[node->inputs[1]].shape.rank != 3};
    /* Tensor cores want every matrix to start at a multiple of 16 bytes. */
    a->tf32 = cuda_of(backend)->tf32 && a->tokens % 4 == 0 && a->head % 4 == 0;
    a->scale = (float)(1 / sqrt((double)a->head));
    choose_chunk(a);
    const bool saves = node_chooses(node, "save", "probabilities");
    *footprint = (struct footprint){
        .saved = saves ? (size_t)(a->batch * a->heads * a->tokens * a->tokens) * sizeof(float) : 0,
        .forward_scratch = a->block,
        .backward_scratch = {0, (size_t)(1 + (a->rate > 0) + !saves) * a->block},
        .reads = {0, saves ? READS_X | READS_SAVED : READS_X},
        .implementation = !saves    ? "cuBLAS batches, probabilities recomputed"
                          : a->tf32 ? "cuBLAS batches tf32"
                                    : "cuBLAS batches",
    };
    return ST_OK;
}

/* A chunk: its samples, and its parts of the values and blocks. */
struct chunk {
    const float *x, *text;
    struct attention_shape shape;
    float *p, *dropped; /* dropped: p where nothing is dropped */
};

/* Block number i of scratch. */
static float *block_at(const struct attention *a, const struct kernel_args *args, int i)
{
    return (float *)(void *)((char *)args->scratch + (size_t)i * a->block);
}

/* The chunk from sample first on, without its blocks. */
static struct chunk chunk_at(const struct attention *a, const struct kernel_args *args, int64_t first)
{
    const int64_t row = first * a->tokens, left = a->batch - first;
    return (struct chunk){.x = (const float *)args->x[0] + row * 3 * a->width,
                          .text = a->masked ? (const float *)args->x[1] + row * TOKEN_ROWS : NULL,
                          .shape = {first, left < a->chunk ? left : a->chunk, a->heads, a->tokens, a->scale,
                                    survivor_factor(a->rate), a->causal}};
}

/* The saved probabilities of a chunk. */
static float *saved_at(const struct attention *a, void *saved, int64_t first)
{
    return saved != NULL ? (float *)saved + first * a->heads * a->tokens * a->tokens : NULL;
}

/* The matrices of the first head; floats from head to head. */
struct heads {
    struct matrices of;
    int64_t next;
};

enum fused { Q, K, V };

/* A third of the fused value or of its gradient. */
static struct heads heads_in(const struct attention *a, const float *x, enum fused which)
{
    const int64_t row = 3 * a->width;
    return (struct heads){{.data = x + which * a->width, .row = row, .next = a->tokens * row}, a->head};
}

static struct heads heads_of_y(const struct attention *a, const float *y)
{
    return (struct heads){{.data = y, .row = a->width, .next = a->tokens * a->width}, a->head};
}

static struct heads heads_of_block(const struct attention *a, const float *block)
{
    const int64_t one = a->tokens * a->tokens;
    return (struct heads){{.data = block, .row = a->tokens, .next = a->heads * one}, one};
}

static struct heads transposed(struct heads heads)
{
    heads.of.transposed = true;
    return heads;
}

static struct matrices head_at(struct heads heads, int64_t h)
{
    heads.of.data = (const float *)heads.of.data + h * heads.next;
    return heads.of;
}

/* out {T, columns} = left right. */
static enum status multiply(const struct attention *a, const struct chunk *c, struct heads left, struct heads right,
                            int64_t columns, int64_t inner, struct heads out)
{
    for (int64_t h = 0; h < a->heads; h++) {
        const struct gemm gemm = {c->shape.batch,   a->tokens,         columns,         inner,
                                  head_at(left, h), head_at(right, h), head_at(out, h), a->tf32};
        TRY(gemm_run(cuda_of(a->backend), &gemm));
    }
    return ST_OK;
}

/* The scores into p's block. */
static enum status make_scores(const struct attention *a, const struct chunk *c)
{
    return multiply(a, c, heads_in(a, c->x, Q), transposed(heads_in(a, c->x, K)), a->tokens, a->head,
                    heads_of_block(a, c->p));
}

static struct element_draw draw_of(const struct attention *a, const struct kernel_args *args)
{
    return kernel_drops(args, a->rate) ? element_draw_of(&args->draw, a->rate) : (struct element_draw){.node = 0};
}

/* saved: receives the probabilities if they are saved, else NULL. */
static enum status forward_chunk(const struct attention *a, const struct kernel_args *args, struct chunk *c,
                                 float *saved)
{
    const bool drops = kernel_drops(args, a->rate);
    const struct element_draw draw = draw_of(a, args);
    float *y = (float *)args->y + c->shape.first * a->tokens * a->width;
    c->p = saved != NULL ? saved : block_at(a, args, 0);
    c->dropped = drops ? block_at(a, args, 0) : c->p;
    TRY(make_scores(a, c));
    launch_attention_softmax(cuda_of(a->backend)->stream, c->shape, c->text, c->p, drops ? saved : c->p, &draw,
                             drops ? c->dropped : NULL);
    return multiply(a, c, heads_of_block(a, c->dropped), heads_in(a, c->x, V), a->head, a->tokens, heads_of_y(a, y));
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct attention *a = state;
    cuda_queue(a->backend, CLOCK_ATTENTION);
    for (int64_t n = 0; n < a->batch; n += a->chunk) {
        struct chunk c = chunk_at(a, args, n);
        TRY(forward_chunk(a, args, &c, args->save ? saved_at(a, args->saved, n) : NULL));
    }
    return cuda_queued("attention");
}

/* The blocks of scratch: slopes, then the probabilities after dropout, then the recomputed probabilities. */
static enum status backward_chunk(const struct attention *a, const struct kernel_args *args, struct chunk *c,
                                  float *saved)
{
    const bool drops = kernel_drops(args, a->rate);
    const struct element_draw draw = draw_of(a, args);
    const int64_t row = c->shape.first * a->tokens;
    const float *dx = (const float *)args->dx[0] + row * 3 * a->width;
    const struct heads dy = heads_of_y(a, (const float *)args->dy + row * a->width);
    const cudaStream_t stream = cuda_of(a->backend)->stream;
    float *block = block_at(a, args, 0);
    const struct heads slope = heads_of_block(a, block);
    c->p = saved != NULL ? saved : block_at(a, args, 1 + drops);
    c->dropped = drops ? block_at(a, args, 1) : c->p;
    if (saved == NULL) {
        TRY(make_scores(a, c));
        launch_attention_softmax(stream, c->shape, c->text, c->p, c->p, NULL, NULL);
    }
    TRY(multiply(a, c, dy, transposed(heads_in(a, c->x, V)), a->tokens, a->head, slope));
    launch_attention_slope(stream, c->shape, c->p, &draw, drops ? c->dropped : NULL, block);
    TRY(multiply(a, c, transposed(heads_of_block(a, c->dropped)), dy, a->head, a->tokens, heads_in(a, dx, V)));
    TRY(multiply(a, c, slope, heads_in(a, c->x, K), a->head, a->tokens, heads_in(a, dx, Q)));
    return multiply(a, c, transposed(slope), heads_in(a, c->x, Q), a->head, a->tokens, heads_in(a, dx, K));
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct attention *a = state;
    cuda_queue(a->backend, CLOCK_ATTENTION);
    for (int64_t n = 0; n < a->batch; n += a->chunk) {
        struct chunk c = chunk_at(a, args, n);
        TRY(backward_chunk(a, args, &c, saved_at(a, args->saved, n)));
    }
    return cuda_queued("gradients of attention");
}

const struct kernel cuda_attention = {true, prepare, forward, backward, free};
