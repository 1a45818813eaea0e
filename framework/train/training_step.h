/* One training step over a plan: forward and backward, digests of every gradient, the optimiser, digests of every
 * parameter and of the optimiser's state. It depends neither on the source of batches nor on where results go.
 *
 * Contract: parameters, gradients and state are in logical order, so their digests do not depend on backend or policy;
 * the digest of a step is XXH3-128 of the tensor digests in parameter order. */
#pragma once

#include "model/optimizer.h"
#include "train/executor.h"
#include "train/learning_rate.h"

struct train_options {
    const struct optimizer *optimizer;
    struct optimizer_settings settings;
    const struct learning_rate *learning_rate;
    struct learning_rate_settings learning_rate_settings;
    int64_t steps; /* of the whole run, for the learning rate */
    uint64_t seed;
    /* By parameter, and by tensor of running state: the caller writes its initial values; NULL: none. */
    const bool *given, *given_state;
};

struct train;

enum { NOT_FINITE = 160 };
struct train_result {
    float loss;
    float correct;             /* predictions in the batch */
    int64_t counted;           /* labels of the batch that are a class */
    double lr, gradient_norm;  /* of the update; L2, of all gradients before clipping */
    uint64_t phase_ns[PHASES]; /* digest: and the gradients' norm */
    /* state: zero where the optimiser has none; running: zero where the network has no running state */
    struct digest gradients, parameters, state, running;
    /* One a parameter, valid until the next step, 0 of a gradient or state that a parameter which is not trained does
     * not have; parameter_state is NULL where the optimiser has none; and one a
     * tensor of running state. */
    const struct digest *gradient, *parameter, *parameter_state, *running_state;
    /* The first loss, output or gradient that is not finite, where that ended the run; "": none. */
    char not_finite[NOT_FINITE];
};

/* Fills exec's parameters with their initial values, given ones excepted, and clears gradients and state. exec must
 * outlive it. */
enum status train_create(const struct network *network, struct executor *exec, const struct train_options *options,
                         struct train **train);
void train_destroy(struct train *train);

/* Step number step on the current batch. ST_FAILED: exec failed, or the loss or a gradient is not finite; the message
 * names the step and the first node whose output is not finite, or the parameter; so does result->not_finite, and
 * nothing else of result is set. Parameters keep their values. */
enum status train_step(struct train *train, uint32_t step, struct train_result *result);

/* The same in two parts, between which the host may make the next batch where executor_ahead(); train_end() also where
 * train_begin() failed. */
enum status train_begin(struct train *train, uint32_t step);
enum status train_end(struct train *train, struct train_result *result);
