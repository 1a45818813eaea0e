/* The functions of cuBLAS that are used, on the host device: plain loops, summed in double. They require a
 * workspace, leave garbage in it, and have none of their own. */
#include <cublas_v2.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "device.h"

struct cublasContext {
    cudaStream_t stream;
    void *workspace;
    size_t bytes;
};

namespace
{
enum { WORKSPACE = 2000 }; /* what a product writes at both ends of its workspace */

/* Columns follow each other: element (i, j) is at [i + j * ld]. */
struct matrix {
    uint64_t rows, columns;
    int64_t ld;
    bool transposed;

    float at(const float *data, uint64_t i, uint64_t j) const
    {
        return transposed ? data[j + i * ld] : data[i + j * ld];
    }
    size_t bytes() const { return columns == 0 ? 0 : ((columns - 1) * (size_t)ld + rows) * sizeof(float); }
    uint64_t height() const { return transposed ? columns : rows; }
    uint64_t width() const { return transposed ? rows : columns; }
};

struct product {
    matrix a, b, d;
    float alpha, beta;
    bool tf32;
};

bool fits(const product &p)
{
    for (const matrix *m : {&p.a, &p.b, &p.d})
        if (m->rows == 0 || m->columns == 0 || m->ld < (int64_t)m->rows) return false;
    return p.a.width() == p.b.height() && p.a.height() == p.d.rows && p.b.width() == p.d.columns && !p.d.transposed;
}

float operand(const product &p, float x) { return p.tf32 ? device_tf32(x) : x; }

/* d = alpha a b + beta d; products are summed in their order. */
void multiply(const product &p, const float *a, const float *b, float *d)
{
    const uint64_t m = p.d.rows, k = p.a.width();
    if (!device_holds(a, p.a.bytes()) || !device_holds(b, p.b.bytes()) || !device_holds(d, p.d.bytes()))
        device_wrong("a product of %zu x %zu x %zu on what is not device memory", m, k, p.d.columns);
    std::vector<float> left(m * k);
    for (uint64_t l = 0; l < k; l++)
        for (uint64_t i = 0; i < m; i++) left[l * m + i] = operand(p, p.a.at(a, i, l));
    std::vector<double> sum(m);
    for (uint64_t j = 0; j < p.d.columns; j++) {
        std::fill(sum.begin(), sum.end(), 0);
        for (uint64_t l = 0; l < k; l++) {
            const double right = operand(p, p.b.at(b, l, j));
            for (uint64_t i = 0; i < m; i++) sum[i] += left[l * m + i] * right;
        }
        for (uint64_t i = 0; i < m; i++) {
            float *out = &d[i + j * p.d.ld];
            *out = (float)(p.alpha * sum[i] + (p.beta != 0 ? (double)p.beta * *out : 0));
        }
    }
}

cublasStatus_t queued(cudaError_t error)
{
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

bool aligned(const void *memory, size_t to) { return (uintptr_t)memory % to == 0; }
} // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    if (device_status() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasContext{};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    *handle = {stream, nullptr, 0}; /* a workspace that was set is forgotten */
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    if (!aligned(workspace, 256) || !device_holds(workspace, bytes)) return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace, handle->bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t mode)
{
    return mode == CUBLAS_ATOMICS_NOT_ALLOWED ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int *version)
{
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}
const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? "success" : "an error of the host device's cuBLAS";
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                          int m, int n, int k, const void *alpha, const void *a, cudaDataType a_type,
                                          int lda, long long a_next, const void *b, cudaDataType b_type, int ldb,
                                          long long b_next, const void *beta, void *c, cudaDataType c_type, int ldc,
                                          long long c_next, int batch, cublasComputeType_t compute, cublasGemmAlgo_t)
{
    if (a_type != CUDA_R_32F || b_type != CUDA_R_32F || c_type != CUDA_R_32F || m < 1 || n < 1 || k < 1 || batch < 1 ||
        (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32))
        return CUBLAS_STATUS_INVALID_VALUE;
    const uint64_t M = (uint64_t)m, N = (uint64_t)n, K = (uint64_t)k;
    const bool ta = transa == CUBLAS_OP_T, tb = transb == CUBLAS_OP_T;
    const product p = {{ta ? K : M, ta ? M : K, lda, ta},
                       {tb ? N : K, tb ? K : N, ldb, tb},
                       {M, N, ldc, false},
                       *(const float *)alpha,
                       *(const float *)beta,
                       compute == CUBLAS_COMPUTE_32F_FAST_TF32};
    if (!fits(p)) return CUBLAS_STATUS_INVALID_VALUE;
    if (batch > UINT16_MAX) return CUBLAS_STATUS_NOT_SUPPORTED; /* an axis of a grid has no more */
    if (handle->workspace == nullptr) return CUBLAS_STATUS_ALLOC_FAILED;
    device_claim(handle->stream, handle->workspace, handle->bytes);
    return queued(device_queue(handle->stream, [=, workspace = handle->workspace, bytes = handle->bytes] {
        const size_t spoilt = std::min(bytes, (size_t)WORKSPACE); /* of both ends: all may be used */
        device_spoil(workspace, spoilt);
        device_spoil((char *)workspace + (bytes - spoilt) / 4 * 4, spoilt);
        for (int i = 0; i < batch; i++)
            multiply(p, (const float *)a + i * a_next, (const float *)b + i * b_next, (float *)c + i * c_next);
    }));
}
}
