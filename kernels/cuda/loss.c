/* The losses: softmax cross-entropy, see kernels.h, and the sum of all elements. */
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "kernels.h"

static enum status entropy_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                   struct footprint *footprint, void **state)
{
    if (node_real(node, "label_smoothing") > 0)
        return fail(ST_SPEC, "cross_entropy on cuda has no label_smoothing yet; expected backend: cpu, or 0");
    if (node_list(node, "class_weights")->count)
        return fail(ST_SPEC, "cross_entropy on cuda has no class_weights yet; expected backend: cpu, or none");
    if (node->auxiliary) return fail(ST_SPEC, "auxiliary losses are not computed on cuda yet; expected backend: cpu");
    TRY(layer_state_prepare(backend, graph, node, footprint, state));
    const struct layer_state *s = *state;
    footprint->forward_scratch = cross_entropy_scratch(s->x.count / shape_width(&s->x.shape));
    return ST_OK;
}

static struct labelled labelled_of(const struct layer_state *s, const struct kernel_args *args)
{
    const int64_t classes = shape_width(&s->x.shape);
    const int64_t pixels = s->x.shape.rank == 3 && channels_first(&s->x) ? image_pixels(&s->x) : 1;
    return (struct labelled){args->x[0], args->labels, args->divisor, s->x.count / classes, classes, pixels};
}

static enum status entropy_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_cross_entropy(cuda_queue(s->backend, CLOCK_OTHER), labelled_of(s, args), args->scratch, args->y);
    return cuda_queued("cross_entropy");
}

static enum status entropy_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_cross_entropy_gradient(cuda_queue(s->backend, CLOCK_OTHER), labelled_of(s, args), args->dx[0]);
    return cuda_queued("gradient of cross_entropy");
}

static enum status sum_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const cudaStream_t stream = cuda_queue(s->backend, CLOCK_OTHER);
    launch_fill(stream, 0, 2, args->y);
    launch_reduce_units(stream, args->x[0], s->x.batch, 1, s->x.elements, args->y);
    return cuda_queued("sum");
}

static enum status sum_backward(void *state, const struct kernel_args *args)
{
    static const float one = 1;
    const struct layer_state *s = state;
    uint32_t pattern;
    memcpy(&pattern, &one, sizeof pattern);
    launch_fill(cuda_queue(s->backend, CLOCK_OTHER), pattern, s->x.count, args->dx[0]);
    return cuda_queued("gradient of sum");
}

const struct kernel cuda_cross_entropy = {true, entropy_prepare, entropy_forward, entropy_backward, free};
const struct kernel cuda_sum = {true, layer_state_prepare, sum_forward, sum_backward, free};
