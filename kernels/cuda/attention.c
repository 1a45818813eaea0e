/* Multi-head attention; see framework/layers/attention.c. Products are cuBLAS' batches by pointers, a matrix being a
 * head of a sample; softmax, dropout and slopes are our own.
 *
 * Contract: samples are taken in chunks of fixed size, the same in every pass, so that the library chooses the same
 * kernels and no bit depends on what is saved. cuBLAS gets its workspace from scratch: once cublasSetWorkspace()
 * was called it uses no memory of its own (cuBLAS guide, cublasSetWorkspace: 256-byte alignment, at least 16 KiB). */
#include <math.h>
#include <stdlib.h>

#include "attention_kernels.h"
#include "cuda.h"
#include "draw.h"
#include "gemm_pointers.h"
#include "numerics/token_batch.h"

/* WORKSPACE: bytes for cuBLAS. Each attention's scratch contains them, used or not, and a batch of products occupies a
 * device without split sums, so it is less than gemm.c allows. BLOCKS: of scores, for which every chunk leaves room.
 * PRODUCTS_MOST: in a batch. */
enum { WORKSPACE = 4 << 20, BLOCKS = 3, PRODUCTS_MOST = UINT16_MAX };

/* The arrays of pointers: to heads of the fused value and its gradient, of the output or its gradient, and to blocks.
 */
enum { AT_Q, AT_K, AT_V, AT_DQ, AT_DK, AT_DV, AT_Y, AT_P, AT_DROPPED, AT_SLOPE, ARRAYS };

struct attention {
    struct backend *backend;
    int64_t batch, heads, tokens, width, head; /* width: D; head: D / heads */
    int64_t chunk;                             /* samples */
    float scale;                               /* 1 / sqrt head */
    double rate;
    cublasComputeType_t type;
    size_t pointers, block; /* bytes of the arrays of a chunk; of its blocks of scores */
};

/* The largest chunk that keeps the limit. */
static void choose_chunk(struct attention *a)
{
    const size_t limit = a->backend->options.scratch_limit;
    const int64_t most = a->heads < PRODUCTS_MOST ? PRODUCTS_MOST / a->heads : 1;
    for (int64_t turns = 1;; turns++) {
        a->chunk = ratio_up(a->batch, turns);
        const size_t products = (size_t)(a->chunk * a->heads);
        a->pointers = round_up(ARRAYS * products * sizeof(float *));
        a->block = round_up(products * (size_t)(a->tokens * a->tokens) * sizeof(float));
        if (a->chunk == 1 || (a->chunk <= most && WORKSPACE + a->pointers + BLOCKS * a->block <= limit)) return;
    }
}

/* Bytes of scratch with so many blocks. */
static size_t scratch_of(const struct attention *a, int blocks)
{
    return WORKSPACE + a->pointers + (size_t)blocks * a->block;
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const struct shape *y = &graph->value[node->output].shape;
    if (y->dim[0] > ATTENTION_TOKENS_MOST || y->dim[1] > INT32_MAX / 3)
        return fail(ST_SPEC, "attention on cuda takes at most %d tokens and a width of %d; here are %lld and %lld",
                    ATTENTION_TOKENS_MOST, INT32_MAX / 3, (long long)y->dim[0], (long long)y->dim[1]);
    struct attention *a = *state = allocate(1, sizeof *a);
    *a = (struct attention){.backend = backend,
                            .batch = graph->batch,
                            .heads = node_integer(node, "heads"),
                            .tokens = y->dim[0],
                            .width = y->dim[1],
                            .head = y->dim[1] / node_integer(node, "heads"),
                            .rate = node_real(node, "rate")};
    /* Tensor cores want every matrix to start at a multiple of 16 bytes. */
    const bool tf32 = cuda_of(backend)->tf32 && a->tokens % 4 == 0 && a->head % 4 == 0;
    a->type = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    a->scale = (float)(1 / sqrt((double)a->head));
    choose_chunk(a);
    const bool saves = node_chooses(node, "save", "probabilities");
    *footprint = (struct footprint){
        .saved = saves ? (size_t)(a->batch * a->heads * a->tokens * a->tokens) * sizeof(float) : 0,
        .forward_scratch = scratch_of(a, 1),
        .backward_scratch = {0, scratch_of(a, 1 + (a->rate > 0) + !saves)},
        .reads = {0, saves ? READS_X | READS_SAVED : READS_X},
        .implementation = !saves ? "cuBLAS batches, probabilities recomputed"
                          : tf32 ? "cuBLAS batches tf32"
                                 : "cuBLAS batches",
    };
    return ST_OK;
}

