/* How often our own code has asked for memory: the suite is linked so that malloc and its kin, called from our objects,
 * come by here first. Libraries are not counted. */
#pragma once

#include <stddef.h>

size_t allocations(void);

/* Bytes of the blocks that aligned_alloc() gave to our objects and that these have not freed. */
size_t allocations_held(void);
