/* Characters of texts that come from anywhere. */
#ifndef REMATCH_CONSOLE_UTF8_H
#define REMATCH_CONSOLE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 character at text (left bytes remain), 0 where there is no valid one. */
int utf8_length(const char *text, size_t left);

/* Whether all of text is UTF-8 that says no more to a terminal than what it shows: no control characters (C0, DEL, C1),
 * no separators of lines. */
bool utf8_is_plain(const char *text);

/* Makes text plain, but for the characters of kept: bytes of others become '?'. */
void utf8_clean(char *text, const char *kept);

/* Columns of a terminal that length bytes of text take; escape sequences take none. */
int utf8_columns(const char *text, size_t length);

/* Bytes of the beginning of text that take at most so many columns. */
size_t utf8_fit(const char *text, int columns);

#endif
