#include "dataset.h"

#include "numerics/rng.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATASET(name) extern const struct dataset_kind dataset_##name;
#include "datasets.def"
#undef DATASET

#define DATASET(name) &dataset_##name,
const struct dataset_kind *const dataset_table[] = {
#include "datasets.def"
    NULL};
#undef DATASET

const struct dataset_kind *dataset_find(const char *name)
{
    for (const struct dataset_kind *const *kind = dataset_table; *kind; kind++)
        if (strcmp((*kind)->name, name) == 0) return *kind;
    return NULL;
}

static enum status take_shape(struct dataset *dataset)
{
    const struct setting_list *shape = &dataset->settings.shape;
    dataset->shape.rank = (int)shape->count;
    for (size_t i = 0; i < shape->count; i++) dataset->shape.dim[i] = shape->ints[i];
    if (shape_elements(&dataset->shape) < 0)
        return fail(ST_SPEC, "data.shape: every number must be positive and their product at most 2^46");
    return ST_OK;
}

/* A synthetic data set is identified by its first two samples. */
static enum status digest_samples(struct dataset *dataset)
{
    struct digest part[4] = {{0, 0}};
    float *x;
    int32_t *label;
    NEW(dataset->region, x, (size_t)shape_elements(&dataset->shape));
    NEW(dataset->region, label, (size_t)dataset->labels);
    for (int i = 0; i < 2; i++) {
        if (dataset->kind->sized && i >= dataset->count[SPLIT_TRAIN]) break;
        TRY(dataset->kind->sample(dataset, SPLIT_TRAIN, i, x, label));
        part[2 * i] = digest_bytes(x, (size_t)shape_elements(&dataset->shape) * sizeof *x);
        part[2 * i + 1] = digest_bytes(label, (size_t)dataset->labels * sizeof *label);
    }
    dataset->digest = digest_bytes(part, sizeof part);
    return ST_OK;
}

/* Files are identified by their SHA-256s in order, not by their paths; a text also by its tokens. With data.samples
 * only the samples count, not what follows them in the files. */
static void digest_files(struct dataset *dataset)
{
    char text[DATASET_FILES_MAX][64];
    for (int i = 0; i < dataset->files; i++) memcpy(text[i], dataset->file[i].sha256, sizeof text[i]);
    dataset->digest = digest_bytes(text, (size_t)dataset->files * sizeof text[0]);
    const struct digest both[2] = {dataset->digest, dataset->content};
    if (dataset->tokens) dataset->digest = digest_bytes(both, sizeof both);
    if (dataset->settings.samples) dataset->digest = dataset->content;
}

static enum status open_into(struct dataset *dataset)
{
    TRY(take_shape(dataset));
    TRY(dataset->kind->open(dataset));
    dataset->synthetic = dataset->files == 0;
    if (dataset->synthetic) return digest_samples(dataset);
    digest_files(dataset);
    return ST_OK;
}

enum status dataset_open(const char *name, const struct dataset_settings *settings, uint64_t seed,
                         struct dataset **dataset)
{
    *dataset = NULL;
    const struct dataset_kind *kind = dataset_find(name);
    if (!kind) return fail(ST_SPEC, "no data set is called %s", name);
    struct region *region = region_create();
    struct dataset *d;
    NEW(region, d, 1);
    *d = (struct dataset){.kind = kind, .settings = *settings, .region = region, .seed = seed, .labels = 1};
    NEW(region, d->file, DATASET_FILES_MAX);
    const enum status status = open_into(d);
    if (status == ST_OK)
        *dataset = d;
    else
        dataset_close(d);
    return status;
}

void dataset_close(struct dataset *dataset)
{
    if (!dataset) return;
    if (dataset->kind->close) dataset->kind->close(dataset);
    region_destroy(dataset->region);
}

static enum status one_sample(struct dataset *dataset, enum split split, int64_t index, float *x, int32_t *label)
{
    bool bounded = dataset->kind->sized || split != SPLIT_TRAIN;
    if (index < 0 || (bounded && index >= dataset->count[split]))
        return fail(ST_FAILED, "data set %s: sample %" PRId64 " of %" PRId64, dataset->kind->name, index,
                    dataset->count[split]);
    return dataset->kind->sample(dataset, split, index, x, label);
}

enum status dataset_batch(struct dataset *dataset, enum split split, const int64_t *indices, int64_t batch, float *x,
                          int32_t *labels, int threads)
{
    int64_t elements = shape_elements(&dataset->shape), failed = batch;
    enum status status = ST_OK;
    char message[2048] = ""; /* of the first sample that failed, for the calling thread */
#pragma omp parallel for num_threads(threads > 0 ? threads : 1) schedule(static)
    for (int64_t i = 0; i < batch; i++) {
        enum status one = one_sample(dataset, split, indices[i], x + i * elements, labels + i * dataset->labels);
        if (one == ST_OK) continue;
#pragma omp critical(dataset_failed)
        if (i < failed) {
            failed = i;
            status = one;
            snprintf(message, sizeof message, "%s", status_message());
        }
    }
    return status == ST_OK ? ST_OK : fail(status, "%s", message);
}

/* The file that was read, or the folder of several. */
static const char *place_of(const struct dataset *d, int *length)
{
    const char *path = d->files ? d->file[0].path : "memory", *slash = strrchr(path, '/');
    *length = d->files > 1 && slash ? (int)(slash - path) : (int)strlen(path);
    return path;
}

static int32_t largest(const int32_t *label, int64_t count)
{
    int32_t most = label[0];
    for (int64_t i = 1; i < count; i++) most = label[i] > most ? label[i] : most;
    return most;
}

enum status dataset_check_labels(struct dataset *dataset, enum split split, int64_t classes)
{
    static const char *const names[SPLITS] = {"training", "test"};
    const bool bounded = dataset->kind->sized || split != SPLIT_TRAIN;
    const int64_t count = bounded ? dataset->count[split] : 1; /* an endless data set has one label */
    int length;
    if (dataset->classes <= classes) return ST_OK; /* opening checked that labels are below dataset->classes */
    const char *place = place_of(dataset, &length);
    float *x = allocate((size_t)shape_elements(&dataset->shape), sizeof *x);
    int32_t *label = allocate((size_t)dataset->labels, sizeof *label);
    enum status status = ST_OK;
    for (int64_t i = 0; i < count && status == ST_OK; i++) {
        status = dataset->kind->sample(dataset, split, i, x, label);
        const int32_t most = status == ST_OK ? largest(label, dataset->labels) : -1;
        if (most >= classes)
            status = fail(ST_SPEC,
                          "data: %s sample %" PRId64 " of data set '%s' (%.*s) has label %d; expected 0..%" PRId64
                          ", as the model has %" PRId64 " classes",
                          names[split], i, dataset->kind->name, length, place, (int)most, classes - 1, classes);
    }
    free(x);
    free(label);
    return status;
}

void dataset_order(const struct dataset *dataset, enum split split, uint32_t epoch, int64_t *order)
{
    int64_t count = dataset->count[split];
    for (int64_t i = 0; i < count; i++) order[i] = i;
    for (int64_t i = count - 1; i > 0 && dataset->settings.shuffle; i--) {
        struct philox words = rng_words(dataset->seed, RNG_SHUFFLE, (uint32_t)i, (uint32_t)split, 0, epoch);
        uint64_t word =
            (uint64_t)words.word[0] << 32 | words.word[1]; /* 64 bits: the bias of modulo i + 1 is negligible */
        int64_t j = (int64_t)(word % (uint64_t)(i + 1)), moved = order[i];
        order[i] = order[j];
        order[j] = moved;
    }
}
