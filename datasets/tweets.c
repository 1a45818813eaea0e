/* Sentiments of tweets: the data of the competition tweet-sentiment-extraction, either tweets.csv (textID, text,
 * sentiment) or its own train.csv (with selected_text); columns are found by their names. Labels: negative, neutral,
 * positive are 0, 1, 2.
 *
 * Rows without a word in their text are left out, with a notice (the official file has one). Of the other rows every
 * tenth, from the tenth, is a test sample. Texts are turned into tokens once, when the data set is opened. If no file
 * is found and data.path is not set, synthetic tokens of the same shape stand in; a notice says so and is recorded. */
#include "csv_rows.h"
#include "sequence.h"
#include "text/tokenizer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(struct dataset_settings, member)

enum { COLUMN_TEXT, COLUMN_SENTIMENT, CLASSES = 3, TEST_EVERY = 10 };

static const char *const columns[] = {"text", "sentiment", NULL};
static const char *const sentiments[CLASSES] = {"negative", "neutral", "positive"};
static const char *const names[] = {"tweets.csv", "train.csv", NULL};

static const struct files_source source = {
    (const char *const[]){"tweets", "tweet-sentiment-extraction", NULL},
    names,
    "get train.csv from https://www.kaggle.com/competitions/tweet-sentiment-extraction",
};

static const struct setting keys[] = {
    {"path", SETTING_PATH, AT(path), 0, 0, "", NULL, "folder of the file; unset: searched for"},
    {"samples", SETTING_INT, AT(samples), 1, 1 << 30, "0", NULL,
     "the first so many tweets with a word alone, those for tests among them; unset: all"},
    {"max_length", SETTING_INT, AT(max_length), SEQUENCE_LEAST, SEQUENCE_MAX, "128", NULL,
     "tokens of a text, [CLS] and [SEP] included; the rest is cut off"},
    {"vocabulary", SETTING_PATH, AT(vocabulary), 0, 0, "", NULL, "file, one token a line; unset: built from the texts"},
    {"vocabulary_size", SETTING_INT, AT(vocabulary_size), 8, VOCABULARY_MAX, "0", NULL,
     "most tokens of a vocabulary that is built; unset: 8192"},
    {"shuffle", SETTING_BOOL, AT(shuffle), 0, 0, "true", NULL, "another order every epoch"},
    {0},
};

struct tweet {
    int64_t from;         /* place of its first token */
    int32_t count, label; /* tokens */
};

struct tweets {
    struct vocabulary vocabulary;
    int64_t rows;
    struct tweet *row;
    int32_t *token; /* of all rows */
    int64_t tokens, tokens_max;
};

/* A pass over the file. */
struct pass {
    struct dataset *dataset;
    struct tweets *tweets;
    const char *path;
    struct word_counts counts;      /* the first pass: of the training texts */
    int64_t row, empty, empty_line; /* rows with words; rows without; line of the first of those */
};

/* ---- the passes ---- */

static bool is_test(int64_t row) { return row % TEST_EVERY == TEST_EVERY - 1; }

static enum status at_line(const struct pass *pass, const struct csv_row *row, enum status status)
{
    return status == ST_OK ? ST_OK : fail(status, "%s:%" PRId64 ": %s", pass->path, row->line, status_message());
}

/* As word_counts_add(), but counts the word in the total alone. */
static void count_in_total(void *counts, const char *word, size_t bytes)
{
    (void)word;
    (void)bytes;
    ((struct word_counts *)counts)->total++;
}

/* Whether rows are as many as data.samples asks for. */
static bool is_enough(const struct pass *pass, int64_t rows)
{
    const int64_t most = pass->dataset->settings.samples;
    return most && rows == most;
}

/* The first pass counts the words of the training texts. */
static enum status count_words(void *context, const struct csv_row *row)
{
    struct pass *pass = context;
    const struct csv_field *text = &row->field[COLUMN_TEXT];
    const int64_t before = pass->counts.total;
    if (is_enough(pass, pass->row)) return ST_OK;
    TRY(at_line(
        pass, row,
        basic_tokenize(text->text, text->bytes, is_test(pass->row) ? count_in_total : word_counts_add, &pass->counts)));
    pass->row += pass->counts.total > before;
    return ST_OK;
}

