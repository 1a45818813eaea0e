/* The options of a visit: every way in which the class of optimum.h may begin it, each with its cost as alternatives of
 * fronts (pareto_front.h). What solving compares, and what writing a schedule chooses from. */
#pragma once

#include "search/pareto_front.h"
#include "search/variants.h"

/* What optimum.h solves. */
struct optimum {
    struct region *region, *solved; /* solved: of the points */
    const struct network *network;  /* without slices */
    size_t low, most;               /* bytes: the front's range, of which points are exact; 0: nothing was solved yet */
    bool exact;          /* else the front is an upper bound: the problem is too large (optimum_approximation()) */
    double alternatives; /* that an exact solution compares, each with fronts of up to thousands of points */
    /* alternatives: up to few are compared at once, above many, or whole for a whole front, not exactly; preset */
    double few, many, whole;
    int64_t steps; /* comparisons of an exact solution below a ceiling at most; preset */
    struct stages stages;
    bool distinct;             /* no stretches are equal */
    struct solution *solution; /* the fronts of all stretches */
    bool *reads;               /* by stage and tail: whether its visit reads the cut value before it */
    int *reader;               /* by stage: the first one from there on that does so without a tail */
    size_t *once;              /* sums of the stages' stashes and masks: [0, s) */
    double *forward;           /* sums of the stages' forward times: [0, s) */
    struct front front;        /* live peak, and time of all ops: forward, backward and recomputations */
};

/* A visit: stages [first, last] are differentiated; the cut value before first is live. */
struct visit {
    int first, last;
    bool outlives; /* that cut value must still be live afterwards */
    bool tail;     /* what the last stage's backward reads, except the cut value before it, is live already */
};

enum visit_kind {
    RUN,   /* forward of stages [first, at], keeping what the variant keeps; a visit of the rest; their backward */
    LAST,  /* the same without a rest */
    PASS,  /* forward of [first, at), keeping what the last of them saves where tail; visits of the rest and of these */
    TWICE, /* forward of all stages, keeping what the last of them saves; then the visit again with that tail */
    EARLY, /* the last stage's backward, which needs only its gradient; a visit of the stages before */
    READY  /* the last stage's backward, all of whose operands are live */
};

struct visit_option {
    enum visit_kind kind;
    int at;
    const struct variant *variant;
    struct visit a, b;
    struct alternative cost;
};

/* look is called for each option of a visit in turn, until one is taken. */
struct option_search {
    void (*look)(struct option_search *search, const struct visit_option *option);
    struct envelope envelope; /* building: the least of all */
    size_t peak;              /* taking: the first that does it in time with peak bytes */
    double time;
    bool taken;
    struct visit_option found;
};

/* The fronts of visits. */
struct solution {
    struct region *region;
    const bool *cut; /* by stage: a pass of any length may end before it, others after up to CHAIN_NEAR stages; NULL:
                        before every stage */
    int *block;      /* by first and last stage, of the first of equal stretches: number of its fronts; 0: not solved */
    struct front *cell; /* by block, outlives and tail; block 0: empty */
    size_t most;        /* bytes: points above are left out */
};

enum { FRONTS = 4 }; /* of a stretch */

/* The front of a visit in the present solution, that of the first of equal ones; of one that is not solved it is
 * empty. */
struct front *visit_cell(const struct optimum *o, const struct visit *v);

/* Whether the visit of these stages reads the cut value before them. */
bool visit_needs(const struct optimum *o, int first, int last, bool tail);

/* Whether it is the first of its stages: else a recomputation. */
bool visit_is_first(const struct optimum *o, const struct visit *v);

/* Variants of a run of stages, NULL: not examined. */
const struct run *visit_run(const struct optimum *o, int first, int last);

/* Whether a pass from stage first on may end before stage at. */
bool visit_may_end(const struct solution *solution, int first, int at);

/* Calls search->look for each option, until one is taken. */
void visit_options(const struct optimum *o, const struct visit *v, struct option_search *search);
