/* The fastest schedule of any class within a limit of live bytes, by a search over states, from the end of the step to
 * its start. A state is a position between two events of the backbone and the set of values and saved tensors that are
 * read from there on and must be live; each step back either meets the next event of the backbone or recomputes one
 * needed node. In this direction nothing is decided about keeping: what is needed and not recomputed is kept.
 *
 * States of one position are expanded in the order of a lower bound: their time, and the least time to recompute of
 * what is needed as many bytes as exceed the limit at an earlier backward (a fractional knapsack). At most width of
 * them: where that left none out, the result is the optimum of all schedules. */
#ifndef REMATCH_SEARCH_STATE_SEARCH_H
#define REMATCH_SEARCH_STATE_SEARCH_H

#include "search/step_model.h"

enum { STATE_NODES_MAX = 64 }; /* sets of nodes are words */

struct state_search_result {
    bool found;  /* a sequence within the limit, faster than the given time */
    bool proven; /* there is no faster one */
    struct sequence sequence;
    size_t expanded; /* states */
};

/* For networks of up to STATE_NODES_MAX nodes. below: the time of all ops that the sequence must be faster than,
 * INFINITY: any. The sequence lives in region. */
struct state_search_result state_search(const struct step_model *model, size_t limit, double below, int width,
                                        struct region *region);

#endif
