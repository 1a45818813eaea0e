/* Optimizers: one row each, updating one parameter in place. */
#pragma once

#include "base/setting.h"
#include "numerics/element_optimizer.h"

#include <stdbool.h>

enum optimizer_decays { DECAYS_ALL, DECAYS_MATRICES };

/* The settings of all optimizers; the keys of an optimizer list its own. */
struct optimizer_settings {
    double lr, weight_decay;
    int decays;                   /* enum optimizer_decays: all parameters, or those of two dimensions and more */
    double clip;                  /* largest L2 norm of all gradients together, 0: any */
    double ema;                   /* share of the parameters' averages that a step keeps, 0: there are none */
    double momentum;              /* sgd */
    bool nesterov;                /* sgd */
    double beta1, beta2, epsilon; /* adam, adamw */
};

struct optimizer {
    const char *name, *doc;
    const struct setting *keys;
    bool moments;   /* keeps the mean gradient and the mean squared gradient, else a momentum where that is set */
    bool decoupled; /* weight decay is no part of the gradient */
    /* One step on elements floats, of which the next copy in state is stride floats further. threads: how many may
     * work.
     */
    void (*update)(const struct optimizer_numbers *numbers, int64_t elements, float *parameter, const float *gradient,
                   float *state, int64_t stride, int threads);
};

/* The numbers that update a parameter of rank dimensions in the step-th step, from 0, at learning rate lr, its gradient
 * times scale. */
struct optimizer_numbers optimizer_numbers(const struct optimizer *optimizer, const struct optimizer_settings *settings,
                                           double lr, double scale, uint32_t step, int rank);

/* Copies of the parameters kept as state; with their averages, which are the first. */
int optimizer_states(const struct optimizer *optimizer, const struct optimizer_settings *settings);
int optimizer_copies(const struct optimizer *optimizer, const struct optimizer_settings *settings);

const struct optimizer *optimizer_find(const char *name);
extern const struct optimizer *const optimizer_table[];
