/* What a plan consists of: ops in the order they run, and the buffers they work on. Data only; lower() makes it. */
#pragma once

#include "model/slicing.h"
#include "numerics/digest.h"

enum category {
    CATEGORY_ACTIVATION,
    CATEGORY_SAVED,
    CATEGORY_GRADIENT,
    CATEGORY_SCRATCH,
    CATEGORY_PARAMETER_GRADIENT,
    CATEGORIES
};

/* Names as printed, by enum category. */
extern const char *const category_names[CATEGORIES];

/* A piece of the arena; overlaid values share one. */
struct buffer {
    enum category category; /* of the first tensor in it */
    int node;               /* of that tensor: the node that writes it, uses it as scratch, or whose value it is the
                               gradient of */
    int slice;              /* that it holds; WHOLE_BATCH: all of the batch */
    size_t bytes;           /* a multiple of the network's granularity */
    int birth, death;       /* first and last op that uses it, both inclusive */
    size_t offset;          /* in the arena; set by placement_assign() */
};

static inline bool buffer_alive(const struct buffer *buffer, int op)
{
    return buffer->birth <= op && op <= buffer->death;
}

enum op_kind { OP_FORWARD, OP_BACKWARD, OP_COPY, OP_ACCUMULATE, OP_UPDATE, OP_KINDS };

/* One call of a kernel or of a backend's copy and add. Members are buffers, -1: none; value 0 (the batch) is
 * BUFFER_BATCH. Where an op is of one slice and a value's or gradient's buffer of the whole batch, the op works on that
 * slice's part of it: the batch is outermost in every layout, so the part is one range of bytes. */
enum { BUFFER_NONE = -1, BUFFER_BATCH = -2, OP_OPERANDS = 2 * NODE_INPUTS_MAX + 6 };

struct op {
    enum op_kind kind;
    int node;
    int slice;      /* WHOLE_BATCH: the whole batch */
    unsigned parts; /* BACKWARD: enum part */
    bool recompute; /* FORWARD: not the node's first */
    bool save;      /* FORWARD: writes the saved tensors */
    union {
        int buffer[OP_OPERANDS]; /* all of them */
        struct {
            int x[NODE_INPUTS_MAX], y;
            int dx[NODE_INPUTS_MAX], dy;
            int saved, scratch;
            int once;      /* a stash, a mask or statistics: written by the node's first forward, read by recomputations
                              and the backward */
            int gradients; /* of the node's parameters, fused update: written by BACKWARD PARAMS, read by UPDATE */
        };
    };
    int part; /* of those gradients, from 1; 0: all */
    int reads,
        writes;   /* of a traced step, whose op has no x, dx and dy: buffers it reads, and those its backward writes */
    int *operand; /* those read, then those written */
    /* COPY: y = x[0]; ACCUMULATE: y = x[0] + x[1]; gradients of bytes bytes */
    size_t bytes;
};

/* Writes "B conv1_2/3 params" or "conv1_1.y/3" into text (at least 128 bytes) and returns it; node: the name of its
 * node.
 */
char *op_text(const struct op *op, const char *node, char *text);
char *buffer_text(const struct buffer *buffer, const char *node, char *text);

/* Sets live[i] to the bytes of the buffers alive at op i, live[ops] to 0; returns the peak. */
size_t buffers_live(const struct buffer *buffer, int buffers, int ops, size_t *live);

/* The digest that identifies a plan: of every member of every op and buffer, offsets included. */
struct digest ops_digest(const struct op *op, int ops, const struct buffer *buffer, int buffers);
