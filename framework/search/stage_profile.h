/* What a run of nodes between two cuts takes by itself, for planning by parts, from a sweep over its events in the step
 * model.
 *
 * Contract: the live bytes of an op of the run, here, are those of the run, its two cut values and their gradients at
 * that op in any schedule of the whole network that treats the run alike; the rest of that schedule adds to them. */
#pragma once

#include "search/step_model.h"

/* Nodes [from, to) of the model's network, cuts of stages_find. */
struct node_run {
    const struct step_model *model;
    int from, to;
    bool sink;     /* something comes after them and reads the last node's value */
    bool outlives; /* something before them reads the value before the first one after their backward */
};

/* What follows one forward of a run and the backward of what comes after it. */
enum probe {
    PROBE_THROUGH, /* recomputations and backwards */
    PROBE_LAST,    /* a new forward from the cut value, then those */
    PROBE_PASS,    /* the same, the cut value recomputed, too */
    PROBE_TAIL     /* the cut value recomputed, then the backwards of what was saved */
};

struct stage_profile {
    size_t once;           /* bytes written at first forwards and kept for recomputations: stashes and masks */
    size_t forward;        /* peak of the first forwards; without a sink 0, here and in the next two */
    size_t again;          /* the same where all stashes and masks exist from the start: in a recomputation */
    size_t keep;           /* live between the forward and the backward, the run's output left out */
    size_t backward;       /* peak of the ops after that; without a sink, of all ops */
    double forward_time;   /* of first forwards */
    double recompute_time; /* of the others */
    bool reads_input;      /* an op that backward is of reads the cut value */
};

/* recompute: by node of the run, whether it is recomputed before the first backward that reads it. forward: by node of
 * the run, set to whether the new forward of the run computes it; NULL: not asked. */
struct stage_profile stage_profile_find(const struct node_run *run, enum probe probe, const bool *recompute,
                                        bool *forward);

/* Appends the backwards of nodes [from, to) of a network, from the last to the first, each after the recomputations
 * that it still needs of nodes marked in recompute[] (recompute[0]: node from). */
void stage_backward(const struct network *network, int from, int to, const bool *recompute, struct schedule *schedule);
