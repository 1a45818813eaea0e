/* WordPiece: a text as the tokens of a vocabulary, [CLS] ... [SEP] (Devlin et al., 2019). */
#ifndef REMATCH_WORDPIECE_H
#define REMATCH_WORDPIECE_H

#include "vocabulary.h"

/* The word's pieces, greedily the longest first, those after the first with `##` before them; one [UNK] if the greedy
 * pieces do not spell the word or it has more than VOCABULARY_WORD_MAX characters. piece has room for
 * VOCABULARY_WORD_MAX; returns the number of pieces. */
int wordpiece_split(const struct vocabulary *vocabulary, const char *word, size_t bytes, int32_t *piece);

/* [CLS], the pieces of text's words as far as they fit, [SEP]: at most most (at least 2) tokens; *words counts all of
 * text's words. ST_FAILED as basic_tokenize. */
enum status wordpiece_encode(const struct vocabulary *vocabulary, const char *text, size_t bytes, int64_t most,
                             int32_t *token, int64_t *count, int64_t *words);

#endif
