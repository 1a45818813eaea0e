/* Where a step's moment and outcome are on the device: a few bytes of the program's own, no block. */
#include "step_state.h"

static __device__ uint64_t moment[STATE_WORDS], outcome[STATE_WORDS];

cudaError_t step_state_addresses(void **moment_there, void **outcome_there)
{
    const cudaError_t error = cudaGetSymbolAddress(moment_there, moment);
    return error == cudaSuccess ? cudaGetSymbolAddress(outcome_there, outcome) : error;
}
