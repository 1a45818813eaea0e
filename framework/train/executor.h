/* Runs a plan: one small loop, no allocation, no decisions. */
#ifndef REMATCH_TRAIN_EXECUTOR_H
#define REMATCH_TRAIN_EXECUTOR_H

#include "train/fault.h"

enum memory_mode {
    MEMORY_PLANNED, /* the arena, at planned offsets */
    MEMORY_DYNAMIC, /* every buffer allocated at its birth and released at its death; what the allocator then counts
                       must be what the plan says, at every op */
    MEMORY_POISON,  /* PLANNED, and every dying buffer is filled with signalling NaNs */
};

struct exec_options {
    enum memory_mode memory;
    enum rng_mode rng;
    uint64_t seed;
    bool check_replay; /* compare the digest of each replayed value with its first forward's */
    struct fault fault;
};

struct exec;

/* Reserves the static block and the arena (not in DYNAMIC), on the network's backend. ST_SPEC for a fault that the plan
 * has no place for; ST_FAILED when memory cannot be had. The plan must outlive it. */
enum status exec_create(const struct plan *plan, const struct exec_options *options, struct exec **exec);
void exec_destroy(struct exec *exec);

/* Static blocks, in the backend's memory: parameter i, its gradient, its optimiser state (may be NULL), and
 * update_kind.bytes() for the update. */
float *exec_parameter(struct exec *exec, int parameter);
float *exec_gradient(struct exec *exec, int parameter);
float *exec_state(struct exec *exec, int parameter);
void *exec_update_room(struct exec *exec);

/* Where the host writes the next batch, in logical order, and its labels. */
void *exec_batch(struct exec *exec);
int32_t *exec_labels(struct exec *exec);

/* Whether the next batch may be written, and sent, while a step is under way; and sends what was written, so that its
 * way is done when the next step begins, which else sends it itself. */
bool exec_ahead(const struct exec *exec);
void exec_send(struct exec *exec);

/* Another plan (an evaluation) over the same network, run in exec's memory: its arena must not be larger. */
enum status exec_run_plan(struct exec *exec, const struct plan *plan, uint32_t step, float loss[2]);

/* One forward and backward of the plan on the batch in place; loss[0] the loss, loss[1] the number of correct
 * predictions. ST_FAILED: out of memory, check_replay found a difference (message names step and node), or
 * the allocator counts other bytes than the plan (step, op, both numbers). */
enum status exec_step(struct exec *exec, uint32_t step, float loss[2]);

/* The same in parts, for who has more to do in a step: begin sets the backend's moment but for the numbers of the
 * update; queue is to be called from the step's body; end, after the backend's wait, also where the step failed.
 * repeatable: queue does the same in every step from the second on. */
void exec_begin(struct exec *exec, uint32_t step);
bool exec_repeatable(const struct exec *exec);
enum status exec_queue(struct exec *exec);
void exec_end(struct exec *exec);

/* Of the last step of training in DYNAMIC: bytes that the allocator counted at each op (plan->lowered.ops of them).
 * NULL in other modes, in which there is nothing to count. */
const size_t *exec_counted(const struct exec *exec);

/* Of the last step of training: how long each op took (plan->lowered.ops of them), births and deaths of its buffers
 * included, undefining what a recomputation writes not. NULL on a device. */
const uint64_t *exec_op_ns(const struct exec *exec);

/* After a step whose loss was not finite: runs the same step's forward again, looking at every value, and returns the
 * first node that wrote one that is not finite, -1: none. */
int exec_find_not_finite(struct exec *exec);

#endif
