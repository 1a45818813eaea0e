/* The functions of cuDNN that are used, on the host device: plain loops. The algorithms differ in workspace and in
 * rounding, in TF32 where the math type allows it; cuDNN's nondeterministic algorithms are ranked too, and, first,
 * tensor cores in half precision: calling one of these is an error. */
#include <cudnn.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "device.h"

struct cudnnContext {
    cudaStream_t stream;
};

/* Images, and filters as images of so many outputs: strides of a sample, a channel, a row and a column. */
struct cudnnTensorStruct {
    cudnnTensorFormat_t format;
    int n, c, h, w;

    int64_t channel() const { return format == CUDNN_TENSOR_NHWC ? 1 : (int64_t)h * w; }
    int64_t column() const { return format == CUDNN_TENSOR_NHWC ? c : 1; }
    int64_t row() const { return column() * w; }
    int64_t sample() const { return (int64_t)c * h * w; }
    size_t bytes() const { return (size_t)(sample() * n) * sizeof(float); }
};

struct cudnnFilterStruct : cudnnTensorStruct {
};

struct cudnnConvolutionStruct {
    int pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w;
    cudnnMathType_t math;
    int groups;
};

namespace
{
struct convolution {
    cudnnTensorStruct x, w, y;
    cudnnConvolutionStruct c;
};

int extent(int x, int filter, int pad, int stride, int dilation)
{
    return (x + 2 * pad - dilation * (filter - 1) - 1) / stride + 1;
}

bool fits(const convolution &v)
{
    return v.x.n == v.y.n && v.x.c == v.w.c * v.c.groups && v.w.n % v.c.groups == 0 && v.w.n == v.y.c &&
           v.x.format == v.w.format && v.y.h == extent(v.x.h, v.w.h, v.c.pad_h, v.c.stride_h, v.c.dilation_h) &&
           v.y.w == extent(v.x.w, v.w.w, v.c.pad_w, v.c.stride_w, v.c.dilation_w) && v.x.format == v.y.format;
}

/* Calls f(offset in x, in w, in y) for each product of sample n, output channel k and input channel c of its group. */
template <class F> void each(const convolution &v, int n, int c, int k, F f)
{
    if (c / v.w.c != k / (v.w.n / v.c.groups)) return;
    for (int r = 0; r < v.w.h; r++)
        for (int s = 0; s < v.w.w; s++) {
            const int64_t w = k * v.w.sample() + c % v.w.c * v.w.channel() + r * v.w.row() + s * v.w.column();
            for (int p = 0; p < v.y.h; p++) {
                const int h = p * v.c.stride_h - v.c.pad_h + r * v.c.dilation_h;
                if (h < 0 || h >= v.x.h) continue;
                const int64_t x = n * v.x.sample() + c * v.x.channel() + h * v.x.row();
                const int64_t y = n * v.y.sample() + k * v.y.channel() + p * v.y.row();
                for (int q = 0; q < v.y.w; q++) {
                    const int i = q * v.c.stride_w - v.c.pad_w + s * v.c.dilation_w;
                    if (i >= 0 && i < v.x.w) f(x + i * v.x.column(), w, y + q * v.y.column());
                }
            }
        }
}

enum pass { FORWARD, DATA, FILTER };

/* The pass with sums of type T: out is y, dx or dw; a and b the other two in the order x, w, y. */
template <class T>
void run(const convolution &v, enum pass pass, const float *a, const float *b, float alpha, float beta, float *out)
{
    const cudnnTensorStruct &o = pass == FORWARD ? v.y : pass == DATA ? v.x : v.w;
    std::vector<T> sum((size_t)(o.sample() * o.n));
    for (int n = 0; n < v.x.n; n++)
        for (int c = 0; c < v.x.c; c++)
            for (int k = 0; k < v.y.c; k++) {
                if (pass == FORWARD)
                    each(v, n, c, k, [&](int64_t x, int64_t w, int64_t y) { sum[y] += (T)a[x] * (T)b[w]; });
                else if (pass == DATA)
                    each(v, n, c, k, [&](int64_t x, int64_t w, int64_t y) { sum[x] += (T)a[w] * (T)b[y]; });
                else
                    each(v, n, c, k, [&](int64_t x, int64_t w, int64_t y) { sum[w] += (T)a[x] * (T)b[y]; });
            }
    for (size_t i = 0; i < sum.size(); i++) out[i] = (float)(alpha * sum[i]) + (beta != 0 ? beta * out[i] : 0);
}

/* Algorithms by number. Workspace in bytes a sample, -1: none; float: sums are rounded to float all along. */
struct algorithm {
    int number;
    bool deterministic, simple; /* simple: only for 3x3 filters with stride 1, channels first */
    size_t workspace;
    bool rounds;
    bool tensor_cores = true; /* false: offered, and there, for CUDNN_FMA_MATH alone */
    bool first = false;       /* only channels first */
};

const std::vector<algorithm> algorithms[] = {
    {{CUDNN_CONVOLUTION_FWD_ALGO_FFT, false, false, 0, true, false}, /* of this very problem, that is */
     {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, true, true, 2000, true, false},
     {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, true, false, 300, false},
     {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, true, false, 0, true, true, true}},
    {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, false, false, 0, false},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, false, false, 0, true, false},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, true, true, 2000, true, false},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, true, false, 300, false}},
    {{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, false, false, 0, false},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, false, false, 0, true, false},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, false, false, 100, false},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, true, true, 2000, true, false},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, true, false, 300, false}},
};

