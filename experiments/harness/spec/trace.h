/* A training step that was traced elsewhere, as a graph file gives it: `tensors` and `operators` in the order in which
 * they ran. A forward operator whose result is read becomes a node, known by the operator's number. What forward
 * operators read of its outputs is its value; what backward operators alone read, its saved tensors. A backward
 * operator belongs to a node; together they are its backward. The limits of that are stated in experiments/README.md.
 */
#pragma once

#include "spec/graph_build.h"

enum phase_choice { OPERATOR_FORWARD, OPERATOR_BACKWARD };
enum role { ROLE_UNREAD, ROLE_SAVED, ROLE_VALUE };
enum { NONE = -1 };

struct tensor {
    const char *name, *alias;
    int64_t bytes;
    bool constant;
    const struct yaml_tree *at;
    int same;                            /* itself, or the tensor that it is a view of */
    int writer;                          /* operator; NONE: a constant */
    bool read, read_forward, of_forward; /* by a live operator that is no view; by one of the forward; a constant */
    enum role role;                      /* written by a forward operator */
    int value;                           /* written by a backward operator: node of whose value it is the gradient */
    bool added;                          /* the same: to another gradient */
    int lowest, last;                    /* the same: least node that reads it, last operator that does */
    int users, *user;                    /* nodes that read or write it, in ascending order */
};

struct operation {
    const char *name, *of;
    int phase;
    double time;
    bool in_place;
    struct setting_list read_names, write_names;
    const struct yaml_tree *at;
    int reads, writes; /* different tensors, none a view */
    int *read, *write;
    bool live;
    int node, next; /* of a backward operator; the one of the same node before it, NONE */
    /* of a node */
    int inputs, *input; /* nodes */
    int taken;          /* the last node one of whose backward operators wrote its gradient */
    int64_t bytes, gradient, held;
    double back_time, once;
    bool back;    /* has a backward */
    int value;    /* in build; NONE: not added yet */
    int backward; /* the last of its backward operators */
};

struct trace {
    struct graph_build *build;
    int tensors, operators;
    int loss; /* the last forward operator of whose outputs a backward operator reads one */
    struct tensor *tensor;
    struct operation *op;
    const struct tensor **sorted; /* by name */
    struct names *nodes;          /* by name */
};

/* Reads the file's tensors and operators and checks that they are a step; every error is reported. */
void trace_read(struct graph_build *build, const struct yaml_tree *root, struct trace *trace);

/* Appends the nodes of a trace without errors, and sets build->always and build->mapping. */
void trace_to_nodes(struct trace *trace);
