/* Schedules that store everything but a set of outputs, each of which is recomputed once, just before the first
 * backward that reads it: of all nodes of some kinds (as the policy selective does), then node by node. For networks of
 * any size. */
#pragma once

#include "search/step_model.h"

/* The fastest such schedule found of at most limit bytes, in region; without items: none was found. Ends after a fixed
 * number of evaluations, of so many nodes in all. */
struct sequence drops_search(const struct step_model *model, size_t limit, struct region *region);
