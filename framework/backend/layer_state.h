/* What kernels of every backend keep of a node: where its values lie. */
#pragma once

#include "model/graph.h"

struct backend;

/* A value of a whole batch as it lies in memory. */
struct extent {
    int64_t batch;
    int64_t elements; /* of one sample */
    int64_t count;    /* of the batch */
    struct shape shape;
    int layout; /* struct value's */
};

struct extent extent_of(const struct graph *graph, int value);
static inline int64_t image_pixels(const struct extent *x) { return x->shape.dim[0] * x->shape.dim[1]; }

/* The state of a kernel that needs nothing more; freed by free(). */
struct layer_state {
    struct backend *backend;
    const struct node *node;
    struct extent x, second, y; /* the first input, the last one and the output */
};

/* For struct kernel's prepare: such a state, and the footprint of the layer's definition. */
enum status layer_state_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state);

/* The one setting of an elementwise layer, as kernels compute with it; 0 where it has none. */
static inline float node_number(const struct node *node)
{
    return node->layer->keys ? (float)node_real(node, node->layer->keys->key) : 0;
}

/* For struct backend_kind's arrange: sets a value's layout and bytes. ST_SPEC: the value is too large. */
enum status value_arrange(struct graph *graph, int value, int layout);
