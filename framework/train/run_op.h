/* One op of a plan: from buffers to addresses, and the call of its kernel. Of the executor, and of timing. */
#pragma once

#include "backend/batch_transfer.h"
#include "train/executor_options.h"

/* The buffers in the order of an op each: op i's are buffer[from[i]..from[i + 1]). */
struct by_op {
    int *buffer, *from;
};

/* A plan bound to addresses. */
struct bound {
    const struct plan *plan;
    void **at;               /* buffer -> address */
    struct by_op begin, end; /* by the first and by the last op to use a buffer; MEMORY_PLANNED: not set */
    uint64_t *ns;            /* of each op of the last step that was queued, after its end */
    uint64_t drawn;          /* in that step, of the sequential stream (rng stash, unsafe) */
};

struct executor {
    struct region *region;
    const struct plan *plan;
    struct bound training, evaluation;
    struct bound *now; /* the running one */
    struct executor_options options;
    int fault_op; /* the op of the fault, -1: none */
    struct backend *backend;
    char *fixed, *arena; /* the static block and the arena */
    size_t fixed_bytes, arena_bytes;
    struct update_tensor *tensor; /* of each parameter */
    float **running;              /* of each tensor of running state */
    struct batch_transfer transfer;
    void *update_room;
    const struct update *update; /* of UPDATE ops, NULL: they do nothing */
    uint64_t position;           /* in the sequential stream (rng stash, unsafe), after the last step */
    uint64_t *place;           /* by node: of its numbers in a step's part of that stream, whatever the slices' order */
    struct digest *recomputed; /* node -> digest of its first forward's value, where recomputations are checked */
    bool looking;              /* stops at the first value that is not finite */
    int not_finite;            /* the node that wrote it */
};

/* The address of a buffer; NULL: none. And of an op's operand, with so many bytes for the whole batch: the slice's
 * part, where the buffer holds all of it. */
void *op_address(const struct executor *e, int buffer);
void *op_part(const struct executor *e, const struct op *op, int buffer, size_t bytes);

/* Errors: those of the kernel. */
enum status op_run(struct executor *e, const struct op *op);