/* A chunk: its samples, its parts of the values, its blocks, and the arrays of pointers to all of them. */
struct chunk {
    int64_t first, samples;
    const float *x, *text, *y, *dx; /* y: or dy; dx: NULL in a forward */
    float *p, *dropped, *slope;
    const float **pointers; /* on the device, as all of them */
};

/* Block number i of scratch. */
static float *block_at(const struct attention *a, const struct kernel_args *args, int i)
{
    return (float *)(void *)((char *)args->scratch + scratch_of(a, i));
}

/* The chunk from sample first on, without its blocks. y: or dy; dx: NULL in a forward. */
static struct chunk chunk_at(const struct attention *a, const struct kernel_args *args, const void *y, void *dx,
                             int64_t first)
{
    const int64_t row = first * a->tokens, left = a->batch - first;
    return (struct chunk){
        .first = first,
        .samples = left < a->chunk ? left : a->chunk,
        .x = (const float *)args->x[0] + row * 3 * a->width,
        .text = (const float *)args->x[1] + row * TOKEN_ROWS,
        .y = (const float *)y + row * a->width,
        .dx = dx != NULL ? (const float *)dx + row * 3 * a->width : NULL,
        .pointers = (const float **)(void *)((char *)args->scratch + WORKSPACE),
    };
}

/* The saved probabilities of a chunk. */
static float *saved_at(const struct attention *a, void *saved, int64_t first)
{
    return (float *)saved + first * a->heads * a->tokens * a->tokens;
}

static void fill_pointers(const struct attention *a, const struct chunk *c)
{
    const int64_t x = a->tokens * 3 * a->width, y = a->tokens * a->width, one = a->tokens * a->tokens;
    const int64_t all = a->heads * one, d = a->width, head = a->head;
    const float *dx = c->dx != NULL ? c->dx : c->x; /* unused in a forward */
    launch_gemm_pointers(cuda_of(a->backend)->stream,
                         (struct gemm_pointer_arrays){.array = {[AT_Q] = {c->x, x, head},
                                                                [AT_K] = {c->x + d, x, head},
                                                                [AT_V] = {c->x + 2 * d, x, head},
                                                                [AT_DQ] = {dx, x, head},
                                                                [AT_DK] = {dx + d, x, head},
                                                                [AT_DV] = {dx + 2 * d, x, head},
                                                                [AT_Y] = {c->y, y, head},
                                                                [AT_P] = {c->p, all, one},
                                                                [AT_DROPPED] = {c->dropped, all, one},
                                                                [AT_SLOPE] = {c->slope, all, one}},
                                                      .arrays = ARRAYS,
                                                      .outer = c->samples,
                                                      .inner = a->heads},
                         c->pointers);
}

/* A matrix of each head: its array, and whether it is taken transposed. */
struct operand {
    int at;
    bool transposed;
};

/* Floats between rows. */
static int stride_of(const struct attention *a, int at)
{
    return (int)(at <= AT_DV ? 3 * a->width : at == AT_Y ? a->width : a->tokens);
}

/* out {T, columns} = left right, the inner dimension being inner. cuBLAS' matrices lie column by column: it computes
 * the transpose of the product, with right as its first operand. */
static enum status multiply(const struct attention *a, const struct chunk *c, struct operand left, struct operand right,
                            int64_t columns, int64_t inner, int out)
{
    const float one = 1, zero = 0;
    const int64_t count = c->samples * a->heads;
    const void *const *pointers = (const void *const *)c->pointers;
    return cublas_check(cublasGemmBatchedEx(cuda_of(a->backend)->blas, right.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                                            left.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, (int)columns, (int)a->tokens,
                                            (int)inner, &one, pointers + right.at * count, CUDA_R_32F,
                                            stride_of(a, right.at), pointers + left.at * count, CUDA_R_32F,
                                            stride_of(a, left.at), &zero, (void *const *)(pointers + out * count),
                                            CUDA_R_32F, stride_of(a, out), (int)count, a->type, CUBLAS_GEMM_DEFAULT),
                        "attention's products");
}

