/* The legacy calls of cuDNN 9, whose arguments have another order and other types in each pass. */
#include "cudnn_conv.h"

enum { ANSWERS = 2 * ALGORITHMS_MOST }; /* an algorithm may appear once for each math type */

static const struct conv_algorithm_row algorithm_rows[CONV_PASSES][ALGORITHMS_MOST] = {
    [CONV_FORWARD] = {[CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM] = {"implicit_gemm", FAMILY_DIRECT},
                      [CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM] = {"implicit_precomp_gemm", FAMILY_DIRECT},
                      [CUDNN_CONVOLUTION_FWD_ALGO_GEMM] = {"gemm", FAMILY_DIRECT},
                      [CUDNN_CONVOLUTION_FWD_ALGO_DIRECT] = {"direct", FAMILY_DIRECT},
                      [CUDNN_CONVOLUTION_FWD_ALGO_FFT] = {"fft", FAMILY_FFT},
                      [CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING] = {"fft_tiling", FAMILY_FFT},
                      [CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD] = {"winograd", FAMILY_WINOGRAD},
                      [CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED] = {"winograd_nonfused", FAMILY_WINOGRAD}},
    [CONV_PARAMS] = {[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1] = {"algo_1", FAMILY_DIRECT},
                     [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT] = {"fft", FAMILY_FFT},
                     [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED] = {"winograd_nonfused", FAMILY_WINOGRAD},
                     [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING] = {"fft_tiling", FAMILY_FFT}},
    [CONV_INPUT] = {[CUDNN_CONVOLUTION_BWD_DATA_ALGO_1] = {"algo_1", FAMILY_DIRECT},
                    [CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT] = {"fft", FAMILY_FFT},
                    [CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING] = {"fft_tiling", FAMILY_FFT},
                    [CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD] = {"winograd", FAMILY_WINOGRAD},
                    [CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED] = {"winograd_nonfused", FAMILY_WINOGRAD}},
};

const struct conv_algorithm_row *convolution_algorithm(enum conv_pass pass, int algorithm)
{
    return &algorithm_rows[pass][algorithm];
}

static enum status describe_images(cudnnTensorDescriptor_t *tensor, cudnnTensorFormat_t format, int64_t samples,
                                   const struct shape *image)
{
    if (samples > INT32_MAX / shape_elements(image))
        return fail(ST_FAILED, "cuDNN: a tensor of %lld samples is too large", (long long)samples);
    TRY(cudnn_check(cudnnCreateTensorDescriptor(tensor), "tensor descriptor"));
    return cudnn_check(cudnnSetTensor4dDescriptor(*tensor, format, CUDNN_DATA_FLOAT, (int)samples, (int)image->dim[2],
                                                  (int)image->dim[0], (int)image->dim[1]),
                       "tensor descriptor");
}

