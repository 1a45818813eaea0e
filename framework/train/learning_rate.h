/* How the learning rate goes over a run: one row each, a pure function of the step and of how many there are. */
#ifndef REMATCH_TRAIN_LEARNING_RATE_H
#define REMATCH_TRAIN_LEARNING_RATE_H

#include "base/setting.h"

/* Everything any of them lets YAML set; its keys say which members are its own. */
struct learning_rate_settings {
    double warmup; /* steps; below 1: a share of all of them */
};

struct learning_rate {
    const char *name, *doc;
    const struct setting *keys;
    /* What the optimiser's rate is multiplied by in the step-th of so many steps, from 0. */
    double (*factor)(const struct learning_rate_settings *settings, int64_t step, int64_t steps);
};

const struct learning_rate *learning_rate_find(const char *name);
extern const struct learning_rate *const learning_rate_table[];

#endif
