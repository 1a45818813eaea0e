/* Stages: the finest division of a network into ranges between which exactly one activation is live. Found, never
 * declared. And units: the ranges that a policy counts in. */
#ifndef REMATCH_PLAN_STAGES_H
#define REMATCH_PLAN_STAGES_H

#include "backend/network.h"
#include "plan/schedule.h"

struct node_range {
    int from, to; /* nodes [from, to) */
};

struct node_ranges {
    int count;
    struct node_range *range; /* consecutive, covering every node */
};

enum unit { UNIT_AUTO, UNIT_GROUP, UNIT_STAGE };

/* Stages of the graph; a stage ends at node i when only value i + 1 (and the batch) is read later. */
enum status stages_find(const struct graph *graph, struct region *region, struct node_ranges *stages);

/* GROUP: outermost groups, and single stages where there is none; AUTO: GROUP where the model has any, else STAGE. */
enum status units_find(const struct graph *graph, enum unit unit, struct region *region, struct node_ranges *units);

/* Appends what differentiates nodes [from, to), of which only the values read from outside survived the first forward.
 * keep_saved: recomputes only nodes whose y is needed, as late as the first backward that reads one of them, and the
 * others' saved tensors stay from the first forward; else recomputes the whole range first (torch's way). */
enum status stages_recompute(const struct network *network, int from, int to, bool keep_saved,
                             struct schedule *schedule);

#endif
