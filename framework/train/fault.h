/* Deliberate errors, to test that the proof detects them: the op of a plan that a fault changes, and its effect on
 * memory. */
#pragma once

#include "plan/plan.h"

enum fault_kind { FAULT_NONE, FAULT_MASK_BIT, FAULT_SKIP_RECOMPUTE, FAULT_STALE_READ };

struct fault {
    enum fault_kind kind;
    int64_t step;
    int node;
};

/* The op that the fault changes, -1: there is no fault. ST_SPEC: the plan has no op for it (a recomputation on which no
 * backward depends does not count), or a stale read without an arena. */
enum status fault_find(const struct plan *plan, const struct fault *fault, bool arena, int *op);

/* Replaces zero by one and anything else by zero, in bytes (sign bits, places in a window) or floats. */
void fault_flip_bytes(struct backend *backend, void *at, size_t bytes);
void fault_flip_floats(struct backend *backend, float *at, size_t bytes);

/* A place in an arena of so many bytes whose values have other signs than those at x, and of such places the one with
 * the fewest positive values, which a maximum would hide; the arena's start where there is none. */
void *fault_stale(struct backend *backend, char *arena, size_t arena_bytes, const void *x, size_t bytes);

/* Copies piece by piece; the blocks may overlap, and stale bytes may then be copied more than once. */
void fault_copy(struct backend *backend, char *to, const char *from, size_t bytes);
