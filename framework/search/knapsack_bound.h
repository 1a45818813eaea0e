/* A lower bound of the time of all recomputations: what is kept beside one event is a knapsack, and all else that later
 * events read is recomputed. */
#pragma once

#include "search/moments.h"

/* divided: what is kept may be divided. Stops after a fixed number of items and branches. */
double knapsack_bound(const struct moments *moments, bool divided);
