/* Data sets: properties of every row of the table; the synthetic one can be learnt. Files are small and written by the
 * test; see test_dataset_files.c for the formats. */
#include "datasets/dataset.h"

#include "tests/support/dataset_files.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 37, LABELS_MAX = 9 };

/* Settings with which every kind opens; small, but not square. */
static struct dataset *open_kind(const struct dataset_kind *kind, bool shuffle, uint64_t seed)
{
    static const int64_t dims[] = {5, 7, 3};
    struct dataset_settings settings = {.shape = {3, {dims}},
                                        .classes = 10,
                                        .samples = strncmp(kind->name, "synthetic", 9) == 0 ? 100 : 0,
                                        .normalize = NORMALIZE_UNIT,
                                        .shuffle = shuffle,
                                        .max_length = 9,
                                        .vocabulary_size = 200};
    struct dataset *dataset;
    settings.path = hand_made_folder();
    enum status status = dataset_open(kind->name, &settings, seed, &dataset);
    cr_assert(status == ST_OK, "%s: %s", kind->name, status_message());
    return dataset;
}

static bool in_range(const struct dataset *dataset, const float *x, int64_t elements, const int32_t *label)
{
    for (int64_t i = 0; i < elements; i++)
        if (!isfinite(x[i])) return false;
    for (int64_t i = 0; i < dataset->labels; i++)
        if (label[i] < 0 || label[i] >= dataset->classes) return false;
    return true;
}

static int64_t classes_of(const char *name)
{
    static const struct {
        const char *name;
        int64_t classes;
    } others[] = {{"tweets", 3}, {"text", 256}, {"synthetic-text", 200}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(others[i].name, name)) return others[i].classes;
    return 10;
}

Test(datasets, have_samples_and_classes)
{
    for (const struct dataset_kind *const *kind = dataset_table; *kind; kind++) {
        struct dataset *dataset = open_kind(*kind, true, 1);
        cr_assert(dataset_find((*kind)->name) == *kind);
        cr_assert(dataset->classes == classes_of((*kind)->name) && shape_elements(&dataset->shape) > 0, "%s",
                  (*kind)->name);
        cr_assert(dataset->labels == (strstr((*kind)->name, "text") ? 9 : 1), "%s", (*kind)->name);
        for (int split = 0; split < SPLITS; split++)
            cr_assert((dataset->count[split] > 0) == (*kind)->sized, "%s", (*kind)->name);
        cr_assert(dataset->synthetic == (dataset->files == 0), "%s", (*kind)->name);
        dataset_close(dataset);
    }
    dataset_close(NULL);
}

Test(datasets, batches_do_not_depend_on_order_or_threads)
{
    for (const struct dataset_kind *const *kind = dataset_table; *kind; kind++) {
        struct dataset *dataset = open_kind(*kind, true, 1);
        int64_t elements = shape_elements(&dataset->shape), indices[BATCH];
        size_t bytes = (size_t)elements * sizeof(float);
        float *x = malloc(BATCH * bytes), *one = malloc(bytes);
        const int64_t each = dataset->labels;
        int32_t labels[BATCH * LABELS_MAX], label[LABELS_MAX];
        for (enum split split = SPLIT_TRAIN; split < ((*kind)->sized ? SPLITS : SPLIT_TEST); split++) {
            int64_t count = (*kind)->sized ? dataset->count[split] : 1000;
            for (int64_t i = 0; i < BATCH; i++) indices[i] = (i * i * 31 + 5) % count;
            for (int threads = 1; threads <= 3; threads++) {
                memset(x, 0xFF, BATCH * bytes);
                cr_assert(dataset_batch(dataset, split, indices, BATCH, x, labels, threads) == ST_OK);
                for (int64_t i = BATCH - 1; i >= 0; i--) {
                    cr_assert((*kind)->sample(dataset, split, indices[i], one, label) == ST_OK);
                    cr_assert(in_range(dataset, one, elements, label), "%s", (*kind)->name);
                    cr_assert(!memcmp(label, labels + i * each, (size_t)each * sizeof *label), "%s", (*kind)->name);
                    cr_assert(!memcmp(one, x + i * elements, bytes), "%s", (*kind)->name);
                }
            }
        }
        free(x);
        free(one);
        dataset_close(dataset);
    }
}

