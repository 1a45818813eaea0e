/* The fastest schedule of any class within a limit of live bytes, by a search over states, from the end of the step to
 * its start. A state is a position between two events of the backbone and the set of values and saved tensors that are
 * read from there on and must be live; each step back either meets the next event of the backbone or recomputes one
 * needed node. In this direction nothing is decided about keeping: what is needed and not recomputed is kept.
 *
 * A state is bounded by its time and the least time to recompute of what is needed as many bytes as exceed the limit at
 * an earlier backward (a fractional knapsack). The states of one position are expanded by an estimate of the time of
 * all recomputations. A beam limits how many: where it left none out, the result is the optimum of all schedules. */
#pragma once

#include "search/step_model.h"

/* A part of the step that is searched while the rest of a sequence stays: events [from, to) of the backbone, all of
 * them backwards. */
struct state_window {
    int from, to;
    const unsigned char *needed; /* by node, after the window: enum needed */
    const bool *again;           /* nodes that may be recomputed */
    const int *node;             /* those, their inputs, and what the window's events read */
    int nodes;                   /* of those: at most STATE_NODES_MAX */
};

/* What an estimate counts besides a state's time. */
enum state_estimate {
    ESTIMATE_ITEMS,    /* recomputing what exceeds the limit at the earlier backward where most does */
    ESTIMATE_INPUTS,   /* and inputs of those recomputations that are not live there */
    ESTIMATE_BACKWARDS /* both, then at the backward where most exceeds of what is left, until all fit */
};

/* Of each position, at most width states are expanded whose bytes are within the same part of the limit, of levels
 * equal parts: a state of few bytes looks slow until those of many turn out not to fit. deep: and that follow equally
 * many recomputations there, where the last number stands for all larger ones: else, where many nodes must be
 * recomputed before an event fits, those that recompute few of them fill the beam, since they look faster. */
enum { STATE_LEVELS_MAX = 64, STATE_DEPTHS = 64 };
struct state_effort {
    int width, levels;
    enum state_estimate estimate;
    bool deep;
};

struct state_search_result {
    bool found;  /* a sequence within the limit, faster than the given time */
    bool proven; /* there is no faster one */
    struct sequence sequence;
};

/* For networks of up to STATE_NODES_MAX nodes. below: the time of all ops that the sequence must be faster than,
 * INFINITY: any. The sequence lives in region. */
struct state_search_result state_search(const struct step_model *model, size_t limit, double below,
                                        struct state_effort effort, struct region *region);

/* Up to so many sequences of a window, those first that look fastest; returns how many. below: the time of all
 * recomputations in and before the window that they must be faster than. Only the sequence as a whole shows what they
 * take, and whether what they need before the window can be live there. */
int state_search_window(const struct step_model *model, const struct state_window *window, size_t limit, double below,
                        struct state_effort effort, int most, struct sequence *sequence, struct region *region);
