/* The host device's cuBLAS and cuDNN against products and convolutions that follow the definitions. */
#include <criterion/criterion.h>
#include <cublas_v2.h>
#include <cudnn.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) cr_assert((int)(call) == 0, "%s", #call)

enum { ROOM = 1 << 20 };
static cudaStream_t stream;
static char *room;

static void begin(void)
{
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&room, ROOM));
}

static void end(void)
{
    OK(cudaFree(room));
    OK(cudaStreamDestroy(stream));
}

TestSuite(vendor, .init = begin, .fini = end);

/* count numbers of the device, and what they are. */
static float *numbers(int count, int seed, float *same)
{
    float *there;
    for (int i = 0; i < count; i++) same[i] = (float)((i * 37 + seed * 11) % 41 - 20) / 8;
    OK(cudaMalloc((void **)&there, (size_t)count * sizeof *there));
    OK(cudaMemcpy(there, same, (size_t)count * sizeof *there, cudaMemcpyHostToDevice));
    return there;
}

static void expect(const float *there, const float *right, int count, const char *what, int which)
{
    float *out = malloc((size_t)count * sizeof *out);
    cr_assert(out);
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(out, there, (size_t)count * sizeof *out, cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++)
        cr_assert(fabsf(out[i] - right[i]) < 1e-4f, "%s %d, %d: %g, not %g", what, which, i, (double)out[i],
                  (double)right[i]);
    free(out);
}

enum { M = 5, N = 4, K = 3, LD = 7 };

/* d = 2 op(a) op(b) + d by column-major matrices of leading dimension LD. */
static void product(const float *a, const float *b, float *d, int ta, int tb)
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += (ta ? a[k + i * LD] : a[i + k * LD]) * (tb ? b[j + k * LD] : b[k + j * LD]);
            d[i + j * LD] += 2 * sum;
        }
}

Test(vendor, products_in_batches)
{
    enum { EACH = LD * LD, COUNT = 2 * EACH };
    cublasHandle_t blas;
    float a[COUNT], b[COUNT], c[COUNT];
    const float alpha = 2, beta = 1;
    OK(cublasCreate(&blas));
    for (int t = 0; t < 4; t++) {
        float *there[] = {numbers(COUNT, 0, a), numbers(COUNT, 3, b), numbers(COUNT, 6, c)};
        for (int i = 0; i < 2; i++) product(a + i * EACH, b + i * EACH, c + i * EACH, t & 1, t & 2);
#define MULTIPLY()                                                                                                     \
    cublasGemmStridedBatchedEx(blas, t & 1 ? CUBLAS_OP_T : CUBLAS_OP_N, t & 2 ? CUBLAS_OP_T : CUBLAS_OP_N, M, N, K,    \
                               &alpha, there[0], CUDA_R_32F, LD, EACH, there[1], CUDA_R_32F, LD, EACH, &beta,          \
                               there[2], CUDA_R_32F, LD, EACH, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT)
        OK(cublasSetStream(blas, stream));
        cr_assert(MULTIPLY() == CUBLAS_STATUS_ALLOC_FAILED, "it has no workspace of its own");
        OK(cublasSetWorkspace(blas, room, ROOM));
        OK(MULTIPLY());
        expect(there[2], c, COUNT, "product", t);
        for (int i = 0; i < 3; i++) OK(cudaFree(there[i]));
    }
    OK(cublasDestroy(blas));
}

enum { B = 2, C = 6, H = 6, W = 5, O = 4, R = 3, X = B * C * H * W, F = O * C * R * R };

/* A convolution, padding 1, by stride and groups; images N H W C or N C H W, filters alike. */
struct conv {
    int last, stride, groups, p, q;
    float x[X], w[F], y[B * O * H * W];
};

static int place(const struct conv *v, int n, int c, int h, int w, int channels, int height, int width)
{
    return v->last ? ((n * height + h) * width + w) * channels + c : ((n * channels + c) * height + h) * width + w;
}

/* Adds each term to the one of x, w and y that is computed (0, 1, 2); double would not be more exact. */
static void convolve(struct conv *v, int made)
{
    const int in = C / v->groups;
    for (int n = 0; n < B; n++)
        for (int o = 0; o < O; o++)
            for (int c = o / (O / v->groups) * in; c < (o / (O / v->groups) + 1) * in; c++)
                for (int i = 0; i < v->p * v->q * R * R; i++) {
                    const int p = i / R / R / v->q, q = i / R / R % v->q, r = i / R % R, s = i % R;
                    const int h = p * v->stride + r - 1, w = q * v->stride + s - 1;
                    if (h < 0 || h >= H || w < 0 || w >= W) continue;
                    float *xs = &v->x[place(v, n, c, h, w, C, H, W)], *ws = &v->w[place(v, o, c % in, r, s, in, R, R)];
                    float *ys = &v->y[place(v, n, o, p, q, O, v->p, v->q)];
                    if (made == 0) *xs += *ws * *ys;
                    if (made == 1) *ws += *xs * *ys;
                    if (made == 2) *ys += *xs * *ws;
                }
}

static struct {
    cudnnHandle_t dnn;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t c;
} d;

