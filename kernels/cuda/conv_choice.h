/* Choices for a convolution's passes that wisdom holds. */
#ifndef REMATCH_KERNELS_CUDA_CONV_CHOICE_H
#define REMATCH_KERNELS_CUDA_CONV_CHOICE_H

#include "conv_plan.h"

/* A choice as wisdom knows it. */
struct way conv_way(const struct conv_want *want, const struct conv_choice *choice);

/* Describes what wisdom holds for the pass of a node of this key. ST_SPEC: it holds nothing, or what timing could not
 * choose here; the message says where that stands and what was expected. */
enum status conv_recall(const struct conv_want *want, const struct wisdom *wisdom, const char *key,
                        struct conv_plan *plan);

#endif
