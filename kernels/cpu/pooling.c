/* Pooling by oneDNN, global average pooling by loops.
 *
 * Contract: of equal maxima in a window the first in row order gets the gradient, by 8-bit indices that forward saves
 * (32-bit for windows of more than 256 elements). Averages save nothing. A window of one element needs no indices, and
 * with stride 1 it is the identity. A relu after max-pool is a pass of our own over y, its derivative one in place on
 * dy. The library ignores a NaN in a window, where the reference returns it. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "element_loops.h"

enum { FORWARD, FORWARD_SAVING, BACKWARD, POOL_CALLS };

struct pool {
    struct backend *backend;
    struct extent x, y;
    struct call call[POOL_CALLS]; /* arguments: from, to, indices, scratch */
    bool identity, relu;
};

static void pool_release(void *state)
{
    struct pool *pool = state;
    for (int i = 0; i < POOL_CALLS; i++) call_release(&pool->call[i]);
    free(pool);
}

/* Describes and creates the three calls. */
static enum status make_calls(struct pool *pool, const struct node *node, bool max)
{
    static const int forward[] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WORKSPACE, DNNL_ARG_SCRATCHPAD};
    static const int backward[] = {DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC, DNNL_ARG_WORKSPACE, DNNL_ARG_SCRATCHPAD};
    const struct cpu *cpu = cpu_of(pool->backend);
    struct pool_call want = {
        .max = max,
        .count_padding = !strcmp(node->layer->name, "avg_pool") && node_integer(node, "count_padding"),
        .kernel = node_integer(node, "kernel"),
        .padding = node_integer(node, "padding"),
    };
    const int64_t stride = node_integer(node, "stride");
    want.stride = stride > 0 ? stride : want.kernel;
    want.x = tensor_images(pool->x.batch, &pool->x.shape, pool->x.layout);
    want.y = tensor_images(pool->y.batch, &pool->y.shape, pool->y.layout);
    struct call *call = pool->call;
    bool found = call_pool(cpu->engine, &want, NULL, &call[FORWARD]);
    want.save = true;
    found = found && call_pool(cpu->engine, &want, NULL, &call[FORWARD_SAVING]) &&
            call_pool(cpu->engine, &want, &call[FORWARD_SAVING], &call[BACKWARD]);
    if (!found) return fail(ST_FAILED, "oneDNN has no such pooling");
    for (int i = 0; i < POOL_CALLS; i++)
        TRY(call_ready(&call[i], cpu->engine, cpu->stream, 4, i == BACKWARD ? backward : forward));
    return ST_OK;
}

static enum status pool_prepare(struct backend *backend, const struct graph *graph, const struct node *node, bool max,
                                struct footprint *footprint, void **state)
{
    struct pool *pool = allocate(1, sizeof *pool);
    *pool = (struct pool){.backend = backend};
    pool->x = extent_of(graph, node->inputs[0]);
    pool->y = extent_of(graph, node->output);
    pool->relu = node->activation == ACTIVATION_RELU;
    pool->identity = node_integer(node, "kernel") == 1 && node_integer(node, "stride") <= 1 && !pool->relu;
    *state = pool;
    if (pool->identity) {
        *footprint = (struct footprint){.y_over_x = true, .passes_gradient = true, .implementation = "identity"};
        return ST_OK;
    }
    enum status status = make_calls(pool, node, max);
    if (status != ST_OK) {
        pool_release(pool);
        return status;
    }
    const struct call *call = pool->call;
    const size_t plain = call_scratch(&call[FORWARD]), saving = call_scratch(&call[FORWARD_SAVING]);
    *footprint = (struct footprint){
        .saved = max ? call_bytes(&call[FORWARD_SAVING], DNNL_ARG_WORKSPACE) : 0,
        .forward_scratch = plain > saving ? plain : saving,
        .backward_scratch = {0, call_scratch(&call[BACKWARD])},
        .reads = {0, (max ? READS_SAVED : 0u) | (pool->relu ? READS_Y : 0u)},
        .writes_dy = pool->relu,
        .implementation = call_implementation(&call[FORWARD_SAVING]),
    };
    return ST_OK;
}

