/* A training step that was traced elsewhere, as a network that is planned and never run: a node for each forward
 * operator, and the backward operators in the order in which they ran, each with what it reads and writes.
 *
 * A node's backward is at most one operator. Operators that have no node of their own are the backwards of nodes
 * without a forward, which write no value. Backwards run in reverse order of the nodes, like those of any network. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/layer.h"

struct traced_read {
    int node;
    enum held what;
};

/* What a backward operator writes: live to its last read or, where it stays, to the end of the step. */
struct traced_tensor {
    const char *name;
    int64_t bytes;
    bool stays;
};

struct traced_backward {
    const char *name;
    int reads, inputs, outputs;
    const struct traced_read
        *read;                 /* of the forward, each once; those of value and saved tensors of other bytes than 0 */
    const int *input, *output; /* tensors that it reads, each written before, and writes, each once */
    bool in_place;             /* its first output may take the place of an input that dies and is as large */
};

struct traced_node {
    const char *name; /* unique */
    double forward, once, backward;
    int64_t output, saved, kept, forward_scratch, backward_scratch; /* bytes; kept: written once */
    int inputs;
    const int *input; /* values of earlier nodes, that is a node's number and 1 */
    bool in_place;    /* the output may take the place of input[0], where that dies and is as large */
    bool random; /* never runs again: a recomputation of it is left out, and what it wrote is kept for its readers */
    bool no_forward;
    struct traced_backward *back; /* NULL: none */
};

struct traced_step {
    int nodes, tensors;
    struct traced_node *node;
    struct traced_tensor *tensor;
    int64_t always; /* static bytes: constants, the batch, gradients that are counted there */
};
