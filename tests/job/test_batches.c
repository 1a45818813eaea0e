/* Batches are a pure function of the step and use every sample at most once per epoch. */
#include <criterion/criterion.h>
#include <string.h>

#include "job/batches.h"

enum { SAMPLES = 23, BATCH = 5, STEPS = SAMPLES / BATCH, CLASSES = SAMPLES };

/* Sample i is {i} with label i, in both splits. */
static enum status sample(struct dataset *dataset, enum split split, int64_t index, float *x, int32_t *label)
{
    (void)dataset, (void)split;
    *x = (float)index;
    *label = (int32_t)index;
    return ST_OK;
}

static const struct dataset_kind sized = {.name = "sized", .sized = true, .sample = sample};
static const struct dataset_kind endless = {.name = "endless", .sample = sample};

static struct dataset dataset;
static struct spec spec;
static struct backend backend;

static struct batches *open_batches(const struct dataset_kind *kind, bool shuffle)
{
    dataset = (struct dataset){.kind = kind,
                               .settings = {.shuffle = shuffle},
                               .seed = 3,
                               .shape = {1, {1}},
                               .classes = CLASSES,
                               .labels = 1,
                               .count = {SAMPLES, SAMPLES}};
    spec = (struct spec){.batch = BATCH};
    backend = (struct backend){.options = {.threads = 2}};
    struct job job = {.spec = &spec, .dataset = &dataset, .backend = &backend};
    return batches_create(&job);
}

Test(batches, an_epoch_takes_every_sample_at_most_once)
{
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        struct batches *b = open_batches(&sized, shuffle);
        int32_t first[2][STEPS * BATCH];
        for (int epoch = 0; epoch < 2; epoch++) {
            int seen[SAMPLES] = {0};
            for (int s = 0; s < STEPS; s++) {
                float x[BATCH];
                int32_t *labels = &first[epoch][s * BATCH];
                cr_assert(batches_training(b, epoch * STEPS + s, x, labels) == ST_OK);
                for (int i = 0; i < BATCH; i++) {
                    cr_assert(x[i] == (float)labels[i] && ++seen[labels[i]] == 1);
                    cr_assert(shuffle || labels[i] == s * BATCH + i);
                }
            }
        }
        cr_assert((memcmp(first[0], first[1], sizeof first[0]) != 0) == shuffle, "each epoch has an order of its own");
        batches_destroy(b);
    }
}

Test(batches, depend_only_on_the_step)
{
    struct batches *forth = open_batches(&sized, true), *back = open_batches(&sized, true);
    enum { ALL = 3 * STEPS };
    int32_t a[ALL][BATCH], b[ALL][BATCH];
    float x[BATCH];
    for (int s = 0; s < ALL; s++) cr_assert(batches_training(forth, s, x, a[s]) == ST_OK);
    for (int s = ALL - 1; s >= 0; s--) cr_assert(batches_training(back, s, x, b[s]) == ST_OK);
    cr_assert(memcmp(a, b, sizeof a) == 0);
    batches_destroy(forth);
    batches_destroy(back);
}

Test(batches, data_without_end_has_no_epochs)
{
    struct batches *b = open_batches(&endless, false);
    float x[BATCH];
    int32_t labels[BATCH];
    cr_assert(batches_training(b, 100, x, labels) == ST_OK);
    for (int i = 0; i < BATCH; i++) cr_assert(labels[i] == 100 * BATCH + i);
    batches_destroy(b);
}

Test(batches, an_incomplete_batch_repeats_its_last_sample)
{
    struct batches *b = open_batches(&sized, true);
    float x[BATCH];
    int32_t labels[BATCH];
    cr_assert(batches_in_order(b, SPLIT_TEST, 20, 3, x, labels) == ST_OK);
    const int32_t wanted[BATCH] = {20, 21, 22, 22, 22};
    cr_assert(memcmp(labels, wanted, sizeof wanted) == 0);
    batches_destroy(b);
}
