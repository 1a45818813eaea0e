/* Pointwise layers: relu, add, in any layout that input and output share; and flatten, which reorders
 * blocked images to the logical order.
 *
 * Contract: padded channels, which are zero, stay zero. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "element_loops.h"

void zero_padding(const struct extent *e, float *y)
{
    const int64_t block = order_block(e->layout), used = block > 1 ? e->shape.dim[2] % block : 0;
    const int64_t pixels = used > 0 ? image_pixels(e) : 0;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < e->batch; n++)
        for (int64_t p = 1; p <= pixels; p++)
            memset(y + (n + 1) * e->elements - p * block + used, 0, (size_t)(block - used) * sizeof *y);
}

static enum status relu_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    TRY(layer_state_prepare(backend, graph, node, footprint, state));
    const struct layer_state *s = *state;
    footprint->signs = (size_t)s->x.batch * sign_words(s->x.elements) * sizeof(uint32_t);
    return ST_OK;
}

static enum status relu_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    relu_apply(args->y, args->x[0], s->x.count);
    if (args->save) sign_pack(args->y, s->x.batch, s->x.elements, args->saved);
    clock_lap(s->backend, CLOCK_ACTIVATION);
    return ST_OK;
}

static enum status relu_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    if (args->saved)
        sign_mask(args->dx[0], args->dy, args->saved, s->x.batch, s->x.elements);
    else
        relu_mask(args->dx[0], args->dy, args->y, s->x.count);
    clock_lap(s->backend, CLOCK_ACTIVATION);
    return ST_OK;
}

static enum status add_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    sum_into(args->y, args->x[0], args->x[1], s->x.count);
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

struct flatten {
    struct backend *backend;
    struct extent x;
    struct call unblock, block; /* none where the order is logical already */
};

static void flatten_release(void *state)
{
    struct flatten *f = state;
    call_release(&f->unblock);
    call_release(&f->block);
    free(f);
}

/* The two reorders of flatten. */
static enum status make_reorders(struct flatten *f)
{
    static const int arguments[] = {DNNL_ARG_FROM, DNNL_ARG_TO};
    const struct cpu *cpu = cpu_of(f->backend);
    const struct tensor blocked = tensor_images(f->x.batch, &f->x.shape, f->x.layout);
    const struct tensor logical = tensor_images(f->x.batch, &f->x.shape, ORDER_LOGICAL);
    if (!call_reorder(cpu->engine, &blocked, &logical, false, &f->unblock) ||
        !call_reorder(cpu->engine, &logical, &blocked, false, &f->block))
        return fail(ST_FAILED, "oneDNN has no such reorder");
    TRY(call_ready(&f->unblock, cpu->engine, cpu->stream, 2, arguments));
    return call_ready(&f->block, cpu->engine, cpu->stream, 2, arguments);
}

static enum status flatten_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                   struct footprint *footprint, void **state)
{
    struct flatten *f = allocate(1, sizeof *f);
    f->backend = backend;
    f->x = extent_of(graph, node->inputs[0]);
    const bool blocked = order_block(f->x.layout) > 1;
    enum status status = blocked ? make_reorders(f) : ST_OK;
    if (status != ST_OK) {
        flatten_release(f);
        return status;
    }
    *footprint = (struct footprint){
        .y_over_x = !blocked,
        .passes_gradient = !blocked,
        .implementation = blocked ? call_implementation(&f->unblock) : "copy",
    };
    *state = f;
    return ST_OK;
}

/* to = from by the call, or as it is. */
static enum status move(const struct flatten *f, const struct call *call, void *to, const void *from)
{
    if (call->primitive != NULL)
        TRY(call_run(call, (const void *[]){from, to}));
    else if (to != from)
        copy_bytes(to, from, (size_t)f->x.count * sizeof(float));
    clock_lap(f->backend, CLOCK_REORDER);
    return ST_OK;
}

static enum status flatten_forward(void *state, const struct kernel_args *args)
{
    const struct flatten *f = state;
    return move(f, &f->unblock, args->y, args->x[0]);
}

static enum status flatten_backward(void *state, const struct kernel_args *args)
{
    const struct flatten *f = state;
    return move(f, &f->block, args->dx[0], args->dy);
}

const struct kernel cpu_relu = {true, relu_prepare, relu_forward, relu_backward, free};
const struct kernel cpu_add = {true, layer_state_prepare, add_forward, NULL, free};
const struct kernel cpu_flatten = {true, flatten_prepare, flatten_forward, flatten_backward, flatten_release};
