/* Tweets: samples and errors of small files written here, the synthetic tokens that stand in, and the real file where
 * there is one, counted by a second parser. */
#include "datasets/sequence.h"
#include "datasets/text/vocabulary.h"

#include "tests/support/dataset_files.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER "textID,text,sentiment\n"

static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\ngood\nday\n##s\n!\nbad\n";

static struct dataset_settings settings(int64_t length, bool file)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/vocab.txt", hand_made_folder());
    hand_write("vocab.txt", vocabulary, sizeof vocabulary - 1, false);
    return (struct dataset_settings){
        .path = hand_made_folder(), .max_length = length, .vocabulary = file ? path : NULL};
}

static void write_csv(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/tweets.csv", hand_made_folder());
    unlink(path);
    hand_write(name, text, strlen(text), false);
}

static struct dataset *open_good(const struct dataset_settings *wanted)
{
    struct dataset *dataset;
    cr_assert(dataset_open("tweets", wanted, 1, &dataset) == ST_OK, "%s", status_message());
    return dataset;
}

static void check_sample(struct dataset *dataset, enum split split, int64_t index, int label, int count,
                         const int *token)
{
    float x[3 * 8];
    int32_t got;
    const int64_t length = dataset->shape.dim[1];
    cr_assert(dataset->kind->sample(dataset, split, index, x, &got) == ST_OK && got == label, "label %d", got);
    for (int64_t i = 0; i < length; i++) {
        cr_expect(x[i] == (float)(i < count ? token[i] : 0), "%d, %d: token %g", (int)index, (int)i, (double)x[i]);
        cr_expect(x[length + i] == 0 && x[2 * length + i] == (i < count ? 1.0f : 0.0f));
    }
}

/* Twelve rows with words; two without; the tenth of the twelve is the test sample. */
static void check_split(struct dataset *dataset)
{
    cr_assert(dataset->shape.rank == 2 && dataset->shape.dim[0] == 3 && dataset->shape.dim[1] == 8);
    cr_assert(dataset->classes == 3 && dataset->tokens == 9 && !dataset->synthetic);
    cr_assert(dataset->count[SPLIT_TRAIN] == 11 && dataset->count[SPLIT_TEST] == 1);
    check_sample(dataset, SPLIT_TRAIN, 0, 2, 5, (int[]){2, 4, 5, 6, 3});
    check_sample(dataset, SPLIT_TRAIN, 1, 0, 4, (int[]){2, 8, 1, 3});
    check_sample(dataset, SPLIT_TRAIN, 2, 1, 8, (int[]){2, 7, 7, 7, 7, 7, 7, 3}); /* cut off */
    check_sample(dataset, SPLIT_TRAIN, 8, 1, 3, (int[]){2, 4, 3});
    check_sample(dataset, SPLIT_TEST, 0, 2, 3, (int[]){2, 8, 3});
    check_sample(dataset, SPLIT_TRAIN, 9, 0, 4, (int[]){2, 5, 7, 3});
    check_sample(dataset, SPLIT_TRAIN, 10, 0, 4, (int[]){2, 5, 6, 3});
    cr_assert(strstr(dataset->notice, ".csv: 2 rows without a word left out, the first on line 4"), "%s",
              dataset->notice);
}

Test(tweets, samples_are_the_listed_tokens)
{
    struct dataset_settings wanted = settings(8, true);
    write_csv("tweets.csv", HEADER
              "1,Good days,positive\n2,\"B\u00E1d \"\"\",negative\n3,,neutral\n4,!!!!!!!!!,neutral\n5,good,neutral\n"
              "6,good,neutral\n7,good,neutral\n8,good,neutral\n9,good,neutral\n10,\" \",neutral\n11,good,neutral\n"
              "12,bad,positive\n13,\"day\n!\",negative\n14,DAYS,negative\n");
    struct dataset *dataset = open_good(&wanted);
    cr_expect(dataset->files == 2 && !strcmp(dataset->vocabulary, "file"));
    cr_expect(!strcmp(dataset->vocabulary_sha256, dataset->file[1].sha256));
    check_split(dataset);
    dataset_close(dataset);
}

