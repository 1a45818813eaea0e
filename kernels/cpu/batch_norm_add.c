/* batch_norm with a second input, which its last pass over x adds, with a relu: batch_norm.c does both. The backward
 * gives the second input dy before the relu, which the norm then reads. */
#include <stdlib.h>

#include "cpu.h"
#include "element_loops.h"

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const struct extent y = extent_of(graph, node->output);
    const bool relu = node->activation == ACTIVATION_RELU;
    TRY(cpu_batch_norm.prepare(backend, graph, node, footprint, state));
    footprint->reads[PART_INDEX_PARAMS] = footprint->reads[PART_INDEX_INPUT] = READS_X0 | (relu ? READS_Y : 0u);
    footprint->writes_dy = relu;
    if (relu) footprint->signs = (size_t)y.batch * sign_words(y.elements) * sizeof(uint32_t);
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args) { return cpu_batch_norm.forward(state, args); }

static enum status backward(void *state, const struct kernel_args *args)
{
    return cpu_batch_norm.backward(state, args);
}

const struct kernel cpu_batch_norm_add = {true, prepare, forward, backward, free};
