/* Names of parameters in files of other programs. */
#ifndef REMATCH_JOB_WEIGHT_NAMES_H
#define REMATCH_JOB_WEIGHT_NAMES_H

#include "base/region.h"

enum { WEIGHT_SOURCES_MAX = 3 };

/* Hugging Face's names of the tensors whose rows, one tensor after the other, are the parameter's; returns how many, 0:
 * the parameter is not known. */
int weight_names(const char *parameter, struct region *region, const char *names[WEIGHT_SOURCES_MAX]);

/* The index-th alias of a tensor's name: the name itself; as part of a larger model ("bert."); a norm's gain and shift
 * by their old names (gamma, beta). NULL: there are no more. */
const char *weight_alias(const char *name, int index, struct region *region);

#endif
