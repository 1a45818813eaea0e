#include "console/utf8.h"

#include <string.h>
#include <utf8proc.h>

int utf8_length(const char *text, size_t left)
{
    const unsigned char *c = (const unsigned char *)text;
    static const struct {
        unsigned char mask, lead, least; /* least second byte's bits that make a longer form needed */
    } form[] = {{0x80, 0x00, 0}, {0xE0, 0xC0, 0}, {0xF0, 0xE0, 0}, {0xF8, 0xF0, 0}};
    for (int n = 1; n <= 4; n++) {
        if ((c[0] & form[n - 1].mask) != form[n - 1].lead) continue;
        if ((size_t)n > left) return 0;
        for (int i = 1; i < n; i++)
            if ((c[i] & 0xC0) != 0x80) return 0;
        bool longer = (n == 2 && c[0] < 0xC2) || (n == 3 && c[0] == 0xE0 && c[1] < 0xA0) ||
                      (n == 4 && c[0] == 0xF0 && c[1] < 0x90);
        bool outside =
            (n == 3 && c[0] == 0xED && c[1] >= 0xA0) || (n == 4 && (c[0] > 0xF4 || (c[0] == 0xF4 && c[1] >= 0x90)));
        return longer || outside ? 0 : n;
    }
    return 0;
}

/* As utf8_length(), and 0 where the character is not plain. */
static int plain_length(const char *text, size_t left)
{
    const unsigned char *c = (const unsigned char *)text;
    const int n = utf8_length(text, left);
    if (n == 1 && (c[0] < ' ' || c[0] == 0x7F)) return 0;
    if (n == 2 && c[0] == 0xC2 && c[1] < 0xA0) return 0;
    if (n == 3 && c[0] == 0xE2 && c[1] == 0x80 && (c[2] == 0xA8 || c[2] == 0xA9)) return 0;
    return n;
}

bool utf8_is_plain(const char *text)
{
    size_t left = strlen(text);
    for (int n; left && (n = plain_length(text, left)); text += n) left -= (size_t)n;
    return left == 0;
}

void utf8_clean(char *text, const char *kept)
{
    for (size_t left = strlen(text); left;) {
        int n = plain_length(text, left);
        if (!n && !strchr(kept, *text)) *text = '?';
        if (!n) n = 1;
        text += n;
        left -= (size_t)n;
    }
}

/* Bytes of what stands at text, a character or an escape sequence, and the columns it takes. */
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
