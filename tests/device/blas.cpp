/* The functions of cuBLAS and cuBLASLt that are used, on the host device: plain loops, summed in double. They require a
 * workspace, leave garbage in it, and have none of their own. */
#include <cublasLt.h>
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
enum { WORKSPACE = 2000 }; /* what a product by heuristic asks for, where it may */

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
    bool operator==(const matrix &) const = default;
};

struct product {
    matrix a, b, d;
    float alpha, beta;
    const float *bias;
    bool relu, tf32;
};

bool fits(const product &p)
{
    for (const matrix *m : {&p.a, &p.b, &p.d})
        if (m->rows == 0 || m->columns == 0 || m->ld < (int64_t)m->rows) return false;
    return p.a.width() == p.b.height() && p.a.height() == p.d.rows && p.b.width() == p.d.columns && !p.d.transposed;
}

float operand(const product &p, float x) { return p.tf32 ? device_tf32(x) : x; }

/* d = alpha a b + beta c + bias, and relu of it; products are summed in their order. */
void multiply(const product &p, const float *a, const float *b, const float *c, float *d)
{
    const uint64_t m = p.d.rows, k = p.a.width();
    if (!device_holds(a, p.a.bytes()) || !device_holds(b, p.b.bytes()) || !device_holds(d, p.d.bytes()) ||
        (p.bias != nullptr && !device_holds(p.bias, m * sizeof *d)) || (p.beta != 0 && !device_holds(c, p.d.bytes())))
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
            double y = p.alpha * sum[i] + (p.beta != 0 ? (double)p.beta * c[i + j * p.d.ld] : 0);
            if (p.bias != nullptr) y += p.bias[i];
            d[i + j * p.d.ld] = (float)(p.relu && y < 0 ? 0 : y); /* a NaN stays one */
        }
    }
}

