/* Synthetic sequences whose next token is to be predicted, in place of texts: after a token comes, with a probability
 * of 3/4, the one that follows it in a fixed order, else any. So a token's prediction can be learnt from that token
 * alone.
 *
 * Numerical contract: sample i of a split is a function of (seed, split, i) alone, by integer arithmetic: the same on
 * every machine. Counters of the generator's DATA domain: sample = i, step = split, element = place in the sequence. */
#include "numerics/rng.h"
#include "sequence.h"
#include "text/vocabulary.h"

#include <string.h>

#define AT(member) offsetof(struct dataset_settings, member)

enum { STEP = 97 }; /* from a token to the one that follows it */

static const struct setting keys[] = {
    {"length", SETTING_INT, AT(max_length), 1, SEQUENCE_MAX, "128", NULL, "tokens of a sample"},
    {"vocabulary_size", SETTING_INT, AT(vocabulary_size), 2, VOCABULARY_MAX, "256", NULL, "different tokens"},
    {"samples", SETTING_INT, AT(samples), 1, 1 << 30, "10000", NULL, "in the training split and in the test split"},
    {"shuffle", SETTING_BOOL, AT(shuffle), 0, 0, "true", NULL, "another order every epoch"},
    {0},
};

static enum status open_synthetic_text(struct dataset *dataset)
{
    const struct dataset_settings *s = &dataset->settings;
    dataset->shape = (struct shape){2, {3, s->max_length}};
    dataset->labels = s->max_length;
    dataset->classes = dataset->tokens = s->vocabulary_size;
    dataset->count[SPLIT_TRAIN] = dataset->count[SPLIT_TEST] = s->samples;
    return ST_OK;
}

static int32_t next_token(struct philox words, int32_t token, int64_t tokens)
{
    if (words.word[0] % 4 == 0) return (int32_t)(words.word[1] % tokens);
    return (int32_t)((token + STEP) % tokens);
}

static enum status sample_synthetic_text(struct dataset *dataset, enum split split, int64_t index, float *x,
                                         int32_t *label)
{
    const int64_t length = dataset->labels;
    int32_t token = 0;
    for (int64_t i = 0; i <= length; i++) {
        struct philox words = rng_words(dataset->seed, RNG_DATA, (uint32_t)i, (uint32_t)index, 0, (uint32_t)split);
        if (i == 0) words.word[0] = 0; /* any */
        token = next_token(words, token, dataset->tokens);
        if (i < length) label[i] = token;
    }
    sequence_deliver(dataset, label, length, 0, x);
    memmove(label, label + 1, (size_t)(length - 1) * sizeof *label);
    label[length - 1] = token;
    return ST_OK;
}

const struct dataset_kind dataset_synthetic_text = {"synthetic-text",
                                                    "synthetic sequences of tokens; the next one is to be predicted",
                                                    keys,
                                                    true,
                                                    open_synthetic_text,
                                                    sample_synthetic_text,
                                                    NULL};
