/* The sum of squares of many floats: for a norm, and to find in the same pass whether all are finite.
 *
 * Contract: in double, over 16 lanes within 64 KiB pieces, lanes and then pieces added in their order: the bits depend
 * neither on threads nor on vector width. No finite float's square overflows, so the sum is finite exactly where every
 * element is. */
#pragma once

#include <stddef.h>

/* On threads threads. */
double sum_of_squares(const float *x, size_t count, int threads);

/* Goes on from the sum of the floats before x, whole pieces: the sum of all. */
double sum_of_squares_from(double sum, const float *x, size_t count, int threads);
