/* Loss and accuracy over a whole split with the current parameters, in the memory of the training run. */
#ifndef REMATCH_RUN_EVALUATE_H
#define REMATCH_RUN_EVALUATE_H

#include "job/batches.h"
#include "result/record.h"

/* After step steps; every sample counts once. *stopped: a stop signal arrived before the end, result is not set. */
enum status evaluate(const struct job *job, struct executor *exec, struct batches *batches, uint32_t step,
                     struct eval_record *result, int *stopped);

#endif
