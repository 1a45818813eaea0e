/* Set-up memory: many small allocations that are freed together. Nothing inside a training step uses it. */
#ifndef REMATCH_BASE_REGION_H
#define REMATCH_BASE_REGION_H

#include <stddef.h>

#include "base/status.h"

struct region;

/* An empty region, or NULL when the system has no memory. */
struct region *region_create(void);

/* Frees everything taken from it; NULL is accepted. */
void region_destroy(struct region *region);

/* count * size zeroed bytes, aligned for any type (a valid pointer even for 0 bytes); NULL, with the message of
 * fail() set, when the product overflows or the system has no memory. */
void *region_array(struct region *region, size_t count, size_t size);

/* Makes room for one more element of *(T **)array, of which count are there: doubles it at every power of two. */
enum status region_grow(struct region *region, void *array, int count, size_t size);

/* A copy of text made as by snprintf; NULL as above. */
char *region_text(struct region *region, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* pointer = count zeroed elements of its type; an enum status, to be used inside TRY. */
#define NEW(region, pointer, count)                                                                                    \
    (((pointer) = region_array((region), (count), sizeof *(pointer))) != NULL ? ST_OK : ST_FAILED)

#endif
