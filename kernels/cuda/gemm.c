/* Products of matrices by cuBLAS, which gives equal bits for equal calls on one stream in one workspace (cuBLAS guide,
 * results reproducibility).
 *
 * cuBLAS's matrices are column-major, ours row-major: it computes c' = b' a', with our b as its first operand. */
#include "cuda.h"

enum status gemm_run(const struct cuda *cuda, const struct gemm *gemm)
{
    const float one = 1, zero = 0;
    const struct matrices *a = &gemm->a, *b = &gemm->b, *c = &gemm->c;
    return cublas_check(
        cublasGemmStridedBatchedEx(cuda->blas, b->transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                                   a->transposed ? CUBLAS_OP_T : CUBLAS_OP_N, (int)gemm->columns, (int)gemm->rows,
                                   (int)gemm->inner, &one, b->data, CUDA_R_32F, (int)b->row, b->next, a->data,
                                   CUDA_R_32F, (int)a->row, a->next, &zero, (void *)(uintptr_t)c->data, CUDA_R_32F,
                                   (int)c->row, c->next, (int)gemm->count,
                                   gemm->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "product");
}
