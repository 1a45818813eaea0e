/* Synthetic batches of a text data set, as the input of networks. */
#pragma once

#include "numerics/shape.h"

/* Whether the shape is that of such a sample. */
bool sentences_fit(const struct shape *shape);

/* batch samples {3, tokens}, each of one token at least, then padding: ids below vocabulary, segments 0 and 1, the
 * mask. The same arguments give the same batch. */
void sentences_make(float *x, int64_t batch, int64_t tokens, uint32_t vocabulary, uint32_t seed);
