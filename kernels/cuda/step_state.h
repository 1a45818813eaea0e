/* Device memory of a step's moment and outcome. */
#ifndef REMATCH_KERNELS_CUDA_STEP_STATE_H
#define REMATCH_KERNELS_CUDA_STEP_STATE_H

#include <cuda_runtime.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { STATE_WORDS = 32 }; /* of 8 bytes, enough for each of them */

cudaError_t step_state_addresses(void **moment_address, void **outcome_address);

#ifdef __cplusplus
}
#endif

#endif
