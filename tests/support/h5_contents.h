/* The content of an HDF5 file, read by plain calls of the library, as text: a line for every array and attribute. */
#pragma once

#include <stddef.h>

/* The lines, to be freed; values that differ from run to run (times, memory of the process, date) are left out. NULL:
 * the file or a part of it cannot be read. */
char *contents_of(const char *path);

/* The same without the groups whose names begin so. */
char *contents_without(const char *path, const char *group);

/* The first line of a that differs from that of b, to be freed; NULL: they are equal. */
char *contents_difference(const char *a, const char *b);

/* The count floats of an array, to be freed; the test fails unless it has exactly so many. */
float *floats_of(const char *path, const char *array, size_t count);
