/* BERT's tokenizer, uncased (Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
 * Understanding", 2019): a text is split into words, and words into the pieces of a vocabulary. */
#pragma once

#include "vocabulary.h"

/* The basic tokenizer splits a text into words.
 *
 * In this order: U+0000, U+FFFD and control characters (categories Cc, Cf; not tab, LF, CR) are dropped; ideographs of
 * the CJK blocks stand alone; lower case (each character's simple mapping: a final capital sigma becomes an ordinary
 * small one); canonical decomposition (NFD) and no nonspacing marks (Mn); white space (Z*) separates; every punctuation
 * character (P*, and every ASCII character that is no letter, digit or space) is a word of its own. Character
 * properties are those of utf8proc's Unicode version.
 *
 * Calls take with each word of text in order: UTF-8 of at least 1 byte, not ended by a zero. ST_FAILED for text that is
 * not UTF-8, before the first call; the message names the byte, not the file. */
enum status basic_tokenize(const char *text, size_t bytes, void (*take)(void *context, const char *word, size_t bytes),
                           void *context);

/* The word's pieces, greedily the longest first, those after the first with `##` before them; one [UNK] if the greedy
 * pieces do not spell the word or it has more than VOCABULARY_WORD_MAX characters. piece has room for
 * VOCABULARY_WORD_MAX; returns the number of pieces. */
int wordpiece_split(const struct vocabulary *vocabulary, const char *word, size_t bytes, int32_t *piece);

/* [CLS], the pieces of text's words as far as they fit, [SEP]: at most most (at least 2) tokens; *words counts all of
 * text's words. ST_FAILED as basic_tokenize. */
enum status wordpiece_encode(const struct vocabulary *vocabulary, const char *text, size_t bytes, int64_t most,
                             int32_t *token, int64_t *count, int64_t *words);
