/* How a pass of a convolution is done: algorithm, batch chunk, streams, scratch.
 *
 * The weights' gradient has few outputs, each a sum over all samples. cuDNN's kernels with unordered sums split a sum
 * over blocks of threads; its deterministic ones, whose workspaces are too small for partial sums, are assumed not to.
 * So the sums of several chunks are computed on side streams, each into its own memory, and added in an order that
 * depends on their number alone. */
#ifndef REMATCH_CUDA_CONV_PLAN_H
#define REMATCH_CUDA_CONV_PLAN_H

#include "cudnn_conv.h"

/* A pass and its limits. */
struct conv_request {
    cudnnHandle_t cudnn;
    const struct conv_problem *problem;
    enum conv_pass pass;
    int64_t batch;
    enum conv_algorithm algorithm;
    size_t limit; /* bytes of scratch */
};

/* One way to do a pass: the batch in chunks of so many samples, the last one shorter where the batch is no multiple. */
struct conv_choice {
    int algorithm;
    cudnnMathType_t math; /* as the heuristics ranked it */
    int64_t chunk;
    int streams;      /* PARAMS: on so many chunks are done side by side */
    size_t workspace; /* bytes of a call, the larger need of both sizes of chunk */
    size_t scratch;   /* of the pass: a workspace a stream, and the sums of chunks where PARAMS has several */
};

/* Bytes of a chunk's sum. */
static inline size_t conv_sum_bytes(const struct conv_problem *problem)
{
    return round_up((size_t)shape_elements(&problem->weights) * sizeof(float));
}

/* A choice, described. [0] works on a chunk, [1] on the rest of the batch. */
struct conv_plan {
    struct conv_choice choice;
    int64_t rest; /* samples; may be 0 */
    struct convolution call[2];
};

/* Lists the candidates: each usable algorithm with the largest chunk whose scratch keeps the limit or, where no chunk
 * does, with the chunk that needs the least scratch; for PARAMS also with smaller chunks, so that several chunks fill a
 * large device side by side. Chooses among them by rule and describes the choice. ST_FAILED: there is no candidate. */
enum status cuda_conv_plan_make(const struct conv_request *request, struct conv_plan *plan);
void cuda_conv_plan_release(struct conv_plan *plan);

#endif
