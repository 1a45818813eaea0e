#include "job/batches.h"

struct batches {
    struct region *region;
    struct dataset *dataset;
    int64_t batch, epoch_steps; /* 0: no epochs */
    int64_t epoch;              /* of order, -1: none yet */
    int64_t *order, *indices;
    int threads;
};

struct batches *batches_create(const struct job *job)
{
    struct region *region = region_create();
    struct batches *b = region_array(region, 1, sizeof *b);
    *b = (struct batches){.region = region,
                          .dataset = job->dataset,
                          .batch = job->spec->batch,
                          .epoch_steps = job_epoch_steps(job),
                          .epoch = -1,
                          .threads = (int)job->backend->options.threads};
    size_t order = b->epoch_steps > 0 ? (size_t)job->dataset->count[SPLIT_TRAIN] : 0;
    b->order = region_array(region, order, sizeof *b->order);
    b->indices = region_array(region, (size_t)b->batch, sizeof *b->indices);
    return b;
}

void batches_destroy(struct batches *batches)
{
    if (batches) region_destroy(batches->region);
}

enum status batches_training(struct batches *batches, int64_t step, float *x, int32_t *labels)
{
    struct batches *b = batches;
    int64_t first = step * b->batch;
    if (b->epoch_steps > 0) {
        int64_t epoch = step / b->epoch_steps;
        if (epoch != b->epoch) dataset_order(b->dataset, SPLIT_TRAIN, (uint32_t)epoch, b->order);
        b->epoch = epoch;
        first = step % b->epoch_steps * b->batch;
    }
    for (int64_t i = 0; i < b->batch; i++) b->indices[i] = b->epoch_steps > 0 ? b->order[first + i] : first + i;
    return dataset_batch(b->dataset, SPLIT_TRAIN, b->indices, b->batch, x, labels, b->threads);
}

enum status batches_in_order(struct batches *batches, enum split split, int64_t first, int64_t count, float *x,
                             int32_t *labels)
{
    struct batches *b = batches;
    for (int64_t i = 0; i < b->batch; i++) b->indices[i] = first + (i < count ? i : count - 1);
    return dataset_batch(b->dataset, split, b->indices, b->batch, x, labels, b->threads);
}
