/* CIFAR-10 in its official binary format (A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images",
 * 2009): records of 3073 bytes, a label 0..9 and 32x32 pixels as a red, a green and a blue plane.
 *
 * A file may be short, as an excerpt is, if it holds whole records. Records are read on demand. */
#include "files.h"
#include "image.h"

#include <inttypes.h>
#include <unistd.h>

enum { SIDE = 32, PIXELS = 3 * SIDE * SIDE, RECORD = 1 + PIXELS, CLASSES = 10, FILES = 6, RECORDS_MAX = 10000 };

static const char *const names[FILES] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                         "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

static const struct files_source source = {
    (const char *const[]){"cifar10", "cifar-10-batches-bin", NULL},
    (const char *const[]){"data_batch_1.bin", "test_batch.bin", NULL},
    "get the binary version, cifar-10-binary.tar.gz, from https://www.cs.toronto.edu/~kriz/cifar.html and unpack it",
};

/* Over the 50,000 training images, as published in many places to four digits. (The deviations 0.2023, 0.1994, 0.2010
 * that are also in use are means of the single images' deviations.) */
static const struct image_statistics statistics = {{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}};

struct cifar10 {
    int files;
    struct files_handle handle[FILES];
    int64_t records[FILES];
    struct image_format format;
};

static enum status check_label(const struct files_handle *handle, int64_t record, uint8_t label)
{
    if (label < CLASSES) return ST_OK;
    return fail(ST_FAILED, "%s: offset %" PRId64 ": label %d; expected: 0..%d, the first byte of a record of %d",
                handle->file->path, record * RECORD, label, CLASSES - 1, RECORD);
}

static enum status check_file(const struct files_handle *handle, int64_t *records)
{
    uint64_t bytes = handle->file->bytes, rest = bytes % RECORD;
    if (rest)
        return fail(ST_FAILED,
                    "%s: %" PRIu64 " bytes: the record at offset %" PRIu64 " has only %" PRIu64
                    " bytes; expected: whole records of %d",
                    handle->file->path, bytes, bytes - rest, rest, RECORD);
    if (bytes / RECORD > RECORDS_MAX)
        return fail(ST_FAILED, "%s: %" PRIu64 " records; expected: at most %d", handle->file->path, bytes / RECORD,
                    RECORDS_MAX);
    *records = (int64_t)(bytes / RECORD);
    for (int64_t i = 0; i < *records; i++) {
        uint8_t label;
        TRY(files_read(handle, (uint64_t)(i * RECORD), 1, &label));
        TRY(check_label(handle, i, label));
    }
    return ST_OK;
}

/* With data.samples: of the records that are used. */
static enum status digest_records(struct dataset *dataset)
{
    const struct cifar10 *state = dataset->state;
    struct digest part[FILES];
    uint8_t *records;
    if (!dataset->settings.samples) return ST_OK;
    const size_t bytes = (size_t)dataset->settings.samples * RECORD;
    NEW(dataset->region, records, bytes);
    for (int i = 0; i < FILES; i++) {
        TRY(files_read(&state->handle[i], 0, bytes, records));
        part[i] = digest_bytes(records, bytes);
    }
    dataset->content = digest_bytes(part, sizeof part);
    return ST_OK;
}

static enum status open_cifar10(struct dataset *dataset)
{
    const char *folder;
    struct cifar10 *state;
    NEW(dataset->region, state, 1);
    dataset->state = state;
    TRY(files_find(dataset, &source, &folder));
    for (int i = 0; i < FILES; i++) {
        TRY(files_open(dataset, folder, names[i], &state->handle[i]));
        state->files++;
        TRY(check_file(&state->handle[i], &state->records[i]));
        TRY(files_cut(dataset, state->handle[i].file, &state->records[i]));
        dataset->count[i < FILES - 1 ? SPLIT_TRAIN : SPLIT_TEST] += state->records[i];
    }
    TRY(digest_records(dataset));
    dataset->classes = CLASSES;
    image_format(dataset, 3, SIDE, SIDE, &statistics, &state->format);
    return ST_OK;
}

static enum status sample_cifar10(struct dataset *dataset, enum split split, int64_t index, float *x, int32_t *label)
{
    struct cifar10 *state = dataset->state;
    uint8_t record[RECORD];
    int file = split == SPLIT_TRAIN ? 0 : FILES - 1;
    while (index >= state->records[file]) index -= state->records[file++];
    TRY(files_read(&state->handle[file], (uint64_t)(index * RECORD), RECORD, record));
    TRY(check_label(&state->handle[file], index, record[0])); /* the file may have changed since */
    *label = record[0];
    image_deliver(&state->format, record + 1, x);
    return ST_OK;
}

static void close_cifar10(struct dataset *dataset)
{
    struct cifar10 *state = dataset->state;
    for (int i = 0; state && i < state->files; i++) close(state->handle[i].descriptor);
}

const struct dataset_kind dataset_cifar10 = {
    "cifar10", "photographs of 32x32, ten classes", image_keys, true, open_cifar10, sample_cifar10, close_cifar10};
