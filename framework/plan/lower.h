/* From a schedule to ops and buffers: liveness decides what each forward saves, when buffers die, and which
 * recomputations are dead. The rules are listed in framework/README.md. */
#pragma once

#include "backend/network.h"
#include "plan/op.h"
#include "plan/schedule.h"

struct lower_options {
    bool drop_dead; /* leave out dead recomputations */
    enum rng_mode rng;
    bool evaluate; /* only forwards: nothing is drawn, and running state is read */
};

struct lowered {
    int ops, buffers;
    struct op *op;
    struct buffer *buffer;
    int dropped; /* recomputations left out */
};

/* schedule must have passed schedule_check(). No op reads the loss's value: the executor does, right after its first
 * forward. Everything lives in region. */
struct lowered lower(const struct network *network, const struct schedule *schedule,
                     const struct lower_options *options, struct region *region);
