/* Runs a plan: one small loop, no allocation, no decisions. */
#pragma once

#include "train/executor_options.h"

struct executor;

/* Reserves the static block and the arena (not in DYNAMIC) on the network's backend. ST_SPEC: the plan has no op for
 * the fault; ST_FAILED: out of memory. The plan must outlive it. */
enum status executor_create(const struct plan *plan, const struct executor_options *options, struct executor **exec);
void executor_destroy(struct executor *exec);

/* Static blocks in the backend's memory: parameter i, its gradient (NULL: fused), its optimiser state (may be NULL);
 * all of them; a tensor of running state; and update_kind.bytes() for the update. */
float *executor_parameter(struct executor *exec, int parameter);
float *executor_gradient(struct executor *exec, int parameter);
float *executor_state(struct executor *exec, int parameter);
struct update_tensor *executor_tensors(struct executor *exec);
float *executor_running(struct executor *exec, int state);
void *executor_update_room(struct executor *exec);

/* What UPDATE ops of a fused update do from now on; until then, and where a value that is not finite is looked for,
 * they do nothing. */
void executor_set_update(struct executor *exec, const struct update *update);

/* The place in the sequential random stream (rng: stash, unsafe) where the next step starts. */
uint64_t *executor_position(struct executor *exec);

/* The next batch, to be written by the host in logical order, and its labels. */
void *executor_batch(struct executor *exec);
int32_t *executor_labels(struct executor *exec);

/* Whether the next batch may be written and sent during a step; and starts to send it, which the next step otherwise
 * does when it begins. */
bool executor_ahead(const struct executor *exec);
void executor_send(struct executor *exec);

/* Another plan (an evaluation) over the same network, run in exec's memory: its arena must not be larger. */
enum status executor_run_plan(struct executor *exec, const struct plan *plan, uint32_t step, float loss[2]);

/* One forward and backward of the plan on the current batch; loss[0] the loss, loss[1] the number of correct
 * predictions. ST_FAILED: out of memory, check_recompute found a difference (the message names step and node), or the
 * allocator counts other bytes than the plan (step, op, both numbers). */
enum status executor_step(struct executor *exec, uint32_t step, float loss[2]);

/* The same in parts, for steps with more work: begin sets the backend's moment except the numbers of the update; queue
 * is called from the step's body; end after the backend's wait, also where the step failed. repeatable: queue does the
 * same in every step from the second on. */
void executor_begin(struct executor *exec, uint32_t step);
bool executor_repeatable(const struct executor *exec);
enum status executor_queue(struct executor *exec);
void executor_end(struct executor *exec);

/* Of the last step of training, after its end: the time of each op (plan->lowered.ops of them), on a host with
 * allocating and releasing its buffers, without overwriting what a recomputation writes. */
const uint64_t *executor_op_ns(const struct executor *exec);

/* After a step whose loss was not finite: runs the same step's forward again, checks every value, and returns the first
 * node that wrote one that is not finite, -1: none. */
int executor_find_not_finite(struct executor *exec);
