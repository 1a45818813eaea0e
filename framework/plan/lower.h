/* From a schedule to ops and buffers: liveness decides what each forward saves, what is freed, what is a recomputation,
 * which recomputations are dead. framework/README.md lists the rules. */
#ifndef REMATCH_PLAN_LOWER_H
#define REMATCH_PLAN_LOWER_H

#include "backend/network.h"
#include "plan/op.h"
#include "plan/schedule.h"

struct lower_options {
    bool drop_dead; /* leave out recomputations that nobody reads */
    enum rng_mode rng;
};

struct lowered {
    int ops, buffers;
    struct op *op;
    struct buffer *buffer;
    int dropped; /* recomputations left out */
};

/* schedule must have passed schedule_check. The loss's value is nobody's operand: it is read right after its first
 * forward. Everything lives in region. */
enum status lower(const struct network *network, const struct schedule *schedule, const struct lower_options *options,
                  struct region *region, struct lowered *lowered);

#endif
