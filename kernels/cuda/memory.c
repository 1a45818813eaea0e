/* Contract: a run reserves two blocks on the device; besides these there are only the libraries' memory and a few
 * static bytes (step_state.cu). The next batch is copied on a stream of its own: the copy starts when its destination
 * is free, and the step that reads it waits for it. */
#include "memory.h"

#include "base/units.h"
#include "graph_capture.h"
#include "transpose.h"

enum status cuda_reserve(struct backend *backend, size_t bytes, void **block)
{
    char text[UNIT_TEXT], what[UNIT_TEXT + 64];
    *block = NULL;
    snprintf(what, sizeof what, "cannot reserve %s on the device", exact_bytes_text(bytes, text));
    const cudaError_t error = cudaMalloc(block, bytes > 0 ? bytes : 1);
    if (error == cudaErrorMemoryAllocation) (void)cudaGetLastError(); /* clears the error: the device still works */
    TRY(cuda_check(error, what));
    return cuda_check(cudaMemsetAsync(*block, 0, bytes, cuda_of(backend)->stream), "clear a block");
}

void cuda_unreserve(struct backend *backend, void *block, size_t bytes)
{
    (void)bytes;
    cuda_note(backend, cudaStreamSynchronize(cuda_of(backend)->stream));
    capture_forget(backend);
    cuda_note(backend, cudaFree(block));
}

void *cuda_allocate(struct backend *backend, size_t bytes)
{
    void *buffer = NULL;
    if (cudaMallocAsync(&buffer, bytes, cuda_of(backend)->stream) != cudaSuccess) return NULL;
    allocation_count_add(&backend->allocated, buffer, bytes);
    return buffer;
}

void cuda_release(struct backend *backend, void *buffer)
{
    allocation_count_remove(&backend->allocated, buffer);
    cuda_note(backend, cudaFreeAsync(buffer, cuda_of(backend)->stream));
}

static void copy_and_wait(struct backend *backend, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    cuda_note(backend, cudaMemcpyAsync(to, from, bytes, kind, cuda_of(backend)->stream));
    cuda_note(backend, cudaStreamSynchronize(cuda_of(backend)->stream));
}

void cuda_upload(struct backend *backend, void *to, const void *from, size_t bytes)
{
    copy_and_wait(backend, to, from, bytes, cudaMemcpyHostToDevice);
}

void cuda_download(struct backend *backend, void *to, const void *from, size_t bytes)
{
    copy_and_wait(backend, to, from, bytes, cudaMemcpyDeviceToHost);
}

void cuda_copy(struct backend *backend, void *to, const void *from, size_t bytes)
{
    cuda_note(backend, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda_of(backend)->stream));
}

static void memory_now(struct backend *backend, size_t *available, size_t *all)
{
    *available = *all = 0;
    cuda_note(backend, cudaMemGetInfo(available, all));
}

static size_t used(struct backend *backend)
{
    size_t free_bytes, all;
    memory_now(backend, &free_bytes, &all);
    return all - free_bytes;
}

/* Less a reserve for memory that a run takes besides its blocks and that is unknown before: code loaded at its first
 * use, and the step's graph. */
static size_t available(struct backend *backend)
{
    size_t free_bytes, all;
    memory_now(backend, &free_bytes, &all);
    return free_bytes > all / 64 ? free_bytes - all / 64 : 0;
}

/* ---- batches ---- */

/* The first destination is free when all work queued before, including its clearing, is done. */
static void *stage(struct backend *backend, size_t bytes)
{
    void *staged = NULL;
    if (cudaMallocHost(&staged, bytes) != cudaSuccess) return NULL;
    cuda_note(backend, cudaEventRecord(cuda_of(backend)->taken, cuda_of(backend)->stream));
    return staged;
}

static void unstage(struct backend *backend, void *staged)
{
    cuda_note(backend, cudaStreamSynchronize(cuda_of(backend)->copies));
    cuda_note(backend, cudaFreeHost(staged));
}

static void send(struct backend *backend, void *to, const void *staged, size_t bytes)
{
    struct cuda *cuda = cuda_of(backend);
    cuda_note(backend, cudaStreamWaitEvent(cuda->copies, cuda->taken, 0));
    cuda_note(backend, cudaMemcpyAsync(to, staged, bytes, cudaMemcpyHostToDevice, cuda->copies));
    cuda_note(backend, cudaEventRecord(cuda->sent, cuda->copies));
}

static void arrive(struct backend *backend, const struct graph *graph, void *to, const void *from)
{
    struct cuda *cuda = cuda_of(backend);
    const struct value *batch = &graph->value[0];
    const int64_t *side = batch->shape.dim;
    cuda_note(backend, cudaStreamWaitEvent(cuda->stream, cuda->sent, 0));
    if (batch->layout == ORDER_CHANNELS_FIRST)
        launch_transpose(cuda->stream, from, graph->batch, side[0] * side[1], side[2], false, to);
    else
        cuda_copy(backend, to, from, batch->bytes);
}

static void taken(struct backend *backend)
{
    cuda_note(backend, cudaEventRecord(cuda_of(backend)->taken, cuda_of(backend)->stream));
}

const struct device_kind cuda_device = {used, available, stage, unstage, send, arrive, taken};
