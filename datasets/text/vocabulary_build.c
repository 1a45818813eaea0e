/* A vocabulary built from texts. It is the same on every machine: sorting leaves no ties, and UTF-8's byte order is
 * that of the code points. */
#include "vocabulary.h"

#include "basic_tokenizer.h"

#include <inttypes.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { POINTS = 0x110000, TOKEN_BYTES = 4 };

static void count_word(void *context, const char *word, size_t bytes)
{
    struct word_counts *c = context;
    const int64_t known = c->words.count, number = token_table_add(&c->words, word, bytes);
    if (number == known) region_grow(c->words.region, &c->count, (int)number, sizeof *c->count);
    c->count[number]++;
    c->total++;
}

enum status word_counts_add(struct word_counts *counts, const char *text, size_t bytes)
{
    return basic_tokenize(text, bytes, count_word, counts);
}

/* Marks the characters of the words and returns how many there are. */
static int64_t find_characters(const struct word_counts *counts, uint8_t *seen)
{
    int64_t characters = 0;
    for (int64_t i = 0; i < counts->words.count; i++) {
        const struct token *word = &counts->words.token[i];
        for (size_t at = 0; at < word->bytes;) {
            int32_t point;
            at += (size_t)utf8proc_iterate((const uint8_t *)word->text + at, (utf8proc_ssize_t)(word->bytes - at),
                                           &point);
            characters += !seen[point];
            seen[point] = 1;
        }
    }
    return characters;
}

static void add_characters(struct vocabulary *v, const uint8_t *seen, const char *prefix)
{
    uint8_t token[2 + TOKEN_BYTES];
    const size_t before = strlen(prefix);
    memcpy(token, prefix, before);
    for (int32_t point = 0; point < POINTS; point++)
        if (seen[point])
            token_table_add(&v->table, (const char *)token,
                            before + (size_t)utf8proc_encode_char(point, token + before));
}

struct counted {
    const struct token *word;
    int64_t count;
};

static int by_count_then_text(const void *one, const void *other)
{
    const struct counted *a = one, *b = other;
    const size_t left = a->word->bytes, right = b->word->bytes;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    const int order = memcmp(a->word->text, b->word->text, left < right ? left : right);
    return order ? order : (left > right) - (left < right);
}

static int64_t characters_in(const struct token *word)
{
    int64_t characters = 0;
    for (size_t i = 0; i < word->bytes; i++) characters += begins_character(word->text[i]);
    return characters;
}

static void add_words(struct vocabulary *v, const struct word_counts *counts, int64_t most)
{
    const int64_t words = counts->words.count;
    struct counted *sorted;
    NEW(counts->words.region, sorted, (size_t)words);
    for (int64_t i = 0; i < words; i++) sorted[i] = (struct counted){&counts->words.token[i], counts->count[i]};
    qsort(sorted, (size_t)words, sizeof *sorted, by_count_then_text);
    for (int64_t i = 0; i < words && v->table.count < most; i++)
        if (characters_in(sorted[i].word) <= VOCABULARY_WORD_MAX)
            token_table_add(&v->table, sorted[i].word->text, sorted[i].word->bytes);
}

static void digest_lines(struct vocabulary *v)
{
    SHA2_CTX context;
    SHA256Init(&context);
    for (int64_t i = 0; i < v->table.count; i++) {
        SHA256Update(&context, (const uint8_t *)v->table.token[i].text, v->table.token[i].bytes);
        SHA256Update(&context, (const uint8_t *)"\n", 1);
    }
    SHA256End(&context, v->sha256);
}

enum status vocabulary_build(const struct word_counts *counts, int64_t most, struct region *region,
                             struct vocabulary *vocabulary)
{
    uint8_t *seen;
    NEW(counts->words.region, seen, POINTS);
    const int64_t least = SPECIALS + 2 * find_characters(counts, seen);
    if (most < least)
        return fail(ST_SPEC,
                    "data.vocabulary_size: %" PRId64 "; expected: at least %" PRId64
                    ": %d special tokens, and every character of the training texts alone and after ##",
                    most, least, SPECIALS);
    *vocabulary = (struct vocabulary){.table.region = region, .name = "built"};
    for (int i = 0; i < SPECIALS; i++)
        vocabulary->special[i] =
            (int32_t)token_table_add(&vocabulary->table, special_tokens[i], strlen(special_tokens[i]));
    add_characters(vocabulary, seen, "");
    add_characters(vocabulary, seen, "##");
    add_words(vocabulary, counts, most);
    digest_lines(vocabulary);
    return ST_OK;
}
