#include "cuda.h"

enum status cuda_check(cudaError_t error, const char *what)
{
    return error == cudaSuccess ? ST_OK : fail(ST_FAILED, "cuda: %s: %s", what, cudaGetErrorString(error));
}

enum status cudnn_check(cudnnStatus_t error, const char *what)
{
    char why[256] = "";
    if (error == CUDNN_STATUS_SUCCESS) return ST_OK;
    cudnnGetLastErrorString(why, sizeof why);
    return fail(ST_FAILED, "cuDNN: %s: %s%s%s", what, cudnnGetErrorString(error), *why ? ": " : "", why);
}

enum status cublas_check(cublasStatus_t error, const char *what)
{
    return error == CUBLAS_STATUS_SUCCESS ? ST_OK
                                          : fail(ST_FAILED, "cuBLAS: %s: %s", what, cublasGetStatusString(error));
}

enum status cuda_queued(const char *what) { return cuda_check(cudaPeekAtLastError(), what); }
