/* What a plan consists of: ops in the order they run, and the buffers they work on. Data only; lower.h makes it. */
#ifndef REMATCH_PLAN_OP_H
#define REMATCH_PLAN_OP_H

#include "model/layer.h"
#include "numerics/digest.h"

enum category { CATEGORY_ACTIVATION, CATEGORY_SAVED, CATEGORY_GRADIENT, CATEGORY_SCRATCH, CATEGORIES };

/* Names as printed, by enum category. */
extern const char *const category_names[CATEGORIES];

/* A piece of the arena; overlaid values share one. */
struct buffer {
    enum category category; /* of what it was made for */
    int node;               /* it is of: what that node writes, its scratch, or the gradient of its value */
    size_t bytes;           /* a multiple of the network's granularity */
    int birth, death;       /* first and last op that uses it, both inclusive */
    size_t offset;          /* in the arena; set by placing */
};

enum op_kind { OP_FORWARD, OP_BACKWARD, OP_COPY, OP_ACCUMULATE, OP_KINDS };

/* One call of a kernel or of a backend's copy and add. Members are buffers, -1: none; value 0 (the batch) is
 * BUFFER_BATCH. */
enum { BUFFER_NONE = -1, BUFFER_BATCH = -2 };

struct op {
    enum op_kind kind;
    int node;
    unsigned parts; /* BACKWARD: enum part */
    bool recompute; /* FORWARD: not the node's first */
    bool save;      /* FORWARD: writes the saved tensors */
    int x[NODE_INPUTS_MAX], y;
    int dx[NODE_INPUTS_MAX], dy;
    int saved, scratch;
    int once; /* written at the node's first forward, read by recomputations and backward: a stash or a mask */
    /* COPY: y = x[0]; ACCUMULATE: y = x[0] + x[1]; gradients of bytes bytes */
    size_t bytes;
};

/* "B conv1_2 params", "conv1_1.y": an op, and what a buffer holds, as people read them; node: the name of its node.
 * Into text (at least 128 bytes), which is returned. */
char *op_text(const struct op *op, const char *node, char *text);
char *buffer_text(const struct buffer *buffer, const char *node, char *text);

/* Bytes of the buffers alive while each of ops ops runs, into live[ops + 1] (the last is 0); returns the most. */
size_t buffers_live(const struct buffer *buffer, int buffers, int ops, size_t *live);

/* The digest that a plan is known by: of every member of every op and buffer, offsets included. */
enum status ops_digest(const struct op *op, int ops, const struct buffer *buffer, int buffers, struct digest *digest);

#endif