/* The official file's columns, in another folder. */
Test(tweets, the_official_columns_are_found_by_name)
{
    struct dataset_settings wanted = settings(8, true);
    write_csv("train.csv",
              "textID,text,selected_text,sentiment\n"
              "1,Good days,days,positive\n2,\"B\u00E1d \"\"\",\"\"\"\",negative\n3,,,neutral\n4,!!!!!!!!!,!,neutral\n"
              "5,good,good,neutral\n6,good,,neutral\n7,good,,neutral\n8,good,,neutral\n9,good,,neutral\n"
              "10,\" \",,neutral\n11,good,,neutral\n11a,good,x,neutral\n12,bad,,positive\n13,\"day\n!\",,negative\n");
    struct dataset *dataset = open_good(&wanted);
    cr_expect(strstr(dataset->file[0].path, "/train.csv"));
    cr_expect(dataset->count[SPLIT_TRAIN] == 11 && dataset->count[SPLIT_TEST] == 1);
    check_sample(dataset, SPLIT_TEST, 0, 1, 3, (int[]){2, 4, 3});
    dataset_close(dataset);
}

/* The first row of each file is good. */
Test(tweets, bad_rows_are_refused_by_file_and_line)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {HEADER "1,good,positive\n2,bad,angry\n",
         "tweets.csv:3: sentiment 'angry'; expected: negative, neutral or positive"},
        {HEADER "1,good,positive\n2,bad,\n", "tweets.csv:3: sentiment ''; expected"},
        {HEADER "1,good,positive\n2,bad,\"neu\ntral\x1B[1m\"\n", "tweets.csv:3: sentiment 'neu?tral?[1m'; expected"},
        {HEADER "1,good,positive\n2,bad,Neutral\n", "tweets.csv:3: sentiment 'Neutral'"},
        {HEADER "1,\"a\n\nb\",positive\n2,bad \xC3,neutral\n", "tweets.csv:5: byte 5, 0xC3, is not UTF-8"},
        {HEADER "1,good,positive\n2,\"bad,neutral\n3,good,positive\n", "tweets.csv:3: a quote is not closed"},
        {HEADER "1,good,positive\n2,ba\"d,neutral\n", "tweets.csv:3: a misplaced quote"},
        {HEADER "1,good,positive\n2,bad\n", "tweets.csv:3: 2 fields; expected: 3"},
        {HEADER "1,good,positive\n2,very, bad,negative\n", "tweets.csv:3: 4 fields; expected: 3"},
        {"textID,text,mood\n1,good,positive\n", "tweets.csv:1: no column is called 'sentiment'"},
        {"1,good,positive\n", "tweets.csv:1: no column is called 'text'"},
        {HEADER, "tweets.csv: no row has a text"},
        {HEADER "1,,neutral\n", "tweets.csv: no row has a text"},
        {"", "tweets.csv: the file is empty"},
    };
    for (int file = 0; file < 2; file++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct dataset_settings wanted = settings(8, file);
            struct dataset *dataset;
            write_csv("tweets.csv", cases[i].text);
            cr_expect(dataset_open("tweets", &wanted, 1, &dataset) == ST_FAILED && !dataset, "%s", cases[i].text);
            cr_expect(strstr(status_message(), cases[i].why), "%s", status_message());
        }
}

Test(tweets, contradicting_settings_are_refused)
{
    struct dataset *dataset;
    struct dataset_settings wanted = settings(8, true);
    wanted.vocabulary_size = 100;
    cr_expect(dataset_open("tweets", &wanted, 1, &dataset) == ST_SPEC);
    cr_expect(strstr(status_message(), "data.vocabulary_size: has no use beside data.vocabulary"));
    wanted = settings(8, false);
    wanted.vocabulary_size = 20;
    cr_expect(dataset_open("tweets", &wanted, 1, &dataset) == ST_SPEC);
    cr_expect(strstr(status_message(), "data.vocabulary_size: 20; expected: at least"), "%s", status_message());
    hand_write("vocab.txt", "[PAD]\n[CLS]\n[SEP]\nx\n", 20, false);
    char path[256];
    snprintf(path, sizeof path, "%s/vocab.txt", hand_made_folder());
    wanted = (struct dataset_settings){.path = hand_made_folder(), .max_length = 8, .vocabulary = path};
    cr_expect(dataset_open("tweets", &wanted, 1, &dataset) == ST_FAILED);
    cr_expect(strstr(status_message(), "vocab.txt: no line is [UNK]"), "%s", status_message());
    wanted.vocabulary = "/nowhere/vocab.txt";
    cr_expect(dataset_open("tweets", &wanted, 1, &dataset) == ST_MISSING);
    cr_expect(strstr(status_message(), "data.vocabulary: /nowhere/vocab.txt: No such file"), "%s", status_message());
    wanted.vocabulary = "/";
    cr_expect(dataset_open("tweets", &wanted, 1, &dataset) == ST_FAILED);
    cr_expect(strstr(status_message(), "is not a plain file"), "%s", status_message());
}

