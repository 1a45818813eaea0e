/* UTF-8 characters of texts from any source. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 character at text (left bytes remain), 0 where there is no valid one. */
int utf8_length(const char *text, size_t left);

/* The same, 0 also where it is not plain: a control character (C0, DEL, C1), an invisible one that changes how others
 * are shown (Unicode's category Cf: without width, reversing), or a line separator. */
int utf8_plain_length(const char *text, size_t left);

/* Whether all of text is plain UTF-8, which cannot control a terminal. */
bool utf8_is_plain(const char *text);

/* Makes text plain: other bytes become '?', but for the characters of kept. */
void utf8_clean(char *text, const char *kept);

/* The same so that nothing is lost: \u202e for a character, \x9b for a byte that is not UTF-8. to: room for ESCAPED
 * times length bytes, of which it returns how many were written. */
enum { ESCAPED = 6 };
size_t utf8_escape(const char *text, size_t length, const char *kept, char *to);

/* Columns of a terminal that length bytes of text take. */
int utf8_columns(const char *text, size_t length);

/* Bytes of the longest beginning of text that takes at most so many columns. */
size_t utf8_fit(const char *text, int columns);
