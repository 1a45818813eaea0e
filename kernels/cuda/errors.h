/* Errors of the runtime and of the libraries as ours: each function returns ST_OK, or ST_FAILED with a message
 * "LIBRARY: WHAT: the library's own text". */
#ifndef REMATCH_KERNELS_CUDA_ERRORS_H
#define REMATCH_KERNELS_CUDA_ERRORS_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "base/status.h"

enum status cuda_check(cudaError_t error, const char *what);
enum status cudnn_check(cudnnStatus_t error, const char *what);
enum status cublas_check(cublasStatus_t error, const char *what);

/* Whether an error of earlier queued work has been reported. */
enum status cuda_queued(const char *what);

#endif
