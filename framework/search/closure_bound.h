/* A lower bound of the time of all recomputations that sees shortcuts: whatever is kept beside one event, what later
 * events read and is not kept must be recomputed, and so must what those recomputations read and is not kept. */
#pragma once

#include "search/moments.h"

/* Which values to keep is a minimum closure once a kept byte has a price: a minimum cut; the price is the one that
 * bounds best (Lagrangian). divided: what is kept may be divided. Stops after a fixed number of edges. */
double closure_bound(const struct moments *moments, bool divided);
