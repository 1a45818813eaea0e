/* The cpu backend: kernels of our own on host memory.
 *
 * Contract: memory is reserved with huge pages and touched by all threads before a run. */
#include "cpu.h"

#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/host.h"
#include "base/units.h"
#include "element_loops.h"
#include "lanes.h"
#include "numerics/element_functions.h"

static enum status cpu_open(struct backend *backend)
{
    omp_set_num_threads((int)backend->options.threads);
    host_open(backend);
    backend->isa = LANES_ISA;
    backend->libraries = DEFINED_KERNELS "2";
    backend->convolutions = "Winograd and products (" LANES_ISA ")";
    return ST_OK;
}

#define ELEMENTWISE(layer, value, gradient) {#layer, &cpu_elementwise},

static const struct row {
    const char *layer;
    const struct kernel *kernel;
} rows[] = {
    ELEMENT_FUNCTIONS(ELEMENTWISE) /* these, and */
    {"conv", &cpu_conv},
    {"conv_transpose", &cpu_conv_transpose},
    {"max_pool", &cpu_max_pool},
    {"avg_pool", &cpu_avg_pool},
    {"global_avg_pool", &cpu_global_avg_pool},
    {"relu", &cpu_relu},
    {"upsample", &cpu_upsample},
    {"pad", &cpu_pad},
    {"dropout", &cpu_dropout},
    {"add", &cpu_add},
    {"multiply", &cpu_multiply},
    {"concat", &cpu_concat},
    {"linear", &cpu_linear},
    {"layernorm", &cpu_layernorm},
    {"select", &cpu_select},
    {"embedding", &cpu_embedding},
    {"class_token", &cpu_class_token},
    {"positions", &cpu_positions},
    {"latents", &cpu_latents},
    {"attention", &cpu_attention},
    {"cross_attention", &cpu_attention},
    {"rms_norm", &cpu_rms_norm},
    {"group_norm", &cpu_group_norm},
    {"batch_norm", &cpu_batch_norm},
    {"batch_norm_add", &cpu_batch_norm},
    {"cross_entropy", &cpu_cross_entropy},
};

/* A layer without a row here runs by its reference kernel. */
static const struct kernel *cpu_kernel(const struct node *node)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].layer, node->layer->name) == 0) return rows[i].kernel;
    return &node->layer->reference;
}

enum { HUGE = 2 << 20 };

static enum status cpu_reserve(struct backend *backend, size_t bytes, void **block)
{
    (void)backend;
    /* One huge page more than requested, so that the block can start at one; the rest is unmapped. */
    const size_t room = round_up(bytes) + HUGE;
    char text[UNIT_TEXT];
    *block = NULL;
    char *map = bytes > SIZE_MAX / 2 ? MAP_FAILED
                                     : mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return fail(ST_FAILED, "cannot reserve %s: %s", exact_bytes_text(bytes, text), strerror(ENOMEM));
    const size_t front = (HUGE - (uintptr_t)map % HUGE) % HUGE;
    const size_t page = 4096, kept = (bytes + page - 1) / page * page;
    if (front > 0) munmap(map, front);
    const size_t end = front + (kept > 0 ? kept : page), mapped = (room + page - 1) / page * page;
    if (mapped > end) munmap(map + end, mapped - end);
    *block = map + front;
    madvise(*block, end - front, MADV_HUGEPAGE); /* without huge pages it is only slower */
    touch_pages(*block, bytes);
    return ST_OK;
}

static void cpu_unreserve(struct backend *backend, void *block, size_t bytes)
{
    (void)backend;
    const size_t page = 4096, kept = (bytes + page - 1) / page * page;
    if (block != NULL) munmap(block, kept > 0 ? kept : page);
}

static void cpu_copy(struct backend *backend, void *to, const void *from, size_t bytes)
{
    (void)backend;
    copy_bytes(to, from, bytes);
}

static void cpu_fill(struct backend *backend, void *to, uint32_t pattern, size_t bytes)
{
    (void)backend;
    fill_words(to, pattern, bytes / sizeof pattern);
}

static void cpu_sum(struct backend *backend, float *out, const float *a, const float *b, size_t count)
{
    (void)backend;
    sum_into(out, a, b, (int64_t)count);
}

const struct backend_kind backend_cpu = {
    .name = "cpu",
    .layouts = 1u << LAYOUT_AUTO | 1u << LAYOUT_CHANNELS_LAST,
    .precisions = 1u << PRECISION_FP32,
    .open = cpu_open,
    .kernel = cpu_kernel,
    .takes_pool = conv_takes_pool,
    .reserve = cpu_reserve,
    .unreserve = cpu_unreserve,
    .upload = cpu_copy,
    .download = cpu_copy,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .add = cpu_sum,
    HOST_ROWS,
};
