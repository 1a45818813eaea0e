/* Functions of single elements are written once, for C and for CUDA's host and device: each begins with EVERYWHERE. */
#pragma once

#include <stdint.h> /* their arguments have types of fixed size */

#ifdef __CUDACC__
#define EVERYWHERE __host__ __device__ static inline
#else
#define EVERYWHERE static inline
#endif
