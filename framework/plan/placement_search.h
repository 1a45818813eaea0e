/* Canonical search for placements, as in MiniMalloc (Moffitt, ASPLOS 2023). */
#pragma once

#include "plan/op.h"

/* The buffers are placed within extent bytes, and no placement needs less than *bound. Looks for a smaller extent, sets
 * the offsets where it finds one, and returns the smallest; raises *bound where it exhausts the placements below. Ends
 * after a fixed number of comparisons, so its result is a pure function of the buffers. */
size_t placement_search(struct buffer *buffer, int buffers, size_t extent, size_t *bound);
