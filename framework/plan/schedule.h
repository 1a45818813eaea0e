/* The schedule: all that a policy decides. Steps F[from,to) and B[from,to) over nodes. P[node,node+1) runs the first
 * half of a split backward ahead of its B, so that there can be recomputations between the halves; of another backward
 * it runs nothing.
 *
 * Where the batch is divided into slices, F[from,to)/2 runs the nodes for slice 2 alone. A step without a slice runs,
 * node by node, all slices in ascending order: of a split backward the first halves of all, then the second. */
#pragma once

#include <stdbool.h>

#include "model/slicing.h"

enum step_kind { STEP_FORWARD, STEP_BACKWARD, STEP_PARAMS };

struct step {
    enum step_kind kind;
    int from, to; /* nodes [from, to); a backward runs them from to - 1 down to from */
    int slice;    /* WHOLE_BATCH: all */
};

struct schedule {
    struct region *region; /* where the steps live */
    struct step *step;
    size_t steps;
};

/* An empty schedule whose steps are taken from region. */
struct schedule schedule_empty(struct region *region);

/* Appends a step; an empty range is left out, a range that continues the last step extends it. */
void schedule_append_step(struct schedule *schedule, struct step step);

/* The same, of all slices. */
void schedule_append(struct schedule *schedule, enum step_kind kind, int from, int to);

/* Every node forward, then every node backward. */
struct schedule schedule_store_all(int nodes, struct region *region);

/* Appends a schedule of all slices, run slice by slice wherever its steps come one after the other over sliced nodes:
 * the same work, in which what lives only between such steps is live for one slice. */
void schedule_append_by_slice(struct schedule *schedule, const struct slicing *slicing, const struct schedule *all);

/* Appends all steps of another schedule. */
void schedule_append_all(struct schedule *schedule, const struct schedule *more);

/* Valid: for every slice, every node's first F comes in topological order and every node's B exactly once, in reverse,
 * after its first F; a P is one of the node whose B is next, and its only one. At every node, first forwards and
 * backwards are in ascending order of the slices; whole nodes run with all slices at once. evaluate: no B at all. Else
 * ST_SPEC naming step and node; or the schedule has too many steps to be planned. */
enum status schedule_check(const struct schedule *schedule, const struct slicing *slicing, bool evaluate);

/* "F[0,9) B[6,9) F[3,6)/1"; the text lives in region. */
char *schedule_print(const struct schedule *schedule, struct region *region);

/* The inverse; spaces and newlines separate steps, '#' starts a comment. ST_SPEC names the step that cannot be read. */
enum status schedule_parse(const char *text, struct region *region, struct schedule *schedule);
