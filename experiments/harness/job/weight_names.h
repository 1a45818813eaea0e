/* What a parameter is called in files that others wrote. */
#ifndef REMATCH_JOB_WEIGHT_NAMES_H
#define REMATCH_JOB_WEIGHT_NAMES_H

#include "base/region.h"

enum { WEIGHT_SOURCES_MAX = 3 };

/* The tensors whose rows, one tensor after the other, are the parameter's, as Hugging Face calls them; returns how
 * many, 0: the parameter has no such name, -1: no memory. */
int weight_names(const char *parameter, struct region *region, const char *names[WEIGHT_SOURCES_MAX]);

/* The index-th way in which a tensor of that name may be called in a file: as it is; as part of a larger model
 * ("bert."); a norm's gain and shift by their old names (gamma, beta); NULL: no more, or no memory. */
const char *weight_alias(const char *name, int index, struct region *region);

#endif
