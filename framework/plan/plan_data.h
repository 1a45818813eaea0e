/* A plan as data that depends on nothing else: its schedule, ops and buffers, what they were made from, and the numbers
 * it claims. What /plan of a result file holds, and what simulate.h judges. */
#pragma once

#include "plan/op.h"

/* Static memory by category: parameters, their gradients, optimiser state, running state, the batch. */
enum static_category {
    STATIC_PARAMETERS,
    STATIC_GRADIENTS,
    STATIC_OPTIMIZER,
    STATIC_STATE,
    STATIC_INPUTS,
    STATIC_DEVICE,
    STATICS
};
extern const char *const static_names[STATICS];

/* All that planning sees of a node and of the value it writes. Times are in any unit that all nodes share. */
struct plan_data_node {
    const char *name, *layer, *group, *shape;
    int inputs[NODE_INPUTS_MAX];         /* values: 0 the batch, i + 1 what node i writes; -1: none */
    size_t elements;                     /* of the value, a sample */
    size_t draws;                        /* random numbers that its forward draws for a sample */
    size_t output_bytes, gradient_bytes; /* of the value and of its gradient (0: it has none), not rounded */
    int tied;                            /* 1 + the parameter that it shares with an earlier node; 0: none */
    bool whole;                          /* computes the batch in one call, else a call a slice */
    bool wants_gradient;
    struct footprint
        footprint; /* of all slices' saved tensors, one call's scratch; but for signs, which is not stored */
    double forward_flops, once_flops, backward_flops[2], forward_time, once_time, backward_time[2];
};

struct plan_data_parameter {
    const char *name, *shape;
    int node;
    size_t elements;
    bool frozen; /* not trained: it has neither gradient nor optimiser state */
};

/* Of a traced step (backend/traced.h), whose nodes and ops have no inputs above: by node, what it is; what its
 * passes read of forwards; the tensors that backwards write, and which use which; and the operands of ops, those read
 * first. In ascending order of nodes and ops. */
struct plan_data_operator {
    const char *backward; /* the name of the operator that is its backward */
    bool forward, has_backward, runs_once;
    bool in_place; /* the backward's first output may take the place of a dead input */
};

struct plan_data_read {
    int node, of;  /* the pass of node reads what node `of` writes */
    unsigned what; /* enum held */
    bool backward;
};

struct plan_data_tensor {
    const char *name;
    size_t bytes;
    bool stays;
};

struct plan_data_use {
    int node, tensor;
    bool writes;
};

struct plan_data_operand {
    int op, buffer;
    bool writes;
};

/* Numbers that a plan claims. */
enum plan_data_count {
    COUNT_STATIC,
    COUNT_ARENA,
    COUNT_PEAK,
    COUNT_LIVE_PEAK,
    COUNT_SAMPLED_FORWARD,
    COUNT_SAMPLED_GRADIENTS,
    COUNT_RECOMPUTATIONS,
    COUNT_DROPPED,
    COUNTS
};
enum plan_data_real { REAL_FORWARD_FLOPS, REAL_BACKWARD_FLOPS, REAL_RECOMPUTE_FLOPS, REAL_TIME, REAL_SLOWDOWN, REALS };
extern const char *const plan_data_count_names[COUNTS], *const plan_data_real_names[REALS];
enum { PLAN_DATA_CATEGORIES = (int)STATICS + (int)CATEGORIES }; /* static ones first */

struct plan_data {
    int nodes, parameters, states, ops, buffers;
    struct plan_data_node *node;
    struct plan_data_parameter *parameter, *state; /* state: running state */
    struct op *op;
    struct buffer *buffer;
    const char *schedule;
    int operators, reads, tensors, uses, operands; /* 0 but for a traced step */
    struct plan_data_operator *traced;             /* one a node */
    struct plan_data_read *read;
    struct plan_data_tensor *tensor;
    struct plan_data_use *use;
    struct plan_data_operand *operand; /* the same as those of the ops */

    /* What it was made with. labels: of a sample; batch_bytes: of value 0; device_bytes: what a device keeps besides,
     * the next batch and what it updates parameters with; optimizer_copies: state, in copies of the parameters;
     * evaluation_arena: what the forward of an evaluation needs of the same arena, 0: there is none. */
    size_t batch, labels, slices, batch_bytes, device_bytes, optimizer_copies, granularity, evaluation_arena;
    size_t rng, drop_dead; /* enum rng_mode; 0 or 1 */
    bool evaluate;

    /* What it claims. */
    size_t *live; /* bytes while each op runs */
    const char *peak_op, *hash;
    size_t memory[PLAN_DATA_CATEGORIES]; /* bytes while the op runs that sets the peak */
    size_t count[COUNTS];
    double real[REALS];
};

/* The names for op_text() and buffer_text(): the node's, of a traced backward the operator's. */
const char *plan_data_op_name(const struct plan_data *data, const struct op *op);
const char *plan_data_buffer_name(const struct plan_data *data, const struct buffer *buffer);

/* Every count, number of a row and kind is in its range, and the nodes are a network; ST_DIFFERS: the message says
 * which is not. What holds before anything of it is used as an index. */
enum status plan_data_check(const struct plan_data *data);
