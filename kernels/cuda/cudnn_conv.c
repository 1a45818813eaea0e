/* The legacy calls of cuDNN 9, whose arguments have another order and other types in each pass. */
#include "cudnn_conv.h"

enum family { FAMILY_NONE, FAMILY_DIRECT, FAMILY_FFT, FAMILY_WINOGRAD }; /* NONE: not used */

/* ANSWERS: an algorithm may appear once for each math type. */
enum { ALGORITHMS_MOST = CUDNN_CONVOLUTION_FWD_ALGO_COUNT, ANSWERS = 2 * ALGORITHMS_MOST };

/* The algorithms of each pass, by number. */
static const struct algorithm_row {
    const char *name;
    enum family family;
} algorithm_rows[CONV_PASSES][ALGORITHMS_MOST] = {
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

static enum status describe(const struct conv_problem *problem, int64_t samples, struct convolution *c)
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
    TRY(cudnn_check(cudnnSetConvolutionGroupCount(c->window, (int)problem->groups), "number of groups"));
    return cudnn_check(cudnnSetConvolutionMathType(c->window, problem->tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH),
                       "math type");
}

void cudnn_plan_release(struct conv_plan *plan)
{
    for (int i = 0; i < 2; i++) {
        const struct convolution *c = &plan->call[i];
        if (c->x != NULL) cudnnDestroyTensorDescriptor(c->x);
        if (c->y != NULL) cudnnDestroyTensorDescriptor(c->y);
        if (c->w != NULL) cudnnDestroyFilterDescriptor(c->w);
        if (c->window != NULL) cudnnDestroyConvolutionDescriptor(c->window);
    }
    *plan = (struct conv_plan){0};
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

/* Kernels that convert to half precision are never allowed, those of tensor cores only in TF32. */
static bool usable(const struct conv_problem *problem, enum conv_pass pass, enum family wanted,
                   const struct answer *answer)
{
    if (answer->status != CUDNN_STATUS_SUCCESS || answer->determinism != CUDNN_DETERMINISTIC ||
        answer->math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION ||
        (answer->math == CUDNN_TENSOR_OP_MATH && !problem->tf32) || answer->algorithm < 0 ||
        answer->algorithm >= ALGORITHMS_MOST)
        return false;
    const enum family family = algorithm_rows[pass][answer->algorithm].family;
    return family != FAMILY_NONE && (wanted == FAMILY_NONE || wanted == family);
}

/* Bytes of workspace; false where the algorithm does not support the problem. */
static bool workspace_of(cudnnHandle_t cudnn, const struct convolution *c, enum conv_pass pass, int algorithm,
                         size_t *bytes)
{
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

/* ---- the choice ---- */

/* A pass and its limits. */
struct request {
    cudnnHandle_t cudnn;
    const struct conv_problem *problem;
    enum conv_pass pass;
    enum family family;
    size_t limit; /* bytes of workspace */
    bool failed;  /* cuDNN did; the message says why */
};

/* Sets a described plan to an answer; false where it does not support the problem. */
static bool take(const struct request *r, const struct answer *answer, struct conv_plan *plan)
{
    size_t rest = 0;
    plan->algorithm = answer->algorithm;
    plan->name = algorithm_rows[r->pass][answer->algorithm].name;
    plan->math = r->problem->tf32 ? answer->math : CUDNN_FMA_MATH;
    for (int i = 0; i < (plan->rest > 0 ? 2 : 1); i++)
        if (cudnnSetConvolutionMathType(plan->call[i].window, plan->math) != CUDNN_STATUS_SUCCESS) return false;
    if (!workspace_of(r->cudnn, &plan->call[0], r->pass, plan->algorithm, &plan->workspace)) return false;
    if (plan->rest > 0 && !workspace_of(r->cudnn, &plan->call[1], r->pass, plan->algorithm, &rest)) return false;
    if (rest > plan->workspace) plan->workspace = rest;
    return true;
}

/* The first usable algorithm that keeps the limit, for chunks of so many samples; *least: the least workspace of all of
 * them, SIZE_MAX: there is none. */
static bool choose(struct request *r, int64_t chunk, size_t *least, struct conv_plan *plan)
{
    static int (*const ask[CONV_PASSES])(cudnnHandle_t, const struct convolution *,
                                         struct answer *) = {ask_forward, ask_params, ask_input};
    struct answer answers[ANSWERS];
    *plan = (struct conv_plan){.chunk = chunk, .rest = r->problem->batch % chunk};
    *least = SIZE_MAX;
    if (describe(r->problem, chunk, &plan->call[0]) == ST_OK &&
        (plan->rest == 0 || describe(r->problem, plan->rest, &plan->call[1]) == ST_OK)) {
        const int count = ask[r->pass](r->cudnn, &plan->call[0], answers);
        if (count < 0) r->failed = true;
        for (int i = 0; i < count; i++) {
            if (!usable(r->problem, r->pass, r->family, &answers[i]) || !take(r, &answers[i], plan)) continue;
            if (plan->workspace <= r->limit) return true;
            if (plan->workspace < *least) *least = plan->workspace;
        }
    }
    cudnn_plan_release(plan);
    return false;
}

/* About half of a chunk, such that each chunk starts at a multiple of 16 bytes in x and in y; 0: none is smaller. */
static int64_t next_chunk(const struct conv_problem *problem, int64_t chunk)
{
    const int64_t elements = shape_elements(&problem->x) | shape_elements(&problem->y);
    const int64_t step = elements % 4 == 0 ? 1 : elements % 2 == 0 ? 2 : 4;
    const int64_t next = ratio_up(chunk, 2 * step) * step;
    return next < chunk ? next : 0;
}

/* Where no chunk keeps the limit, *least is the least workspace of the smallest chunk, *smallest. */
static bool choose_chunk(struct request *r, int64_t *smallest, size_t *least, struct conv_plan *plan)
{
    for (int64_t chunk = r->problem->batch; chunk > 0; chunk = next_chunk(r->problem, chunk)) {
        *smallest = chunk;
        if (choose(r, chunk, least, plan)) return true;
    }
    return false;
}

enum status cudnn_plan_make(cudnnHandle_t cudnn, const struct conv_problem *problem, enum conv_pass pass,
                            enum conv_algorithm wanted, size_t limit, struct conv_plan *plan)
{
    struct request r = {cudnn, problem, pass, FAMILY_WINOGRAD, limit, false};
    int64_t smallest = 0;
    size_t least = SIZE_MAX;
    if (wanted == CONV_WINOGRAD && choose_chunk(&r, &smallest, &least, plan)) return ST_OK;
    r.family = wanted == CONV_DIRECT ? FAMILY_DIRECT : FAMILY_NONE;
    if (choose_chunk(&r, &smallest, &least, plan)) return ST_OK;
    r.limit = least;
    if (least < SIZE_MAX && choose(&r, smallest, &least, plan)) return ST_OK;
    if (r.failed) return ST_FAILED;
    return fail(ST_FAILED, "cuDNN has no deterministic algorithm for such a convolution with %s",
                problem->order == ORDER_CHANNELS_FIRST ? "channels first" : "channels last");
}

/* ---- the passes ---- */

/* o: the operands of a chunk; out = or += the result. */
static enum status run(cudnnHandle_t cudnn, const struct convolution *c, enum conv_pass pass,
                       const struct conv_plan *plan, const struct conv_operands *o, bool add)
{
    const float one = 1, beta = add ? 1 : 0;
    if (pass == CONV_FORWARD)
        return cudnn_check(cudnnConvolutionForward(cudnn, &one, c->x, o->x, c->w, o->w, c->window,
                                                   (cudnnConvolutionFwdAlgo_t)plan->algorithm, o->workspace,
                                                   plan->workspace, &beta, c->y, o->y),
                           "convolution");
    if (pass == CONV_PARAMS)
        return cudnn_check(cudnnConvolutionBackwardFilter(cudnn, &one, c->x, o->x, c->y, o->y, c->window,
                                                          (cudnnConvolutionBwdFilterAlgo_t)plan->algorithm,
                                                          o->workspace, plan->workspace, &beta, c->w, o->w),
                           "gradient of a convolution's weights");
    return cudnn_check(cudnnConvolutionBackwardData(cudnn, &one, c->w, o->w, c->y, o->y, c->window,
                                                    (cudnnConvolutionBwdDataAlgo_t)plan->algorithm, o->workspace,
                                                    plan->workspace, &beta, c->x, o->x),
                       "gradient of a convolution's input");
}

enum status cudnn_plan_run(cudnnHandle_t cudnn, const struct conv_problem *problem, enum conv_pass pass,
                           const struct conv_plan *plan, const struct conv_operands *operands)
{
    const int64_t x = shape_elements(&problem->x), y = shape_elements(&problem->y);
    for (int64_t n = 0; n < problem->batch; n += plan->chunk) {
        const struct conv_operands chunk = {operands->x + n * x, operands->w, operands->y + n * y, operands->workspace};
        const bool rest = n + plan->chunk > problem->batch;
        TRY(run(cudnn, &plan->call[rest], pass, plan, &chunk, pass == CONV_PARAMS && n > 0));
    }
    return ST_OK;
}
