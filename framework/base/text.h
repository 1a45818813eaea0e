/* Strict text and the scalars it stands for.
 *
 * Contract: a number is what YAML's core schema calls one, without octal, hex, '+', NaN or infinity; the whole text
 * must be read, and what does not fit the type is an error, never rounded into it. Printing and reading again gives the
 * same bits. */
#ifndef REMATCH_BASE_TEXT_H
#define REMATCH_BASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

struct region;

/* NULL, or what is wrong with text: "is not an integer". */
const char *text_to_int(const char *text, int64_t *value);
const char *text_to_real(const char *text, double *value);

/* 4096, 64MiB, 16GB, 1.5GiB: units B, kB, KB, KiB, MB ... TiB, at most 6 decimals, a whole number of bytes. */
const char *text_to_bytes(const char *text, uint64_t *value);

/* The shortest decimal that reads back as value, a finite double; NULL: no memory. */
char *text_from_real(double value, struct region *region);

/* In the largest of KiB, MiB, GiB that divides it; NULL: no memory. */
char *text_from_bytes(uint64_t value, struct region *region);

/* text as a YAML scalar: bare where every reader takes it for a text, else in double quotes; NULL: no memory. */
char *text_quote(const char *text, struct region *region);

/* The word of words (NULL-terminated) most like text, capitals or not, or another name of the same; NULL where none is
 * near. */
const char *text_nearest(const char *text, const char *const *words);

/* " (did you mean 'word'?)" with that word, "" where there is none; returns suggestion. */
enum { TEXT_SUGGESTION = 96 };
char *text_suggestion(const char *text, const char *const *words, char suggestion[TEXT_SUGGESTION]);

/* Whether text is more than end and ends with it. */
bool text_ends(const char *text, const char *end);

/* What ends a noun that count stands before: "", or "s". */
static inline const char *text_plural(int64_t count) { return count == 1 ? "" : "s"; }

/* How many bytes of text to show in a message: at most most, cut between UTF-8 characters. */
int text_shown(const char *text, int most);

#endif
