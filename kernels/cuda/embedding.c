/* Word, position and segment rows summed; see framework/layers/embedding.c. The gradients of words and segments are
 * made as embedding_kernels.h says, that of positions is a sum over the samples. */
#include <stdlib.h>

#include "embedding_kernels.h"
#include "float_blocks.h"
#include "numerics/token_batch.h"
#include "reductions.h"
#include "value_layout.h"

enum { WORD, POSITION, SEGMENT };

struct embedding {
    struct backend *backend;
    struct table_shape shape;
    int64_t positions;
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const int64_t units = node_integer(node, "units"), tokens = graph->value[node->inputs[0]].shape.dim[1];
    if (graph->batch > INT32_MAX / tokens)
        return fail(ST_SPEC, "cuda: embedding takes at most %d tokens, the batch has %lld samples of %lld", INT32_MAX,
                    (long long)graph->batch, (long long)tokens);
    struct embedding *e = calloc(1, sizeof *e);
    if (e == NULL) return fail(ST_FAILED, "out of memory");
    *e = (struct embedding){
        backend,
        {graph->batch, tokens, units, node_integer(node, "vocabulary"), node_integer(node, "segments")},
        node_integer(node, "positions")};
    const size_t table = table_scratch(e->shape), sums = unit_sums_scratch(graph->batch, tokens * units, 1);
    *footprint = (struct footprint){
        .backward_scratch = {table > sums ? table : sums, 0}, .reads = {READS_X, 0}, .implementation = "own"};
    *state = e;
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct embedding *e = state;
    cuda_clock(e->backend, CLOCK_OTHER);
    launch_embedding(cuda_of(e->backend)->stream, e->shape, args->x[0], args->parameters[WORD],
                     args->parameters[POSITION], args->parameters[SEGMENT], args->y);
    return cuda_queued("embedding");
}

static enum status backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct embedding *e = state;
    const struct table_shape *shape = &e->shape;
    cudaStream_t stream = cuda_of(e->backend)->stream;
    const int64_t used = shape->tokens * shape->width, all = e->positions * shape->width;
    float *positions = args->gradients[POSITION];
    if (!(parts & PART_PARAMS)) return ST_OK;
    cuda_clock(e->backend, CLOCK_OTHER);
    launch_table_gradient(stream, *shape, args->x[0], TOKEN_IDS, shape->words, args->dy, args->accumulate,
                          args->scratch, args->gradients[WORD]);
    launch_table_gradient(stream, *shape, args->x[0], TOKEN_SEGMENTS, shape->segments, args->dy, args->accumulate,
                          args->scratch, args->gradients[SEGMENT]);
    launch_unit_sums(stream, args->dy, shape->batch, used, 1, args->accumulate, args->scratch, positions);
    if (!args->accumulate && all > used) launch_fill(stream, 0, all - used, positions + used);
    return cuda_queued("gradients of embedding");
}

const struct kernel cuda_embedding = {true, prepare, forward, backward, free};
