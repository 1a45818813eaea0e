#include "tokenizer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { UTF8_BYTES_MAX = 4, PREFIX = 2 };

/* ---- words ---- */

static bool in_category(int32_t c, utf8proc_category_t first, utf8proc_category_t last)
{
    utf8proc_category_t category = utf8proc_category(c);
    return category >= first && category <= last;
}

static bool is_space(int32_t c)
{
    return c == '\t' || c == '\n' || c == '\r' || in_category(c, UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}

static bool is_dropped(int32_t c)
{
    return c == 0 || c == 0xFFFD || in_category(c, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CF);
}

static bool is_punctuation(int32_t c)
{
    bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    return c < 0x80 ? c > ' ' && c < 0x7F && !alphanumeric : in_category(c, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

/* In Unicode's blocks of CJK ideographs. Hangul, Hiragana and Katakana are not among them: they separate words by
 * spaces or leave the division to the word pieces. */
static bool is_ideograph(int32_t c)
{
    static const int32_t block[][2] = {
        {0x3400, 0x4DBF},   /* extension A */
        {0x4E00, 0x9FFF},   /* unified */
        {0xF900, 0xFAFF},   /* compatibility */
        {0x20000, 0x2A6DF}, /* extension B */
        {0x2A700, 0x2B73F}, /* C */
        {0x2B740, 0x2B81F}, /* D */
        {0x2B820, 0x2CEAF}, /* E */
        {0x2F800, 0x2FA1F}, /* compatibility supplement */
    };
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        if (c >= block[i][0] && c <= block[i][1]) return true;
    return false;
}

/* text without dropped characters, with white space as spaces and a space on each side of ideographs; clean has room
 * for twice the bytes. */
static enum status clean_text(const char *text, size_t bytes, uint8_t *clean, size_t *length)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + bytes;
    uint8_t *out = clean;
    while (at < end) {
        int32_t c;
        utf8proc_ssize_t step = utf8proc_iterate(at, end - at, &c);
        if (step <= 0)
            return fail(ST_FAILED, "byte %zu, 0x%02X, is not UTF-8", (size_t)(at - (const uint8_t *)text) + 1, *at);
        at += step;
        bool alone = is_ideograph(c);
        if (alone || is_space(c)) *out++ = ' ';
        if (!is_space(c) && !is_dropped(c)) out += utf8proc_encode_char(c, out);
        if (alone) *out++ = ' ';
    }
    *length = (size_t)(out - clean);
    return ST_OK;
}

static int32_t lower(int32_t c, void *unused)
{
    (void)unused;
    return utf8proc_tolower(c);
}

/* clean in lower case and decomposed, as *count code points; to be freed. */
static int32_t *decompose(const uint8_t *clean, size_t length, size_t *count)
{
    const utf8proc_ssize_t bytes = (utf8proc_ssize_t)length;
    const utf8proc_ssize_t points = utf8proc_decompose_custom(clean, bytes, NULL, 0, UTF8PROC_DECOMPOSE, lower, NULL);
    int32_t *point = allocate((size_t)points + 1, sizeof *point);
    utf8proc_decompose_custom(clean, bytes, point, points, UTF8PROC_DECOMPOSE, lower, NULL);
    *count = (size_t)points;
    return point;
}

/* Calls take with each word of the code points; word has room for the longest. */
static void split(const int32_t *point, size_t count, uint8_t *word,
                  void (*take)(void *context, const char *word, size_t bytes), void *context)
{
    size_t bytes = 0;
    for (size_t i = 0; i <= count; i++) {
        const bool end = i == count || point[i] == ' ', punctuation = !end && is_punctuation(point[i]);
        if (bytes && (end || punctuation)) {
            take(context, (const char *)word, bytes);
            bytes = 0;
        }
        if (end || utf8proc_category(point[i]) == UTF8PROC_CATEGORY_MN) continue;
        bytes += (size_t)utf8proc_encode_char(point[i], word + bytes);
        if (!punctuation) continue;
        take(context, (const char *)word, bytes);
        bytes = 0;
    }
}

enum status basic_tokenize(const char *text, size_t bytes, void (*take)(void *context, const char *word, size_t bytes),
                           void *context)
{
    size_t length = 0, count;
    uint8_t *clean = allocate(2 * bytes + UTF8_BYTES_MAX, 1);
    const enum status status = clean_text(text, bytes, clean, &length);
    if (status == ST_OK) {
        int32_t *point = decompose(clean, length, &count);
        uint8_t *word = allocate(count + 1, UTF8_BYTES_MAX);
        split(point, count, word, take, context);
        free(word);
        free(point);
    }
    free(clean);
    return status;
}

/* ---- their pieces ---- */

/* The longest token that text begins with; continued: it continues a word and text has room for `##`
 * before it. -1: none. */
static int64_t longest(const struct vocabulary *v, char *text, size_t bytes, bool continued, size_t *matched)
{
    size_t prefix = continued ? PREFIX : 0;
    memcpy(text - prefix, "##", prefix);
    for (size_t length = bytes; length > 0; length--) {
        if (length < bytes && ((unsigned char)text[length] & 0xC0) == 0x80) continue;
        int64_t number = token_table_find(&v->table, text - prefix, prefix + length);
        *matched = length;
        if (number >= 0) return number;
    }
    return -1;
}

int wordpiece_split(const struct vocabulary *vocabulary, const char *word, size_t bytes, int32_t *piece)
{
    char room[PREFIX + VOCABULARY_WORD_MAX * UTF8_BYTES_MAX], *text = room + PREFIX;
    int pieces = 0;
    *piece = vocabulary->special[SPECIAL_UNKNOWN];
    if (bytes > sizeof room - PREFIX) return 1;
    if (characters_in(word, bytes) > VOCABULARY_WORD_MAX) return 1;
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
