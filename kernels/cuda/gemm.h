/* Products of matrices by cuBLASLt, prepared once: c = a b, c += a b, c = relu(a b + bias). All matrices lie row by
 * row without gaps.
 *
 * The algorithm is the first answer of the library's heuristics, which time nothing, among those that reduce split
 * inner dimensions in a separate step, in a fixed order (reduction schemes none, compute type and output type; not in
 * place). Matrices begin at multiples of 256 bytes, as the heuristics assume. fp32 throughout; TF32 operands if asked
 * for. */
#ifndef REMATCH_KERNELS_CUDA_GEMM_H
#define REMATCH_KERNELS_CUDA_GEMM_H

#include "cuda.h"

enum gemm_epilogue { GEMM_PLAIN, GEMM_BIAS, GEMM_RELU, GEMM_BIAS_RELU }; /* bit 0: bias, bit 1: relu */

/* c is {rows, columns}, a is {rows, inner} or, transposed, {inner, rows}; b is {inner, columns} or {columns, inner}. */
struct gemm_problem {
    int64_t rows, columns, inner;
    bool a_transposed, b_transposed;
    enum gemm_epilogue end;
};

struct gemm {
    cublasLtMatmulDesc_t call;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace; /* bytes */
};

struct gemm_operands {
    const void *a, *b;
    const float *bias; /* {columns}, where the product's end has one */
    void *c;
    bool accumulate;
    void *workspace;
};

enum status gemm_create(const struct cuda *cuda, const struct gemm_problem *want, struct gemm *gemm);
void gemm_release(struct gemm *gemm);
enum status gemm_run(const struct cuda *cuda, const struct gemm *gemm, const struct gemm_operands *operands);

#endif
