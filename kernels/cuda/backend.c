/* The cuda backend: cuDNN's and cuBLAS's kernels and our own on the memory of one NVIDIA GPU.
 *
 * Contract: layouts depend on shapes and options alone, never on a timing. Every row is deterministic. A step queued
 * call by call and a captured one give the same bits. A run reserves two blocks on the device; besides these there are
 * only the libraries' memory and struct device_state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cuda.h"
#include "kernels.h"

/* ---- opening ---- */

static enum status missing(cudaError_t error)
{
    if (error == cudaErrorInsufficientDriver)
        return fail(ST_MISSING, "backend cuda: the NVIDIA driver is missing or older than CUDA %d.%d needs",
                    CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    return fail(ST_MISSING, "backend cuda: no usable NVIDIA GPU (%s)",
                error == cudaSuccess ? "none was found" : cudaGetErrorString(error));
}

static enum status describe(struct backend *backend)
{
    struct cuda *cuda = cuda_of(backend);
    struct cudaDeviceProp device;
    int driver = 0, blas = 0;
    TRY(cuda_check(cudaGetDeviceProperties(&device, 0), "ask for the device"));
    TRY(cuda_check(cudaDriverGetVersion(&driver), "ask for the driver"));
    TRY(cublas_check(cublasGetVersion(cuda->blas, &blas), "ask for the version"));
    snprintf(cuda->isa, sizeof cuda->isa, "sm_%d%d", device.major, device.minor);
    snprintf(cuda->libraries, sizeof cuda->libraries, "CUDA %d.%d, cuDNN %zu, cuBLAS %d", CUDART_VERSION / 1000,
             CUDART_VERSION % 1000 / 10, cudnnGetVersion(), blas);
    snprintf(cuda->device, sizeof cuda->device, "%s, driver for CUDA %d.%d, %.1f GiB", device.name, driver / 1000,
             driver % 1000 / 10, (double)device.totalGlobalMem / (1 << 30));
    backend->isa = cuda->isa;
    backend->libraries = cuda->libraries;
    backend->device = cuda->device;
    return ST_OK;
}

static enum status create_stream(cudaStream_t *stream)
{
    return cuda_check(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "create a stream");
}

static enum status create_event(cudaEvent_t *event)
{
    return cuda_check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "create an event");
}

static enum status open_streams(struct backend *backend)
{
    struct cuda *cuda = cuda_of(backend);
    TRY(create_stream(&cuda->stream));
    TRY(create_stream(&cuda->copies));
    TRY(create_event(&cuda->sent));
    TRY(create_event(&cuda->taken));
    TRY(cuda_check(cudaMallocHost((void **)&cuda->mail, sizeof *cuda->mail), "reserve page-locked memory"));
    TRY(cuda_check(cudaMalloc((void **)&cuda->there, sizeof *cuda->there), "reserve memory"));
    backend->now = &cuda->there->mail.moment;
    backend->outcome_now = &cuda->there->mail.outcome;
    return ST_OK;
}

static enum status open_libraries(struct cuda *cuda)
{
    TRY(cudnn_check(cudnnCreate(&cuda->cudnn), "open"));
    TRY(cudnn_check(cudnnSetStream(cuda->cudnn, cuda->stream), "set the stream"));
    TRY(cublas_check(cublasCreate(&cuda->blas), "open"));
    TRY(cublas_check(cublasSetStream(cuda->blas, cuda->stream), "set the stream"));
    return cublas_check(cublasSetWorkspace(cuda->blas, cuda->there->workspace, sizeof cuda->there->workspace),
                        "set the workspace");
}

/* Whatever was opened. */
static void cuda_close(struct backend *backend)
{
    struct cuda *cuda = cuda_of(backend);
    if (cuda == NULL) return;
    cuda_forget_step(backend);
    cuda_free_events(cuda);
    if (cuda->blas != NULL) cublasDestroy(cuda->blas);
    if (cuda->cudnn != NULL) cudnnDestroy(cuda->cudnn);
    if (cuda->there != NULL) cudaFree(cuda->there);
    if (cuda->mail != NULL) cudaFreeHost(cuda->mail);
    if (cuda->taken != NULL) cudaEventDestroy(cuda->taken);
    if (cuda->sent != NULL) cudaEventDestroy(cuda->sent);
    if (cuda->copies != NULL) cudaStreamDestroy(cuda->copies);
    if (cuda->stream != NULL) cudaStreamDestroy(cuda->stream);
    free(cuda->results);
    free(cuda);
    backend->vendor = NULL;
}

