/* Word, position and segment rows summed; see framework/layers/embedding.c. */
#include <stdlib.h>

#include "cuda.h"
#include "kernels.h"
#include "numerics/token_batch.h"

enum { WORD, POSITION, SEGMENT };

static struct embedding_shape shape_of(const struct layer_state *s)
{
    return (struct embedding_shape){s->x.batch, s->x.shape.dim[1], node_integer(s->node, "units"),
                                    node_integer(s->node, "vocabulary"), node_integer(s->node, "segments")};
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    if (!node_integer(node, "positions") || !node_integer(node, "segments"))
        return fail(ST_SPEC,
                    "embedding on cuda has positions and segments; expected backend: cpu, or 1 and more of each");
    return layer_state_prepare(backend, graph, node, footprint, state);
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_embedding(cuda_queue(s->backend, CLOCK_OTHER), shape_of(s), args->x[0], args->parameters[WORD],
                     args->parameters[POSITION], args->parameters[SEGMENT], args->y);
    return cuda_queued("embedding");
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const struct embedding_shape shape = shape_of(s);
    const cudaStream_t stream = cuda_queue(s->backend, CLOCK_OTHER);
    const int64_t used = shape.tokens * shape.width, all = node_integer(s->node, "positions") * shape.width;
    launch_embedding_gradient(stream, shape, args->x[0], TOKEN_IDS, shape.words, args->dy, args->gradients[WORD]);
    launch_embedding_gradient(stream, shape, args->x[0], TOKEN_SEGMENTS, shape.segments, args->dy,
                              args->gradients[SEGMENT]);
    launch_reduce_units(stream, args->dy, shape.batch, used, 1, args->gradients[POSITION]);
    launch_fill(stream, 0, all - used, args->gradients[POSITION] + used);
    return cuda_queued("gradients of embedding");
}

const struct kernel cuda_embedding = {true, prepare, forward, backward, free};
