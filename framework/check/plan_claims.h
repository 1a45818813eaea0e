/* Compares the numbers and the hash that a plan claims with the outcome of its symbolic run. */
#pragma once

#include "plan/plan_data.h"

struct outcome {
    const unsigned *parts; /* node -> enum part of its backward */
    size_t extent;         /* of all buffers, in the arena */
    size_t live_peak, peak[CATEGORIES], live_forward;
    int peak_op, recomputations;
    double recompute_flops, time;
};

/* ST_DIFFERS: a claim is wrong; the message names it, its value and the expected one. */
enum status plan_claims_check(const struct plan_data *data, const struct outcome *outcome);
