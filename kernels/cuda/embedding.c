/* Word, position and segment rows summed; see framework/layers/embedding.c. The gradients of words and segments are
 * computed as embedding_kernels.h says, that of positions is a sum over the samples. */
#include <stdlib.h>

#include "cuda.h"
#include "embedding_kernels.h"
#include "float_blocks.h"
#include "numerics/token_batch.h"
#include "reductions.h"

enum { WORD, POSITION, SEGMENT };

struct embedding {
    struct backend *backend;
    struct embedding_shape shape;
    int64_t positions;
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const int64_t units = node_integer(node, "units"), tokens = graph->value[node->inputs[0]].shape.dim[1];
    if (graph->batch > INT32_MAX / tokens)
        return fail(ST_SPEC, "cuda: embedding takes at most %d tokens, the batch has %lld samples of %lld", INT32_MAX,
                    (long long)graph->batch, (long long)tokens);
    struct embedding *e = *state = allocate(1, sizeof *e);
    *e = (struct embedding){
        backend,
        {graph->batch, tokens, units, node_integer(node, "vocabulary"), node_integer(node, "segments")},
        node_integer(node, "positions")};
    const size_t table = embedding_scratch(e->shape), sums = reduce_units_scratch(graph->batch, tokens * units, 1);
    *footprint = (struct footprint){
        .backward_scratch = {table > sums ? table : sums, 0}, .reads = {READS_X, 0}, .implementation = "own"};
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct embedding *e = state;
    launch_embedding(cuda_queue(e->backend, CLOCK_OTHER), e->shape, args->x[0], args->parameters[WORD],
                     args->parameters[POSITION], args->parameters[SEGMENT], args->y);
    return cuda_queued("embedding");
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct embedding *e = state;
    const struct embedding_shape *shape = &e->shape;
    const cudaStream_t stream = cuda_queue(e->backend, CLOCK_OTHER);
    const int64_t used = shape->tokens * shape->width, all = e->positions * shape->width;
    float *positions = args->gradients[POSITION];
    launch_embedding_gradient(stream, *shape, args->x[0], TOKEN_IDS, shape->words, args->dy, false, args->scratch,
                              args->gradients[WORD]);
    launch_embedding_gradient(stream, *shape, args->x[0], TOKEN_SEGMENTS, shape->segments, args->dy, false,
                              args->scratch, args->gradients[SEGMENT]);
    launch_reduce_units(stream, args->dy, shape->batch, used, 1, false, args->scratch, positions);
    if (all > used) launch_fill(stream, 0, all - used, positions + used);
    return cuda_queued("gradients of embedding");
}

const struct kernel cuda_embedding = {true, prepare, forward, backward, free};
