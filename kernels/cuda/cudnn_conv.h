/* cuDNN's convolutions: algorithms, workspaces, chunks of the batch, the three passes behind one interface.
 *
 * Only algorithms that cuDNN calls deterministic are used, both in its reference (enums of cudnn_ops.h: backward filter
 * 0 and 3 and backward data 0 are not) and in its answer for the problem. The fused call that adds bias and relu is not
 * used, since no query reports which algorithms it takes. A kernel runs with the arithmetic for which it was ranked;
 * without TF32 the descriptors say CUDNN_FMA_MATH. */
#pragma once

#include "cuda.h"

enum conv_pass { CONV_FORWARD, CONV_PARAMS, CONV_INPUT, CONV_PASSES };

/* What is convolved. x, y: {H, W, C} of one sample; weights: {O, I / groups, k, k}. All three lie in the same order,
 * the weights O I H W with channels first and O H W I else. */
struct conv_problem {
    int64_t batch;
    struct shape x, y, weights;
    enum order order;
    int64_t groups, stride, padding;
    bool tf32;
};

/* The problem described for a number of samples. */
struct convolution {
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t window;
};

/* How a pass is computed. */
struct conv_plan {
    int algorithm;              /* its number in cuDNN */
    const char *name;           /* of the algorithm */
    cudnnMathType_t math;       /* the arithmetic of its kernel */
    int64_t chunk, rest;        /* samples: of a call, and of the last one where the batch is no multiple, else 0 */
    size_t workspace;           /* bytes of a call */
    struct convolution call[2]; /* of a chunk, and of the rest */
};

/* Chooses by cuDNN's heuristics, which know the device but time nothing, so that two runs of one spec choose alike: of
 * the largest chunk for which there is one, the first deterministic algorithm of the wanted kind whose workspace keeps
 * the limit. Where no chunk keeps it, the smallest chunk and the least workspace. Winograd's kind is only a wish.
 * ST_FAILED: there is no algorithm. */
enum status cudnn_plan_make(cudnnHandle_t cudnn, const struct conv_problem *problem, enum conv_pass pass,
                            enum conv_algorithm wanted, size_t limit, struct conv_plan *plan);
void cudnn_plan_release(struct conv_plan *plan);

/* Values and weights, whole, in device memory. */
struct conv_operands {
    float *x, *w, *y;
    void *workspace;
};

/* FORWARD computes y of x and w, PARAMS w of x and y, INPUT x of w and y; chunk after chunk, over which PARAMS adds. */
enum status cudnn_plan_run(cudnnHandle_t cudnn, const struct conv_problem *problem, enum conv_pass pass,
                           const struct conv_plan *plan, const struct conv_operands *operands);
