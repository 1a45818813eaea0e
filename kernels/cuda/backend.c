/* The cuda backend: cuDNN's and cuBLAS's kernels and our own on the memory of one NVIDIA GPU.
 *
 * Contract: layouts depend on shapes and options alone, never on a timing. Every row is deterministic. A step queued
 * call by call and a captured one give the same bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "dropout_kernels.h"
#include "float_blocks.h"
#include "graph_capture.h"
#include "memory.h"
#include "parameter_update.h"
#include "phase_timing.h"
#include "side_streams.h"
#include "step_state.h"

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
    int driver = 0;
    TRY(cuda_check(cudaGetDeviceProperties(&device, 0), "ask for the device"));
    TRY(cuda_check(cudaDriverGetVersion(&driver), "ask for the driver"));
    snprintf(cuda->isa, sizeof cuda->isa, "sm_%d%d", device.major, device.minor);
    snprintf(cuda->libraries, sizeof cuda->libraries, "CUDA %d.%d, cuDNN %zu, cuBLAS %zu", CUDART_VERSION / 1000,
             CUDART_VERSION % 1000 / 10, cudnnGetVersion(), cublasLtGetVersion());
    snprintf(cuda->device, sizeof cuda->device, "%s, driver for CUDA %d.%d, %.1f GiB", device.name, driver / 1000,
             driver % 1000 / 10, (double)device.totalGlobalMem / (1 << 30));
    backend->isa = cuda->isa;
    backend->libraries = cuda->libraries;
    backend->device = cuda->device;
    return ST_OK;
}

static enum status open_streams(struct backend *backend)
{
    struct cuda *cuda = cuda_of(backend);
    void *moment, *outcome;
    _Static_assert(sizeof(struct mailbox) <= STATE_WORDS * sizeof(uint64_t), "a moment and an outcome fit");
    TRY(stream_create(&cuda->stream));
    TRY(stream_create(&cuda->copies));
    TRY(event_create(&cuda->sent));
    TRY(event_create(&cuda->taken));
    TRY(side_streams_open(cuda));
    TRY(cuda_check(cudaMallocHost((void **)&cuda->mail, sizeof *cuda->mail), "reserve page-locked memory"));
    TRY(cuda_check(step_state_addresses(&moment, &outcome), "find the step's state"));
    backend->now = moment;
    backend->outcome_now = outcome;
    cuda->calls = phase_timing_create();
    cuda->timeline = cuda->calls;
    return ST_OK;
}

static enum status open_libraries(struct cuda *cuda)
{
    TRY(cudnn_check(cudnnCreate(&cuda->cudnn), "open"));
    TRY(cudnn_check(cudnnSetStream(cuda->cudnn, cuda->stream), "set the stream"));
    TRY(cublas_check(cublasLtCreate(&cuda->blas_lt), "open cuBLASLt"));
    TRY(cublas_check(cublasCreate(&cuda->blas), "open"));
    return cublas_check(cublasSetStream(cuda->blas, cuda->stream), "set the stream");
}

/* Whatever was opened. */
static void cuda_close(struct backend *backend)
{
    struct cuda *cuda = cuda_of(backend);
    if (cuda == NULL) return;
    capture_forget(backend);
    phase_timing_destroy(cuda->calls);
    if (cuda->blas != NULL) cublasDestroy(cuda->blas);
    if (cuda->blas_lt != NULL) cublasLtDestroy(cuda->blas_lt);
    if (cuda->cudnn != NULL) cudnnDestroy(cuda->cudnn);
    if (cuda->mail != NULL) cudaFreeHost(cuda->mail);
    side_streams_close(cuda);
    if (cuda->taken != NULL) cudaEventDestroy(cuda->taken);
    if (cuda->sent != NULL) cudaEventDestroy(cuda->sent);
    if (cuda->copies != NULL) cudaStreamDestroy(cuda->copies);
    if (cuda->stream != NULL) cudaStreamDestroy(cuda->stream);
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
    enum status status = describe(backend);
    if (status == ST_OK) status = open_streams(backend);
    if (status == ST_OK) status = open_libraries(cuda);
    if (status != ST_OK) cuda_close(backend);
    return status;
}

/* ---- rows ---- */

static const struct row {
    const char *layer;
    const struct kernel *kernel;
} rows[] = {
    {"conv", &cuda_conv},
    {"max_pool", &cuda_max_pool},
    {"avg_pool", &cuda_avg_pool},
    {"global_avg_pool", &cuda_global_avg_pool},
    {"flatten", &cuda_flatten},
    {"relu", &cuda_relu},
    {"dropout", &cuda_dropout},
    {"add", &cuda_add},
    {"linear", &cuda_linear},
    {"layernorm", &cuda_layernorm},
    {"gelu", &cuda_gelu},
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
        TRY(value_arrange(graph, v, first && shape->rank == 3 ? ORDER_CHANNELS_FIRST : ORDER_LOGICAL, shape));
    }
    return ST_OK;
}

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

static void cuda_mask(struct backend *backend, const struct draw *draw, double rate, int64_t elements, int64_t batch)
{
    struct draw counter = *draw;
    counter.mode = RNG_COUNTER;
    const struct element_draw drawn = element_draw_of(&counter, rate);
    launch_dropout_mask(cuda_of(backend)->stream, &drawn, elements, batch, draw->mask);
}

const struct backend_kind backend_cuda = {
    .name = "cuda",
    .layouts = 1u << LAYOUT_AUTO | 1u << LAYOUT_CHANNELS_LAST | 1u << LAYOUT_CHANNELS_FIRST,
    .precisions = 1u << PRECISION_FP32 | 1u << PRECISION_TF32,
    .device = &cuda_device,
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
