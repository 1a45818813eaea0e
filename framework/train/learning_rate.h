/* Learning rate schedules: one row each, a pure function of the step and the number of steps. */
#pragma once

#include "base/setting.h"

/* The settings of all schedules; the keys of each name its own members. */
struct learning_rate_settings {
    double warmup; /* steps; below 1: a share of all of them */
};

struct learning_rate {
    const char *name, *doc;
    const struct setting *keys;
    /* The factor of the optimizer's rate in a step, counted from 0, of steps. */
    double (*factor)(const struct learning_rate_settings *settings, int64_t step, int64_t steps);
};

const struct learning_rate *learning_rate_find(const char *name);
extern const struct learning_rate *const learning_rate_table[];
