/* The fastest schedule for every amount of memory: the whole front of time against live peak from one solve, exact in
 * bytes, and a schedule for each of its points.
 *
 * Class. A visit differentiates stages [s, t] with the cut value before s at hand; the first visit is the whole
 * network, every other one a recomputation. In a visit each cut value either lives on to the backward that reads it, or
 * dies as soon as the next stage has read it (persistence); so does each saved tensors. A stretch of the visit is
 * - a run that keeps what one of its variants (variants.h) keeps; then the rest; then the variant's recomputations, as
 * late as each is needed, and the run's backward; or
 * - a pass that saves nothing, or what the last of its stages saves, up to a cut value that is held; then the rest;
 *   then a visit of the stretch; or
 * - all of the visit, for what its last stage saves; then the visit once more.
 * Over this class the front is optimal. The class is no wider than what variants.h looks at: runs of up to
 * RUN_NODES_MAX nodes, and of a stage of more than FREE_NODES_MAX nodes only what recomputations of FREE_NODES_MAX of
 * them can do. A stage is passed as a whole, and before its backward each of its nodes is recomputed once, for all that
 * is read of it, or not at all: what one of several nodes could do besides, dividing itself and recomputing over
 * several levels, is not in the class; schedules that are offered (candidates.h) are points of the front where they are
 * better. On chains, whose stages are single nodes, the front is that of all schedules that are persistent and
 * recompute in turn: a forward goes on from the newest value there is. Replaying ahead of turn can help where a
 * gradient that waits takes less than one that comes; where gradients have the bytes of their values, as in networks,
 * the tests find nothing persistent that is faster on a chain. The recurrence is that of Beaumont, Eyraud-Dubois,
 * Herrmann, Joly and Shilova, "Optimal checkpointing for heterogeneous chains" (2019), with saved tensors and cut
 * values told apart, and with the memory axis as step functions; its bytes all come from lowering (stage_profile.h),
 * none from a formula. */
#ifndef REMATCH_SEARCH_OPTIMUM_H
#define REMATCH_SEARCH_OPTIMUM_H

#include "search/candidates.h"
#include "search/variants.h"

struct optimum {
    struct region *region, *solved; /* solved: of points alone */
    const struct network *network;
    size_t most; /* bytes: what takes more is in no front; 0: nothing was solved yet */
    struct stages stages;
    int *shift;         /* by first stage, last stage: so many stages before, the first stretch equal to this stands */
    struct front *cell; /* by first and last stage, outlives and tail; of equal stretches the first has it */
    bool *needs;        /* by first and last stage, tail: does that visit read the cut value before it? */
    size_t *once;       /* sums of the stages' stashes and masks: [0, s) */
    double *forward;    /* sums of the stages' forward times: [0, s) */
    struct candidate_points offers; /* schedules besides those of the class: points of the fronts solved after them */
    const struct candidate_point **offered; /* by point of the front; NULL: it is of the class */
    struct front front;                     /* live peak, and time of all ops: forward, backward and recomputations */
};

/* All that does not depend on memory; there is no front yet. rng as it will be in the plan. */
enum status optimum_prepare(const struct network *network, enum rng_mode rng, struct optimum **optimum);

/* The front up to most bytes, which is that of the whole front to the byte: what a schedule with most bytes consists of
 * takes no more. The less, the faster. */
enum status optimum_within(struct optimum *optimum, size_t most);

/* Both, for the whole front. */
enum status optimum_solve(const struct network *network, enum rng_mode rng, struct optimum **optimum);
void optimum_destroy(struct optimum *optimum);

/* Appends the schedule of a point of the front to an empty schedule. */
enum status optimum_schedule(const struct optimum *optimum, int point, struct schedule *schedule);

#endif
