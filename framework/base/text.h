/* Strict conversion between text and scalars.
 *
 * Contract: numbers are those of YAML's core schema, without octal, hex, '+', NaN or infinity; the whole text must be a
 * number, and one that does not fit the type is an error, never rounded. Printing and reading again gives the same
 * bits. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct region;

/* NULL, or what is wrong with text: "is not an integer". */
const char *text_to_int(const char *text, int64_t *value);
const char *text_to_real(const char *text, double *value);

/* 4096, 64MiB, 16GB, 1.5GiB: units B, kB, KB, KiB, MB ... TiB, at most 6 decimals, a whole number of bytes. */
const char *text_to_bytes(const char *text, uint64_t *value);

/* The shortest decimal that reads back as value, a finite double. */
char *text_from_real(double value, struct region *region);

/* In the largest of KiB, MiB, GiB that divides it. */
char *text_from_bytes(uint64_t value, struct region *region);

/* text as a YAML scalar: bare where every YAML reader takes it for a text, else in double quotes. */
char *text_quote(const char *text, struct region *region);

/* The word of words (NULL-terminated) that is a synonym of text, or nearest to it, whatever the case; NULL: none is
 * near. Where text has no dot, of a word such as policy.budget what follows the dot counts. */
const char *text_nearest(const char *text, const char *const *words);

/* Writes " (did you mean 'word'?)" with that word into suggestion and returns it; "" where none is near. */
enum { TEXT_SUGGESTION = 96 };
char *text_suggestion(const char *text, const char *const *words, char suggestion[TEXT_SUGGESTION]);

/* The same for what is not quite a size: "16G", "16gb" and "16 GB" are near 16GB. */
char *text_size_suggestion(const char *text, char suggestion[TEXT_SUGGESTION]);

/* Whether text ends with end and is longer. */
bool text_ends(const char *text, const char *end);

/* The ending of a noun after count: "" or "s". */
static inline const char *text_plural(int64_t count) { return count == 1 ? "" : "s"; }

/* The number of bytes of text to show in a message: at most most, cut between UTF-8 characters. */
int text_shown(const char *text, int most);
