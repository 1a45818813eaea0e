/* Text files: which files are read, what is a sample, which labels it has, and what is refused. */
#include "datasets/dataset.h"

#include "tests/support/dataset_files.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LENGTH = 7, FOLDER = 300 };

/* A folder of its own in the hand-made one. */
static const char *make_folder(const char *name)
{
    static char path[FOLDER];
    snprintf(path, sizeof path, "%s/%s", hand_made_folder(), name);
    cr_assert(mkdir(path, 0700) == 0, "%s", path);
    return path;
}

static struct dataset *open_text(const char *path, int64_t length, int64_t samples)
{
    struct dataset *dataset;
    const struct dataset_settings settings = {.path = path, .max_length = length, .samples = samples, .shuffle = true};
    cr_assert(dataset_open("text", &settings, 1, &dataset) == ST_OK, "%s", status_message());
    return dataset;
}

/* Sample i of the split is that window of these bytes. */
static void check_window(struct dataset *dataset, enum split split, int64_t i, const uint8_t *byte)
{
    float x[3 * LENGTH];
    int32_t label[LENGTH];
    cr_assert(dataset->kind->sample(dataset, split, i, x, label) == ST_OK);
    for (int t = 0; t < LENGTH; t++) {
        cr_assert(x[t] == (float)byte[t] && x[LENGTH + t] == 0 && x[2 * LENGTH + t] == 1);
        cr_assert(label[t] == byte[t + 1]);
    }
}

Test(text, a_sample_is_a_window_and_its_labels_the_next_bytes)
{
    uint8_t byte[HAND_TEXT];
    for (int i = 0; i < HAND_TEXT; i++) byte[i] = hand_made_byte(i);
    struct dataset *dataset = open_text(hand_made_folder(), LENGTH, 0);
    const int64_t windows = (HAND_TEXT - 1) / LENGTH;
    cr_assert(dataset->labels == LENGTH && dataset->classes == 256 && dataset->tokens == 256 && !dataset->notice);
    cr_assert(dataset->count[SPLIT_TEST] == windows / 10 && dataset->count[SPLIT_TRAIN] == windows - windows / 10);
    int64_t seen[SPLITS] = {0};
    for (int64_t w = 0; w < windows; w++) {
        const enum split split = w % 10 == 9 ? SPLIT_TEST : SPLIT_TRAIN;
        check_window(dataset, split, seen[split]++, byte + w * LENGTH);
    }
    dataset_close(dataset);
}

Test(text, files_of_a_folder_are_read_in_alphabetical_order)
{
    const char *folder = make_folder("books");
    hand_write("books/b.txt", "world", 5, false);
    hand_write("books/a.txt", "hello ", 6, false);
    hand_write("books/c.md", "nothing", 7, false);
    hand_write("books/.txt", "hidden", 6, false);
    struct dataset *dataset = open_text(folder, LENGTH, 0);
    cr_assert(dataset->files == 2 && dataset->count[SPLIT_TRAIN] == 1);
    check_window(dataset, SPLIT_TRAIN, 0, (const uint8_t *)"hello world");
    dataset_close(dataset);
}

/* The digest is of what is read; with samples of those alone, whatever follows them. */
Test(text, the_digest_is_of_what_is_read)
{
    char path[2][FOLDER];
    const char *folder = make_folder("digests");
    for (int i = 0; i < 2; i++) snprintf(path[i], sizeof path[i], "%s/%d.txt", folder, i);
    hand_write("digests/0.txt", "the same beginning, one end", 27, false);
    hand_write("digests/1.txt", "the same beginning, another", 27, false);
    for (int64_t samples = 0; samples < 4; samples++) {
        struct dataset *a = open_text(path[0], LENGTH, samples), *b = open_text(path[1], LENGTH, samples);
        cr_assert(digest_equal(a->digest, b->digest) == (samples == 1 || samples == 2), "%d", (int)samples);
        cr_assert(samples == 0 || a->count[SPLIT_TRAIN] == samples);
        dataset_close(a), dataset_close(b);
    }
}

Test(text, what_cannot_be_read_is_refused)
{
    char empty[FOLDER], nothing[FOLDER];
    const char *folder = make_folder("no-text");
    snprintf(empty, sizeof empty, "%s/empty.txt", hand_made_folder());
    snprintf(nothing, sizeof nothing, "%s/nothing", hand_made_folder());
    hand_write("empty.txt", "", 0, false);
    const struct {
        struct dataset_settings settings;
        enum status status;
        const char *says;
    } cases[] = {
        {{.path = folder, .max_length = 4}, ST_MISSING, "data set text: no file *.txt in "},
        {{.path = nothing, .max_length = 4},
         ST_MISSING,
         "cannot read: No such file or directory; expected: a text file, or a folder"},
        {{.path = empty, .max_length = 4}, ST_FAILED, "empty.txt: the file is empty"},
        {{.path = NULL, .max_length = 1000}, ST_SPEC, "data.length is 1000; expected: less than the 1000 bytes of "},
        {{.path = NULL, .max_length = 100, .samples = 10}, ST_SPEC, "data.samples is 10; expected: at most 9"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dataset *dataset;
        char input[FOLDER];
        struct dataset_settings settings = cases[i].settings;
        snprintf(input, sizeof input, "%s/input.txt", hand_made_folder());
        if (!settings.path) settings.path = input;
        cr_expect(dataset_open("text", &settings, 1, &dataset) == cases[i].status && !dataset, "%d", (int)i);
        cr_expect(strstr(status_message(), cases[i].says) != NULL, "%s", status_message());
    }
}

Test(text, without_a_file_synthetic_tokens_stand_in)
{
    struct dataset *dataset;
    const struct dataset_settings settings = {.max_length = LENGTH};
    setenv("REMATCH_DATA", make_folder("elsewhere"), 1);
    cr_assert(dataset_open("text", &settings, 1, &dataset) == ST_OK, "%s", status_message());
    cr_assert(!strcmp(dataset->kind->name, "synthetic-text") && dataset->synthetic && dataset->labels == LENGTH);
    cr_assert(strstr(dataset->notice, "SYNTHETIC tokens stand in for the text: data set text: no input.txt in"), "%s",
              dataset->notice);
    dataset_close(dataset);
}

/* Three of four tokens follow from the one before, and labels are the tokens one place on. */
Test(text, synthetic_tokens_can_be_predicted)
{
    enum { TOKENS = 60, WORDS = 200, SAMPLES = 50 };
    const struct dataset_settings settings = {.max_length = TOKENS, .vocabulary_size = WORDS, .samples = SAMPLES};
    struct dataset *dataset;
    int follows = 0;
    cr_assert(dataset_open("synthetic-text", &settings, 1, &dataset) == ST_OK);
    for (int i = 0; i < SAMPLES; i++) {
        float x[3 * TOKENS];
        int32_t label[TOKENS];
        cr_assert(dataset->kind->sample(dataset, SPLIT_TRAIN, i, x, label) == ST_OK);
        for (int t = 0; t + 1 < TOKENS; t++) cr_assert(x[t + 1] == (float)label[t]);
        for (int t = 0; t < TOKENS; t++) follows += label[t] == ((int)x[t] + 97) % WORDS;
    }
    cr_assert(abs(follows - SAMPLES * TOKENS * 3 / 4) < 120, "%d of %d", follows, SAMPLES * TOKENS); /* 5 deviations */
    dataset_close(dataset);
}
