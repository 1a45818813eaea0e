/* Set-up memory: many small allocations that are freed together. Nothing inside a training step uses it. */
#pragma once

#include <stddef.h>

#include "base/status.h"

struct region;

/* Where the system has no memory, or a size overflows, each of these ends the program with a message on stderr and exit
 * code 3. Result files stay as their last committed step left them. */

/* An empty region. */
struct region *region_create(void);

/* Frees everything allocated from it; NULL is accepted. */
void region_destroy(struct region *region);

/* count * size zeroed bytes, aligned for any type (a valid pointer even for 0 bytes). */
void *region_array(struct region *region, size_t count, size_t size);

/* Makes room for one more element of *(T **)array, which has count: doubles it at every power of two. */
void region_grow(struct region *region, void *array, int count, size_t size);

/* A formatted text. */
char *region_text(struct region *region, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* count * size zeroed bytes outside of regions; freed by free(). */
void *allocate(size_t count, size_t size);

/* freed_auto char *text = ...: such memory is freed at the end of the block; NULL is accepted. */
#define freed_auto __attribute__((cleanup(freed_end)))
void freed_end(void *variable);

/* region_auto *region = region_create(): destroyed at the end of the block. */
#define region_auto struct region __attribute__((cleanup(region_end)))
static inline void region_end(struct region **region) { region_destroy(*region); }

/* pointer = count zeroed elements of its type. */
#define NEW(region, pointer, count) ((pointer) = region_array((region), (count), sizeof *(pointer)))