const algorithm *find(const convolution &v, enum pass pass, int number)
{
    const bool simple = v.w.h == 3 && v.w.w == 3 && v.c.stride_h == 1 && v.c.stride_w == 1 && v.c.dilation_h == 1 &&
                        v.c.dilation_w == 1 && v.x.format == CUDNN_TENSOR_NCHW;
    for (const algorithm &a : algorithms[pass])
        if (a.number == number)
            return (!a.simple || simple) && (!a.first || v.x.format == CUDNN_TENSOR_NCHW) ? &a : nullptr;
    return nullptr;
}

cudnnStatus_t workspace(const convolution &v, enum pass pass, int number, size_t *bytes)
{
    if (!fits(v)) return CUDNN_STATUS_BAD_PARAM;
    const algorithm *a = find(v, pass, number);
    if (a == nullptr || (v.c.math != CUDNN_FMA_MATH && !a->tensor_cores)) return CUDNN_STATUS_NOT_SUPPORTED;
    *bytes = a->workspace * (size_t)v.x.n;
    return CUDNN_STATUS_SUCCESS;
}

template <class Perf>
cudnnStatus_t rank(const convolution &v, enum pass pass, int requested, int *returned, Perf *results)
{
    *returned = 0;
    if (!fits(v) || requested < 1) return CUDNN_STATUS_BAD_PARAM;
    for (const algorithm &a : algorithms[pass])
        for (cudnnMathType_t math : {CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, CUDNN_TENSOR_OP_MATH, CUDNN_DEFAULT_MATH}) {
            if (*returned == requested) break;
            /* Asked for CUDNN_FMA_MATH, some say so and some do not. */
            const bool plain = !a.tensor_cores || (v.c.math == CUDNN_FMA_MATH && !a.rounds);
            if (plain && math != CUDNN_DEFAULT_MATH) continue;
            Perf *p = &results[(*returned)++];
            *p = {};
            p->algo = (decltype(p->algo))a.number;
            convolution offered = v;
            offered.c.math = plain ? CUDNN_FMA_MATH : math;
            p->status = workspace(offered, pass, a.number, &p->memory);
            p->time = p->status == CUDNN_STATUS_SUCCESS ? (float)*returned : -1;
            p->determinism = a.deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
            p->mathType = offered.c.math;
        }
    return CUDNN_STATUS_SUCCESS;
}

std::vector<float> operand(const void *x, size_t bytes, bool tf32)
{
    std::vector<float> all((const float *)x, (const float *)x + bytes / sizeof(float));
    if (tf32)
        for (float &one : all) one = device_tf32(one);
    return all;
}

