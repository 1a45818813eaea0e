/* Synthetic sequences of tokens that can be learnt: [CLS], words, [SEP], padding. A word is one of its class's own with
 * a probability of 1/4, else any word; few words are frequent and many rare, as in texts.
 *
 * Numerical contract: sample i of a split is a function of (seed, split, i) alone, by integer and exact float
 * arithmetic: the same on every machine. Counters of the generator's DATA domain: sample = i, step = split, element =
 * place in the sequence; node = enum drawn. */
#include "numerics/rng.h"
#include "sequence.h"
#include "text/vocabulary.h"

#include <inttypes.h>

#define AT(member) offsetof(struct dataset_settings, member)

enum drawn { DRAW_LABEL, DRAW_WORD };

static const char *const lengths_words[] = {"full", "varied", NULL};

static const struct setting keys[] = {
    {"max_length", SETTING_INT, AT(max_length), SEQUENCE_LEAST, SEQUENCE_MAX, "128", NULL,
     "places of a sequence, [CLS] and [SEP] included"},
    {"vocabulary_size", SETTING_INT, AT(vocabulary_size), 8, VOCABULARY_MAX, "8192", NULL, "different tokens"},
    {"lengths", SETTING_CHOICE, AT(lengths), 0, 0, "varied", lengths_words,
     "every place a token, or from a quarter of them"},
    {"classes", SETTING_INT, AT(classes), 1, 1 << 20, "3", NULL, "each with words of its own"},
    {"samples", SETTING_INT, AT(samples), 1, 1 << 30, "10000", NULL, "in the training split and in the test split"},
    {"shuffle", SETTING_BOOL, AT(shuffle), 0, 0, "true", NULL, "another order every epoch"},
    {0},
};

static enum status open_synthetic_tokens(struct dataset *dataset)
{
    const struct dataset_settings *s = &dataset->settings;
    dataset->shape = (struct shape){2, {3, dataset->settings.max_length}};
    if (s->vocabulary_size < SPECIALS + s->classes)
        return fail(ST_SPEC, "data.vocabulary_size is %" PRId64 "; expected: %" PRId64 " to %d, a word for every class",
                    s->vocabulary_size, SPECIALS + s->classes, VOCABULARY_MAX);
    dataset->classes = s->classes;
    dataset->tokens = s->vocabulary_size;
    dataset->count[SPLIT_TRAIN] = dataset->count[SPLIT_TEST] = s->samples;
    return ST_OK;
}

/* A rank in 0..ranks-1, low ones often: the cube of a uniform number, of which only the upper 16 bits are used, so
 * that the cube fits 64 bits. */
static int64_t draw_rank(uint32_t word, int64_t ranks)
{
    uint64_t u = word >> 16;
    return (int64_t)(u * u * u / 0x10000 * (uint64_t)ranks >> 32);
}

static int64_t draw_word(struct philox words, int64_t own, int64_t classes, int64_t size)
{
    if (words.word[0] % 4 != 0) return draw_rank(words.word[1], size);
    return draw_rank(words.word[1], (size - own + classes - 1) / classes) * classes + own;
}

static enum status sample_synthetic_tokens(struct dataset *dataset, enum split split, int64_t index, float *x,
                                           int32_t *label)
{
    const struct dataset_settings *s = &dataset->settings;
    struct philox words = rng_words(dataset->seed, RNG_DATA, 0, (uint32_t)index, DRAW_LABEL, (uint32_t)split);
    int64_t length = s->max_length, least = length / 4 > SEQUENCE_LEAST ? length / 4 : SEQUENCE_LEAST;
    int64_t count = s->lengths == LENGTHS_FULL ? length : least + words.word[1] % (length - least + 1);
    *label = (int32_t)(words.word[0] % dataset->classes);
    sequence_deliver(dataset, NULL, 0, SPECIAL_PADDING, x);
    for (int64_t i = 0; i < count; i++) {
        words = rng_words(dataset->seed, RNG_DATA, (uint32_t)i, (uint32_t)index, DRAW_WORD, (uint32_t)split);
        int64_t word = draw_word(words, *label, dataset->classes, dataset->tokens - SPECIALS);
        x[i] = (float)(i == 0 ? SPECIAL_START : i == count - 1 ? SPECIAL_SEPARATOR : SPECIALS + word);
        x[2 * length + i] = 1;
    }
    return ST_OK;
}

const struct dataset_kind dataset_synthetic_tokens = {"synthetic-tokens",
                                                      "synthetic sequences of tokens, in place of texts",
                                                      keys,
                                                      true,
                                                      open_synthetic_tokens,
                                                      sample_synthetic_tokens,
                                                      NULL};
