/* Plain text files for predicting the next token. Tokens are bytes, so there is no vocabulary and nothing is
 * normalised. The files are taken one behind the other, in alphabetical order, and cut into windows of `length` tokens:
 * a sample is a window, the label of a token is the one that follows it, in the window or behind it. What is left over
 * at the end is no sample. Every tenth window, from the tenth, is a test sample.
 *
 * If no file is found and data.path is not set, synthetic-text of the same shape stands in; a notice says so and is
 * recorded. */
#include "files.h"
#include "sequence.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AT(member) offsetof(struct dataset_settings, member)

enum { BYTES = 256, TEST_EVERY = 10 };

static const struct files_source source = {
    (const char *const[]){"text", "tinyshakespeare", NULL},
    (const char *const[]){"input.txt", NULL},
    "put text files there, one of them with that name, or set data.path to a file or a folder of files *.txt",
};

static const struct setting keys[] = {
    {"path", SETTING_PATH, AT(path), 0, 0, "", NULL,
     "a file, or a folder of which *.txt are read; unset: searched for"},
    {"length", SETTING_INT, AT(max_length), 1, SEQUENCE_MAX, "128", NULL, "tokens of a sample"},
    {"samples", SETTING_INT, AT(samples), 1, 1 << 30, "0", NULL,
     "the first so many windows alone, those for tests among them; unset: all"},
    {"shuffle", SETTING_BOOL, AT(shuffle), 0, 0, "true", NULL, "another order every epoch"},
    {0},
};

struct text {
    uint8_t *byte; /* of all files */
    uint64_t bytes;
};

static enum status read_file(struct dataset *dataset, const char *folder, const char *name)
{
    struct text *t = dataset->state;
    struct files_handle handle;
    TRY(files_open(dataset, folder, name, &handle));
    const uint64_t bytes = handle.file->bytes;
    uint8_t *all;
    enum status status = bytes > INT32_MAX || t->bytes > INT32_MAX - bytes
                             ? fail(ST_FAILED, "%s: with it the files have more than 2^31 - 1 bytes", handle.file->path)
                             : ST_OK;
    if (status == ST_OK) {
        NEW(dataset->region, all, (size_t)(t->bytes + bytes));
        if (t->bytes) memcpy(all, t->byte, (size_t)t->bytes);
        status = files_read(&handle, 0, (size_t)bytes, all + t->bytes);
        t->byte = all;
        t->bytes += bytes;
    }
    close(handle.descriptor);
    return status;
}

static int is_text(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end != NULL && end != entry->d_name && strcmp(end, ".txt") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static enum status read_folder(struct dataset *dataset, const char *folder)
{
    struct dirent **entry;
    const int count = scandir(folder, &entry, is_text, by_bytes);
    enum status status = ST_OK;
    if (count < 1)
        status = fail(ST_MISSING, "data set %s: no file *.txt in %s; expected: a file, or a folder with at least one",
                      dataset->kind->name, folder);
    for (int i = 0; i < count; i++) {
        if (status == ST_OK) status = read_file(dataset, folder, entry[i]->d_name);
        free(entry[i]);
    }
    if (count >= 0) free(entry);
    return status;
}

static enum status read_path(struct dataset *dataset, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return fail(ST_MISSING, "data.path: %s: cannot read: %s; expected: a text file, or a folder of *.txt", path,
                    strerror(errno));
    return S_ISDIR(info.st_mode) ? read_folder(dataset, path) : read_file(dataset, NULL, path);
}

/* Replaces the data set by a synthetic one of the same shape. */
static enum status stand_in(struct dataset *dataset)
{
    struct dataset_settings *s = &dataset->settings;
    dataset->notice = region_text(dataset->region, "SYNTHETIC tokens stand in for the text: %s", status_message());
    dataset->kind = dataset_find("synthetic-text");
    if (!s->samples) s->samples = 10000;
    s->vocabulary_size = BYTES;
    return dataset->kind->open(dataset);
}

static enum status count_windows(struct dataset *dataset)
{
    const struct text *t = dataset->state;
    const int64_t length = dataset->labels;
    int64_t windows = t->bytes ? ((int64_t)t->bytes - 1) / length : 0;
    if (windows < 1)
        return fail(ST_SPEC, "data.length is %" PRId64 "; expected: less than the %" PRIu64 " bytes of %s", length,
                    t->bytes, dataset->file[0].path);
    TRY(files_cut(dataset, &dataset->file[dataset->files - 1], &windows));
    dataset->count[SPLIT_TEST] = windows / TEST_EVERY;
    dataset->count[SPLIT_TRAIN] = windows - dataset->count[SPLIT_TEST];
    dataset->content = digest_tensor(t->byte, (size_t)(windows * length + 1), 1);
    return ST_OK;
}

static enum status open_text(struct dataset *dataset)
{
    const struct dataset_settings *s = &dataset->settings;
    const char *folder = s->path;
    struct text *t;
    dataset->shape = (struct shape){2, {3, s->max_length}};
    dataset->labels = s->max_length;
    dataset->classes = dataset->tokens = BYTES;
    if (!folder && files_find(dataset, &source, &folder) != ST_OK) return stand_in(dataset);
    NEW(dataset->region, t, 1);
    dataset->state = t;
    TRY(read_path(dataset, folder));
    return count_windows(dataset);
}

static enum status sample_text(struct dataset *dataset, enum split split, int64_t index, float *x, int32_t *label)
{
    const int64_t window = split == SPLIT_TEST ? index * TEST_EVERY + TEST_EVERY - 1 : index + index / (TEST_EVERY - 1);
    const uint8_t *byte = ((const struct text *)dataset->state)->byte + window * dataset->labels;
    for (int64_t i = 0; i < dataset->labels; i++) label[i] = byte[i];
    sequence_deliver(dataset, label, dataset->labels, 0, x);
    for (int64_t i = 0; i < dataset->labels; i++) label[i] = byte[i + 1];
    return ST_OK;
}

const struct dataset_kind dataset_text = {
    "text", "plain text files; the next byte is to be predicted", keys, true, open_text, sample_text, NULL};
