/* Altering result files by plain HDF5 calls. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Adds to one element of an array of integers, counted over all dimensions. */
void alter_element(const char *path, const char *array, int64_t element, int64_t add);

/* Changes the gradient's digest of one tensor at a step, and the step's digest accordingly. */
void alter_digest(const char *path, size_t step, size_t tensor);

/* Adds an attribute or replaces it by a text or a number, the only text of an array, or one of several; removes an
 * object. */
void alter_text(const char *path, const char *object, const char *attribute, const char *text);
void alter_real(const char *path, const char *object, const char *attribute, double value);
void alter_number(const char *path, const char *object, const char *attribute, uint64_t value);
void alter_array_text(const char *path, const char *array, const char *text);
void alter_list_text(const char *path, const char *array, size_t element, const char *text);
void alter_away(const char *path, const char *object);

/* Replaces an array by one of rows rows, the same other dimensions and type, for which the file stores nothing.
 */
void alter_sparse(const char *path, const char *array, uint64_t rows);

/* Lets every text of a list refer to the bytes of the first. */
void alter_shared(const char *path, const char *list);

/* Extends the first object of the last heap into free space, from where the library advances by zero bytes (1.10.8).
 */
void alter_endless(const char *path);

/* Cuts the file, or copies it. */
void alter_length(const char *path, double share);
void alter_copy(const char *from, const char *to);
