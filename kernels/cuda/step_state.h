/* Where a step's moment and outcome are on the device. */
#ifndef REMATCH_KERNELS_CUDA_STEP_STATE_H
#define REMATCH_KERNELS_CUDA_STEP_STATE_H

#include <cuda_runtime.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { STATE_WORDS = 32 }; /* of 8 bytes: room for either */

cudaError_t step_state_addresses(void **moment_there, void **outcome_there);

#ifdef __cplusplus
}
#endif

#endif
