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

/* Steps of warm-up. */
static int64_t warmup_of(const struct learning_rate_settings *settings, int64_t steps)
{
    return llround(settings->warmup * (settings->warmup < 1 ? (double)steps : 1));
}

#define SETTING(name) .key = #name, .offset = offsetof(struct learning_rate_settings, name)
#define WARMUP                                                                                                         \
    SETTING(warmup), .type = SETTING_REAL, .max = 1 << 30, .preset = "0",                                              \
                     .doc = "steps of warm-up; below 1, a share of all steps"

/* From 0 at the first step up to 1 after the warm-up, then down to 0 at the step after the last:
 * Devlin et al., "BERT", 2019, appendix A.2; step for step what get_linear_schedule_with_warmup of Hugging Face's
 * transformers gives. */
static double linear_factor(const struct learning_rate_settings *settings, int64_t step, int64_t steps)
{
    const int64_t warmup = warmup_of(settings, steps);
    if (step < warmup) return (double)step / (double)warmup;
    return step < steps ? (double)(steps - step) / (double)(steps - warmup) : 0;
}

static const struct setting linear_keys[] = {{WARMUP}, {.key = NULL}};
static const struct learning_rate linear = {"linear", "up from 0 over the warm-up, then down to 0", linear_keys,
                                            linear_factor};

/* The same rise, then half a cosine from 1 to the least factor at the step after the last: Loshchilov and Hutter,
 * "SGDR", 2017, without restarts. Step for step torch's CosineAnnealingLR, and with least 0 Hugging Face's
 * get_cosine_schedule_with_warmup. */
static double cosine_factor(const struct learning_rate_settings *settings, int64_t step, int64_t steps)
{
    const double pi = 3.14159265358979323846;
    const int64_t warmup = warmup_of(settings, steps);
    if (step < warmup) return (double)step / (double)warmup;
    const double share = step < steps ? (double)(step - warmup) / (double)(steps - warmup) : 1;
    return settings->least + (1 - settings->least) * (1 + cos(pi * share)) / 2;
}

static const struct setting cosine_keys[] = {{WARMUP},
                                             {SETTING(least), .type = SETTING_REAL, .max = 1, .preset = "0",
                                              .doc = "factor of the rate that the cosine ends at"},
                                             {.key = NULL}};
static const struct learning_rate cosine = {"cosine", "up from 0 over the warm-up, then down by half a cosine",
                                            cosine_keys, cosine_factor};

/* The same rise, then gamma to the power of the milestones that have passed, as torch's StepLR and MultiStepLR. A count
 * of n means that n epochs, or steps, are done. */
static double step_factor(const struct learning_rate_settings *settings, int64_t step, int64_t steps)
{
    const int64_t warmup = warmup_of(settings, steps), done = settings->unit > 1 ? step / settings->unit : step;
    int64_t passed = settings->every > 0 ? done / settings->every : 0;
    if (step < warmup) return (double)step / (double)warmup;
    for (size_t i = 0; i < settings->at.count; i++) passed += done >= settings->at.ints[i];
    return pow(settings->gamma, (double)passed);
}

/* Without milestones the rate would be constant; both kinds of them would mean two rates. */
static const char *step_wrong(const struct learning_rate_settings *settings, const char **key)
{
    *key = "lr_schedule";
    if ((settings->every > 0) + (settings->at.count > 0) != 1) return "expected one of every and at";
    *key = "lr_schedule.at";
    for (size_t i = 0; i < settings->at.count; i++)
        if (settings->at.ints[i] <= (i ? settings->at.ints[i - 1] : 0))
            return "expected integers in ascending order, the first above 0";
    return NULL;
}

static const struct setting step_keys[] = {
    {WARMUP},
    {SETTING(gamma), .type = SETTING_REAL, .min = 1e-6, .max = 1, .preset = "0.1",
     .doc = "factor of the rate at each milestone"},
    {SETTING(every), .type = SETTING_INT, .min = 1, .max = 1 << 30, .preset = "0",
     .doc = "epochs between milestones, or steps where steps are given"},
    {SETTING(at), .type = SETTING_INTS, .min = 1, .max = 1000, .preset = "", .doc = "the milestones, counted alike"},
    {.key = NULL}};
static const struct learning_rate step = {"step", "times gamma at every milestone", step_keys, step_factor, step_wrong};

const struct learning_rate *const learning_rate_table[] = {&constant, &linear, &cosine, &step, NULL};

const struct learning_rate *learning_rate_find(const char *name)
{
    for (const struct learning_rate *const *r = learning_rate_table; *r; r++)
        if (!strcmp((*r)->name, name)) return *r;
    return NULL;
}
