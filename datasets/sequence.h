/* Sequences of tokens as a network's input: {3, T} floats, the rows token numbers (exact), segments (all 0) and mask (1
 * a token, 0 padding). */
#pragma once

#include "dataset.h"

enum { SEQUENCE_LEAST = 3, SEQUENCE_MAX = 1 << 16 };

/* count tokens (at most T) and padding into x. */
void sequence_deliver(const struct dataset *dataset, const int32_t *token, int64_t count, int32_t padding, float *x);
