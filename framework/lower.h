/* From a word to ops and buffers: liveness decides what each forward saves, what is freed, what is a replay, which
 * replays are dead. The rules are listed in README under "The rules of lowering". */
#ifndef REMATCH_LOWER_H
#define REMATCH_LOWER_H

#include "network.h"
#include "schedule.h"

enum category { CATEGORY_ACTIVATION, CATEGORY_SAVED, CATEGORY_GRADIENT, CATEGORY_SCRATCH, CATEGORIES };

/* Names as printed, by enum category. */
extern const char *const category_names[CATEGORIES];

/* A piece of the arena; overlaid values share one. */
struct buffer {
    enum category category; /* of what it was made for */
    int node;               /* whose op made it */
    size_t bytes;           /* a multiple of the network's granularity */
    int birth, death;       /* first and last op that uses it, both inclusive */
    size_t offset;          /* in the arena; set by placing */
};

enum op_kind { OP_FORWARD, OP_BACKWARD, OP_COPY, OP_ACCUMULATE };

/* One call of a kernel or of a backend's copy and add. Members are buffers, -1: none; value 0 (the batch) is
 * BUFFER_BATCH. */
enum { BUFFER_NONE = -1, BUFFER_BATCH = -2 };

struct op {
    enum op_kind kind;
    int node;
    unsigned parts; /* BACKWARD: enum part */
    bool replay;    /* FORWARD: not the node's first */
    bool save;      /* FORWARD: writes the saved set */
    int x[NODE_INPUTS_MAX], y;
    int dx[NODE_INPUTS_MAX], dy;
    int saved, scratch;
    int once; /* written at the node's first forward, read by replays and backward: a stash or a mask */
    /* COPY: y = x[0]; ACCUMULATE: y = x[0] + x[1]; gradients of bytes bytes */
    size_t bytes;
};

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
