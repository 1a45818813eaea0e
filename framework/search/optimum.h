/* The fastest schedule for every amount of memory: the whole front of time against live peak from one solve, exact in
 * bytes, and a schedule for each of its points.
 *
 * Class. A visit differentiates stages [s, t] while the cut value before s is live; the first visit is the whole
 * network, every other one a recomputation. In a visit each cut value either lives on to the backward that reads it, or
 * dies as soon as the next stage has read it (persistence); so do saved tensors. A stretch of the visit is
 * - a run that keeps what one of its variants (variants.h) keeps; then the rest; then the variant's recomputations,
 * each as late as possible, and the run's backward; or
 * - a pass that saves nothing, or what the last of its stages saves, up to a cut value that is kept; then the rest;
 *   then a visit of the stretch; or
 * - the whole visit, for what its last stage saves; then the visit once more.
 * Over this class the front is optimal. It contains what variants.h examines: runs of up to CHAIN_RUN_NODES
 * nodes, and of a stage of more than CHAIN_FREE_NODES nodes only recomputations of CHAIN_FREE_NODES of them, fewer in a
 * long one. A stage is passed as a whole, and before its backward each of its nodes is recomputed once, for all that is
 * read of it, or not at all: dividing a stage and recomputing over several levels within it is not in the class; other
 * engines do (engines.h). On chains, whose stages are single nodes, the front is that of all schedules that are
 * persistent and recompute in turn: a forward continues from the newest live value. Recomputing ahead of turn can help
 * where a pending gradient takes less than the next one; where gradients have the bytes of their values, as in
 * networks, the tests find nothing persistent that is faster on a chain. The recurrence is that of Beaumont,
 * Eyraud-Dubois, Herrmann, Joly and Shilova, "Optimal checkpointing for heterogeneous chains" (2019), with saved
 * tensors and cut values distinguished, and with memory as step functions; all bytes come from the
 * step model (stage_profile.h). */
#pragma once

#include "search/visit_options.h"

/* Everything that does not depend on memory; there is no front yet. rng: the plan's. */
struct optimum *optimum_prepare(const struct network *network, enum rng_mode rng);

/* The front up to most bytes, equal to that part of the whole front: no part of a schedule takes more bytes than the
 * schedule. The smaller most, the faster. Of a problem that is too large to be solved exactly, by alternatives and then
 * by comparisons counted, the front is one of fewer schedules, each with the bytes and the time that it says. */
void optimum_within(struct optimum *optimum, size_t most);

/* The same from low bytes on: the fewer bytes between them, the faster. */
void optimum_between(struct optimum *optimum, size_t low, size_t most);

/* An upper bound of that front, of few points, in little time; unless the problem is too large for an exact
 * one, its least memory is exact, and no point means that there is none. A front of a small problem is exact. */
void optimum_sketch(struct optimum *optimum, size_t most);

/* Whether a sketch, where it takes less time than the exact front, shows that no schedule takes at most most bytes. The
 * front is the sketch's then. */
bool optimum_none_within(struct optimum *optimum, size_t most);

/* What was left out, as text in region; NULL: nothing, the front is exact. */
const char *optimum_approximation(const struct optimum *optimum, struct region *region);

/* Preparation and the whole front. */
struct optimum *optimum_solve(const struct network *network, enum rng_mode rng);
void optimum_destroy(struct optimum *optimum);

/* Appends the schedule of a point of the front to an empty schedule. */
void optimum_schedule(const struct optimum *optimum, int point, struct schedule *schedule);