static enum status find_label(const struct csv_row *row, int32_t *label)
{
    const struct csv_field *name = &row->field[COLUMN_SENTIMENT];
    for (*label = 0; *label < CLASSES; ++*label)
        if (name->bytes == strlen(sentiments[*label]) && memcmp(name->text, sentiments[*label], name->bytes) == 0)
            return ST_OK;
    return fail(ST_FAILED, "sentiment '%.*s'; expected: negative, neutral or positive",
                (int)(name->bytes < 60 ? name->bytes : 60), name->text);
}

static int32_t *room_for_tokens(struct region *region, struct tweets *t, int64_t count)
{
    if (t->tokens_max - t->tokens < count) {
        int32_t *more;
        t->tokens_max = 2 * t->tokens_max + count;
        NEW(region, more, (size_t)t->tokens_max);
        if (t->tokens) memcpy(more, t->token, (size_t)t->tokens * sizeof *more);
        t->token = more;
    }
    return t->token + t->tokens;
}

/* The second pass keeps every text as tokens. */
static enum status keep_tokens(void *context, const struct csv_row *row)
{
    struct pass *pass = context;
    struct tweets *t = pass->tweets;
    struct region *region = pass->dataset->region;
    const struct csv_field *text = &row->field[COLUMN_TEXT];
    const int64_t length = pass->dataset->shape.dim[1];
    int64_t count, words;
    int32_t label;
    if (is_enough(pass, t->rows)) return ST_OK;
    TRY(at_line(pass, row, find_label(row, &label)));
    int32_t *token = room_for_tokens(region, t, length);
    TRY(at_line(pass, row, wordpiece_encode(&t->vocabulary, text->text, text->bytes, length, token, &count, &words)));
    if (words == 0) {
        if (pass->empty++ == 0) pass->empty_line = row->line;
        return ST_OK;
    }
    region_grow(region, &t->row, (int)t->rows, sizeof *t->row);
    t->row[t->rows++] = (struct tweet){t->tokens, (int32_t)count, label};
    t->tokens += count;
    return ST_OK;
}

/* ---- opening ---- */

static enum status read_vocabulary(struct dataset *dataset, struct vocabulary *vocabulary)
{
    const char *path = dataset->settings.vocabulary;
    struct files_handle handle;
    char *text;
    if (access(path, F_OK) != 0)
        return fail(ST_MISSING, "data.vocabulary: %s: %s; expected: a file with one token a line", path,
                    strerror(errno));
    TRY(files_open(dataset, NULL, path, &handle));
    const size_t bytes = (size_t)handle.file->bytes;
    enum status status = ST_OK;
    if (bytes > VOCABULARY_BYTES_MAX)
        status =
            fail(ST_FAILED, "%s: %zu bytes; expected: a vocabulary of at most %d", path, bytes, VOCABULARY_BYTES_MAX);
    if (status == ST_OK) {
        NEW(dataset->region, text, bytes);
        status = files_read(&handle, 0, bytes, text);
    }
    close(handle.descriptor);
    return status == ST_OK ? vocabulary_read(path, text, bytes, dataset->region, vocabulary) : status;
}

static enum status build_vocabulary(struct pass *pass, const struct files_handle *handle)
{
    const int64_t size = pass->dataset->settings.vocabulary_size;
    pass->counts.words.region = region_create();
    enum status status = csv_rows(handle, columns, count_words, pass);
    if (status == ST_OK)
        status = vocabulary_build(&pass->counts, size ? size : VOCABULARY_PRESET, pass->dataset->region,
                                  &pass->tweets->vocabulary);
    region_destroy(pass->counts.words.region);
    return status;
}

/* Of the tokens and labels: they depend on the vocabulary and on utf8proc's version of Unicode, too. */
static struct digest digest_rows(const struct tweets *t)
{
    struct digest part[2] = {digest_tensor(t->token, (size_t)t->tokens * sizeof *t->token, 1),
                             digest_tensor(t->row, (size_t)t->rows * sizeof *t->row, 1)};
    return digest_bytes(part, sizeof part);
}

