/* A vocabulary from texts, the same on every machine: sorting leaves no ties, and UTF-8's byte order is that of the
 * code points. */
#include "vocabulary.h"

#include "basic_tokenizer.h"

#include <inttypes.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { POINTS = 0x110000, TOKEN_BYTES = 4 };

static enum status count_word(void *context, const struct text_word *word)
{
    struct word_counts *c = context;
    int64_t number;
    TRY(token_table_add(&c->words, word->text, word->bytes, &number));
    if ((size_t)number == c->counts_max) {
        size_t most = c->counts_max ? 2 * c->counts_max : 1024;
        int64_t *count = realloc(c->count, most * sizeof *count);
        if (!count) return fail(ST_FAILED, "out of memory to count words");
        memset(count + c->counts_max, 0, (most - c->counts_max) * sizeof *count);
        c->count = count;
        c->counts_max = most;
    }
    c->count[number]++;
    c->total++;
    return ST_OK;
}

enum status word_counts_add(struct word_counts *counts, const char *text, size_t bytes)
{
    return basic_tokenize(text, bytes, count_word, counts);
}

void word_counts_release(struct word_counts *counts)
{
    token_table_release(&counts->words);
    free(counts->count);
    *counts = (struct word_counts){0};
}

/* Marks the characters of the words and returns how many there are. */
static int64_t find_characters(const struct word_counts *counts, uint8_t *seen)
{
    int64_t characters = 0;
    for (int64_t i = 0; i < counts->words.count; i++) {
        size_t bytes;
        const uint8_t *text = (const uint8_t *)token_table_text(&counts->words, i, &bytes);
        for (size_t at = 0; at < bytes;) {
            int32_t point;
            at += (size_t)utf8proc_iterate(text + at, (utf8proc_ssize_t)(bytes - at), &point);
            characters += !seen[point];
            seen[point] = 1;
        }
    }
    return characters;
}

static enum status add_characters(struct vocabulary *v, const uint8_t *seen, const char *prefix)
{
    uint8_t token[2 + TOKEN_BYTES];
    size_t before = strlen(prefix);
    int64_t number;
    memcpy(token, prefix, before);
    for (int32_t point = 0; point < POINTS; point++) {
        if (!seen[point]) continue;
        size_t bytes = (size_t)utf8proc_encode_char(point, token + before);
        TRY(token_table_add(&v->table, (const char *)token, before + bytes, &number));
    }
    return ST_OK;
}

struct counted {
    const char *text;
    size_t bytes;
    int64_t count;
};

static int by_count_then_text(const void *one, const void *other)
{
    const struct counted *a = one, *b = other;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    int order = memcmp(a->text, b->text, a->bytes < b->bytes ? a->bytes : b->bytes);
    return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static int64_t characters_in(const struct counted *word)
{
    int64_t characters = 0;
    for (size_t i = 0; i < word->bytes; i++) characters += ((unsigned char)word->text[i] & 0xC0) != 0x80;
    return characters;
}

static enum status add_words(struct vocabulary *v, const struct word_counts *counts, int64_t most)
{
    int64_t words = counts->words.count, number;
    struct counted *word = malloc((size_t)(words + 1) * sizeof *word);
    if (!word) return fail(ST_FAILED, "out of memory to sort words");
    for (int64_t i = 0; i < words; i++) {
        word[i].text = token_table_text(&counts->words, i, &word[i].bytes);
        word[i].count = counts->count[i];
    }
    qsort(word, (size_t)words, sizeof *word, by_count_then_text);
    enum status status = ST_OK;
    for (int64_t i = 0; i < words && v->table.count < most && status == ST_OK; i++)
        if (characters_in(&word[i]) <= VOCABULARY_WORD_MAX)
            status = token_table_add(&v->table, word[i].text, word[i].bytes, &number);
    free(word);
    return status;
}

static void digest_lines(struct vocabulary *v)
{
    SHA2_CTX context;
    SHA256Init(&context);
    for (int64_t i = 0; i < v->table.count; i++) {
        size_t bytes;
        const char *text = token_table_text(&v->table, i, &bytes);
        SHA256Update(&context, (const uint8_t *)text, bytes);
        SHA256Update(&context, (const uint8_t *)"\n", 1);
    }
    SHA256End(&context, v->sha256);
}

static enum status build(const struct word_counts *counts, int64_t most, uint8_t *seen, struct vocabulary *v)
{
    int64_t least = SPECIALS + 2 * find_characters(counts, seen), number;
    if (most < least)
        return fail(ST_SPEC,
                    "data.vocabulary_size: %" PRId64 "; expected: at least %" PRId64
                    ": %d special tokens, and every character of the training texts alone and after ##",
                    most, least, SPECIALS);
    for (int i = 0; i < SPECIALS; i++) {
        TRY(token_table_add(&v->table, special_tokens[i], strlen(special_tokens[i]), &number));
        v->special[i] = (int32_t)number;
    }
    TRY(add_characters(v, seen, ""));
    TRY(add_characters(v, seen, "##"));
    TRY(add_words(v, counts, most));
    digest_lines(v);
    v->name = "built";
    return ST_OK;
}

enum status vocabulary_build(const struct word_counts *counts, int64_t most, struct vocabulary *vocabulary)
{
    uint8_t *seen = calloc(POINTS, 1);
    if (!seen) return fail(ST_FAILED, "out of memory to build a vocabulary");
    enum status status = build(counts, most, seen, vocabulary);
    free(seen);
    return status;
}