static enum status max_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                               struct footprint *footprint, void **state)
{
    return pool_prepare(backend, graph, node, node_integer(node, "kernel") > 1, footprint, state);
}

static enum status avg_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                               struct footprint *footprint, void **state)
{
    return pool_prepare(backend, graph, node, false, footprint, state);
}

static enum status pool_forward(void *state, const struct kernel_args *args)
{
    struct pool *pool = state;
    if (pool->identity) {
        if (args->y != args->x[0]) copy_bytes(args->y, args->x[0], (size_t)pool->x.count * sizeof(float));
    } else {
        const struct call *call = &pool->call[args->save ? FORWARD_SAVING : FORWARD];
        TRY(call_run(call, (const void *[]){args->x[0], args->y, args->saved, args->scratch}));
        if (pool->relu) relu_apply(args->y, args->y, pool->y.count);
    }
    clock_lap(pool->backend, CLOCK_POOL);
    return ST_OK;
}

static enum status pool_backward(void *state, const struct kernel_args *args)
{
    struct pool *pool = state;
    if (pool->identity) {
        if (args->dx[0] != args->dy) copy_bytes(args->dx[0], args->dy, (size_t)pool->x.count * sizeof(float));
    } else {
        if (pool->relu) relu_mask(args->dy, args->dy, args->y, pool->y.count);
        TRY(call_run(&pool->call[BACKWARD], (const void *[]){args->dy, args->dx[0], args->saved, args->scratch}));
    }
    clock_lap(pool->backend, CLOCK_POOL);
    return ST_OK;
}

const struct kernel cpu_max_pool = {true, max_prepare, pool_forward, pool_backward, pool_release};
const struct kernel cpu_avg_pool = {true, avg_prepare, pool_forward, pool_backward, pool_release};

/* The mean over whole images, {H, W, C} to {C}. Channels lie in groups, contiguous within a pixel: all of them in
 * logical order, blocks otherwise. */
static int64_t group_width(const struct extent *x)
{
    return order_block(x->layout) > 1 ? order_block(x->layout) : x->shape.dim[2];
}

static enum status mean_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t channels = s->y.elements, pixels = image_pixels(&s->x), width = group_width(&s->x);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < s->x.batch; n++)
        for (int64_t c = 0; c < channels; c += width) {
            const float *x = (const float *)args->x[0] + n * s->x.elements + c * pixels;
            float *y = (float *)args->y + n * channels + c;
            const int64_t count = channels - c < width ? channels - c : width;
            memset(y, 0, (size_t)count * sizeof *y);
            for (int64_t p = 0; p < pixels; p++)
                for (int64_t j = 0; j < count; j++) y[j] += x[p * width + j];
            for (int64_t j = 0; j < count; j++) y[j] /= (float)pixels;
        }
    clock_lap(s->backend, CLOCK_POOL);
    return ST_OK;
}

static enum status mean_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t channels = s->y.elements, pixels = image_pixels(&s->x), width = group_width(&s->x);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < s->x.batch; n++)
        for (int64_t c = 0; c < channels; c += width) {
            float *dx = (float *)args->dx[0] + n * s->x.elements + c * pixels;
            const float *dy = (const float *)args->dy + n * channels + c;
            const int64_t count = channels - c < width ? channels - c : width;
            for (int64_t p = 0; p < pixels; p++) {
                for (int64_t j = 0; j < count; j++) dx[p * width + j] = dy[j] / (float)pixels;
                for (int64_t j = count; j < width; j++) dx[p * width + j] = 0.0f;
            }
        }
    clock_lap(s->backend, CLOCK_POOL);
    return ST_OK;
}

const struct kernel cpu_global_avg_pool = {true, layer_state_prepare, mean_forward, mean_backward, free};