static enum status read_tweets(struct dataset *dataset, const struct files_handle *handle)
{
    struct tweets *t = dataset->state;
    struct pass pass = {.dataset = dataset, .tweets = t, .path = handle->file->path};
    TRY(dataset->settings.vocabulary ? read_vocabulary(dataset, &t->vocabulary) : build_vocabulary(&pass, handle));
    TRY(csv_rows(handle, columns, keep_tokens, &pass));
    if (t->rows == 0) return fail(ST_FAILED, "%s: no row has a text", pass.path);
    TRY(files_cut(dataset, handle->file, &t->rows));
    dataset->count[SPLIT_TEST] = t->rows / TEST_EVERY;
    dataset->count[SPLIT_TRAIN] = t->rows - dataset->count[SPLIT_TEST];
    dataset->tokens = t->vocabulary.table.count;
    dataset->vocabulary = t->vocabulary.name;
    dataset->vocabulary_sha256 = t->vocabulary.sha256;
    dataset->content = digest_rows(t);
    if (pass.empty == 0) return ST_OK;
    dataset->notice =
        region_text(dataset->region, "%s: %" PRId64 " %s without a word left out, the first on line %" PRId64,
                    pass.path, pass.empty, pass.empty == 1 ? "row" : "rows", pass.empty_line);
    return ST_OK;
}

/* Replaces the data set by synthetic tokens of the same shape. */
static enum status stand_in(struct dataset *dataset)
{
    struct dataset_settings *s = &dataset->settings;
    struct vocabulary vocabulary;
    dataset->notice = region_text(dataset->region, "SYNTHETIC tokens stand in for the tweets: %s", status_message());
    if (s->vocabulary) {
        TRY(read_vocabulary(dataset, &vocabulary));
        s->vocabulary_size = vocabulary.table.count;
    }
    dataset->files = 0; /* only the number of tokens was taken from the vocabulary */
    dataset->state = NULL;
    dataset->kind = dataset_find("synthetic-tokens");
    s->classes = CLASSES;
    s->lengths = LENGTHS_VARIED;
    if (!s->samples) s->samples = 10000;
    if (!s->vocabulary_size) s->vocabulary_size = VOCABULARY_PRESET;
    return dataset->kind->open(dataset);
}

static enum status open_tweets(struct dataset *dataset)
{
    const struct dataset_settings *s = &dataset->settings;
    struct tweets *t;
    struct files_handle handle;
    const char *folder;
    dataset->shape = (struct shape){2, {3, dataset->settings.max_length}};
    if (s->vocabulary && s->vocabulary_size)
        return fail(ST_SPEC, "data.vocabulary_size: has no use beside data.vocabulary, a file of all tokens");
    NEW(dataset->region, t, 1);
    dataset->state = t;
    dataset->classes = CLASSES;
    enum status status = files_find(dataset, &source, &folder);
    if (status == ST_MISSING && !s->path) return stand_in(dataset);
    TRY(status);
    const char *path = region_text(dataset->region, "%s/%s", folder, names[0]);
    TRY(files_open(dataset, folder, names[access(path, F_OK) != 0], &handle));
    status = read_tweets(dataset, &handle);
    close(handle.descriptor);
    return status;
}

static enum status sample_tweets(struct dataset *dataset, enum split split, int64_t index, float *x, int32_t *label)
{
    const struct tweets *t = dataset->state;
    int64_t row = split == SPLIT_TEST ? index * TEST_EVERY + TEST_EVERY - 1 : index + index / (TEST_EVERY - 1);
    const struct tweet *tweet = &t->row[row];
    sequence_deliver(dataset, t->token + tweet->from, tweet->count, t->vocabulary.special[SPECIAL_PADDING], x);
    *label = tweet->label;
    return ST_OK;
}

const struct dataset_kind dataset_tweets = {
    "tweets", "tweet-sentiment-extraction: texts of three sentiments", keys, true, open_tweets, sample_tweets, NULL};
