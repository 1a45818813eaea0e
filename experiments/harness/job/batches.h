/* Which samples a step trains on: a pure function of the step's number. Every epoch has its own order; its incomplete
 * last batch is dropped. */
#pragma once

#include "job/job.h"

struct batches;

struct batches *batches_create(const struct job *job);
void batches_destroy(struct batches *batches);

/* The batch of a training step, numbered from 0. */
enum status batches_training(struct batches *batches, int64_t step, float *x, int32_t *labels);

/* Samples first, first + 1, ... of a split; the batch's places from count on repeat the last of them. 1 <= count. */
enum status batches_in_order(struct batches *batches, enum split split, int64_t first, int64_t count, float *x,
                             int32_t *labels);
