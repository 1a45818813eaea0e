/* Arrays of the host and of the device that a test makes as it goes and frees at once. */
#ifndef REMATCH_TEST_ARRAYS_H
#define REMATCH_TEST_ARRAYS_H

#include <cuda_runtime_api.h>
#include <stddef.h>

/* The test fails unless it is cudaSuccess. */
void ok(cudaError_t error);

/* bytes, zeroed, of the host; of the device, with anything in them. */
void *array_here(size_t bytes);
void *array_there(size_t bytes);

/* A copy on the device; a copy here, once all that was queued is done. */
void *array_upload(const void *from, size_t bytes);
void *array_download(const void *from, size_t bytes);

/* All of them go, once all that was queued is done. */
void arrays_free(void);

#endif