/* Words of test samples do not affect a built vocabulary. */
Test(tweets, a_vocabulary_is_built_from_the_training_split_alone)
{
    struct dataset_settings wanted = settings(8, false);
    struct dataset *a, *b, *c;
    static const char nine[] = HEADER "1,a b,neutral\n2,a b,neutral\n3,a b,neutral\n4,a b,neutral\n5,a b,neutral\n"
                                      "6,,neutral\n6,a b,neutral\n7,a b,neutral\n8,a b,neutral\n9,a b,neutral\n";
    char text[1024];
    write_csv("tweets.csv", nine);
    a = open_good(&wanted);
    snprintf(text, sizeof text, "%s10,xyz,neutral\n", nine);
    write_csv("tweets.csv", text);
    b = open_good(&wanted);
    snprintf(text, sizeof text, "%s10,xyz,neutral\n11,xyz,neutral\n", nine);
    write_csv("tweets.csv", text);
    c = open_good(&wanted);
    cr_expect(a->tokens == 4 + 2 * 2 && !strcmp(a->vocabulary, "built"));
    cr_expect(!strcmp(a->vocabulary_sha256, b->vocabulary_sha256) && b->count[SPLIT_TEST] == 1);
    cr_expect(c->tokens == 4 + 2 * 5 + 1 && c->count[SPLIT_TEST] == 1);
    cr_expect(!digest_equal(a->digest, b->digest) && !digest_equal(b->digest, c->digest));
    check_sample(b, SPLIT_TEST, 0, 1, 3, (int[]){2, 1, 3});
    dataset_close(a);
    dataset_close(b);
    dataset_close(c);
}

/* The same file has another digest if its texts are cut off sooner, and the same one if no token changes. */
Test(tweets, the_digest_is_of_the_tokens)
{
    struct dataset_settings long_enough = settings(8, false), short_of_one = settings(3, false);
    write_csv("tweets.csv", HEADER "1,a b,neutral\n2,b a,neutral\n");
    struct dataset *a = open_good(&long_enough), *b = open_good(&short_of_one), *again = open_good(&long_enough);
    cr_expect(!strcmp(a->file[0].sha256, b->file[0].sha256) && !digest_equal(a->digest, b->digest));
    cr_expect(digest_equal(a->digest, again->digest));
    dataset_close(a);
    dataset_close(b);
    dataset_close(again);
}

/* Rows after the last sample affect neither the vocabulary nor the digest, and may be malformed. */
Test(tweets, samples_limits_the_tweets_with_words)
{
    static const char rows[] = HEADER "1,a,neutral\n2,,neutral\n3,b,neutral\n4,c,neutral\n5,d,neutral\n6,e,neutral\n"
                                      "7,f,neutral\n8,g,neutral\n9,h,neutral\n10,i,neutral\n11,j,positive\n";
    char longer[512];
    struct dataset_settings wanted = settings(8, false);
    snprintf(longer, sizeof longer, "%s12,zzz,neutral\n13,,neutral\n14,zzz,no sentiment\n", rows);
    for (wanted.samples = 9; wanted.samples <= 10; wanted.samples++) {
        write_csv("tweets.csv", longer);
        struct dataset *a = open_good(&wanted);
        write_csv("tweets.csv", rows);
        struct dataset *b = open_good(&wanted);
        cr_expect(a->count[SPLIT_TRAIN] == 9 && a->count[SPLIT_TEST] == wanted.samples - 9);
        cr_expect(digest_equal(a->digest, b->digest) && strcmp(a->file[0].sha256, b->file[0].sha256) != 0);
        cr_expect(!strcmp(a->vocabulary_sha256, b->vocabulary_sha256) && a->tokens == b->tokens);
        cr_expect(strstr(a->notice, ": 1 row without a word left out, the first on line 3"), "%s", a->notice);
        dataset_close(a);
        dataset_close(b);
    }
    struct dataset *dataset;
    cr_expect(dataset_open("tweets", &wanted, 1, &dataset) == ST_SPEC);
    cr_expect(strstr(status_message(), "data.samples is 11; expected: at most 10, as many as "), "%s",
              status_message());
}

