/* Deliberate errors, to see that the proof catches them: which op of a plan a fault strikes, and what it does to memory
 * there. */
#ifndef REMATCH_TRAIN_FAULT_H
#define REMATCH_TRAIN_FAULT_H

#include "plan/plan.h"

enum fault_kind { FAULT_NONE, FAULT_MASK_BIT, FAULT_SKIP_RECOMPUTE, FAULT_STALE_READ };

struct fault {
    enum fault_kind kind;
    int64_t step;
    int node;
};

/* The op that the fault strikes, -1: there is no fault. ST_SPEC: the plan has no op for it (a recomputation on which no
 * backward depends changes nothing, so it does not count), or a stale read is wanted where there is no arena. */
enum status fault_find(const struct plan *plan, const struct fault *fault, bool arena, int *op);

/* Exchanges zeros and ones: of bytes (sign bits, places in a window, which stay within it) or of floats. */
void fault_flip_bytes(struct backend *backend, void *at, size_t bytes);
void fault_flip_floats(struct backend *backend, float *at, size_t bytes);

/* Where, within an arena of so many bytes, values stand whose signs are not those of the values at x; the arena's start
 * where there is no such place. */
void *fault_stale(struct backend *backend, char *arena, size_t arena_bytes, const void *x, size_t bytes);

/* Piece by piece, so that the blocks may overlap: what is stale may then be copied more than once. */
void fault_copy(struct backend *backend, char *to, const char *from, size_t bytes);

#endif
