#include "console/utf8.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

/* utf8_length(), and the character. */
static int decode(const char *text, size_t left, utf8proc_int32_t *character)
{
    const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)left, character);
    return n > 0 ? (int)n : 0;
}

int utf8_length(const char *text, size_t left) { return decode(text, left, &(utf8proc_int32_t){0}); }

int utf8_plain_length(const char *text, size_t left)
{
    utf8proc_int32_t c;
    const int n = decode(text, left, &c);
    switch (n ? utf8proc_category(c) : UTF8PROC_CATEGORY_CC) {
    case UTF8PROC_CATEGORY_CC: /* C0, DEL, C1 */
    case UTF8PROC_CATEGORY_CF: /* such as U+200B, which has no width, and U+202E, which reverses what follows */
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return 0;
    default:
        return n;
    }
}

bool utf8_is_plain(const char *text)
{
    size_t left = strlen(text);
    for (int n; left && (n = utf8_plain_length(text, left)); text += n) left -= (size_t)n;
    return left == 0;
}

void utf8_clean(char *text, const char *kept)
{
    for (size_t left = strlen(text); left;) {
        int n = utf8_plain_length(text, left);
        if (!n && !strchr(kept, *text)) *text = '?';
        if (!n) n = 1;
        text += n;
        left -= (size_t)n;
    }
}

size_t utf8_escape(const char *text, size_t length, const char *kept, char *to)
{
    const char *const start = to;
    for (int n; length; text += n, length -= (size_t)n) {
        utf8proc_int32_t c;
        const bool plain = (n = utf8_plain_length(text, length)) > 0 || (*text && strchr(kept, *text));
        if (!n) n = utf8_length(text, length);
        decode(text, (size_t)n, &c);
        if (plain)
            memcpy(to, text, (size_t)n), to += n;
        else if (n)
            to += sprintf(to, c > 0xFFFF ? "\\U%08x" : "\\u%04x", (unsigned)c);
        else
            to += sprintf(to, "\\x%02x", (unsigned char)*text), n = 1;
    }
    return (size_t)(to - start);
}

/* Bytes of the character at text, and the columns that it takes. */
static size_t next(const char *text, size_t left, int *columns)
{
    utf8proc_int32_t character;
    const int n = decode(text, left, &character);
    *columns = n ? utf8proc_charwidth(character) : 1;
    return n ? (size_t)n : 1;
}

int utf8_columns(const char *text, size_t length)
{
    int all = 0, columns;
    for (size_t n; length; text += n, length -= n) {
        n = next(text, length, &columns);
        all += columns;
    }
    return all;
}

size_t utf8_fit(const char *text, int columns)
{
    const size_t length = strlen(text);
    size_t at = 0;
    for (int taken; at < length;) {
        const size_t n = next(text + at, length - at, &taken);
        if (taken > columns) break;
        columns -= taken;
        at += n;
    }
    return at;
}