Test(tweets, synthetic_tokens_stand_in_with_a_notice)
{
    struct dataset_settings wanted = settings(8, true);
    struct dataset *dataset;
    cr_assert(chdir(hand_made_folder()) == 0 && setenv("REMATCH_DATA", "/nowhere-at-all", 1) == 0);
    wanted.path = NULL;
    dataset = open_good(&wanted);
    cr_expect(!strcmp(dataset->kind->name, "synthetic-tokens") && dataset->synthetic && dataset->files == 0);
    cr_expect(dataset->tokens == 9 && dataset->classes == 3 && dataset->shape.dim[1] == 8);
    cr_expect(strstr(dataset->notice, "SYNTHETIC tokens stand in for the tweets") &&
              strstr(dataset->notice, "/nowhere-at-all") && strstr(dataset->notice, "get train.csv"));
    dataset_close(dataset);
    wanted.vocabulary = NULL;
    dataset = open_good(&wanted);
    cr_expect(dataset->tokens == VOCABULARY_PRESET && dataset->count[SPLIT_TRAIN] > 0);
    dataset_close(dataset);
    wanted.path = "/nowhere"; /* a path was given: nothing stands in */
    cr_expect(dataset_open("tweets", &wanted, 1, &dataset) == ST_MISSING && !dataset);
    cr_expect(strstr(status_message(), "no tweets.csv in /nowhere"), "%s", status_message());
}

/* ---- synthetic tokens ---- */

static struct dataset *open_tokens(int64_t length, int64_t size, int lengths, uint64_t seed)
{
    struct dataset_settings wanted = {
        .max_length = length, .vocabulary_size = size, .lengths = lengths, .classes = 3, .samples = 4000};
    struct dataset *dataset;
    cr_assert(dataset_open("synthetic-tokens", &wanted, seed, &dataset) == ST_OK, "%s", status_message());
    return dataset;
}

Test(tweets, synthetic_tokens_are_well_formed)
{
    static const int64_t lengths[] = {3, 4, 17, 128}, sizes[] = {7, 100, 8192, 30522};
    for (int k = 0; k < 4; k++)
        for (int varied = 0; varied < 2; varied++) {
            const int64_t length = lengths[k], least = length / 4 > 3 ? length / 4 : 3;
            struct dataset *dataset = open_tokens(length, sizes[k], varied, 5);
            float x[3 * 128];
            int32_t label;
            int64_t shortest = length, longest = 0, highest = 0;
            for (int64_t i = 0; i < 3000; i++) {
                int64_t count = 0;
                cr_assert(dataset->kind->sample(dataset, SPLIT_TRAIN, i, x, &label) == ST_OK);
                while (count < length && x[2 * length + count] == 1) count++;
                cr_assert(x[0] == 2 && x[count - 1] == 3);
                for (int64_t j = 0; j < length; j++) {
                    cr_assert(x[length + j] == 0 && x[2 * length + j] == (j < count ? 1.0f : 0.0f));
                    cr_assert(j >= count ? x[j] == 0
                                         : j == 0 || j == count - 1 || (x[j] >= 4 && x[j] < (float)sizes[k]));
                    if (x[j] > (float)highest) highest = (int64_t)x[j];
                }
                if (count < shortest) shortest = count;
                if (count > longest) longest = count;
            }
            cr_expect(longest == length && shortest == (varied ? least : length), "%ld..%ld", shortest, longest);
            cr_expect(highest > sizes[k] * 9 / 10 - 1 && dataset->tokens == sizes[k]);
            dataset_close(dataset);
        }
}

