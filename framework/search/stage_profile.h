/* A run of nodes between two cuts, lowered by itself, which gives the bytes for planning by parts. A source before the
 * run writes the cut value that the run reads; a sink after it reads the run's output and returns its gradient, in
 * place of everything that follows. Lowering, lifetimes and overlays are those of the whole network.
 *
 * Contract: the live bytes of an op of the run, here, are those of the run, its two cut values and their gradients at
 * that op in any schedule of the whole network that treats the run alike; the rest of that schedule adds to them. */
#pragma once

#include "plan/lower.h"

struct subnetwork {
    struct network network; /* node 0: the source; 1..nodes: the run; nodes + 1: the sink, where there is one */
    int nodes;
    bool sink;
    enum rng_mode rng;
};

/* Nodes [from, to) of network, cuts of stages_find. sink: something comes after them. outlives: the source's own
 * backward reads the cut value. All in region. */
void subnetwork_cut(const struct network *network, int from, int to, bool sink, bool outlives, enum rng_mode rng,
                    struct region *region, struct subnetwork *subnetwork);

/* The costs of a schedule over the subnetwork's nodes. */
struct stage_profile {
    struct lowered lowered;
    size_t *live;          /* while each op runs */
    int sink, turn;        /* ops: the sink's forward, and its backward (-1 each: no sink) */
    size_t once;           /* bytes written at first forwards and kept for recomputations: stashes and masks */
    size_t forward;        /* peak of the ops before the sink's forward */
    size_t again;          /* the same where all stashes and masks exist from the start: in a recomputation */
    size_t keep;           /* live while the sink runs forward, the run's output left out */
    size_t backward;       /* peak of the ops after the sink's backward; without a sink, of all ops */
    double forward_time;   /* of first forwards */
    double recompute_time; /* of the others */
    bool reads_input;      /* an op of the run after the sink's backward reads the cut value */
};

struct stage_profile subnetwork_profile(const struct subnetwork *subnetwork, const struct schedule *schedule,
                                        struct region *region);

/* Appends the backwards of nodes [from, to) of a network, from the last to the first, each after the recomputations
 * that it still needs of nodes marked in recompute[] (recompute[0]: node from). */
void subnetwork_backward(const struct network *network, int from, int to, const bool *recompute,
                         struct schedule *schedule);
