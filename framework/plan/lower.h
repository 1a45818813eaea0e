/* From a word to ops and buffers: liveness decides what each forward saves, what is freed, what is a replay, which
 * replays are dead. The rules are listed in README under "The rules of lowering". */
#ifndef REMATCH_PLAN_LOWER_H
#define REMATCH_PLAN_LOWER_H

#include "backend/network.h"
#include "plan/op.h"
#include "plan/schedule.h"

struct lower_options {
    bool drop_dead; /* leave out replays that nobody reads */
    enum rng_mode rng;
};

struct lowered {
    int ops, buffers;
    struct op *op;
    struct buffer *buffer;
    int dropped; /* replays left out */
};

/* word must have passed word_check. The loss's value is nobody's operand: it is read right after its first forward.
 * Everything lives in region. */
enum status lower(const struct network *network, const struct word *word, const struct lower_options *options,
                  struct region *region, struct lowered *lowered);

#endif
