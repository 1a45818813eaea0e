/* A value of a whole batch: where its numbers are. */
#ifndef REMATCH_KERNELS_CUDA_VALUE_LAYOUT_H
#define REMATCH_KERNELS_CUDA_VALUE_LAYOUT_H

#include "cuda.h"

struct extent {
    int64_t batch;
    int64_t elements; /* of one sample */
    int64_t count;    /* of the batch */
    struct shape shape;
    bool channels_first; /* an image N C H W */
};

static inline struct extent extent_of(const struct graph *graph, int value)
{
    const struct value *v = &graph->value[value];
    const int64_t elements = shape_elements(&v->shape);
    return (struct extent){graph->batch, elements, graph->batch * elements, v->shape,
                           v->layout == ORDER_CHANNELS_FIRST && v->shape.rank == 3};
}

#endif
