/* Learning rate schedules: one row each, a pure function of the step and the number of steps. */
#pragma once

#include "base/setting.h"

/* The settings of all schedules; the keys of each name its own members. */
struct learning_rate_settings {
    double warmup;          /* steps; below 1: a share of all of them */
    double least;           /* cosine */
    double gamma;           /* step */
    int64_t every;          /* step: units between milestones, 0: those of at */
    struct setting_list at; /* step */
    int64_t unit;           /* steps that every and at count as one: an epoch's; set by the caller, 0 is 1 */
};

struct learning_rate {
    const char *name, *doc;
    const struct setting *keys;
    /* The factor of the optimizer's rate in a step, counted from 0, of steps. */
    double (*factor)(const struct learning_rate_settings *settings, int64_t step, int64_t steps);
    /* What is wrong with settings that are each in range, and at which key; NULL: nothing. NULL: nothing ever is. */
    const char *(*wrong)(const struct learning_rate_settings *settings, const char **key);
};

const struct learning_rate *learning_rate_find(const char *name);
extern const struct learning_rate *const learning_rate_table[];
