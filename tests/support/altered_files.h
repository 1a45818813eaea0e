/* Result files, altered by bare HDF5 calls. */
#ifndef REMATCH_TESTS_SUPPORT_ALTERED_FILES_H
#define REMATCH_TESTS_SUPPORT_ALTERED_FILES_H

#include <stddef.h>
#include <stdint.h>

/* Adds to one element of an array of integers, counted through all dimensions. */
void alter_element(const char *path, const char *array, int64_t element, int64_t add);

/* Another gradient of one tensor at a step, as if it had been trained so: the step's digest is that of its tensors'. */
void alter_digest(const char *path, size_t step, size_t tensor);

/* Replaces an attribute by a text, or by a number; the only text of an array, or one of many; takes an object away. */
void alter_text(const char *path, const char *object, const char *attribute, const char *text);
void alter_real(const char *path, const char *object, const char *attribute, double value);
void alter_number(const char *path, const char *object, const char *attribute, uint64_t value);
void alter_array_text(const char *path, const char *array, const char *text);
void alter_list_text(const char *path, const char *array, size_t element, const char *text);
void alter_away(const char *path, const char *object);

/* In its place an array of rows rows (and the same other dimensions, of the same type) for which the file has no bytes.
 */
void alter_sparse(const char *path, const char *array, uint64_t rows);

/* Every text of a list refers to the bytes of the first. */
void alter_shared(const char *path, const char *list);

/* The last heap's first object reaches into what is free, from where the library goes on by steps of nothing (1.10.8).
 */
void alter_endless(const char *path);

/* Cuts the file, or copies it. */
void alter_length(const char *path, double share);
void alter_copy(const char *from, const char *to);

#endif
