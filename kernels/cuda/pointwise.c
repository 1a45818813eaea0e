/* Layers that treat each element alone: relu, gelu, add, in any layout that input and output share; and flatten, which
 * leaves channels first for the logical order.
 *
 * Contract: a relu's signs lie as activations.h says. */
#include <stdlib.h>

#include "activations.h"
#include "float_blocks.h"
#include "transpose.h"
#include "value_layout.h"

struct pointwise {
    struct backend *backend;
    struct extent x;
    bool by_tanh;             /* gelu */
    int64_t channels, pixels; /* flatten: of an image that is to be transposed, else 0 */
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct pointwise **state)
{
    struct pointwise *p = *state = calloc(1, sizeof *p);
    if (p == NULL) return fail(ST_FAILED, "out of memory");
    *p = (struct pointwise){.backend = backend, .x = extent_of(graph, node->inputs[0])};
    return ST_OK;
}

static enum status relu_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    struct pointwise *p;
    TRY(prepare(backend, graph, node, &p));
    *footprint = (struct footprint){
        .signs = sign_bytes(p->x.count),
        .reads = {0, READS_Y},
        .y_over_x = true,
        .dx_over_dy = true,
        .implementation = "own",
    };
    *state = p;
    return ST_OK;
}

static enum status relu_forward(void *state, const struct kernel_args *args)
{
    const struct pointwise *p = state;
    cuda_clock(p->backend, CLOCK_ACTIVATION);
    launch_activation(cuda_of(p->backend)->stream, args->x[0], (struct bias){.values = NULL}, ACTIVATION_RELU,
                      p->x.count, args->y, args->save ? args->saved : NULL);
    return cuda_queued("relu");
}

static enum status relu_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct pointwise *p = state;
    if (!(parts & PART_INPUT) || args->dx[0] == NULL) return ST_OK;
    cuda_clock(p->backend, CLOCK_ACTIVATION);
    launch_activation_derivative(cuda_of(p->backend)->stream, args->dy, args->y, args->saved, ACTIVATION_RELU,
                                 p->x.count, args->dx[0]);
    return cuda_queued("gradient of relu");
}

static enum status gelu_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    struct pointwise *p;
    TRY(prepare(backend, graph, node, &p));
    p->by_tanh = node_chooses(node, "approximate", "tanh");
    *footprint =
        (struct footprint){.reads = {0, READS_X}, .y_over_x = true, .dx_over_dy = true, .implementation = "own"};
    *state = p;
    return ST_OK;
}

static enum status gelu_forward(void *state, const struct kernel_args *args)
{
    const struct pointwise *p = state;
    cuda_clock(p->backend, CLOCK_ACTIVATION);
    launch_gelu(cuda_of(p->backend)->stream, args->x[0], p->by_tanh, p->x.count, args->y);
    return cuda_queued("gelu");
}

static enum status gelu_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct pointwise *p = state;
    if (!(parts & PART_INPUT) || args->dx[0] == NULL) return ST_OK;
    cuda_clock(p->backend, CLOCK_ACTIVATION);
    launch_gelu_derivative(cuda_of(p->backend)->stream, args->dy, args->x[0], p->by_tanh, p->x.count, args->dx[0]);
    return cuda_queued("gradient of gelu");
}

static enum status add_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                               struct footprint *footprint, void **state)
{
    struct pointwise *p;
    TRY(prepare(backend, graph, node, &p));
    *footprint = (struct footprint){.y_over_x = true, .passes_gradient = true, .implementation = "own"};
    *state = p;
    return ST_OK;
}

static enum status add_forward(void *state, const struct kernel_args *args)
{
    const struct pointwise *p = state;
    cuda_clock(p->backend, CLOCK_OTHER);
    launch_add(cuda_of(p->backend)->stream, args->x[0], args->x[1], p->x.count, args->y);
    return cuda_queued("add");
}

static enum status flatten_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                   struct footprint *footprint, void **state)
{
    struct pointwise *p;
    TRY(prepare(backend, graph, node, &p));
    if (p->x.channels_first) {
        p->channels = p->x.shape.dim[2];
        p->pixels = p->x.shape.dim[0] * p->x.shape.dim[1];
        if (p->channels == 1 || p->pixels == 1) p->channels = 0; /* either order is the same */
    }
    const bool same = p->channels == 0;
    *footprint = (struct footprint){
        .y_over_x = same, .passes_gradient = same, .implementation = same ? "copy" : "transposition"};
    *state = p;
    return ST_OK;
}

static enum status flatten_forward(void *state, const struct kernel_args *args)
{
    const struct pointwise *p = state;
    cudaStream_t stream = cuda_of(p->backend)->stream;
    cuda_clock(p->backend, CLOCK_REORDER);
    if (p->channels > 0)
        launch_transpose(stream, args->x[0], p->x.batch, p->channels, p->pixels, false, args->y);
    else if (args->y != args->x[0])
        launch_copy(stream, args->x[0], p->x.count, args->y);
    return cuda_queued("flatten");
}

static enum status flatten_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct pointwise *p = state;
    if (!(parts & PART_INPUT) || args->dx[0] == NULL) return ST_OK;
    cudaStream_t stream = cuda_of(p->backend)->stream;
    cuda_clock(p->backend, CLOCK_REORDER);
    if (p->channels > 0)
        launch_transpose(stream, args->dy, p->x.batch, p->pixels, p->channels, false, args->dx[0]);
    else if (args->dx[0] != args->dy)
        launch_copy(stream, args->dy, p->x.count, args->dx[0]);
    return cuda_queued("gradient of flatten");
}

const struct kernel cuda_relu = {true, relu_prepare, relu_forward, relu_backward, free};
const struct kernel cuda_gelu = {true, gelu_prepare, gelu_forward, gelu_backward, free};
const struct kernel cuda_add = {true, add_prepare, add_forward, NULL, free};
const struct kernel cuda_flatten = {true, flatten_prepare, flatten_forward, flatten_backward, free};