static enum status describe(const struct conv_problem *problem, int64_t samples, cudnnMathType_t math,
                            struct convolution *c)
{
    const cudnnTensorFormat_t format = problem->order == ORDER_CHANNELS_FIRST ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC;
    const int64_t *w = problem->weights.dim;
    const int padding = (int)problem->padding, stride = (int)problem->stride;
    if (shape_elements(&problem->weights) > INT32_MAX) return fail(ST_FAILED, "cuDNN: the weights are too large");
    TRY(describe_images(&c->x, format, samples, &problem->x));
    TRY(describe_images(&c->y, format, samples, &problem->y));
    TRY(cudnn_check(cudnnCreateFilterDescriptor(&c->w), "filter descriptor"));
    TRY(cudnn_check(
        cudnnSetFilter4dDescriptor(c->w, CUDNN_DATA_FLOAT, format, (int)w[0], (int)w[1], (int)w[2], (int)w[3]),
        "filter descriptor"));
    TRY(cudnn_check(cudnnCreateConvolutionDescriptor(&c->window), "convolution descriptor"));
    TRY(cudnn_check(cudnnSetConvolution2dDescriptor(c->window, padding, padding, stride, stride, 1, 1,
                                                    CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                    "convolution descriptor"));
    return cudnn_check(cudnnSetConvolutionMathType(c->window, math), "math type");
}

enum status convolution_describe(const struct conv_problem *problem, int64_t samples, cudnnMathType_t math,
                                 struct convolution *convolution)
{
    *convolution = (struct convolution){.tf32 = problem->tf32};
    const enum status status = describe(problem, samples, math, convolution);
    if (status != ST_OK) convolution_release(convolution);
    return status;
}

void convolution_release(struct convolution *convolution)
{
    if (convolution->x != NULL) cudnnDestroyTensorDescriptor(convolution->x);
    if (convolution->y != NULL) cudnnDestroyTensorDescriptor(convolution->y);
    if (convolution->w != NULL) cudnnDestroyFilterDescriptor(convolution->w);
    if (convolution->window != NULL) cudnnDestroyConvolutionDescriptor(convolution->window);
    *convolution = (struct convolution){0};
}

/* One answer of the heuristics, for any pass. */
struct answer {
    int algorithm;
    cudnnStatus_t status;
    cudnnDeterminism_t determinism;
    cudnnMathType_t math;
};

/* A function that asks the heuristics of a pass; returns the number of answers, -1: cuDNN failed. */
#define DEFINE_QUERY(name, perf_type, function, a, b, c)                                                               \
    static int name(cudnnHandle_t cudnn, const struct convolution *v, struct answer answers[ANSWERS])                  \
    {                                                                                                                  \
        perf_type perf[ANSWERS];                                                                                       \
        int count = 0;                                                                                                 \
        if (cudnn_check(function(cudnn, v->a, v->b, v->window, v->c, ANSWERS, &count, perf), "rank algorithms") !=     \
            ST_OK)                                                                                                     \
            return -1;                                                                                                 \
        for (int i = 0; i < count; i++)                                                                                \
            answers[i] = (struct answer){(int)perf[i].algo, perf[i].status, perf[i].determinism, perf[i].mathType};    \
        return count;                                                                                                  \
    }

DEFINE_QUERY(ask_forward, cudnnConvolutionFwdAlgoPerf_t, cudnnGetConvolutionForwardAlgorithm_v7, x, w, y)
DEFINE_QUERY(ask_params, cudnnConvolutionBwdFilterAlgoPerf_t, cudnnGetConvolutionBackwardFilterAlgorithm_v7, x, y, w)
DEFINE_QUERY(ask_input, cudnnConvolutionBwdDataAlgoPerf_t, cudnnGetConvolutionBackwardDataAlgorithm_v7, w, y, x)

/* Whether an answer is allowed and its algorithm is new. Kernels that convert to half precision are never allowed,
 * those of tensor cores only in TF32. */
static bool usable(const struct convolution *c, enum conv_pass pass, const struct answer *answer, int found,
                   const struct conv_ranked *ranked)
{
    if (answer->status != CUDNN_STATUS_SUCCESS || answer->determinism != CUDNN_DETERMINISTIC ||
        answer->math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION || (answer->math == CUDNN_TENSOR_OP_MATH && !c->tf32) ||
        answer->algorithm < 0 || answer->algorithm >= ALGORITHMS_MOST ||
        algorithm_rows[pass][answer->algorithm].family == FAMILY_NONE)
        return false;
    for (int i = 0; i < found; i++)
        if (ranked[i].algorithm == answer->algorithm) return false;
    return true;
}

int convolution_rank(cudnnHandle_t cudnn, const struct convolution *convolution, enum conv_pass pass,
                     struct conv_ranked ranked[ALGORITHMS_MOST])
{
    static int (*const ask[CONV_PASSES])(cudnnHandle_t, const struct convolution *,
                                         struct answer *) = {ask_forward, ask_params, ask_input};
    struct answer answers[ANSWERS];
    const int count = ask[pass](cudnn, convolution, answers);
    int found = 0;
    for (int i = 0; i < count; i++)
        if (usable(convolution, pass, &answers[i], found, ranked))
            ranked[found++] =
                (struct conv_ranked){answers[i].algorithm, convolution->tf32 ? answers[i].math : CUDNN_FMA_MATH};
    return found;
}

bool convolution_workspace(cudnnHandle_t cudnn, const struct convolution *convolution, enum conv_pass pass,
                           int algorithm, size_t *bytes)
{
    const struct convolution *c = convolution;
    cudnnStatus_t status;
    if (pass == CONV_FORWARD)
        status = cudnnGetConvolutionForwardWorkspaceSize(cudnn, c->x, c->w, c->window, c->y,
                                                         (cudnnConvolutionFwdAlgo_t)algorithm, bytes);
    else if (pass == CONV_PARAMS)
        status = cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnn, c->x, c->y, c->window, c->w,
                                                                (cudnnConvolutionBwdFilterAlgo_t)algorithm, bytes);
    else
        status = cudnnGetConvolutionBackwardDataWorkspaceSize(cudnn, c->w, c->y, c->window, c->x,
                                                              (cudnnConvolutionBwdDataAlgo_t)algorithm, bytes);
    return status == CUDNN_STATUS_SUCCESS;
}

enum status convolution_run(cudnnHandle_t cudnn, const struct convolution *convolution, enum conv_pass pass,
                            int algorithm, const struct conv_operands *operands)
{
    const struct convolution *c = convolution;
    const struct conv_operands *o = operands;
    const float one = 1, beta = o->accumulate ? 1 : 0;
    if (pass == CONV_FORWARD)
        return cudnn_check(cudnnConvolutionForward(cudnn, &one, c->x, o->x, c->w, o->w, c->window,
                                                   (cudnnConvolutionFwdAlgo_t)algorithm, o->workspace,
                                                   o->workspace_bytes, &beta, c->y, o->out),
                           "convolution");
    if (pass == CONV_PARAMS)
        return cudnn_check(cudnnConvolutionBackwardFilter(cudnn, &one, c->x, o->x, c->y, o->y, c->window,
                                                          (cudnnConvolutionBwdFilterAlgo_t)algorithm, o->workspace,
                                                          o->workspace_bytes, &beta, c->w, o->out),
                           "gradient of a convolution's weights");
    return cudnn_check(cudnnConvolutionBackwardData(cudnn, &one, c->w, o->w, c->y, o->y, c->window,
                                                    (cudnnConvolutionBwdDataAlgo_t)algorithm, o->workspace,
                                                    o->workspace_bytes, &beta, c->x, o->out),
                       "gradient of a convolution's input");
}
