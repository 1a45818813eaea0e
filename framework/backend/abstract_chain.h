/* Abstract chains: networks without kernels, made from a list of times and bytes. They are planned by the same
 * lowering and placement as any network, and never run.
 *
 * Contract: stage i (from 1) forward reads a(i-1), writes a(i) [output] and, when it saves, its saved tensors [saved,
 * without input and output]; backward reads a(i-1), its saved tensors and d(i) [gradient], and writes d(i-1). Operands
 * and scratch coexist while an op runs; no output takes an input's place. a(0) is given and not counted, d(0) is not
 * computed, d(L) appears with the last stage's backward. Bytes are exact: nothing is rounded. Times are best whole
 * numbers: sums of those are exact. */
#ifndef REMATCH_BACKEND_ABSTRACT_CHAIN_H
#define REMATCH_BACKEND_ABSTRACT_CHAIN_H

#include "backend/network.h"

struct abstract_stage {
    const char *name;                                                   /* NULL: "stage3" */
    double forward, backward;                                           /* time */
    int64_t output, saved, gradient, forward_scratch, backward_scratch; /* bytes */
    bool split; /* the backward is two ops (parameters, then input) between which a(i-1) may die */
};

/* The network of a chain, without a backend; it is freed by abstract_destroy. ST_SPEC: a value is negative or not
 * finite, a name is taken, or the sums exceed 2^62 bytes or 2^53 units of time; *at is the stage at fault, from 0. */
enum status abstract_create(const struct abstract_stage *stage, int stages, int *at, struct network **network);
void abstract_destroy(struct network *network);

#endif
