/* Schedules that store everything but a set of outputs, each of which is recomputed once, just before the first
 * backward that reads it (as the policy selective does of kinds of layers); the set is found by a local search. */
#pragma once

#include "search/step_model.h"

/* The fastest such schedule found of at most limit bytes, in region; without items: none was found. */
struct sequence drop_search(const struct step_model *model, size_t limit, struct region *region);