static void describe(const struct conv *v)
{
    const cudnnTensorFormat_t format = v->last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    OK(cudnnCreate(&d.dnn));
    OK(cudnnSetStream(d.dnn, stream));
    OK(cudnnCreateTensorDescriptor(&d.x));
    OK(cudnnCreateTensorDescriptor(&d.y));
    OK(cudnnCreateFilterDescriptor(&d.w));
    OK(cudnnCreateConvolutionDescriptor(&d.c));
    OK(cudnnSetTensor4dDescriptor(d.x, format, CUDNN_DATA_FLOAT, B, C, H, W));
    OK(cudnnSetTensor4dDescriptor(d.y, format, CUDNN_DATA_FLOAT, B, O, v->p, v->q));
    OK(cudnnSetFilter4dDescriptor(d.w, CUDNN_DATA_FLOAT, format, O, C / v->groups, R, R));
    OK(cudnnSetConvolution2dDescriptor(d.c, 1, 1, v->stride, v->stride, 1, 1, CUDNN_CROSS_CORRELATION,
                                       CUDNN_DATA_FLOAT));
    OK(cudnnSetConvolutionGroupCount(d.c, v->groups));
    OK(cudnnSetConvolutionMathType(d.c, CUDNN_FMA_MATH)); /* with which Winograd is offered */
}

static void forget(void)
{
    OK(cudnnDestroyTensorDescriptor(d.x));
    OK(cudnnDestroyTensorDescriptor(d.y));
    OK(cudnnDestroyFilterDescriptor(d.w));
    OK(cudnnDestroyConvolutionDescriptor(d.c));
    OK(cudnnDestroy(d.dnn));
}

/* Every deterministic algorithm of the pass that computes x (0), w (1) or y (2), added to the old values. */
static void check(struct conv *v, int made)
{
    const float one = 1;
    float *data[] = {v->x, v->w, v->y}, *t[3];
    const int counts[] = {X, F / v->groups, B * O * v->p * v->q};
    int tried = 0;
    for (int algorithm = 0; algorithm < 8; algorithm++) {
        size_t bytes = 0;
        for (int i = 0; i < 3; i++) t[i] = numbers(counts[i], i, data[i]);
        int status =
            made == 2 ? (int)cudnnGetConvolutionForwardWorkspaceSize(d.dnn, d.x, d.w, d.c, d.y, algorithm, &bytes)
            : made ? (int)cudnnGetConvolutionBackwardFilterWorkspaceSize(d.dnn, d.x, d.y, d.c, d.w, algorithm, &bytes)
                   : (int)cudnnGetConvolutionBackwardDataWorkspaceSize(d.dnn, d.w, d.y, d.c, d.x, algorithm, &bytes);
        const bool fft = algorithm == (made == 2 ? CUDNN_CONVOLUTION_FWD_ALGO_FFT
                                       : made    ? CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT
                                                 : CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT);
        const bool unordered = fft || (made == 2 ? false : made ? algorithm % 3 == 0 : algorithm == 0);
        for (size_t given = bytes > 0 ? bytes - 1 : 0; status == 0 && !unordered && given <= bytes; given++) {
            cudnnStatus_t run = made == 2 ? cudnnConvolutionForward(d.dnn, &one, d.x, t[0], d.w, t[1], d.c, algorithm,
                                                                    room, given, &one, d.y, t[2])
                                : made    ? cudnnConvolutionBackwardFilter(d.dnn, &one, d.x, t[0], d.y, t[2], d.c,
                                                                           algorithm, room, given, &one, d.w, t[1])
                                       : cudnnConvolutionBackwardData(d.dnn, &one, d.w, t[1], d.y, t[2], d.c, algorithm,
                                                                      room, given, &one, d.x, t[0]);
            cr_assert((run == CUDNN_STATUS_SUCCESS) == (given == bytes), "workspace of %zu", given);
            tried += given == bytes;
        }
        if (status == 0 && !unordered) {
            convolve(v, made);
            expect(t[made], data[made], counts[made], made == 2 ? "forward" : made ? "filter" : "data", algorithm);
        }
        for (int i = 0; i < 3; i++) OK(cudaFree(t[i]));
    }
    cr_assert(tried >= (v->last || v->stride > 1 ? 1 : 2));
}

Test(vendor, convolutions)
{
    for (int last = 0; last < 2; last++)
        for (int way = 0; way < 4; way++) {
            const int stride = way % 2 + 1, groups = way / 2 + 1;
            struct conv *v = calloc(1, sizeof *v);
            cr_assert(v);
            v->last = last, v->stride = stride, v->groups = groups, v->p = (H - 1) / stride + 1,
            v->q = (W - 1) / stride + 1;
            describe(v);
            for (int made = 0; made < 3; made++) check(v, made);
            forget();
            free(v);
        }
}

Test(vendor, a_nondeterministic_algorithm_ends_the_program, .signal = SIGABRT)
{
    struct conv v = {.stride = 1, .groups = 1, .p = H, .q = W};
    const float one = 1;
    describe(&v);
    cudnnConvolutionBackwardData(d.dnn, &one, d.w, room, d.y, room, d.c, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, NULL, 0,
                                 &one, d.x, room);
}
