/* The device's memory: blocks, single buffers, transfers. Rows of struct backend_kind and struct device_kind. */
#ifndef REMATCH_CUDA_MEMORY_H
#define REMATCH_CUDA_MEMORY_H

#include "cuda.h"

enum status cuda_reserve(struct backend *backend, size_t bytes, void **block);
void cuda_unreserve(struct backend *backend, void *block, size_t bytes);
void *cuda_allocate(struct backend *backend, size_t bytes);
void cuda_release(struct backend *backend, void *buffer);
void cuda_upload(struct backend *backend, void *to, const void *from, size_t bytes);
void cuda_download(struct backend *backend, void *to, const void *from, size_t bytes);
void cuda_copy(struct backend *backend, void *to, const void *from, size_t bytes);

extern const struct device_kind cuda_device;

#endif
