/* Layers that treat each element alone: relu, gelu, add, flatten, in any layout that input and output share; flatten
 * also leaves the blocked order for the logical one.
 *
 * Contract: padded channels, which are zero, stay zero. */
#include <stdlib.h>

#include "cpu.h"
#include "element_loops.h"

struct pointwise {
    struct backend *backend;
    struct extent x;
    int64_t count;              /* elements of the batch */
    bool by_tanh;               /* gelu */
    struct call unblock, block; /* flatten: there and back; none where the order is logical already */
};

static void release(void *state)
{
    struct pointwise *p = state;
    if (p == NULL) return;
    call_release(&p->unblock);
    call_release(&p->block);
    free(p);
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct pointwise **state)
{
    struct pointwise *p = *state = calloc(1, sizeof *p);
    if (p == NULL) return fail(ST_FAILED, "out of memory");
    p->backend = backend;
    p->x = extent_of(graph, node->inputs[0]);
    p->count = p->x.batch * p->x.elements;
    return ST_OK;
}

static enum status relu_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    struct pointwise *p;
    TRY(prepare(backend, graph, node, &p));
    *footprint = (struct footprint){
        .signs = (size_t)p->x.batch * sign_words(p->x.elements) * sizeof(uint32_t),
        .reads = {0, READS_Y},
        .y_over_x = true,
        .dx_over_dy = true,
        .implementation = "loops",
    };
    *state = p;
    return ST_OK;
}

static enum status relu_forward(void *state, const struct kernel_args *args)
{
    struct pointwise *p = state;
    uint64_t lap = clock_now_ns();
    relu_apply(args->y, args->x[0], p->count);
    if (args->save) sign_pack(args->y, p->x.batch, p->x.elements, args->saved);
    clock_lap(p->backend, CLOCK_ACTIVATION, &lap);
    return ST_OK;
}

static enum status relu_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    struct pointwise *p = state;
    uint64_t lap = clock_now_ns();
    if (!(parts & PART_INPUT) || args->dx[0] == NULL) return ST_OK;
    if (args->saved)
        sign_mask(args->dx[0], args->dy, args->saved, p->x.batch, p->x.elements);
    else
        relu_mask(args->dx[0], args->dy, args->y, p->count);
    clock_lap(p->backend, CLOCK_ACTIVATION, &lap);
    return ST_OK;
}

static enum status gelu_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    struct pointwise *p;
    TRY(prepare(backend, graph, node, &p));
    p->by_tanh = node_chooses(node, "approximate", "tanh");
    *footprint =
        (struct footprint){.reads = {0, READS_X}, .y_over_x = true, .dx_over_dy = true, .implementation = "loops"};
    *state = p;
    return ST_OK;
}

static enum status gelu_forward(void *state, const struct kernel_args *args)
{
    struct pointwise *p = state;
    uint64_t lap = clock_now_ns();
    gelu_apply(args->y, args->x[0], p->by_tanh, p->count);
    clock_lap(p->backend, CLOCK_ACTIVATION, &lap);
    return ST_OK;
}

static enum status gelu_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    struct pointwise *p = state;
    uint64_t lap = clock_now_ns();
    if (!(parts & PART_INPUT) || args->dx[0] == NULL) return ST_OK;
    gelu_derive(args->dx[0], args->dy, args->x[0], p->by_tanh, p->count);
    clock_lap(p->backend, CLOCK_ACTIVATION, &lap);
    return ST_OK;
}

static enum status add_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                               struct footprint *footprint, void **state)
{
    struct pointwise *p;
    TRY(prepare(backend, graph, node, &p));
    *footprint = (struct footprint){.y_over_x = true, .passes_gradient = true, .implementation = "loops"};
    *state = p;
    return ST_OK;
}

static enum status add_forward(void *state, const struct kernel_args *args)
{
    struct pointwise *p = state;
    uint64_t lap = clock_now_ns();
    sum_into(args->y, args->x[0], args->x[1], p->count);
    clock_lap(p->backend, CLOCK_OTHER, &lap);
    return ST_OK;
}

/* The two reorders of flatten. */
static enum status make_reorders(struct pointwise *p)
{
    static const int arguments[] = {DNNL_ARG_FROM, DNNL_ARG_TO};
    const struct cpu *cpu = cpu_of(p->backend);
    struct tensor blocked, logical;
    TRY(tensor_images(p->x.batch, &p->x.shape, p->x.order, &blocked));
    TRY(tensor_images(p->x.batch, &p->x.shape, ORDER_LOGICAL, &logical));
    if (!call_reorder(cpu->engine, &blocked, &logical, false, &p->unblock) ||
        !call_reorder(cpu->engine, &logical, &blocked, false, &p->block))
        return fail(ST_FAILED, "oneDNN has no such reorder");
    TRY(call_ready(&p->unblock, cpu->engine, cpu->stream, 2, arguments));
    return call_ready(&p->block, cpu->engine, cpu->stream, 2, arguments);
}

static enum status flatten_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                   struct footprint *footprint, void **state)
{
    struct pointwise *p;
    TRY(prepare(backend, graph, node, &p));
    const bool blocked = order_block(p->x.order) > 1;
    enum status status = blocked ? make_reorders(p) : ST_OK;
    if (status != ST_OK) {
        release(p);
        return status;
    }
    *footprint = (struct footprint){
        .y_over_x = !blocked,
        .passes_gradient = !blocked,
        .implementation = blocked ? call_implementation(&p->unblock) : "copy",
    };
    *state = p;
    return ST_OK;
}

/* to = from by the call, or as it is. */
static enum status move(const struct pointwise *p, const struct call *call, void *to, const void *from)
{
    uint64_t lap = clock_now_ns();
    if (call->primitive != NULL)
        TRY(call_run(call, (const void *[]){from, to}));
    else if (to != from)
        copy_bytes(to, from, (size_t)p->count * sizeof(float));
    clock_lap(p->backend, CLOCK_REORDER, &lap);
    return ST_OK;
}

static enum status flatten_forward(void *state, const struct kernel_args *args)
{
    const struct pointwise *p = state;
    return move(p, &p->unblock, args->y, args->x[0]);
}

static enum status flatten_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct pointwise *p = state;
    if (!(parts & PART_INPUT) || args->dx[0] == NULL) return ST_OK;
    return move(p, &p->block, args->dx[0], args->dy);
}

const struct kernel cpu_relu = {true, relu_prepare, relu_forward, relu_backward, release};
const struct kernel cpu_gelu = {true, gelu_prepare, gelu_forward, gelu_backward, release};
const struct kernel cpu_add = {true, add_prepare, add_forward, NULL, release};
const struct kernel cpu_flatten = {true, flatten_prepare, flatten_forward, flatten_backward, release};
