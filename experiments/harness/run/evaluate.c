#include "run/evaluate.h"

#include "run/signals.h"

/* Adds the loss and the correct predictions of count samples from first on to sum. */
static enum status add_batch(const struct job *job, struct executor *exec, struct batches *batches, uint32_t step,
                             int64_t first, int64_t count, double sum[2])
{
    float loss[2];
    TRY(batches_in_order(batches, (enum split)job->spec->eval_split, first, count, executor_batch(exec),
                         executor_labels(exec)));
    TRY(executor_run_plan(exec, job->evaluation, step, loss));
    sum[0] += (double)loss[0] * (double)job->spec->batch;
    sum[1] += (double)loss[1];
    return ST_OK;
}

/* The last batch is filled with copies of its last sample. A batch of copies alone gives the share of one copy, which
 * is subtracted. */
static enum status add_rest(const struct job *job, struct executor *exec, struct batches *batches, uint32_t step,
                            int64_t first, int64_t count, double sum[2])
{
    double copies[2] = {0}, batch = (double)job->spec->batch;
    TRY(add_batch(job, exec, batches, step, first, count, sum));
    TRY(add_batch(job, exec, batches, step, first + count - 1, 1, copies));
    for (int i = 0; i < 2; i++) sum[i] -= copies[i] / batch * (batch - (double)count);
    return ST_OK;
}

enum status evaluate(const struct job *job, struct executor *exec, struct batches *batches, uint32_t step,
                     struct eval_record *result, int *stopped)
{
    int64_t samples = job->dataset->count[job->spec->eval_split], batch = job->spec->batch, first = 0;
    double sum[2] = {0};
    for (; first + batch <= samples; first += batch) {
        if ((*stopped = signals_pending())) return ST_OK;
        TRY(add_batch(job, exec, batches, step, first, batch, sum));
    }
    if (first < samples) TRY(add_rest(job, exec, batches, step, first, samples - first, sum));
    *result = (struct eval_record){
        .step = step, .loss = (float)(sum[0] / (double)samples), .accuracy = (float)(sum[1] / (double)samples)};
    return ST_OK;
}
