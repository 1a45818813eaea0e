/* Stages: the finest division of a network into ranges between which exactly one activation is live, derived from the
 * graph. And units: the ranges that policies divide a network by. */
#pragma once

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
struct node_ranges stages_find(const struct graph *graph, struct region *region);

/* GROUP: outermost groups, and single stages outside of them; AUTO: GROUP where the model has any, else STAGE. */
enum status units_find(const struct graph *graph, enum unit unit, struct region *region, struct node_ranges *units);

/* Appends the recomputation and the backward of nodes [from, to), of which only values that are read from outside are
 * resident since the first forward. keep_saved: recomputes only nodes whose y is needed, just before the first backward
 * that reads one of them, and keeps the saved tensors of the others from the first forward; else recomputes the whole
 * range first (as torch does). */
void stages_recompute(const struct network *network, int from, int to, bool keep_saved, struct schedule *schedule);