Test(datasets, refuse_an_index_out_of_range)
{
    for (const struct dataset_kind *const *kind = dataset_table; *kind; kind++) {
        struct dataset *dataset = open_kind(*kind, true, 1);
        size_t elements = (size_t)shape_elements(&dataset->shape);
        float *x = malloc(4 * elements * sizeof *x);
        int32_t labels[4 * LABELS_MAX];
        int64_t beyond[] = {0, 0, 0, dataset->count[SPLIT_TEST]}, negative[] = {0, -1, 0, 0};
        cr_assert(dataset_batch(dataset, SPLIT_TEST, beyond, 4, x, labels, 2) == ST_FAILED, "%s", (*kind)->name);
        cr_assert(strstr(status_message(), (*kind)->name), "%s", status_message()); /* from another thread */
        cr_assert(dataset_batch(dataset, SPLIT_TRAIN, negative, 4, x, labels, 2) == ST_FAILED, "%s", (*kind)->name);
        free(x);
        dataset_close(dataset);
    }
}

/* order is a permutation of 0..count-1. */
static bool permutation(const int64_t *order, int64_t count)
{
    bool *seen = calloc((size_t)count, sizeof *seen), all = true;
    for (int64_t i = 0; i < count; i++) {
        all = all && order[i] >= 0 && order[i] < count && !seen[order[i]];
        if (all) seen[order[i]] = true;
    }
    free(seen);
    return all;
}

Test(datasets, orders_are_permutations_by_epoch_split_and_seed)
{
    for (const struct dataset_kind *const *kind = dataset_table; *kind; kind++) {
        struct dataset *dataset = open_kind(*kind, true, 1), *plain = open_kind(*kind, false, 1);
        struct dataset *other = open_kind(*kind, true, 2);
        int64_t count = dataset->count[SPLIT_TRAIN];
        size_t bytes = (size_t)count * sizeof(int64_t);
        int64_t *order[5];
        for (int i = 0; i < 5; i++) order[i] = malloc(bytes + 1);
        dataset_order(dataset, SPLIT_TRAIN, 0, order[0]);
        dataset_order(dataset, SPLIT_TRAIN, 1, order[1]);
        dataset_order(dataset, SPLIT_TRAIN, 0, order[2]);
        dataset_order(other, SPLIT_TRAIN, 0, order[3]);
        dataset_order(plain, SPLIT_TRAIN, 7, order[4]);
        for (int i = 0; i < 5; i++) cr_assert(permutation(order[i], count), "%s", (*kind)->name);
        cr_assert(memcmp(order[0], order[2], bytes) == 0, "%s", (*kind)->name);
        if ((*kind)->sized) {
            cr_assert(memcmp(order[0], order[1], bytes) != 0, "%s", (*kind)->name);
            cr_assert(memcmp(order[0], order[3], bytes) != 0, "%s", (*kind)->name);
        }
        for (int64_t i = 0; i < count; i++) cr_assert(order[4][i] == i);
        for (int i = 0; i < 5; i++) free(order[i]);
        dataset_close(dataset);
        dataset_close(plain);
        dataset_close(other);
    }
}

Test(datasets, shuffling_is_uniform)
{
    enum { COUNT = 10, EPOCHS = 20000 };
    struct dataset_settings settings = {.shuffle = true};
    struct dataset dataset = {.settings = settings, .seed = 3, .count = {COUNT, 0}};
    int64_t order[COUNT], times[COUNT][COUNT] = {{0}};
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        dataset_order(&dataset, SPLIT_TRAIN, epoch, order);
        for (int i = 0; i < COUNT; i++) times[i][order[i]]++;
    }
    /* Each count is binomial: mean 2000, deviation 42; six deviations are beyond chance for a hundred of them. */
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++)
            cr_assert(llabs(times[i][j] - EPOCHS / COUNT) < 6 * 42, "%d at %d: %ld times", j, i, (long)times[i][j]);
}

