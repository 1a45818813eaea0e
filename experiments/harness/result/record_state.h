/* /state of a result file: initial and final parameters, the last gradients and the batches, in logical order, so that
 * another framework can reproduce the run. */
#ifndef REMATCH_RESULT_RECORD_STATE_H
#define REMATCH_RESULT_RECORD_STATE_H

#include "job/job.h"
#include "result/h5.h"
#include "train/executor.h"

void record_state_layout(struct h5 *h5, const struct job *job);

/* Before the first step: the initial parameters. After the last: the final parameters and the last gradients. */
void record_state_tensors(struct h5 *h5, const struct job *job, bool after, struct executor *exec);
void record_state_batch(struct h5 *h5, uint32_t step, const float *x, const int32_t *labels);

#endif
