/* Static device memory, since it belongs to no block. */
#include "step_state.h"

static __device__ uint64_t moment[STATE_WORDS], outcome[STATE_WORDS];

cudaError_t step_state_addresses(void **moment_address, void **outcome_address)
{
    const cudaError_t error = cudaGetSymbolAddress(moment_address, moment);
    return error == cudaSuccess ? cudaGetSymbolAddress(outcome_address, outcome) : error;
}