Test(datasets, the_digest_identifies_the_samples)
{
    for (const struct dataset_kind *const *kind = dataset_table; *kind; kind++) {
        struct dataset *a = open_kind(*kind, true, 1), *b = open_kind(*kind, false, 1), *c = open_kind(*kind, true, 2);
        cr_assert(digest_equal(a->digest, b->digest), "%s", (*kind)->name);
        bool drawn = strncmp((*kind)->name, "synthetic", 9) == 0;
        cr_assert(digest_equal(a->digest, c->digest) == !drawn, "%s", (*kind)->name);
        dataset_close(a);
        dataset_close(b);
        dataset_close(c);
    }
}

/* Share of test samples that lie nearest to the mean of their own class's first training samples. */
static double nearest_mean(const struct dataset_settings *settings, int64_t train, int64_t test)
{
    struct dataset *dataset;
    cr_assert(dataset_open("synthetic", settings, 5, &dataset) == ST_OK, "%s", status_message());
    int64_t elements = shape_elements(&dataset->shape), right = 0;
    double *mean = calloc((size_t)(dataset->classes * elements), sizeof *mean), *count = calloc(100, sizeof *count);
    float *x = malloc((size_t)elements * sizeof *x);
    int32_t label;
    for (int64_t i = 0; i < train; i++) {
        cr_assert(dataset->kind->sample(dataset, SPLIT_TRAIN, i, x, &label) == ST_OK);
        count[label]++;
        for (int64_t e = 0; e < elements; e++) mean[label * elements + e] += (double)x[e];
    }
    for (int64_t i = 0; i < test; i++) {
        cr_assert(dataset->kind->sample(dataset, SPLIT_TEST, i, x, &label) == ST_OK);
        int64_t best = -1;
        double best_distance = 0;
        for (int64_t c = 0; c < dataset->classes; c++) {
            double distance = 0;
            for (int64_t e = 0; e < elements; e++)
                distance += pow((double)x[e] - mean[c * elements + e] / fmax(count[c], 1), 2);
            if (best < 0 || distance < best_distance) best = c, best_distance = distance;
        }
        right += best == label;
    }
    free(mean);
    free(count);
    free(x);
    dataset_close(dataset);
    return (double)right / (double)test;
}

Test(datasets, synthetic_can_be_learnt)
{
    static const int64_t image[] = {16, 12, 3}, vector[] = {100}, sequence[] = {20, 8};
    struct dataset_settings settings = {.shape = {3, {image}}, .classes = 10, .samples = 1000};
    cr_assert(nearest_mean(&settings, 500, 200) > 0.95);
    settings.shape = (struct setting_list){2, {sequence}};
    cr_assert(nearest_mean(&settings, 500, 200) > 0.9);
    settings.shape = (struct setting_list){1, {vector}};
    cr_assert(nearest_mean(&settings, 500, 200) > 0.8);
}

/* Pixels of a sample without noise tell their labels; with it, a third of the labels is none at the most. */
Test(datasets, synthetic_pixels_have_labels)
{
    enum { SIDE = 12, PIXELS = SIDE * SIDE, SAMPLES = 40 };
    static const int64_t image[] = {SIDE, SIDE, 2};
    const struct dataset_settings settings = {
        .shape = {3, {image}}, .classes = 5, .samples = SAMPLES, .labels = LABELS_PIXEL};
    struct dataset *dataset;
    int seen[6] = {0}; /* none, then the classes */
    double bright = 0, dark = 0;
    cr_assert(dataset_open("synthetic", &settings, 5, &dataset) == ST_OK, "%s", status_message());
    cr_assert(dataset->labels == PIXELS);
    for (int64_t n = 0; n < SAMPLES; n++) {
        float x[PIXELS * 2];
        int32_t label[PIXELS], most = 0;
        cr_assert(dataset->kind->sample(dataset, SPLIT_TRAIN, n, x, label) == ST_OK);
        for (int i = 0; i < PIXELS; i++) most = label[i] > most ? label[i] : most;
        for (int i = 0; i < PIXELS; i++) {
            cr_assert(label[i] == -1 || label[i] == 0 || label[i] == most, "one class beside 0");
            seen[label[i] + 1]++;
            if (label[i] > 0) bright += (double)x[2 * i];
            if (label[i] == 0 && most > 0) dark += (double)x[2 * i];
        }
    }
    for (int i = 0; i < 6; i++) cr_assert(seen[i] > 0, "%d", i - 1);
    cr_assert(seen[0] < SAMPLES * PIXELS / 3 && bright > 500 && dark < -500, "%d, %g, %g", seen[0], bright, dark);
    dataset_close(dataset);
}

