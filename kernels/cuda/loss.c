/* The losses: softmax cross-entropy, see loss_kernels.h, and the sum of all elements. */
#include <stdlib.h>
#include <string.h>

#include "float_blocks.h"
#include "loss_kernels.h"
#include "reductions.h"
#include "value_layout.h"

struct loss {
    struct backend *backend;
    struct extent x;
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct loss **state)
{
    struct loss *loss = *state = calloc(1, sizeof *loss);
    if (loss == NULL) return fail(ST_FAILED, "out of memory");
    *loss = (struct loss){backend, extent_of(graph, node->inputs[0])};
    return ST_OK;
}

static enum status entropy_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                   struct footprint *footprint, void **state)
{
    struct loss *loss;
    TRY(prepare(backend, graph, node, &loss));
    *footprint = (struct footprint){
        .forward_scratch = cross_entropy_scratch(loss->x.batch), .reads = {0, READS_X}, .implementation = "own"};
    *state = loss;
    return ST_OK;
}

static enum status entropy_forward(void *state, const struct kernel_args *args)
{
    const struct loss *loss = state;
    cuda_clock(loss->backend, CLOCK_OTHER);
    launch_cross_entropy(cuda_of(loss->backend)->stream, args->x[0], args->labels, loss->x.batch, loss->x.elements,
                         args->scratch, args->y);
    return cuda_queued("cross_entropy");
}

static enum status entropy_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct loss *loss = state;
    if (!(parts & PART_INPUT) || args->dx[0] == NULL) return ST_OK;
    cuda_clock(loss->backend, CLOCK_OTHER);
    launch_cross_entropy_gradient(cuda_of(loss->backend)->stream, args->x[0], args->labels, loss->x.batch,
                                  loss->x.elements, args->dx[0]);
    return cuda_queued("gradient of cross_entropy");
}

static enum status sum_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                               struct footprint *footprint, void **state)
{
    struct loss *loss;
    TRY(prepare(backend, graph, node, &loss));
    *footprint = (struct footprint){.forward_scratch = unit_sums_scratch(loss->x.batch, 1, loss->x.elements),
                                    .implementation = "own"};
    *state = loss;
    return ST_OK;
}

static enum status sum_forward(void *state, const struct kernel_args *args)
{
    const struct loss *loss = state;
    cudaStream_t stream = cuda_of(loss->backend)->stream;
    cuda_clock(loss->backend, CLOCK_OTHER);
    launch_fill(stream, 0, 2, args->y);
    launch_unit_sums(stream, args->x[0], loss->x.batch, 1, loss->x.elements, false, args->scratch, args->y);
    return cuda_queued("sum");
}

static enum status sum_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    static const float one = 1;
    const struct loss *loss = state;
    if (!(parts & PART_INPUT) || args->dx[0] == NULL) return ST_OK;
    uint32_t pattern;
    memcpy(&pattern, &one, sizeof pattern);
    cuda_clock(loss->backend, CLOCK_OTHER);
    launch_fill(cuda_of(loss->backend)->stream, pattern, loss->x.count, args->dx[0]);
    return cuda_queued("gradient of sum");
}

const struct kernel cuda_cross_entropy = {true, entropy_prepare, entropy_forward, entropy_backward, free};
const struct kernel cuda_sum = {true, sum_prepare, sum_forward, sum_backward, free};
