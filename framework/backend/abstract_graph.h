/* Abstract networks: without kernels, made from lists of times and bytes. They are planned by the same lowering and
 * placement as any network, and never run. Bytes are exact: nothing is rounded. Times are best whole numbers: sums of
 * those are exact up to 2^53; larger ones, and those of fractions, are rounded as sums of doubles are.
 *
 * Contract of a chain: stage i (from 1) forward reads a(i-1), writes a(i) [output] and, when it saves, its saved
 * tensors [saved, without input and output]; backward reads a(i-1), its saved tensors and d(i) [gradient], and writes
 * d(i-1). Operands and scratch coexist while an op runs; no output takes an input's place. a(0) is given and not
 * counted, d(0) is not computed, d(L) appears with the last stage's backward.
 *
 * A graph differs in what a node reads: forward its inputs, backward those of its inputs, its output and its saved
 * tensors that `reads` names, and the gradient of its output; it writes the gradients of its inputs. */
#pragma once

#include "backend/network.h"

struct abstract_stage {
    const char *name;                                                   /* NULL: "stage3" */
    double forward, backward;                                           /* time */
    int64_t output, saved, gradient, forward_scratch, backward_scratch; /* bytes */
    bool split; /* the backward is two ops (parameters, then input) between which a(i-1) may die */
};

struct abstract_node {
    struct abstract_stage stage;
    int inputs, input[NODE_INPUTS_MAX]; /* at least one value: 0 the batch, i + 1 what node i writes */
    unsigned reads;                     /* enum reads: what the backward reads besides the gradient */
    double once;                        /* time that the first forward takes besides */
    int64_t parameters;                 /* bytes; their gradients take as many: both are static memory */
    bool in_place;                      /* the output may take the place of input[0], where that dies and is as large */
    bool gradient_in_place;             /* so may the gradient of input[0] take the place of the output's */
    bool passes_gradient;               /* the gradients of its inputs are that of its output, the same tensor */
    bool forward_only;                  /* no backward; its stage's backward, gradient and backward_scratch are 0 */
};

#define ABSTRACT_TIME_MAX 1e30 /* of all nodes; every number made of it stays finite */

/* The network of a graph, without a backend; it is freed by abstract_destroy. Every node's output but the
 * last's is read by a later node, and where it has a backward, by one that has one too; the last has one. ST_SPEC: a
 * value is negative or not finite, a name is taken, the sums exceed 2^58 bytes or ABSTRACT_TIME_MAX, or it is no such
 * graph; *at is the node at fault, from 0. */
enum status abstract_graph_create(const struct abstract_node *node, int nodes, int *at, struct network **network);
void abstract_destroy(struct network *network);
