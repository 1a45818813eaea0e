/* cuBLASLt's matrices are column-major, ours row-major: the library computes c' = b' a', with our b as its first
 * operand. */
#include "gemm.h"

/* Bytes of workspace an algorithm may use: NVIDIA's recommendation for its largest devices. */
enum { WORKSPACE_MOST = 32 << 20 };

/* A matrix of ours {rows, columns}. */
static enum status describe_matrix(int64_t rows, int64_t columns, cublasLtMatrixLayout_t *layout)
{
    return cublas_check(cublasLtMatrixLayoutCreate(layout, CUDA_R_32F, (uint64_t)columns, (uint64_t)rows, columns),
                        "matrix layout");
}

static enum status set(struct gemm *gemm, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes)
{
    return cublas_check(cublasLtMatmulDescSetAttribute(gemm->call, attribute, value, bytes), "product attribute");
}

/* Each call sets the bias' address; the heuristics need one that is not NULL, and do not read it. */
static const _Alignas(ALIGNMENT) float some_bias;

static enum status describe_call(const struct cuda *cuda, const struct gemm_problem *want, struct gemm *gemm)
{
    static const cublasLtEpilogue_t epilogues[] = {[GEMM_PLAIN] = CUBLASLT_EPILOGUE_DEFAULT,
                                                   [GEMM_BIAS] = CUBLASLT_EPILOGUE_BIAS,
                                                   [GEMM_RELU] = CUBLASLT_EPILOGUE_RELU,
                                                   [GEMM_BIAS_RELU] = CUBLASLT_EPILOGUE_RELU_BIAS};
    const cublasComputeType_t type = cuda->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const cublasOperation_t first = want->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = want->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t epilogue = epilogues[want->end];
    const float *bias = &some_bias;
    TRY(cublas_check(cublasLtMatmulDescCreate(&gemm->call, type, CUDA_R_32F), "product"));
    TRY(set(gemm, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
    TRY(set(gemm, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
    TRY(set(gemm, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    return want->end & GEMM_BIAS ? set(gemm, CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)&bias, sizeof bias)
                                 : ST_OK;
}

static enum status choose(const struct cuda *cuda, const struct gemm_problem *want, struct gemm *gemm,
                          cublasLtMatmulPreference_t preference)
{
    const uint64_t most = WORKSPACE_MOST;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    cublasLtMatmulHeuristicResult_t answer = {0};
    int answers = 0;
    TRY(cublas_check(
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most),
        "product preference"));
    TRY(cublas_check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                          &schemes, sizeof schemes),
                     "product preference"));
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(cuda->blas_lt, gemm->call, gemm->b, gemm->a, gemm->c,
                                                                 gemm->c, preference, 1, &answer, &answers);
    if (status != CUBLAS_STATUS_SUCCESS || answers < 1 || answer.state != CUBLAS_STATUS_SUCCESS)
        return fail(ST_FAILED, "cuBLASLt has no algorithm for a product of %lld x %lld by %lld x %lld",
                    (long long)want->rows, (long long)want->inner, (long long)want->inner, (long long)want->columns);
    gemm->algorithm = answer.algo;
    gemm->workspace = answer.workspaceSize;
    return ST_OK;
}

static enum status make(const struct cuda *cuda, const struct gemm_problem *want, struct gemm *gemm)
{
    const int64_t rows = want->rows, columns = want->columns, inner = want->inner;
    cublasLtMatmulPreference_t preference;
    TRY(describe_call(cuda, want, gemm));
    TRY(want->a_transposed ? describe_matrix(inner, rows, &gemm->a) : describe_matrix(rows, inner, &gemm->a));
    TRY(want->b_transposed ? describe_matrix(columns, inner, &gemm->b) : describe_matrix(inner, columns, &gemm->b));
    TRY(describe_matrix(rows, columns, &gemm->c));
    TRY(cublas_check(cublasLtMatmulPreferenceCreate(&preference), "product preference"));
    const enum status status = choose(cuda, want, gemm, preference);
    cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

enum status gemm_create(const struct cuda *cuda, const struct gemm_problem *want, struct gemm *gemm)
{
    *gemm = (struct gemm){0};
    const enum status status = make(cuda, want, gemm);
    if (status != ST_OK) gemm_release(gemm);
    return status;
}

void gemm_release(struct gemm *gemm)
{
    if (gemm->call != NULL) cublasLtMatmulDescDestroy(gemm->call);
    cublasLtMatrixLayout_t const layouts[] = {gemm->a, gemm->b, gemm->c};
    for (int i = 0; i < 3; i++)
        if (layouts[i] != NULL) cublasLtMatrixLayoutDestroy(layouts[i]);
    *gemm = (struct gemm){0};
}

enum status gemm_run(const struct cuda *cuda, const struct gemm *gemm, const struct gemm_operands *operands)
{
    const struct gemm_operands *o = operands;
    const float one = 1, beta = o->accumulate ? 1 : 0;
    if (o->bias != NULL)
        TRY(cublas_check(cublasLtMatmulDescSetAttribute(gemm->call, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                        (const void *)&o->bias, sizeof o->bias),
                         "bias of a product"));
    return cublas_check(cublasLtMatmul(cuda->blas_lt, gemm->call, &one, o->b, gemm->b, o->a, gemm->a, &beta, o->c,
                                       gemm->c, o->c, gemm->c, &gemm->algorithm, o->workspace, gemm->workspace,
                                       cuda->stream),
                        "product");
}
