/* What the kernels of the cuda backend share: the backend's state, layouts of values, the queue.
 *
 * All work is queued on one stream, the queue, and runs in its order; a pass may fork work onto side streams, which it
 * joins again. A pass returns when its work is queued. Queued work must not depend on device memory that the host
 * reads: a whole step is captured once and launched again. */
#ifndef REMATCH_CUDA_H
#define REMATCH_CUDA_H

#include <cublasLt.h>

#include "backend/backend.h"
#include "backend/layer_state.h"
#include "errors.h"

/* Images (values of rank 3) lie N H W C, the logical order, or N C H W; all else in logical order. No padding. */
enum order { ORDER_LOGICAL, ORDER_CHANNELS_FIRST };

struct phase_timing; /* phase_timing.c's */
struct capture;      /* graph_capture.c's */
struct side_streams; /* side_streams.h */

/* The host's ends of what is copied at the start and at the end of a step. */
struct mailbox {
    struct step_moment moment;
    struct step_outcome outcome;
};

struct cuda {
    cudaStream_t stream, copies;       /* the queue; transfers of the next batch beside it */
    cudaEvent_t sent, taken;           /* the next batch is there; it is the batch now, and its place is free */
    struct side_streams *side_streams; /* beside the queue */
    cudnnHandle_t cudnn;
    cublasHandle_t blas; /* for batches of products by pointers */
    cublasLtHandle_t blas_lt;
    bool tf32;                             /* products and convolutions may round their operands to TF32 */
    bool stepped;                          /* a step was queued since the last wait */
    cudaError_t failed;                    /* the first error of what returns none */
    struct mailbox *mail;                  /* page-locked */
    struct phase_timing *calls, *timeline; /* of what is queued call by call; of the last step, or of none */
    struct capture *capture;
    char isa[64], libraries[128], device[320];
};

extern const struct backend_kind backend_cuda;
extern const struct kernel cuda_conv, cuda_linear, cuda_max_pool, cuda_avg_pool, cuda_global_avg_pool, cuda_flatten,
    cuda_relu, cuda_dropout, cuda_add, cuda_embedding, cuda_attention, cuda_gelu, cuda_layernorm, cuda_select,
    cuda_cross_entropy, cuda_sum;

static inline struct cuda *cuda_of(const struct backend *backend) { return backend->vendor; }

/* For functions that return no status: keeps the first error, which cuda_wait() returns. */
static inline void cuda_note(struct backend *backend, cudaError_t error)
{
    if (error != cudaSuccess && cuda_of(backend)->failed == cudaSuccess) cuda_of(backend)->failed = error;
}

/* The stream of the queue; what is queued on it from now on counts as class. */
cudaStream_t cuda_queue(struct backend *backend, enum clock_class class);
/* What is queued from now on belongs to this phase. */
void cuda_phase(struct backend *backend, enum phase phase);

/* Whether an image lies N C H W. */
static inline bool channels_first(const struct extent *x) { return x->layout == ORDER_CHANNELS_FIRST; }

#endif