static enum status cuda_open(struct backend *backend)
{
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0) return missing(error);
    TRY(cuda_check(cudaSetDevice(0), "take the first device"));
    struct cuda *cuda = allocate(1, sizeof *cuda);
    backend->vendor = cuda;
    cuda->tf32 = backend->options.precision == PRECISION_TF32;
    enum status status = open_streams(backend);
    if (status == ST_OK) status = open_libraries(cuda);
    if (status == ST_OK) status = describe(backend);
    if (status != ST_OK) cuda_close(backend);
    return status;
}

/* ---- rows ---- */

#define ELEMENTWISE(layer, value, gradient) {#layer, &cuda_elementwise},

static const struct row {
    const char *layer;
    const struct kernel *kernel;
} rows[] = {
    ELEMENT_FUNCTIONS(ELEMENTWISE) /* these, and */
    {"conv", &cuda_conv},
    {"max_pool", &cuda_max_pool},
    {"avg_pool", &cuda_avg_pool},
    {"global_avg_pool", &cuda_global_avg_pool},
    {"upsample", &cuda_upsample},
    {"flatten", &cuda_flatten},
    {"tokens", &cuda_flatten},
    {"pixels", &cuda_flatten},
    {"class_token", &cuda_class_token},
    {"positions", &cuda_positions},
    {"relu", &cuda_relu},
    {"dropout", &cuda_dropout},
    {"add", &cuda_add},
    {"multiply", &cuda_multiply},
    {"concat", &cuda_concat},
    {"linear", &cuda_linear},
    {"layernorm", &cuda_layernorm},
    {"batch_norm", &cuda_batch_norm},
    {"batch_norm_add", &cuda_batch_norm},
    {"select", &cuda_select},
    {"embedding", &cuda_embedding},
    {"attention", &cuda_attention},
    {"cross_entropy", &cuda_cross_entropy},
    {"sum", &cuda_sum},
};

static const struct kernel *cuda_kernel(const struct node *node)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].layer, node->layer->name) == 0) return rows[i].kernel;
    return NULL;
}

/* The fastest fp32 convolutions have channels first; on tensor cores, channels last. */
static enum status cuda_arrange(struct backend *backend, struct graph *graph)
{
    const int wanted = backend->options.layout;
    const bool first = wanted == LAYOUT_CHANNELS_FIRST || (wanted == LAYOUT_AUTO && !cuda_of(backend)->tf32);
    for (int v = 0; v < graph->values; v++) {
        const struct shape *shape = &graph->value[v].shape;
        TRY(value_arrange(graph, v, first && shape->rank == 3 ? ORDER_CHANNELS_FIRST : ORDER_LOGICAL));
    }
    return ST_OK;
}

/* ---- memory ---- */

static enum status cuda_reserve(struct backend *backend, size_t bytes, void **block)
{
    char text[UNIT_TEXT], what[UNIT_TEXT + 64];
    *block = NULL;
    snprintf(what, sizeof what, "cannot reserve %s on the device", exact_bytes_text(bytes, text));
    const cudaError_t error = cudaMalloc(block, bytes > 0 ? bytes : 1);
    if (error == cudaErrorMemoryAllocation) (void)cudaGetLastError(); /* clears the error: the device still works */
    TRY(cuda_check(error, what));
    return cuda_check(cudaMemsetAsync(*block, 0, bytes, cuda_of(backend)->stream), "clear a block");
}

static void cuda_unreserve(struct backend *backend, void *block, size_t bytes)
{
    (void)bytes;
    cuda_note(backend, cudaStreamSynchronize(cuda_of(backend)->stream));
    cuda_forget_step(backend);
    cuda_note(backend, cudaFree(block));
}

