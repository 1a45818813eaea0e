/* A training step that was traced elsewhere, as a graph file gives it: `tensors` and `operators` in the order in which
 * they ran. A forward operator whose result is read becomes a node. What forward operators read of its outputs is its
 * value; what backward operators alone read, its saved tensors. Backward operators stay what they are, in their order;
 * the rules are in experiments/README.md.
 */
#pragma once

#include "spec/graph_build.h"

enum phase_choice { OPERATOR_FORWARD, OPERATOR_BACKWARD };
enum role { ROLE_UNREAD, ROLE_KEPT, ROLE_SAVED, ROLE_VALUE };
enum { NONE = -1 };

struct tensor {
    const char *name, *alias;
    int64_t bytes;
    bool constant, kept;
    const struct yaml_tree *at;
    int same;                            /* itself, or the tensor that it is a view of */
    int writer;                          /* operator; NONE: a constant */
    bool read, read_forward, of_forward; /* by a live operator that is no view; by one of the forward; a constant */
    enum role role;                      /* written by a forward operator */
    int number;                          /* written by a backward operator: among those of the step */
    int users, *user;                    /* operators that are nodes and read or write it, in ascending order */
};

struct operation {
    const char *name, *of;
    int phase;
    double time, first; /* first: that its first run takes besides */
    int64_t scratch;
    bool in_place, random;
    struct setting_list read_names, write_names;
    const struct yaml_tree *at;
    int reads, writes; /* different tensors, none a view */
    int *read, *write;
    bool live;
    int node; /* forward, live: its number; backward: the operator whose node it runs with, NONE at first */
    /* forward, live */
    int inputs, *input; /* operators */
    int64_t bytes;      /* of its value */
    double once;
    int backwards, *backward; /* that run with it, in their order */
};

struct trace {
    struct graph_build *build;
    int tensors, operators;
    int loss; /* the last forward operator of whose outputs a backward operator reads one */
    struct tensor *tensor;
    struct operation *op;
    struct names *by_name;        /* numbers of tensors */
    struct names *forwards, *all; /* numbers of live operators by name: of the forward, of both */
    bool static_gradients;        /* what backward operators write for no reader is always there */
};

/* Reads the file's tensors and operators and checks that they are a step; every error is reported. */
void trace_read(struct graph_build *build, const struct yaml_tree *root, struct trace *trace);

/* Sets build's step, mapping, places and bytes that are always there. */
void trace_to_step(struct trace *trace);
