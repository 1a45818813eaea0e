/* BERT's basic tokenizer, uncased (Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
 * Understanding", 2019): from a text to its words.
 *
 * In this order: U+0000, U+FFFD and control characters (categories Cc, Cf; not tab, LF, CR) are dropped; ideographs of
 * the CJK blocks stand alone; lower case (each character's simple mapping: a final capital sigma becomes an ordinary
 * small one); canonical decomposition (NFD) and no nonspacing marks (Mn); white space (Z*) separates; every punctuation
 * character (P*, and what is no letter, digit or space in ASCII) is a word of its own. Character properties are those
 * of the Unicode version utf8proc knows. */
#ifndef REMATCH_BASIC_TOKENIZER_H
#define REMATCH_BASIC_TOKENIZER_H

#include <stddef.h>

#include "base/status.h"

struct text_word {
    const char *text; /* UTF-8, not ended by a zero */
    size_t bytes;     /* at least 1 */
};

/* Calls take with the words of text in order; ends with what take returns where that is not ST_OK. ST_FAILED for what
 * is not UTF-8, before the first call; the message names the byte, not the file. */
enum status basic_tokenize(const char *text, size_t bytes,
                           enum status (*take)(void *context, const struct text_word *word), void *context);

/* The version of the library that knows the characters. */
const char *basic_tokenizer_library(void);

#endif
