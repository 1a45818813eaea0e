/* A vocabulary of word pieces: tokens by number, `##` before those that continue a word (Wu et al., "Google's
 * Neural Machine Translation System", 2016; in BERT's notation). From a file, one token a line, or built from texts. */
#pragma once

#include <stdint.h>

#include "base/region.h"

/* ---- byte strings numbered in the order of their first appearance ---- */

struct token {
    const char *text; /* not ended by a zero */
    size_t bytes;
};

/* Empty where all but region is zero. */
struct token_table {
    struct region *region;
    int64_t count;
    struct token *token; /* by number */
    int32_t *slot;       /* by hash: 1 + a token's number, 0: free */
    size_t slots;
};

/* The number of a token, -1: it is not in the table. */
int64_t token_table_find(const struct token_table *table, const char *text, size_t bytes);

/* The number of a token, which is added if the table does not have it. */
int64_t token_table_add(struct token_table *table, const char *text, size_t bytes);

/* ---- vocabularies ---- */

enum special { SPECIAL_PADDING, SPECIAL_UNKNOWN, SPECIAL_START, SPECIAL_SEPARATOR, SPECIALS };

enum {
    VOCABULARY_PRESET = 8192,
    VOCABULARY_MAX = 1 << 24,  /* every number is exact in a float */
    VOCABULARY_WORD_MAX = 100, /* characters; a longer word is unknown */
    VOCABULARY_BYTES_MAX = 1 << 28,
};

/* The characters of a UTF-8 text. */
int64_t characters_in(const char *text, size_t bytes);

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

/* Counts a word in counts, a struct word_counts; for basic_tokenize(). */
void word_counts_add(void *counts, const char *word, size_t bytes);

/* Reads text, the bytes of the file path; the tokens live in region. ST_FAILED, naming file and line: an empty line, a
 * token twice, not UTF-8, no special token. */
enum status vocabulary_read(const char *path, const char *text, size_t bytes, struct region *region,
                            struct vocabulary *vocabulary);

/* Of at most most tokens, which live in region: the special ones; every character of the words by code point; the same
 * after `##`; whole words by falling count, equal ones by code points. A function of the counts alone. ST_SPEC: too few
 * for the characters. */
enum status vocabulary_build(const struct word_counts *counts, int64_t most, struct region *region,
                             struct vocabulary *vocabulary);
