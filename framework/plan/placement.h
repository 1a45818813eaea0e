/* Static placement: a pure function from lifetimes and sizes to offsets. */
#pragma once

#include "plan/op.h"

/* Sets every buffer's offset so that buffers alive at the same op never overlap; returns the extent, the smallest of
 * several tries (fewer for thousands of buffers). Offsets are multiples of every common divisor of the sizes. */
size_t placement_assign(struct buffer *buffer, int buffers);
