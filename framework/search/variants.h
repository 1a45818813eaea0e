/* Variants of runs of stages. A variant of a run is the set of its nodes that are recomputed before their backwards;
 * everything else that a backward reads stays from the forward. Its bytes and times are those of a sweep over the run
 * alone (stage_profile.h), so they hold for whatever footprints the kernels have.
 *
 * Examined: runs of up to CHAIN_RUN_NODES nodes and single stages of any size; in a run of several stages each cut
 * value inside is recomputed (a run that keeps one is two runs), and of the other nodes every subset of the
 * CHAIN_FREE_NODES that give most bytes for their time: a longer stage, as a shortcut around many layers makes it,
 * keeps the outputs of all its other nodes. A variant that is nowhere better than another one is left out. Equal runs
 * are examined once. */
#pragma once

#include "plan/stages.h"
#include "search/stage_profile.h"

struct variant {
    uint64_t recompute; /* nodes of the run, bit 0 the first */
    size_t forward;     /* peak of its forward, the cut value it reads included (here and below) */
    size_t again;       /* the same in a recomputation, where all stashes and masks exist already */
    size_t keep;        /* live between its forward and its backward, its own output left out */
    size_t backward;    /* peak of its recomputations and backward; of everything where it ends a visit */
    double time;        /* of the recomputations; of all forwards where it ends a visit */
    bool outlives;      /* its backward reads the run's output, kept from the forward */
    bool reads_input; /* its recomputations or backward (where it ends a visit, its forwards too) read the cut value */
};

struct variants {
    int count;
    struct variant *variant;
};

/* By whether the cut value read must outlive the run (it is read later elsewhere). */
struct run {
    struct variants through[2]; /* more stages follow in the visit; none: the run ends the network */
    struct variants last[2];    /* it is the last of a visit: only what its own backward needs is recomputed */
};

/* A pass that saves what a stage's backward reads, but for the cut value before it. */
struct tail {
    size_t forward, again; /* peak of the pass */
    size_t keep;           /* what it keeps, the output left out */
    size_t backward[2];    /* peak of the backward after it, once the cut value read is live again */
    bool outlives, reads;  /* that backward reads the output, the cut value before */
};

/* One stage by itself. */
struct stage {
    struct node_range nodes;
    int class;                   /* equal for stages that cost the same in every way */
    size_t input, output;        /* bytes of the cut values before and after (0: the batch) */
    size_t gradient;             /* of the cut value after; 0 for the last stage, whose own backward computes it */
    size_t once;                 /* stashes and masks */
    double time;                 /* of its forward */
    bool again;                  /* its forward can run again: a visit may pass it */
    bool outlives;               /* the cut value before may have to outlive it: the backward of its node reads it */
    size_t held, held_again;     /* peak of a forward that saves nothing; the cut value read stays */
    size_t passed, passed_again; /* the same, the cut value read dies at its last reader */
    struct tail tail;
};

struct stages {
    int count;
    struct stage *stage;
    int *shift;       /* by first and last stage: distance in stages to the first equal stretch; 0: there is none */
    int reach;        /* runs of up to so many stages */
    struct run **run; /* run[first * reach + stages - 1], NULL: not examined */
    struct step_model model;
};

/* Of a stretch. */
static inline int *stages_shift(const struct stages *stages, int first, int last)
{
    return &stages->shift[(size_t)first * (size_t)stages->count + (size_t)last];
}

struct stages variants_list(const struct network *network, enum rng_mode rng, struct region *region);

/* The bits of recomputation as one bool a node. */
bool *variants_unpack(uint64_t recompute, int nodes, struct region *region);

/* Marks the nodes of the forward of a run that ends a visit: those whose output or saved tensors are read. */
bool *variants_last_nodes(const struct stages *stages, const struct node_range *nodes, uint64_t recompute,
                          struct region *region);
