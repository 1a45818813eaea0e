/* A vocabulary of word pieces: tokens by number, `##` before those that continue a word (Wu et al., "Google's
 * Neural Machine Translation System", 2016; in BERT's notation). From a file, one token a line, or built from texts. */
#ifndef REMATCH_VOCABULARY_H
#define REMATCH_VOCABULARY_H

#include <stdbool.h>

#include "token_table.h"

enum special { SPECIAL_PADDING, SPECIAL_UNKNOWN, SPECIAL_START, SPECIAL_SEPARATOR, SPECIALS };
extern const char *const special_tokens[SPECIALS]; /* "[PAD]" ... */

enum {
    VOCABULARY_PRESET = 8192,
    VOCABULARY_MAX = 1 << 24,  /* every number is exact in a float */
    VOCABULARY_WORD_MAX = 100, /* characters; a longer word is unknown */
    VOCABULARY_BYTES_MAX = 1 << 28,
};

/* Whether a byte of UTF-8 is the first of a character. */
static inline bool begins_character(char byte) { return ((unsigned char)byte & 0xC0) != 0x80; }

struct vocabulary {
    struct token_table table;
    int32_t special[SPECIALS]; /* their numbers */
    const char *name;          /* "bert-base-uncased" for that model's file, by its bytes, else "file" or "built" */
    char sha256[65];           /* of the tokens, one a line: sha256sum's output for such a file */
};

/* The words of texts, counted. Empty where all but words.region is zero. */
struct word_counts {
    struct token_table words;
    int64_t *count, total;
};

/* Counts the words of a text (basic_tokenizer.h). ST_FAILED: not UTF-8; the message names the byte. */
enum status word_counts_add(struct word_counts *counts, const char *text, size_t bytes);

/* Reads text, the bytes of the file path; the tokens live in region. ST_FAILED, naming file and line: an empty line, a
 * token twice, not UTF-8, no special token. */
enum status vocabulary_read(const char *path, const char *text, size_t bytes, struct region *region,
                            struct vocabulary *vocabulary);

/* Of at most most tokens, which live in region: the special ones; every character of the words by code point; the same
 * after `##`; whole words by falling count, equal ones by code points. A function of the counts alone. ST_SPEC: too few
 * for the characters. */
enum status vocabulary_build(const struct word_counts *counts, int64_t most, struct region *region,
                             struct vocabulary *vocabulary);

#endif
