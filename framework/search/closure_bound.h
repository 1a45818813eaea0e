/* A lower bound of the time of all recomputations that sees shortcuts: whatever is kept beside one op, what later
 * events read and is not kept must be recomputed, and so must what those recomputations read and is not kept. */
#pragma once

#include "search/step_model.h"

/* For every schedule of at most limit live bytes. Which values to keep is a minimum closure once a kept byte has a
 * price: a minimum cut; the price is the one that bounds best (Lagrangian). It stops after a fixed number of edges.
 * whole: the nodes beside whose ops it is computed, where what is kept may be divided by slices; NULL: all, and it may
 * not. */
double closure_bound(const struct step_model *model, const bool *whole, size_t limit);
