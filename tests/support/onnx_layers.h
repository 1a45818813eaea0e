/* ONNX's operators as layers of this project. Images of ONNX are {N, C, H, W}; here, channels come last. */
#pragma once

#include "layer_under_test.h"
#include "onnx_files.h"

/* A node as a layer with its operands, in logical order, and what must come out. */
struct onnx_layer {
    struct subject_case c;
    bool evaluate;
    const float *x[NODE_INPUTS_MAX], *parameter[NODE_PARAMETERS_MAX], *state[NODE_STATES_MAX];
    const int32_t *labels;
    const float *y;                      /* of a loss: one number */
    const float *moved[NODE_STATES_MAX]; /* the running state after a training step; NULL: it is not moved */
};

/* Whether an operator of that name is expressed as a layer at all. */
bool onnx_layer_known(const char *op_type);

/* NULL, and the layer; or why no layer computes this node. Fails the test where the node is not a valid one. */
const char *onnx_layer_express(const struct onnx_test *test, struct region *region, struct onnx_layer *layer);
