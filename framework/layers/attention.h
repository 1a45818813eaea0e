/* What attention and cross_attention share: settings and costs. */
#pragma once

#include "model/reference.h"

struct attention_settings {
    int64_t heads, kv_heads; /* kv_heads 0: heads */
    bool causal, rope;
    double rate; /* probability that an element of P is dropped */
    int save;    /* index of attention_save_words */
};

enum { SAVE_PROBABILITIES, SAVE_NOTHING };
extern const char *const attention_save_words[];

/* The first members of a row of keys, and the rows of both. */
#define ATTENTION(name) .key = #name, .offset = offsetof(struct attention_settings, name)
#define ATTENTION_HEADS                                                                                                \
    {ATTENTION(heads), .type = SETTING_INT, .min = 1, .max = 1 << 16, .doc = "parts of the width that attend apart"},  \
    {                                                                                                                  \
        ATTENTION(kv_heads), .type = SETTING_INT, .max = 1 << 16, .preset = "0",                                       \
                             .doc = "heads of keys and values, a divisor of heads; 0: heads"                           \
    }
#define ATTENTION_KEPT                                                                                                 \
    {ATTENTION(rate), .type = SETTING_REAL, .max = 0.999999, .preset = "0",                                            \
     .doc = "probability that an attention probability is dropped"},                                                   \
    {                                                                                                                  \
        ATTENTION(save), .type = SETTING_CHOICE, .preset = "probabilities", .values = attention_save_words,            \
                         .doc = "kept for the backward; nothing: it makes the probabilities again"                     \
    }

static inline int64_t kv_heads_of(const struct attention_settings *s) { return s->kv_heads ? s->kv_heads : s->heads; }

/* ST_SPEC: kv_heads does not divide heads. */
enum status attention_heads_expected(const struct attention_settings *s);

/* Random numbers of every head's block of so many queries x keys, -1: too many. */
int64_t attention_draws(const struct attention_settings *s, int64_t queries, int64_t keys_of_query);

/* seen: keys of a query, on average. */
struct flops attention_flops(const struct attention_settings *s, const struct shape *output, double seen);

/* The reference kernel of both, and its footprint. */
enum status attention_forward(void *state, const struct kernel_args *args);
enum status attention_backward(void *state, const struct kernel_args *args);
void attention_measure(const struct reference *r, struct footprint *footprint);
