#include "train/learning_rate.h"

#include <math.h>
#include <string.h>

static double constant_factor(const struct learning_rate_settings *settings, int64_t step, int64_t steps)
{
    (void)settings, (void)step, (void)steps;
    return 1;
}

static const struct setting constant_keys[] = {{.key = NULL}};
static const struct learning_rate constant = {"constant", "the optimizer's rate", constant_keys, constant_factor};

/* From 0 at the first step up to 1 after the warm-up, then down to 0 at the step after the last:
 * Devlin et al., "BERT", 2019, appendix A.2; step for step what get_linear_schedule_with_warmup of Hugging Face's
 * transformers gives. */
static double linear_factor(const struct learning_rate_settings *settings, int64_t step, int64_t steps)
{
    const double share = settings->warmup * (settings->warmup < 1 ? (double)steps : 1);
    const int64_t warmup = llround(share);
    if (step < warmup) return (double)step / (double)warmup;
    return step < steps ? (double)(steps - step) / (double)(steps - warmup) : 0;
}

static const struct setting linear_keys[] = {{"warmup", SETTING_REAL, offsetof(struct learning_rate_settings, warmup),
                                              0, 1 << 30, "0", NULL, "steps of warm-up; below 1, a share of all steps"},
                                             {.key = NULL}};
static const struct learning_rate linear = {"linear", "up from 0 over the warm-up, then down to 0", linear_keys,
                                            linear_factor};

const struct learning_rate *const learning_rate_table[] = {&constant, &linear, NULL};

const struct learning_rate *learning_rate_find(const char *name)
{
    for (const struct learning_rate *const *r = learning_rate_table; *r; r++)
        if (!strcmp((*r)->name, name)) return *r;
    return NULL;
}
