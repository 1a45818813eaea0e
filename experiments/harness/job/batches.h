/* Which samples a step trains on: a pure function of the step's number. Every epoch has its own order and leaves out
 * what does not fill a batch. */
#ifndef REMATCH_JOB_BATCHES_H
#define REMATCH_JOB_BATCHES_H

#include "job/job.h"

struct batches;

enum status batches_create(const struct job *job, struct batches **batches);
void batches_destroy(struct batches *batches);

/* The batch of a training step, numbered from 0. */
enum status batches_training(struct batches *batches, int64_t step, float *x, int32_t *labels);

/* Samples first, first + 1, ... of a split; places from count on repeat sample first + count - 1. 1 <= count. */
enum status batches_in_order(struct batches *batches, enum split split, int64_t first, int64_t count, float *x,
                             int32_t *labels);

#endif