/* By naive Bayes, the counts of words by class. */
Test(tweets, synthetic_tokens_can_be_learnt)
{
    enum { LENGTH = 32, SIZE = 500, TRAIN = 3000, TEST = 1000 };
    struct dataset *dataset = open_tokens(LENGTH, SIZE, LENGTHS_VARIED, 1);
    static double count[3][SIZE], all[3];
    float x[3 * LENGTH];
    int32_t label;
    int right = 0;
    for (int i = 0; i < TRAIN; i++) {
        cr_assert(dataset->kind->sample(dataset, SPLIT_TRAIN, i, x, &label) == ST_OK);
        for (int j = 0; j < LENGTH; j++) count[label][(int)x[j]]++, all[label]++;
    }
    for (int i = 0; i < TEST; i++) {
        double best = -INFINITY;
        int guess = 0;
        cr_assert(dataset->kind->sample(dataset, SPLIT_TEST, i, x, &label) == ST_OK);
        for (int c = 0; c < 3; c++) {
            double sum = 0;
            for (int j = 0; j < LENGTH && x[2 * LENGTH + j] == 1; j++)
                sum += log((count[c][(int)x[j]] + 1) / (all[c] + SIZE));
            if (sum > best) best = sum, guess = c;
        }
        right += guess == label;
    }
    cr_expect(right > TEST * 6 / 10 && right < TEST, "%d of %d", right, TEST);
    dataset_close(dataset);
}

/* ---- the real file ---- */

/* Its rows by label, counted by quotes alone: a row ends at a line break outside them, and its label follows the last
 * comma. */
static int64_t count_rows(const char *path, int64_t by_label[3])
{
    static const char *const names[] = {",negative", ",neutral", ",positive"};
    FILE *file = fopen(path, "r");
    char tail[16] = "";
    int64_t rows = 0;
    cr_assert(file != NULL);
    bool inside = false;
    for (int c = fgetc(file); c != EOF; c = fgetc(file)) {
        inside ^= c == '"';
        if (c != '\n' || inside) {
            if (c == '\r') continue;
            memmove(tail, tail + 1, 14);
            tail[14] = (char)c;
            continue;
        }
        for (int k = 0; k < 3; k++) {
            size_t bytes = strlen(names[k]);
            if (memcmp(tail + 15 - bytes, names[k], bytes) == 0) by_label[k]++, rows++;
        }
    }
    fclose(file);
    return rows;
}

Test(tweets, the_real_file_has_the_known_counts)
{
    struct dataset_settings wanted = {.max_length = 128};
    struct dataset *dataset, *again;
    int64_t expected[3] = {0}, got[3] = {0};
    if (!getenv("REMATCH_DATA")) cr_skip_test("REMATCH_DATA is not set");
    dataset = open_good(&wanted);
    if (dataset->synthetic) cr_skip_test("%s", dataset->notice);
    float *x = malloc(3 * 128 * sizeof *x);
    int32_t label;
    int64_t rows = count_rows(dataset->file[0].path, expected), longest = 0;
    for (int split = 0; split < SPLITS; split++)
        for (int64_t i = 0; i < dataset->count[split]; i++) {
            cr_assert(dataset->kind->sample(dataset, (enum split)split, i, x, &label) == ST_OK);
            got[label]++;
            int64_t count = 0;
            while (count < 128 && x[256 + count] == 1) count++;
            if (count > longest) longest = count;
            cr_assert(count >= 3 && x[0] == 2 && x[count - 1] == 3);
        }
    int64_t left_out = rows - dataset->count[0] - dataset->count[1];
    cr_expect(left_out == (dataset->notice != NULL) && llabs(expected[1] - got[1]) <= left_out, "%ld", left_out);
    cr_expect(expected[0] == got[0] && expected[2] == got[2]);
    cr_expect(fabs((double)got[1] / (double)rows - 0.405) < 0.001);
    cr_expect(dataset->tokens == VOCABULARY_PRESET && longest < 128);
    if (rows == 31014) /* tweets.csv; a built vocabulary is the same on every machine */
        cr_expect(
            !strcmp(dataset->vocabulary_sha256, "b487aa6fe5ed841f200e3acfcb3e163fe56605b3283bd94ebed6c143f3174afa"));
    again = open_good(&wanted);
    cr_expect(digest_equal(dataset->digest, again->digest));
    dataset_close(again);
    dataset_close(dataset);
    free(x);
}
