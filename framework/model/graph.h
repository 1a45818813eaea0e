/* The network: nodes in topological order, each writing one value (single assignment). Value 0 is the batch; node i
 * writes value i + 1. The last node is the loss; losses before it, which no node reads, are auxiliary: they read the
 * same labels, and their weighted values are added to it. */
#pragma once

#include "base/region.h"
#include "model/layer.h"

/* What a relu saves for its backward: its output, or one sign bit an element, so that the output may die. AUTO: the
 * schedule decides; without its decision, sign bits, but the output where another node's backward reads it anyway. */
enum relu_save { RELU_OUTPUT, RELU_BITS };

struct value {
    struct shape shape; /* of one sample, logical */
    int consumers;      /* nodes that read it, counted with multiplicity */
    bool wants_gradient;
    int layout;            /* set by the backend's arrange(); 0 is the logical order */
    size_t bytes;          /* of the batch, not rounded; set by arrange() */
    size_t gradient_bytes; /* of its gradient, not rounded, 0: it has none; set by network_prepare() */
};

struct parameter {
    const char *name; /* "conv1_1.weight" */
    struct parameter_definition definition;
    int node;
    int trained; /* its number among those that are trained; -1: its node is frozen */
    int64_t elements;
};

struct node {
    const char *name; /* unique */
    const struct layer *layer;
    const void *settings; /* the layer's own struct */
    int index;
    int *inputs;                     /* values, layer->inputs of them */
    int output;                      /* value: index + 1 */
    int group;                       /* innermost group it is in, -1: none */
    enum activation activation;      /* fused: of the setting of that name, moved by graph_select_first() */
    enum relu_save relu_save;        /* of a fused relu, or a relu layer */
    bool frozen;                     /* its parameters are not trained: no gradients of theirs, no state, no update */
    double weight;                   /* of a loss: by which its value and gradient are multiplied; 1 of the last node */
    int auxiliary;                   /* its number among the auxiliary losses, from 1 on; 0: it is none */
    bool keep_whole;                 /* the model file has it compute the whole batch at once, see model/slicing.h */
    size_t scratch_limit;            /* bytes that a product should not exceed; 0: any */
    bool relu_of_input;              /* graph_select_first() moved its relu here from the node that it reads */
    const void *pool;                /* settings of the max pool that it computes too, graph_fuse_pool(); NULL: none */
    struct shape unpooled;           /* its output before that pool */
    int first_parameter, parameters; /* of its own; its kernel's are node_parameter() */
    int tied;    /* 1 + the parameter that is its kernel's first, and an earlier node's; 0: it has its own */
    bool shared; /* its first parameter is a later node's too, whose backward comes first and assigns the gradient */
    int first_state, states;
    struct flops flops; /* of the whole batch */
    int64_t draws;      /* random numbers that its forward draws for a sample; 0: it is not random */
};

/* How many parameters its kernel has, and the graph's number of the k-th of them. */
static inline int node_parameters(const struct node *node) { return node->parameters + (node->tied > 0); }
static inline int node_parameter(const struct node *node, int k)
{
    return node->tied && k == 0 ? node->tied - 1 : node->first_parameter + k - (node->tied > 0);
}

static inline size_t parameter_bytes(const struct parameter *parameter)
{
    return (size_t)parameter->elements * sizeof(float);
}

/* What it occupies in static memory; so do its gradient and each copy of the optimizer's state. */
static inline size_t parameter_static_bytes(const struct parameter *parameter)
{
    return round_up(parameter_bytes(parameter));
}

/* A named node range of the model file. Groups nest; they are ordered by their start, an outer one before its inner
 * ones. */
struct group {
    const char *name; /* "block[2]" for a turn of repeat:, nested "partition[0].block[2]" */
    int from, to;     /* nodes [from, to) */
    int parent;       /* -1: none */
};

enum { AUXILIARY_MAX = 16 };

