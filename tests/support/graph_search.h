/* A* over all states of a training step: how many events of the step are done, and which values and saved tensors are
 * live. Of the code under test it uses lowering only: for the bytes that no schedule changes. */
#pragma once

#include "plan/plan.h"

enum { GRAPH_SEARCH_NODES_MAX = 16 };

/* The least time of recomputations, below the given one (INFINITY: any), with at most limit live bytes, and the
 * schedule that takes it; false: none. */
bool graph_search(const struct network *network, size_t limit, double below, double *time, struct schedule *schedule);