cublasStatus_t queued(cudaError_t error)
{
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

bool aligned(const void *memory, size_t to) { return (uintptr_t)memory % to == 0; }

/* The types behind cuBLASLt's opaque handles. */
struct description {
    int32_t transposed[2], epilogue;
    const float *bias;
    bool tf32;
};

struct preference {
    size_t workspace;
    uint32_t reduction;
};

struct algorithm {
    product of;
    size_t workspace;
    bool unordered; /* sums of a split inner dimension in place, in any order */
};

/* All algorithms: a caller's copy, too small for one, holds its number. */
std::vector<algorithm> algorithms;

template <class T, class Opaque> T *meant(Opaque *handle) { return (T *)(void *)handle; }

product describe(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                 cublasLtMatrixLayout_t d)
{
    const description *o = meant<description>(operation);
    product p = {*meant<matrix>(a), *meant<matrix>(b), *meant<matrix>(d), 0, 0, nullptr, false, o->tf32};
    p.a.transposed = o->transposed[0] == CUBLAS_OP_T;
    p.b.transposed = o->transposed[1] == CUBLAS_OP_T;
    p.relu = o->epilogue == CUBLASLT_EPILOGUE_RELU || o->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
    if (o->epilogue == CUBLASLT_EPILOGUE_BIAS || o->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS) p.bias = o->bias;
    return p;
}

template <class T> cublasStatus_t set(T *member, const void *value, size_t bytes)
{
    if (bytes != sizeof *member) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(member, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
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

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                   int n, int k, const void *alpha, const void *const a[], cudaDataType a_type, int lda,
                                   const void *const b[], cudaDataType b_type, int ldb, const void *beta,
                                   void *const c[], cudaDataType c_type, int ldc, int batch,
                                   cublasComputeType_t compute, cublasGemmAlgo_t)
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
                       nullptr,
                       false,
                       compute == CUBLAS_COMPUTE_32F_FAST_TF32};
    if (!fits(p)) return CUBLAS_STATUS_INVALID_VALUE;
    if (batch > UINT16_MAX) return CUBLAS_STATUS_NOT_SUPPORTED; /* an axis of a grid has no more */
    const size_t pointers = (size_t)batch * sizeof(void *);
    if (!device_holds(a, pointers) || !device_holds(b, pointers) || !device_holds(c, pointers))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (handle->workspace == nullptr) return CUBLAS_STATUS_ALLOC_FAILED;
    return queued(device_queue(handle->stream, [=, workspace = handle->workspace, bytes = handle->bytes] {
        const size_t spoilt = std::min(bytes, (size_t)WORKSPACE); /* of both ends: all may be used */
        device_spoil(workspace, spoilt);
        device_spoil((char *)workspace + (bytes - spoilt) / 4 * 4, spoilt);
        for (int i = 0; i < batch; i++)
            multiply(p, (const float *)a[i], (const float *)b[i], (const float *)c[i], (float *)c[i]);
    }));
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    if (device_status() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = (cublasLtHandle_t)(void *)new int;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete (int *)(void *)handle;
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *operation, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    if ((compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32) || scale != CUDA_R_32F)
        return CUBLAS_STATUS_INVALID_VALUE;
    *operation = meant<cublasLtMatmulDescOpaque_t>(new description{
        {CUBLAS_OP_N, CUBLAS_OP_N}, CUBLASLT_EPILOGUE_DEFAULT, nullptr, compute == CUBLAS_COMPUTE_32F_FAST_TF32});
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation)
{
    delete meant<description>(operation);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    description *o = meant<description>(operation);
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&o->transposed[0], value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&o->transposed[1], value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(&o->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(&o->bias, value, bytes);
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld)
{
    if (type != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
    *layout = meant<cublasLtMatrixLayoutOpaque_t>(new matrix{rows, columns, ld, false});
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete meant<matrix>(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preferred)
{
    *preferred = meant<cublasLtMatmulPreferenceOpaque_t>(new preference{0, CUBLASLT_REDUCTION_SCHEME_MASK});
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preferred)
{
    delete meant<preference>(preferred);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preferred,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t bytes)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(&meant<preference>(preferred)->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(&meant<preference>(preferred)->reduction, value, bytes);
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preferred, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int *count)
{
    const product p = describe(operation, a, b, d);
    *count = 0;
    if (requested < 1 || !fits(p) || !(*meant<matrix>(c) == p.d)) return CUBLAS_STATUS_INVALID_VALUE;
    const size_t workspace = meant<preference>(preferred)->workspace >= WORKSPACE ? (size_t)WORKSPACE : 0;
    const uint64_t number = algorithms.size();
    const bool unordered = meant<preference>(preferred)->reduction & CUBLASLT_REDUCTION_SCHEME_INPLACE;
    algorithms.push_back({p, workspace, unordered});
    results[0] = {};
    memcpy(results[0].algo.data, &number, sizeof number);
    results[0].workspaceSize = workspace;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t bytes, cudaStream_t stream)
{
    product p = describe(operation, a_layout, b_layout, d_layout);
    p.alpha = *(const float *)alpha, p.beta = *(const float *)beta;
    if (!fits(p) || !(*meant<matrix>(c_layout) == p.d) || algo == nullptr || algo->data[0] >= algorithms.size())
        return CUBLAS_STATUS_INVALID_VALUE;
    const algorithm &chosen = algorithms[algo->data[0]];
    if (chosen.unordered) device_wrong("a product whose sums are made in any order");
    if (!(chosen.of.a == p.a) || !(chosen.of.b == p.b) || !(chosen.of.d == p.d) || chosen.of.relu != p.relu ||
        !aligned(a, 16) || !aligned(b, 16) || !aligned(d, 16))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (bytes < chosen.workspace || (bytes > 0 && (!aligned(workspace, 256) || !device_holds(workspace, bytes))))
        return CUBLAS_STATUS_INVALID_VALUE;
    return queued(device_queue(stream, [=] {
        device_spoil(workspace, bytes);
        multiply(p, (const float *)a, (const float *)b, (const float *)c, (float *)d);
    }));
}
}
