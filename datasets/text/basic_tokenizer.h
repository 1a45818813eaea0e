/* BERT's basic tokenizer, uncased (Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
 * Understanding", 2019): splits a text into words.
 *
 * In this order: U+0000, U+FFFD and control characters (categories Cc, Cf; not tab, LF, CR) are dropped; ideographs of
 * the CJK blocks stand alone; lower case (each character's simple mapping: a final capital sigma becomes an ordinary
 * small one); canonical decomposition (NFD) and no nonspacing marks (Mn); white space (Z*) separates; every punctuation
 * character (P*, and every ASCII character that is no letter, digit or space) is a word of its own. Character
 * properties are those of utf8proc's Unicode version. */
#ifndef REMATCH_BASIC_TOKENIZER_H
#define REMATCH_BASIC_TOKENIZER_H

#include <stddef.h>

#include "base/status.h"

/* Calls take with each word of text in order: UTF-8 of at least 1 byte, not ended by a zero. ST_FAILED for text that is
 * not UTF-8, before the first call; the message names the byte, not the file. */
enum status basic_tokenize(const char *text, size_t bytes, void (*take)(void *context, const char *word, size_t bytes),
                           void *context);

#endif