struct graph {
    struct region *region; /* owns everything below */
    int64_t batch;
    int64_t slices; /* of the batch, see model/slicing.h; 1: none */
    bool *whole;    /* by node: the batch is computed at once; NULL: of all */
    int nodes, values, parameters, states, groups;
    int trained;   /* parameters that are, see struct parameter; set by graph_finish() */
    int auxiliary; /* losses before the last node, at most AUXILIARY_MAX; set by graph_finish() */
    struct node *node;
    struct value *value;
    struct parameter *parameter;
    struct parameter *state; /* running state: tensors without gradients */
    struct group *group;
    struct names *node_names, *group_names; /* numbers of nodes and groups by their names */
    int *together;        /* node -> the last one that must be in its stage; NULL: its readers say it */
    int open_group;       /* the innermost one that has not ended; -1: none */
    bool pool_in_conv;    /* network_prepare() fuses pools into convolutions; set by the caller */
    bool fused_update;    /* gradients of parameters live in the arena until their update; set by the caller */
    uint64_t update_part; /* bytes: larger gradients that can be computed by rows are, in parts; 0: none is */
};

/* A graph whose value 0 has the given shape. Errors: ST_SPEC for a bad batch or shape. */
enum status graph_create(const struct shape *input, int64_t batch, struct graph **graph);
void graph_destroy(struct graph *graph);

/* Appends a node; settings: copied, NULL: all 0; name NULL makes "conv3" (layer name and a running
 * number per layer); inputs: layer->inputs values. Errors: ST_SPEC when shapes do not fit or the name is taken, the
 * message naming the node and the shapes. */
enum status graph_add(struct graph *graph, const struct layer *layer, const void *settings, const char *name,
                      const int *inputs, int *output);

/* The newest node's first parameter becomes that of node owner: one tensor, one gradient, which the later node's
 * backward assigns and owner's adds to, and one update. The batch of owner is computed at once, whatever the slices, so
 * that the order of that sum does not depend on schedules. ST_SPEC: one of them has none, or their shapes differ. */
enum status graph_tie(struct graph *graph, int owner);

/* A setting of the node by its key, which its layer must have: an integer, a truth value or the index of a choice; a
 * real number; whether that word is chosen. For kernels, which do not know the layer's struct. */
const struct setting_list *node_list(const struct node *node, const char *key);
int64_t node_integer(const struct node *node, const char *key);
double node_real(const struct node *node, const char *key);
bool node_chooses(const struct node *node, const char *key, const char *word);

/* Nodes added between the two calls belong to the group; groups nest. */
enum status graph_group_begin(struct graph *graph, const char *name);
void graph_group_end(struct graph *graph);

/* After the loss: counts consumers, numbers what is trained and auxiliary losses, finds which values want gradients.
 * Errors: ST_SPEC when a value but a loss's is never read, a loss's is, the last node is not a loss, an auxiliary one
 * has other labels, or no parameter is trained. */
enum status graph_finish(struct graph *graph);

/* In a finished graph, moves each fused relu behind the pool that is its only reader and selects the largest of several
 * elements: the same numbers on fewer elements (a zero may change its sign, which no sum with another number shows).
 * The layer before then saves nothing for the relu, but the pool's output is kept until the pool's own backward. So a
 * relu is moved only where that layer saves anything for it, the pool has no more outputs than inputs, and one that may
 * save sign bits only where a layer with parameters reads the pool's output, whose backward keeps it nearly as long. */
void graph_select_first(struct graph *graph);

/* Whether node is a 2x2 max pool of stride 2, without padding and ceil_mode, that alone reads the output of another
 * node. */
bool graph_pool_fusible(const struct graph *graph, const struct node *node);

/* In an arranged graph: the node that such a pool reads computes the pool, too. Its output has the pool's shape, bytes
 * and relu, and the pool becomes a 1x1 one, the identity, so that nodes and groups stay what they are. */
void graph_fuse_pool(struct graph *graph, struct node *pool);

/* Labels of a sample: one for each row of what the last loss reads; 1 where it reads none. And the classes of its rows.
 */
int64_t graph_labels(const struct graph *graph);

/* Whether the labels are floats: targets of the loss. */
bool graph_targets(const struct graph *graph);
int64_t graph_classes(const struct graph *graph);

/* Whether its backward computes gradients of its parameters. */
static inline bool node_trains(const struct node *node) { return node_parameters(node) > 0 && !node->frozen; }

/* The sum of parameter_static_bytes(); and of those that are trained. */
size_t graph_parameter_bytes(const struct graph *graph);
size_t graph_trained_bytes(const struct graph *graph);

/* Index by name, -1: none. */
int graph_find_node(const struct graph *graph, const char *name);
int graph_find_group(const struct graph *graph, const char *name);

/* Everything that determines the choice of a node's kernels, as text: layer, settings, shapes, layouts and bytes as
 * arranged, batch. */
char *graph_node_key(const struct graph *graph, int node, struct region *region);
