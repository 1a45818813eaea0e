#include "plan/op.h"

#include "base/region.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const category_names[CATEGORIES] = {"activations", "saved", "activation gradients", "scratch",
                                                "parameter gradients"};

/* "/3", or nothing for the whole batch. */
static const char *slice_text(int slice, char text[16])
{
    *text = 0;
    if (slice != WHOLE_BATCH) snprintf(text, 16, "/%d", slice);
    return text;
}

char *op_text(const struct op *op, const char *node, char *text)
{
    static const char *const kinds[OP_KINDS] = {"F", "B", "copy", "accumulate", "update"};
    static const char *const parts[] = {"", " params", " input", ""};
    char slice[16], part[16] = "";
    if (op->part) snprintf(part, sizeof part, " %d", op->part);
    snprintf(text, 128, "%s %s%s%s%s%s", kinds[op->kind], node, slice_text(op->slice, slice),
             op->kind == OP_BACKWARD ? parts[op->parts & 3] : "", part, op->recompute ? " recompute" : "");
    return text;
}

char *buffer_text(const struct buffer *buffer, const char *node, char *text)
{
    static const char *const suffix[CATEGORIES] = {"y", "saved", "gradient", "scratch", "parameter_gradient"};
    char slice[16];
    snprintf(text, 128, "%s.%s%s", node, suffix[buffer->category], slice_text(buffer->slice, slice));
    return text;
}

/* Sums of differences, modulo 2^N: a buffer's bytes are added at its birth and subtracted after its death. */
size_t buffers_live(const struct buffer *buffer, int buffers, int ops, size_t *live)
{
    size_t most = 0;
    memset(live, 0, ((size_t)ops + 1) * sizeof *live);
    for (int i = 0; i < buffers; i++) {
        live[buffer[i].birth] += buffer[i].bytes;
        live[buffer[i].death + 1] -= buffer[i].bytes;
    }
    for (int op = 0; op < ops; op++) {
        if (op) live[op] += live[op - 1];
        if (live[op] > most) most = live[op];
    }
    live[ops] = 0;
    return most;
}

/* A node and its slice in one word, which is the node's number where there are no slices. */
static int64_t node_word(int node, int slice) { return node + (int64_t)(slice - WHOLE_BATCH) * (INT64_C(1) << 32); }

static int operands(const struct op *op) { return op->reads + op->writes; }

static bool fused(const struct op *op) { return op->gradients != BUFFER_NONE || op->part; }

/* Member by member, since the padding between them is undefined. What only fused updates have is left out elsewhere. */
struct digest ops_digest(const struct op *op, int ops, const struct buffer *buffer, int buffers)
{
    enum { OP_WORDS = 7 + 2 * NODE_INPUTS_MAX + 4, BUFFER_WORDS = 6, FUSED_WORDS = 3 };
    size_t count = (size_t)ops * OP_WORDS + (size_t)buffers * BUFFER_WORDS, more = 0;
    for (int i = 0; i < ops; i++) more += fused(&op[i]);
    count += more * FUSED_WORDS;
    for (int i = 0; i < ops; i++) count += operands(&op[i]) ? (size_t)operands(&op[i]) + 1 : 0;
    int64_t *words = allocate(count, sizeof *words), *w = words;
    for (int i = 0; i < ops; i++) {
        const struct op *o = &op[i];
        const int64_t row[] = {o->kind,
                               node_word(o->node, o->slice),
                               o->parts,
                               o->recompute,
                               o->save,
                               o->y,
                               o->x[0],
                               o->x[1],
                               o->dx[0],
                               o->dx[1],
                               o->dy,
                               o->saved,
                               o->once,
                               o->scratch,
                               (int64_t)o->bytes};
        _Static_assert(sizeof row / sizeof *row == OP_WORDS, "a row an op");
        memcpy(w, row, sizeof row);
        w += OP_WORDS;
    }
    for (int i = 0; i < buffers; i++) {
        const struct buffer *b = &buffer[i];
        const int64_t row[] = {b->category,       node_word(b->node, b->slice), (int64_t)b->bytes, b->birth, b->death,
                               (int64_t)b->offset};
        memcpy(w, row, sizeof row);
        w += BUFFER_WORDS;
    }
    for (int i = 0; i < ops; i++) {
        const int64_t row[] = {i, op[i].gradients, op[i].part};
        if (!fused(&op[i])) continue;
        memcpy(w, row, sizeof row);
        w += FUSED_WORDS;
    }
    for (int i = 0; i < ops; i++) {
        if (operands(&op[i])) *w++ = op[i].reads;
        for (int k = 0; k < operands(&op[i]); k++) *w++ = op[i].operand[k];
    }
    const struct digest digest = digest_bytes(words, count * sizeof *words);
    free(words);
    return digest;
}
