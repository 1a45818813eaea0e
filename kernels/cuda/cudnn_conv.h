/* cuDNN's convolutions: descriptors, algorithms, workspaces, the three passes behind one interface.
 *
 * Only algorithms that cuDNN calls deterministic are used, both in its reference (enums of cudnn_ops.h: backward filter
 * 0 and 3 and backward data 0 are not) and in its answer for the problem. The fused call that adds bias and relu is not
 * used, since no query reports which algorithms it takes. A kernel runs with the arithmetic for which it was ranked;
 * without TF32 the descriptors say CUDNN_FMA_MATH. */
#ifndef REMATCH_KERNELS_CUDA_CUDNN_CONV_H
#define REMATCH_KERNELS_CUDA_CUDNN_CONV_H

#include "cuda.h"

enum conv_pass { CONV_FORWARD, CONV_PARAMS, CONV_INPUT, CONV_PASSES };
enum conv_family { FAMILY_NONE, FAMILY_DIRECT, FAMILY_FFT, FAMILY_WINOGRAD }; /* NONE: not used */
enum { ALGORITHMS_MOST = CUDNN_CONVOLUTION_FWD_ALGO_COUNT };

/* What is convolved. x, y: {H, W, C} of one sample; weights: {O, I, k, k}. All three lie in the same order, the
 * weights O I H W with channels first and O H W I else. */
struct conv_problem {
    struct shape x, y, weights;
    enum order order;
    int64_t stride, padding;
    bool tf32;
};

/* The problem described for a number of samples. */
struct convolution {
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t window;
    bool tf32;
};

/* FORWARD reads x and w, PARAMS x and y, INPUT w and y; out is the third. */
struct conv_operands {
    const void *x, *w, *y;
    void *out;
    bool accumulate; /* out += */
    void *workspace;
    size_t workspace_bytes;
};

/* An algorithm, and the arithmetic of its kernel, for which rank, workspace and determinism hold. */
struct conv_ranked {
    int algorithm;
    cudnnMathType_t math;
};

/* An algorithm of a pass, by its number in cuDNN. */
struct conv_algorithm_row {
    const char *name;
    enum conv_family family;
};

/* The arithmetic of the query. */
static inline cudnnMathType_t conv_math(const struct conv_problem *problem)
{
    return problem->tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

/* ST_FAILED where cuDNN cannot describe it; a tensor holds at most 2^31 - 1 elements. */
enum status convolution_describe(const struct conv_problem *problem, int64_t samples, cudnnMathType_t math,
                                 struct convolution *convolution);
void convolution_release(struct convolution *convolution);

/* Ranks the usable algorithms, fastest first by cuDNN's heuristics; returns their number, -1: cuDNN failed, the message
 * says why. */
int convolution_rank(cudnnHandle_t cudnn, const struct convolution *convolution, enum conv_pass pass,
                     struct conv_ranked ranked[ALGORITHMS_MOST]);
const struct conv_algorithm_row *convolution_algorithm(enum conv_pass pass, int algorithm);

/* Bytes of workspace; false where the algorithm does not support the problem. */
bool convolution_workspace(cudnnHandle_t cudnn, const struct convolution *convolution, enum conv_pass pass,
                           int algorithm, size_t *bytes);
enum status convolution_run(cudnnHandle_t cudnn, const struct convolution *convolution, enum conv_pass pass,
                            int algorithm, const struct conv_operands *operands);

#endif
