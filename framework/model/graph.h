/* The network: nodes in topological order, each writing one value (single assignment). Value 0 is the batch; node i
 * writes value i + 1. The last node is the loss. */
#ifndef REMATCH_MODEL_GRAPH_H
#define REMATCH_MODEL_GRAPH_H

#include "base/region.h"
#include "model/layer.h"

/* What a relu keeps for its backward: its output, or one sign bit an element, so that the output may die. AUTO: the
 * plan says; where it does not, bits, but the output where somebody else's backward reads it anyway. */
enum relu_save { RELU_OUTPUT, RELU_BITS, RELU_AUTO };

struct value {
    struct shape shape; /* of one sample, logical */
    int consumers;      /* nodes that read it, counted with multiplicity */
    bool wants_gradient;
    int layout;            /* set by the backend's arrange(); 0 is the logical order */
    size_t bytes;          /* of the batch in that layout, padding included, not yet rounded; set by arrange() */
    size_t gradient_bytes; /* of its gradient, not yet rounded, 0: it has none; set by network_prepare() */
};

struct parameter {
    const char *name; /* "conv1_1.weight" */
    struct parameter_definition definition;
    int node;
    int64_t elements;
};

struct node {
    const char *name; /* unique */
    const struct layer *layer;
    struct settings settings;
    int index;
    int inputs[NODE_INPUTS_MAX]; /* values */
    int output;                  /* value: index + 1 */
    int group;                   /* innermost group it is in, -1: none */
    enum relu_save relu_save;    /* of a fused relu, or a relu layer */
    bool relu_of_input;          /* its relu was written in the node that it reads: graph_select_first() */
    int first_parameter, parameters;
    struct flops flops; /* of the whole batch */
    int64_t draws;      /* random numbers that its forward draws for a sample; 0: it is not random */
};

/* A named node range of the model file: what a person calls a block. Groups nest; they come in order of their start,
 * an outer one before its inner ones. */
struct group {
    const char *name; /* "block[2]" for a turn of repeat:, nested "partition[0].block[2]" */
    int from, to;     /* nodes [from, to) */
    int parent;       /* -1: none */
};

struct graph {
    struct region *region; /* owns everything below */
    int64_t batch;
    int nodes, values, parameters, groups;
    struct node *node;
    struct value *value;
    struct parameter *parameter;
    struct group *group;
};

/* A graph whose value 0 has the given shape. Errors: ST_SPEC for a bad batch or shape. */
enum status graph_create(const struct shape *input, int64_t batch, struct graph **graph);
void graph_destroy(struct graph *graph);

/* Appends a node; name NULL makes "conv3" (layer name and a running number per layer). inputs: layer->inputs values.
 * Errors: ST_SPEC when shapes do not fit or the name is taken, the message naming the node and the shapes. */
enum status graph_add(struct graph *graph, const struct layer *layer, const struct settings *settings, const char *name,
                      const int *inputs, int *output);

/* Nodes added between the two calls belong to the group; groups nest. */
enum status graph_group_begin(struct graph *graph, const char *name);
void graph_group_end(struct graph *graph);

/* After the loss: counts consumers, finds which values want gradients. Errors: ST_SPEC when a value but the last is
 * never read, the last node is not a loss, or there is no parameter. */
enum status graph_finish(struct graph *graph);

/* In a finished graph, takes fused relus after the pools that alone read them, where these select the largest of more
 * than one: the same numbers on fewer elements (a zero may have another sign, which no sum with anything else sees).
 * Nothing of the layer before is kept for them, but the pool's output is, until the pool's own backward: so one is
 * moved only where the pool makes no more elements, and one that may keep bits only where a layer with parameters reads
 * that output, whose backward needs it nearly as long. */
void graph_select_first(struct graph *graph);

/* Index by name, -1: none. */
int graph_find_node(const struct graph *graph, const char *name);
int graph_find_group(const struct graph *graph, const char *name);

/* Everything that determines the choice of a node's kernels, as text: layer, settings, shapes, layouts and bytes as
 * arranged, batch. */
char *graph_node_key(const struct graph *graph, int node, struct region *region);

#endif
