/* Arrays of host and device that a test creates one by one and frees together. */
#pragma once

#include <cuda_runtime_api.h>
#include <stddef.h>

/* The test fails unless it is cudaSuccess. */
void ok(cudaError_t error);

/* bytes of host memory, zeroed; of device memory, uninitialized. */
void *array_here(size_t bytes);
void *array_there(size_t bytes);

/* A copy on the device; a copy on the host, after all queued work. */
void *array_upload(const void *from, size_t bytes);
void *array_download(const void *from, size_t bytes);

/* Frees all of them after all queued work. */
void arrays_free(void);
