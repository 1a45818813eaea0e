/* Static placement: a pure function from lifetimes and sizes to offsets. */
#ifndef REMATCH_PLAN_PLACEMENT_H
#define REMATCH_PLAN_PLACEMENT_H

#include "plan/lower.h"

/* Sets every buffer's offset so that buffers alive at the same op never overlap; *arena_bytes is the extent, the
 * smallest of several tries, fewer where there are thousands of buffers. Offsets are multiples of whatever all sizes
 * are multiples of. */
enum status place(struct buffer *buffer, int buffers, size_t *arena_bytes);

#endif
