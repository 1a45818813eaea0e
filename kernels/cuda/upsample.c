/* Nearest neighbour by an integer factor; see kernels.h. */
#include <stdlib.h>

#include "cuda.h"
#include "kernels.h"

static struct upsample_shape shape_of(const struct layer_state *s)
{
    const bool first = channels_first(&s->x);
    const int64_t channels = s->x.shape.dim[2];
    return (struct upsample_shape){.images = s->x.batch * (first ? channels : 1),
                                   .height = s->x.shape.dim[0],
                                   .width = s->x.shape.dim[1],
                                   .channels = first ? 1 : channels,
                                   .factor = node_integer(s->node, "factor")};
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_upsample(cuda_queue(s->backend, CLOCK_OTHER), shape_of(s), args->x[0], args->y);
    return cuda_queued("upsample");
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_upsample_gradient(cuda_queue(s->backend, CLOCK_OTHER), shape_of(s), args->dy, args->dx[0]);
    return cuda_queued("gradient of upsample");
}

const struct kernel cuda_upsample = {true, layer_state_prepare, forward, backward, free};
