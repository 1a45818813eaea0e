/* Optimisers: one row each, updating one parameter in place. */
#ifndef REMATCH_OPTIM_H
#define REMATCH_OPTIM_H

#include "field.h"

#include <stdbool.h>

struct optim_settings {
    double lr, momentum, weight_decay;
};

struct optimizer {
    const char *name;
    const struct field *fields;
    /* Copies of the parameters kept as state under these settings. */
    int (*state)(const struct optim_settings *settings);
    /* One step on elements floats; state has state() * elements floats. threads: how many may work. */
    void (*update)(const struct optim_settings *settings, int64_t elements, float *parameter, const float *gradient,
                   float *state, int threads);
};

const struct optimizer *optimizer_find(const char *name);
extern const struct optimizer *const optimizer_table[];

#endif
