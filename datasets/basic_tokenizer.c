#include "basic_tokenizer.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <utf8proc.h>

enum { UTF8_BYTES_MAX = 4 };

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

/* In the blocks that Unicode calls CJK ideographs (not Hangul, Hiragana, Katakana, which write words with spaces or are
 * left to the word pieces). */
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

/* text without what is dropped, white space as spaces, ideographs between two; clean has room for twice the bytes. */
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

/* clean in lower case and decomposed, as code points; NULL: no memory. To be freed. */
static int32_t *decompose(const uint8_t *clean, size_t length, size_t *count)
{
    utf8proc_ssize_t bytes = (utf8proc_ssize_t)length;
    utf8proc_ssize_t room = utf8proc_decompose_custom(clean, bytes, NULL, 0, UTF8PROC_DECOMPOSE, lower, NULL);
    int32_t *point = room >= 0 ? malloc((size_t)(room + 1) * sizeof *point) : NULL;
    if (point && utf8proc_decompose_custom(clean, bytes, point, room, UTF8PROC_DECOMPOSE, lower, NULL) != room) {
        free(point);
        point = NULL;
    }
    *count = point ? (size_t)room : 0;
    return point;
}

/* Splits; out has room for the longest word. */
static enum status split(const int32_t *point, size_t count, uint8_t *out,
                         enum status (*take)(void *context, const struct text_word *word), void *context)
{
    size_t bytes = 0;
    for (size_t i = 0; i <= count; i++) {
        bool punctuation = i < count && is_punctuation(point[i]);
        if (bytes && (i == count || point[i] == ' ' || punctuation)) {
            TRY(take(context, &(struct text_word){(const char *)out, bytes}));
            bytes = 0;
        }
        if (i == count || point[i] == ' ' || utf8proc_category(point[i]) == UTF8PROC_CATEGORY_MN) continue;
        bytes += (size_t)utf8proc_encode_char(point[i], out + bytes);
        if (!punctuation) continue;
        TRY(take(context, &(struct text_word){(const char *)out, bytes}));
        bytes = 0;
    }
    return ST_OK;
}

enum status basic_tokenize(const char *text, size_t bytes,
                           enum status (*take)(void *context, const struct text_word *word), void *context)
{
    size_t length = 0, count;
    uint8_t *clean = bytes < SIZE_MAX / 2 ? malloc(2 * bytes + UTF8_BYTES_MAX) : NULL;
    enum status status = clean ? clean_text(text, bytes, clean, &length) : fail(ST_FAILED, "out of memory for a text");
    if (status != ST_OK) {
        free(clean);
        return status;
    }
    int32_t *point = decompose(clean, length, &count);
    uint8_t *word = point ? malloc((count + 1) * UTF8_BYTES_MAX) : NULL;
    status = word ? split(point, count, word, take, context) : fail(ST_FAILED, "out of memory for a text");
    free(word);
    free(point);
    free(clean);
    return status;
}

const char *basic_tokenizer_library(void) { return utf8proc_version(); }
