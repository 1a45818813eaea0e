/* The cpu backend: kernels of our own, and oneDNN's pools, on host memory.
 *
 * Contract: layouts depend on shapes, options and instruction set alone, never on a timing, so that two runs agree.
 * Memory is reserved with huge pages and touched by all threads before a run. */
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

static void cpu_close(struct backend *backend)
{
    struct cpu *cpu = backend->vendor;
    if (cpu == NULL) return;
    dnnl_close(cpu->engine, cpu->stream);
    free(cpu);
    backend->vendor = NULL;
}

static enum status cpu_open(struct backend *backend)
{
    struct cpu *cpu = allocate(1, sizeof *cpu);
    omp_set_num_threads((int)backend->options.threads);
    host_open(backend);
    backend->isa = dnnl_isa(&cpu->blocked);
    dnnl_library(cpu->libraries, sizeof cpu->libraries);
    backend->libraries = cpu->libraries;
    backend->convolutions = "Winograd and products (" LANES_ISA ")";
    enum status status = dnnl_open(&cpu->engine, &cpu->stream);
    if (status == ST_OK)
        backend->vendor = cpu;
    else
        free(cpu);
    return status;
}

#define ELEMENTWISE(layer, value, gradient) {#layer, &cpu_elementwise, false},

/* Layers with kernels for blocked images. any_input: the input may also be a batch in logical order; otherwise it has
 * the layout of the output. */
static const struct row {
    const char *layer;
    const struct kernel *kernel;
    bool any_input;
} rows[] = {
    ELEMENT_FUNCTIONS(ELEMENTWISE) /* these, and */
    {"conv", &cpu_conv, true},
    {"max_pool", &cpu_max_pool, false},
    {"avg_pool", &cpu_avg_pool, false},
    {"global_avg_pool", &cpu_global_avg_pool, true},
    {"flatten", &cpu_flatten, true},
    {"relu", &cpu_relu, false},
    {"upsample", &cpu_upsample, false},
    {"dropout", &cpu_dropout, false},
    {"add", &cpu_add, false},
    {"multiply", &cpu_multiply, false},
    {"concat", &cpu_concat, true},
    {"linear", &cpu_linear, false},
    {"layernorm", &cpu_layernorm, false},
    {"select", &cpu_select, false},
    {"embedding", &cpu_embedding, true},
    {"attention", &cpu_attention, false},
    {"rms_norm", &cpu_rms_norm, false},
    {"group_norm", &cpu_group_norm, false},
    {"batch_norm", &cpu_batch_norm, false},
    {"batch_norm_add", &cpu_batch_norm_add, false},
    {"cross_entropy", &cpu_cross_entropy, false},
};

static const struct row *row_find(const struct layer *layer)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].layer, layer->name) == 0) return &rows[i];
    return NULL;
}

/* A layer without a row here runs by its reference kernel. */
static const struct kernel *cpu_kernel(const struct node *node)
{
    const struct row *row = row_find(node->layer);
    return row != NULL ? row->kernel : &node->layer->reference;
}

static bool is_image(const struct graph *graph, int value) { return graph->value[value].shape.rank == 3; }

static int64_t padded(enum order blocked, int64_t channels)
{
    return ratio_up(channels, order_block(blocked)) * order_block(blocked);
}

/* Whether a convolution's groups are whole blocks, or it is depthwise. Of others, oneDNN 2.6 has but its reference
 * implementation for blocked images, which took over 1000 times as long as those for the logical order. */
static bool groups_block(enum order blocked, const struct graph *graph, const struct node *node)
{
    const int64_t *weights = graph->parameter[node->first_parameter].definition.shape.dim;
    const int64_t groups = node_integer(node, "groups"), in = weights[1], out = weights[0] / groups;
    return groups == 1 || (in == 1 && out == 1) || (in % order_block(blocked) == 0 && out % order_block(blocked) == 0);
}

/* The first node that does not support blocked images, -1: none. These are losses, layers with a reference kernel,
 * convolutions whose groups divide blocks, and nodes that would combine the batch, which stays in logical order, with a
 * blocked image. */
static int unblockable(enum order blocked, const struct graph *graph)
{
    for (int i = 0; i < graph->nodes; i++) {
        const struct node *node = &graph->node[i];
        const struct row *row = row_find(node->layer);
        if (row == NULL && is_image(graph, node->output)) return i;
        if (row != NULL && row->kernel == &cpu_conv && !groups_block(blocked, graph, node)) return i;
        for (int k = 0; k < node->layer->inputs; k++) {
            if (!is_image(graph, node->inputs[k])) continue;
            if (row == NULL || node->layer->loss || strcmp(node->layer->name, "linear") == 0) return i;
            if (node->inputs[k] == 0 && !row->any_input) return i;
        }
    }
    return -1;
}

/* Whether blocking pads the images together by a tenth at most. Asked for the largest blocks on every machine, since
 * sums over images in logical order have other bits. */
static bool pads_little(enum order blocked, const struct graph *graph)
{
    double logical = 0, physical = 0; /* elements */
    for (int v = 1; v < graph->values; v++) {
        const struct shape *shape = &graph->value[v].shape;
        if (!is_image(graph, v)) continue;
        logical += (double)shape_elements(shape);
        physical += (double)shape_elements(shape) / (double)shape->dim[2] * (double)padded(blocked, shape->dim[2]);
    }
    return physical <= 1.1 * logical;
}

static enum status cpu_arrange(struct backend *backend, struct graph *graph)
{
    const enum order order = cpu_of(backend)->blocked;
    const int bad = unblockable(ORDER_BLOCKED_16, graph);
    bool blocked = backend->options.layout == LAYOUT_BLOCKED;
    if (blocked && bad >= 0)
        return fail(ST_SPEC, "layout blocked: layer '%s' (%s) needs its input in logical order; use channels_last",
                    graph->node[bad].name, graph->node[bad].layer->name);
    if (backend->options.layout == LAYOUT_AUTO) blocked = bad < 0 && pads_little(ORDER_BLOCKED_16, graph);
    for (int v = 0; v < graph->values; v++) {
        struct shape physical = graph->value[v].shape;
        const bool blocks = blocked && v > 0 && is_image(graph, v);
        if (blocks) physical.dim[2] = padded(order, physical.dim[2]);
        TRY(value_arrange(graph, v, blocks ? (int)order : ORDER_LOGICAL, &physical));
    }
    return ST_OK;
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
    .layouts = 1u << LAYOUT_AUTO | 1u << LAYOUT_CHANNELS_LAST | 1u << LAYOUT_BLOCKED,
    .precisions = 1u << PRECISION_FP32,
    .open = cpu_open,
    .close = cpu_close,
    .kernel = cpu_kernel,
    .arrange = cpu_arrange,
    .reserve = cpu_reserve,
    .unreserve = cpu_unreserve,
    .upload = cpu_copy,
    .download = cpu_copy,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .add = cpu_sum,
    HOST_ROWS,
};
