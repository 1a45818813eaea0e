#include "console/utf8.h"

#include <string.h>
#include <utf8proc.h>

int utf8_length(const char *text, size_t left)
{
    utf8proc_int32_t character;
    const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)left, &character);
    return n > 0 ? (int)n : 0;
}

int utf8_plain_length(const char *text, size_t left)
{
    utf8proc_int32_t c;
    const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)left, &c);
    const bool control = c < ' ' || (c >= 0x7F && c < 0xA0), separator = c == 0x2028 || c == 0x2029;
    return n > 0 && !control && !separator ? (int)n : 0;
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

/* Bytes of the character or escape sequence at text, and the columns that it takes. */
static size_t next(const char *text, size_t left, int *columns)
{
    utf8proc_int32_t character;
    *columns = 0;
    if (left > 1 && text[0] == '\033' && text[1] == '[') {
        size_t n = 2;
        while (n < left && (unsigned char)text[n] < '@') n++;
        return n < left ? n + 1 : n;
    }
    const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)left, &character);
    *columns = n > 0 ? utf8proc_charwidth(character) : 1;
    return n > 0 ? (size_t)n : 1;
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
