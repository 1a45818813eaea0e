/* What the kernels of the cuda backend share: the backend's state, layouts of values, the queue.
 *
 * All work is queued on one stream, the queue, and runs in its order. A pass returns when its work is queued. Queued
 * work must not depend on device memory that the host reads: a whole step is captured once and launched again. */
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "backend/backend.h"
#include "backend/layer_state.h"
#include "kernels.h"
#include "numerics/element_draw.h"

/* Images (values of rank 3) lie N H W C, the logical order, or N C H W; all else in logical order. No padding. */
enum order { ORDER_LOGICAL, ORDER_CHANNELS_FIRST };

/* What is copied at the start and at the end of a step. */
struct mailbox {
    struct step_moment moment;
    struct step_outcome outcome;
};

/* Device memory that belongs to no block. workspace: cuBLAS's, which has no other (cuBLAS guide, cublasSetWorkspace).
 */
struct device_state {
    char workspace[4 << 20];
    struct mailbox mail;
    struct piece_result piece[DIGEST_PIECES_AT_ONCE]; /* where the host waits for them */
};

/* Times of a step's ops, phases and classes: an event in the queue wherever one of them changes. */
struct phase_timing {
    struct mark {
        cudaEvent_t event;
        enum phase phase; /* of the work after it */
        enum clock_class class;
        int op; /* -1: none */
    } * mark;
    int marks, room;
    uint64_t *op_ns; /* the backend's, of that step */
};

struct cuda {
    cudaStream_t stream, copies; /* the queue; transfers of the next batch beside it */
    cudaEvent_t sent, taken;     /* the next batch is there; it is the batch now, and its place is free */
    cudnnHandle_t cudnn;
    cublasHandle_t blas;
    bool tf32;                    /* products and convolutions may round their operands to TF32 */
    bool stepped;                 /* a step was queued since the last wait */
    cudaError_t failed;           /* the first error of what returns none */
    struct mailbox *mail;         /* the host's, page-locked */
    struct device_state *there;   /* on the device */
    struct piece_result *results; /* the host's, of an update's tensors */
    cudaGraphExec_t graph;        /* the captured step, and the argument of its body; NULL: none */
    void *graph_self;
    struct phase_timing timing[2]; /* of the last step queued call by call, and of the captured one */
    struct phase_timing *now;      /* of the last step; while steps are queued, its marks are written */
    bool timed;                    /* changes of phase and class are marked */
    enum phase phase;              /* of the work queued now */
    enum clock_class class;
    int op;
    char isa[64], libraries[128], device[320];
};

extern const struct backend_kind backend_cuda;
extern const struct update_kind cuda_update;
extern const struct kernel cuda_conv, cuda_linear, cuda_max_pool, cuda_avg_pool, cuda_global_avg_pool, cuda_flatten,
    cuda_relu, cuda_dropout, cuda_add, cuda_concat, cuda_embedding, cuda_attention, cuda_layernorm, cuda_select,
    cuda_cross_entropy, cuda_sum, cuda_batch_norm, cuda_elementwise, cuda_upsample, cuda_multiply, cuda_class_token,
    cuda_positions;

static inline struct cuda *cuda_of(const struct backend *backend) { return backend->vendor; }

/* For functions that return no status: keeps the first error, which cuda_wait() returns. */
static inline void cuda_note(struct backend *backend, cudaError_t error)
{
    if (error != cudaSuccess && cuda_of(backend)->failed == cudaSuccess) cuda_of(backend)->failed = error;
}

/* Whether an image lies N C H W. */
static inline bool channels_first(const struct extent *x) { return x->layout == ORDER_CHANNELS_FIRST; }

/* ---- errors.c: errors of the runtime and of the libraries as ours. Each function returns ST_OK, or ST_FAILED with a
 * message "LIBRARY: WHAT: the library's own text". ---- */

enum status cuda_check(cudaError_t error, const char *what);
enum status cudnn_check(cudnnStatus_t error, const char *what);
enum status cublas_check(cublasStatus_t error, const char *what);

/* Whether an error of earlier queued work has been reported. */
enum status cuda_queued(const char *what);

/* ---- step.c ---- */

/* Rows of struct backend_kind. */
enum status cuda_step(struct backend *backend, bool same, enum status (*body)(void *self), void *self);
enum status cuda_wait(struct backend *backend);
void cuda_phase(struct backend *backend, enum phase phase);

/* The stream of the queue; what is queued on it from now on counts as class. */
cudaStream_t cuda_queue(struct backend *backend, enum clock_class class);

/* Frees the captured step; called before memory that it uses is freed. */
void cuda_forget_step(struct backend *backend);
void cuda_free_events(struct cuda *cuda);

/* ---- parameter_update.c: rows of struct backend_kind, of memory at a multiple of 4 bytes ---- */

double cuda_squares(struct backend *backend, const float *x, size_t count);
struct digest cuda_digest(struct backend *backend, const void *data, size_t bytes);

/* ---- gemm.c ---- */

/* Matrices of one shape: the elements of a row follow each other. */
struct matrices {
    const void *data;  /* of the first */
    int64_t row, next; /* floats from row to row, and from matrix to matrix */
    bool transposed;   /* as an operand */
};

/* c = a b for each of count triples of matrices: a is {rows, inner}, b {inner, columns}, or transposed. */
struct gemm {
    int64_t count, rows, columns, inner;
    struct matrices a, b, c;
    bool tf32; /* operands are rounded; they should start at multiples of 16 bytes */
};

enum status gemm_run(const struct cuda *cuda, const struct gemm *gemm);

/* ---- draws, in the form that kernels take ---- */

/* The draw of a layer with this rate; only where kernel_drops(). */
struct element_draw element_draw_of(const struct draw *draw, double rate);

/* The factor of surviving elements. */
static inline float survivor_factor(double rate) { return (float)(1 / (1 - rate)); }