static void *cuda_allocate(struct backend *backend, size_t bytes)
{
    void *buffer = NULL;
    if (cudaMallocAsync(&buffer, bytes, cuda_of(backend)->stream) != cudaSuccess) return NULL;
    allocation_count_add(&backend->allocated, buffer, bytes);
    return buffer;
}

static void cuda_release(struct backend *backend, void *buffer)
{
    allocation_count_remove(&backend->allocated, buffer);
    cuda_note(backend, cudaFreeAsync(buffer, cuda_of(backend)->stream));
}

static void copy_and_wait(struct backend *backend, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    cuda_note(backend, cudaMemcpyAsync(to, from, bytes, kind, cuda_of(backend)->stream));
    cuda_note(backend, cudaStreamSynchronize(cuda_of(backend)->stream));
}

static void cuda_upload(struct backend *backend, void *to, const void *from, size_t bytes)
{
    copy_and_wait(backend, to, from, bytes, cudaMemcpyHostToDevice);
}

static void cuda_download(struct backend *backend, void *to, const void *from, size_t bytes)
{
    copy_and_wait(backend, to, from, bytes, cudaMemcpyDeviceToHost);
}

static void cuda_copy(struct backend *backend, void *to, const void *from, size_t bytes)
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

/* ---- batches: the next one is copied on a stream of its own. The copy starts when its destination is free, and the
 * step that reads it waits for it. ---- */

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
        launch_transpose(cuda->stream, from, graph->batch, side[0] * side[1], side[2], to);
    else
        cuda_copy(backend, to, from, batch->bytes);
}

static void taken(struct backend *backend)
{
    cuda_note(backend, cudaEventRecord(cuda_of(backend)->taken, cuda_of(backend)->stream));
}

static const struct device_kind device_rows = {used, available, stage, unstage, send, arrive, taken};

/* ---- whole blocks ---- */

static void cuda_fill(struct backend *backend, void *to, uint32_t pattern, size_t bytes)
{
    launch_fill(cuda_of(backend)->stream, pattern, (int64_t)(bytes / sizeof pattern), to);
}

static void cuda_sum_into(struct backend *backend, float *out, const float *a, const float *b, size_t count)
{
    launch_add(cuda_queue(backend, CLOCK_OTHER), a, b, (int64_t)count, out);
}

static void cuda_position(struct backend *backend, uint64_t *to, uint64_t offset)
{
    launch_stream_position(cuda_of(backend)->stream, &backend->now->position, offset, to);
}

struct element_draw element_draw_of(const struct draw *draw, double rate)
{
    const uint64_t key = rng_key(draw->seed, RNG_DROPOUT);
    return (struct element_draw){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .threshold = rng_threshold(rate),
        .node = draw->node,
        .step = draw->step,
        .sample = draw->sample,
        .sequential = draw->mode == RNG_STASH || draw->mode == RNG_UNSAFE,
        .position = draw->position,
        .mask = draw->mode == RNG_MASK ? draw->mask : NULL,
        .step_there = draw->step_there,
        .position_there = draw->position_there,
    };
}

static void cuda_mask(struct backend *backend, const struct draw *draw, double rate, int64_t elements, int64_t batch)
{
    const struct element_draw drawn = element_draw_of(draw, rate);
    launch_dropout_mask(cuda_of(backend)->stream, &drawn, elements, batch, draw->mask);
}

const struct backend_kind backend_cuda = {
    .name = "cuda",
    .layouts = 1u << LAYOUT_AUTO | 1u << LAYOUT_CHANNELS_LAST | 1u << LAYOUT_CHANNELS_FIRST,
    .precisions = 1u << PRECISION_FP32 | 1u << PRECISION_TF32,
    .device = &device_rows,
    .update = &cuda_update,
    .open = cuda_open,
    .close = cuda_close,
    .kernel = cuda_kernel,
    .arrange = cuda_arrange,
    .reserve = cuda_reserve,
    .unreserve = cuda_unreserve,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .upload = cuda_upload,
    .download = cuda_download,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .add = cuda_sum_into,
    .position = cuda_position,
    .mask = cuda_mask,
    .squares = cuda_squares,
    .digest = cuda_digest,
    .phase = cuda_phase,
    .step = cuda_step,
    .wait = cuda_wait,
};