cudnnStatus_t convolve(cudnnHandle_t handle, const convolution &v, enum pass pass, int number, const void *alpha,
                       const void *a, size_t a_bytes, const void *b, size_t b_bytes, void *room, size_t room_bytes,
                       const void *beta, void *out, size_t out_bytes)
{
    size_t needed;
    const cudnnStatus_t status = workspace(v, pass, number, &needed);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const algorithm *chosen = find(v, pass, number);
    if (!chosen->deterministic)
        device_wrong("a convolution's algorithm %d of pass %d is not deterministic", number, pass);
    if (room_bytes < needed || (needed > 0 && !device_holds(room, room_bytes)) || (uintptr_t)room % 256 != 0 ||
        !device_holds(a, a_bytes) || !device_holds(b, b_bytes) || !device_holds(out, out_bytes) ||
        (uintptr_t)a % 16 != 0 || (uintptr_t)b % 16 != 0 || (uintptr_t)out % 16 != 0)
        return CUDNN_STATUS_BAD_PARAM;
    const float one = *(const float *)alpha, other = *(const float *)beta;
    device_claim(handle->stream, room, needed);
    device_claim(handle->stream, out, out_bytes);
    const bool tf32 = v.c.math != CUDNN_FMA_MATH;
    if (v.c.math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) device_wrong("a convolution in half precision");
    auto work = [=] {
        if (needed > 0) device_spoil(room, room_bytes);
        const std::vector<float> left = operand(a, a_bytes, tf32), right = operand(b, b_bytes, tf32);
        (chosen->rounds ? run<float> : run<double>)(v, pass, left.data(), right.data(), one, other, (float *)out);
    };
    return device_queue(handle->stream, work) == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

template <class T> cudnnStatus_t create(T **handle)
{
    *handle = new T{};
    return CUDNN_STATUS_SUCCESS;
}

template <class T> cudnnStatus_t destroy(T *handle)
{
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set(cudnnTensorStruct *t, cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c, int h, int w)
{
    if (n < 1 || c < 1 || h < 1 || w < 1) return CUDNN_STATUS_BAD_PARAM;
    if (type != CUDNN_DATA_FLOAT || format == CUDNN_TENSOR_NCHW_VECT_C) return CUDNN_STATUS_NOT_SUPPORTED;
    t->format = format;
    t->n = n, t->c = c, t->h = h, t->w = w;
    return CUDNN_STATUS_SUCCESS;
}
} // namespace

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    return device_status() == cudaSuccess ? create(handle) : CUDNN_STATUS_NOT_INITIALIZED;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return destroy(handle); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}
size_t cudnnGetVersion(void) { return CUDNN_VERSION; }
void cudnnGetLastErrorString(char *message, size_t bytes) { snprintf(message, bytes, "%s", ""); }
const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS ? "success" : "an error of the host device's cuDNN";
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *x) { return create(x); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t x) { return destroy(x); }
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t x, cudnnTensorFormat_t format, cudnnDataType_t type,
                                         int n, int c, int h, int w)
{
    return set(x, format, type, n, c, h, w);
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *w) { return create(w); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t w) { return destroy(w); }
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w)
{
    return set(filter, format, type, k, c, h, w);
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *c) { return create(c); }
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t c) { return destroy(c); }
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t c, int pad_h, int pad_w, int u, int v,
                                              int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type)
{
    if (mode != CUDNN_CROSS_CORRELATION || type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_NOT_SUPPORTED;
    if (pad_h < 0 || pad_w < 0 || u < 1 || v < 1 || dilation_h < 1 || dilation_w < 1) return CUDNN_STATUS_BAD_PARAM;
    *c = {pad_h, pad_w, u, v, dilation_h, dilation_w, CUDNN_DEFAULT_MATH, 1};
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t c, int groups)
{
    if (groups < 1) return CUDNN_STATUS_BAD_PARAM;
    c->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t c, cudnnMathType_t math)
{
    c->math = math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y, const int requested,
                                                     int *returned, cudnnConvolutionFwdAlgoPerf_t *results)
{
    return rank({*x, *w, *y, *c}, FORWARD, requested, returned, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, const cudnnFilterDescriptor_t w,
                                                          const cudnnTensorDescriptor_t dy,
                                                          const cudnnConvolutionDescriptor_t c,
                                                          const cudnnTensorDescriptor_t dx, const int requested,
                                                          int *returned, cudnnConvolutionBwdDataAlgoPerf_t *results)
{
    return rank({*dx, *w, *dy, *c}, DATA, requested, returned, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t dy,
                                                            const cudnnConvolutionDescriptor_t c,
                                                            const cudnnFilterDescriptor_t dw, const int requested,
                                                            int *returned, cudnnConvolutionBwdFilterAlgoPerf_t *results)
{
    return rank({*x, *dw, *dy, *c}, FILTER, requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t c,
                                                      const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
                                                      size_t *bytes)
{
    return workspace({*x, *w, *y, *c}, FORWARD, algo, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t dy,
                                                           const cudnnConvolutionDescriptor_t c,
                                                           const cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes)
{
    return workspace({*dx, *w, *dy, *c}, DATA, algo, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t dy,
                                                             const cudnnConvolutionDescriptor_t c,
                                                             const cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes)
{
    return workspace({*x, *dw, *dy, *c}, FILTER, algo, bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x_desc,
                                      const void *x, const cudnnFilterDescriptor_t w_desc, const void *w,
                                      const cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algo, void *room,
                                      size_t room_bytes, const void *beta, const cudnnTensorDescriptor_t y_desc,
                                      void *y)
{
    return convolve(handle, {*x_desc, *w_desc, *y_desc, *c}, FORWARD, algo, alpha, x, x_desc->bytes(), w,
                    w_desc->bytes(), room, room_bytes, beta, y, y_desc->bytes());
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           const cudnnFilterDescriptor_t w_desc, const void *w,
                                           const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                           const cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdDataAlgo_t algo,
                                           void *room, size_t room_bytes, const void *beta,
                                           const cudnnTensorDescriptor_t dx_desc, void *dx)
{
    return convolve(handle, {*dx_desc, *w_desc, *dy_desc, *c}, DATA, algo, alpha, w, w_desc->bytes(), dy,
                    dy_desc->bytes(), room, room_bytes, beta, dx, dx_desc->bytes());
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void *x,
                                             const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                             const cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdFilterAlgo_t algo,
                                             void *room, size_t room_bytes, const void *beta,
                                             const cudnnFilterDescriptor_t dw_desc, void *dw)
{
    return convolve(handle, {*x_desc, *dw_desc, *dy_desc, *c}, FILTER, algo, alpha, x, x_desc->bytes(), dy,
                    dy_desc->bytes(), room, room_bytes, beta, dw, dw_desc->bytes());
}
}