/* A target is the sample without its noise, whose deviation is 1; samples of a class have the same. */
Test(datasets, images_as_labels_are_without_noise)
{
    enum { SAMPLES = 40, ELEMENTS = 6 * 5 * 2 };
    static const int64_t dims[] = {6, 5, 2};
    struct dataset_settings settings = {
        .shape = {3, {dims}}, .classes = 4, .labels = LABELS_IMAGE, .samples = SAMPLES, .shuffle = true};
    struct dataset *dataset, *plain;
    double sum = 0, squares = 0;
    cr_assert(dataset_open("synthetic", &settings, 1, &dataset) == ST_OK, "%s", status_message());
    settings.labels = LABELS_SAMPLE;
    cr_assert(dataset_open("synthetic", &settings, 1, &plain) == ST_OK, "%s", status_message());
    cr_assert(dataset->labels == ELEMENTS && shape_equal(&dataset->target, &dataset->shape) && !plain->target.rank);
    for (int64_t n = 0; n < SAMPLES; n++) {
        float x[ELEMENTS], same[ELEMENTS], target[ELEMENTS], other[ELEMENTS];
        int32_t label[ELEMENTS], of[2];
        cr_assert(dataset->kind->sample(dataset, SPLIT_TRAIN, n, x, label) == ST_OK);
        memcpy(target, label, sizeof target);
        cr_assert(plain->kind->sample(plain, SPLIT_TRAIN, n, same, &of[0]) == ST_OK && !memcmp(x, same, sizeof x));
        for (int i = 0; i < ELEMENTS; i++) sum += x[i] - target[i], squares += pow((double)x[i] - target[i], 2);
        for (int64_t k = 0; k < n; k++) { /* samples of a class have one target */
            cr_assert(dataset->kind->sample(dataset, SPLIT_TRAIN, k, same, label) == ST_OK);
            memcpy(other, label, sizeof other);
            cr_assert(plain->kind->sample(plain, SPLIT_TRAIN, k, same, &of[1]) == ST_OK);
            cr_assert((memcmp(other, target, sizeof other) == 0) == (of[0] == of[1]));
        }
    }
    cr_assert(fabs(sum) < 4 * sqrt(SAMPLES * ELEMENTS) && fabs(squares / (SAMPLES * ELEMENTS) - 1) < 0.1, "%g, %g", sum,
              squares);
    dataset_close(dataset), dataset_close(plain);
}

Test(datasets, refuse_invalid_shapes)
{
    static const int64_t zero[] = {4, 0, 3}, huge[] = {1 << 30, 1 << 30, 3};
    struct dataset *dataset;
    struct dataset_settings settings = {.shape = {3, {zero}}, .classes = 10, .samples = 10};
    cr_assert(dataset_open("ones", &settings, 1, &dataset) == ST_SPEC);
    settings.shape = (struct setting_list){2, {(const int64_t[]){4, 5}}};
    settings.labels = LABELS_PIXEL;
    cr_assert(dataset_open("synthetic", &settings, 1, &dataset) == ST_SPEC);
    cr_assert(strstr(status_message(), "data.labels: pixel; expected sample, or a shape"), "%s", status_message());
    settings.shape = (struct setting_list){3, {huge}};
    cr_assert(dataset_open("synthetic", &settings, 1, &dataset) == ST_SPEC);
    cr_assert(dataset_open("nothing", &settings, 1, &dataset) == ST_SPEC && !dataset);
}

Test(datasets, ones_are_ones)
{
    static const int64_t dims[] = {3, 2, 4};
    struct dataset_settings settings = {.shape = {3, {dims}}, .classes = 2};
    struct dataset *dataset;
    float x[24];
    int32_t label;
    cr_assert(dataset_open("ones", &settings, 1, &dataset) == ST_OK);
    cr_assert(dataset->kind->sample(dataset, SPLIT_TRAIN, 123456789, x, &label) == ST_OK);
    for (int i = 0; i < 24; i++) cr_assert(x[i] == 1.0f);
    cr_assert(label == 1);
    dataset_close(dataset);
}