static struct attention_shape shape_of(const struct attention *a, const struct chunk *c)
{
    return (struct attention_shape){.first = c->first,
                                    .batch = c->samples,
                                    .heads = a->heads,
                                    .tokens = a->tokens,
                                    .scale = a->scale,
                                    .factor = survivor_factor(a->rate)};
}

/* The scores into p's block. */
static enum status make_scores(const struct attention *a, const struct chunk *c)
{
    const struct operand q = {AT_Q, false}, k = {AT_K, true};
    return multiply(a, c, q, k, a->tokens, a->head, AT_P);
}

/* p: receives the probabilities if they are saved, else NULL. */
static enum status forward_chunk(const struct attention *a, const struct kernel_args *args, struct chunk *c, float *p)
{
    const bool drops = rng_drops(&args->draw, a->rate);
    const struct element_draw draw = drops ? element_draw_of(&args->draw, a->rate) : (struct element_draw){.node = 0};
    const struct operand kept = {drops ? AT_DROPPED : AT_P, false}, v = {AT_V, false};
    c->dropped = block_at(a, args, 0);
    c->p = p != NULL ? p : c->dropped;
    fill_pointers(a, c);
    TRY(make_scores(a, c));
    launch_attention_softmax(cuda_of(a->backend)->stream, shape_of(a, c), c->text, c->p, drops ? p : c->p, &draw,
                             drops ? c->dropped : NULL);
    return multiply(a, c, kept, v, a->head, a->tokens, AT_Y);
}

/* Before the first product of a pass. */
static enum status begin(const struct attention *a, const struct kernel_args *args)
{
    cuda_queue(a->backend, CLOCK_ATTENTION);
    return cublas_check(cublasSetWorkspace(cuda_of(a->backend)->blas, args->scratch, WORKSPACE), "workspace");
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct attention *a = state;
    TRY(begin(a, args));
    for (int64_t n = 0; n < a->batch; n += a->chunk) {
        struct chunk c = chunk_at(a, args, args->y, NULL, n);
        TRY(forward_chunk(a, args, &c, args->save ? saved_at(a, args->saved, n) : NULL));
    }
    return cuda_queued("attention");
}

/* The blocks of scratch: slopes, then the probabilities after dropout, then the recomputed probabilities. */
static enum status backward_chunk(const struct attention *a, const struct kernel_args *args, struct chunk *c,
                                  float *saved)
{
    const bool drops = rng_drops(&args->draw, a->rate);
    const struct element_draw draw = drops ? element_draw_of(&args->draw, a->rate) : (struct element_draw){.node = 0};
    const struct operand dy = {AT_Y, false}, q = {AT_Q, false}, k = {AT_K, false}, vt = {AT_V, true};
    const struct operand slope = {AT_SLOPE, false}, slope_t = {AT_SLOPE, true};
    const struct operand kept_t = {drops ? AT_DROPPED : AT_P, true};
    cudaStream_t stream = cuda_of(a->backend)->stream;
    c->slope = block_at(a, args, 0);
    c->dropped = block_at(a, args, drops);
    c->p = saved != NULL ? saved : block_at(a, args, 1 + drops);
    fill_pointers(a, c);
    if (saved == NULL) {
        TRY(make_scores(a, c));
        launch_attention_softmax(stream, shape_of(a, c), c->text, c->p, c->p, NULL, NULL);
    }
    TRY(multiply(a, c, dy, vt, a->tokens, a->head, AT_SLOPE));
    launch_attention_slope(stream, shape_of(a, c), c->p, drops ? &draw : NULL, drops ? c->dropped : NULL, c->slope);
    TRY(multiply(a, c, kept_t, dy, a->head, a->tokens, AT_DV));
    TRY(multiply(a, c, slope, k, a->head, a->tokens, AT_DQ));
    return multiply(a, c, slope_t, q, a->head, a->tokens, AT_DK);
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct attention *a = state;
    TRY(begin(a, args));
    for (int64_t n = 0; n < a->batch; n += a->chunk) {
        struct chunk c = chunk_at(a, args, args->dy, args->dx[0], n);
        TRY(backward_chunk(a, args, &c, args->saved != NULL ? saved_at(a, args->saved, n) : NULL));
    }
    return cuda_queued("gradients of attention");
}

const struct kernel cuda_attention = {true, prepare, forward, backward, free};
