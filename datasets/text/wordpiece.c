#include "wordpiece.h"

#include "basic_tokenizer.h"

#include <string.h>

enum { UTF8_BYTES_MAX = 4, PREFIX = 2 };

/* The longest token that text begins with; continued: it continues a word and text has room for `##`
 * before it. -1: none. */
static int64_t longest(const struct vocabulary *v, char *text, size_t bytes, bool continued, size_t *matched)
{
    size_t prefix = continued ? PREFIX : 0;
    memcpy(text - prefix, "##", prefix);
    for (size_t length = bytes; length > 0; length--) {
        if (length < bytes && !begins_character(text[length])) continue;
        int64_t number = token_table_find(&v->table, text - prefix, prefix + length);
        *matched = length;
        if (number >= 0) return number;
    }
    return -1;
}

int wordpiece_split(const struct vocabulary *vocabulary, const char *word, size_t bytes, int32_t *piece)
{
    char room[PREFIX + VOCABULARY_WORD_MAX * UTF8_BYTES_MAX], *text = room + PREFIX;
    int characters = 0, pieces = 0;
    *piece = vocabulary->special[SPECIAL_UNKNOWN];
    if (bytes > sizeof room - PREFIX) return 1;
    for (size_t i = 0; i < bytes; i++) characters += begins_character(word[i]);
    if (characters > VOCABULARY_WORD_MAX) return 1;
    memcpy(text, word, bytes);
    for (size_t at = 0, matched = 0; at < bytes; at += matched) {
        int64_t number = longest(vocabulary, text + at, bytes - at, at > 0, &matched);
        if (number < 0) {
            *piece = vocabulary->special[SPECIAL_UNKNOWN];
            return 1;
        }
        piece[pieces++] = (int32_t)number;
    }
    return pieces;
}

struct encoding {
    const struct vocabulary *vocabulary;
    int32_t *token;
    int64_t count, most, words;
};

static void add_word(void *context, const char *word, size_t bytes)
{
    struct encoding *e = context;
    int32_t piece[VOCABULARY_WORD_MAX];
    e->words++;
    if (e->count == e->most) return;
    const int pieces = wordpiece_split(e->vocabulary, word, bytes, piece);
    for (int i = 0; i < pieces && e->count < e->most; i++) e->token[e->count++] = piece[i];
}

enum status wordpiece_encode(const struct vocabulary *vocabulary, const char *text, size_t bytes, int64_t most,
                             int32_t *token, int64_t *count, int64_t *words)
{
    struct encoding e = {vocabulary, token, 1, most - 1, 0};
    token[0] = vocabulary->special[SPECIAL_START];
    TRY(basic_tokenize(text, bytes, add_word, &e));
    token[e.count++] = vocabulary->special[SPECIAL_SEPARATOR];
    *count = e.count;
    *words = e.words;
    return ST_OK;
}
