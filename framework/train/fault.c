#include "train/fault.h"

#include <stdlib.h>

static void mark(bool *needed, int buffer, bool is)
{
    if (buffer >= 0) needed[buffer] = is;
}

/* Walks the ops from the last to the first: needed[b] is whether a later op that matters reads the content of b, and
 * matters[i] whether op i writes such content. A dead recomputation that was kept does not, nor does a flatten over its
 * own input. */
static void find_readers(const struct plan *plan, bool *needed, bool *matters)
{
    for (int i = plan->lowered.ops - 1; i >= 0; i--) {
        const struct op *op = &plan->lowered.op[i];
        const struct node *node = &plan->network->graph->node[op->node];
        const bool in_place = op->y >= 0 && op->y == op->x[0];
        if (op->kind == OP_FORWARD && op->recompute) {
            matters[i] = (op->y >= 0 && needed[op->y]) || (op->save && op->saved >= 0 && needed[op->saved]);
            if (!matters[i]) continue;
            if (in_place && node->layer->inputs == 1 && plan->network->binding[op->node].footprint.passes_gradient)
                matters[i] = false;
        }
        if (op->kind == OP_FORWARD) {
            mark(needed, op->y, false);
            if (op->save) mark(needed, op->saved, false);
        }
        const int reads[] = {op->x[0], op->x[1], op->once, op->kind == OP_BACKWARD ? op->y : BUFFER_NONE,
                             op->kind == OP_BACKWARD ? op->saved : BUFFER_NONE};
        for (size_t k = 0; k < sizeof reads / sizeof *reads; k++) mark(needed, reads[k], true);
    }
}

static int first_op(const struct plan *plan, const struct fault *fault, const bool *matters)
{
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->node != fault->node) continue;
        if (fault->kind == FAULT_SKIP_RECOMPUTE && matters[i]) return i;
        if (fault->kind == FAULT_STALE_READ && matters[i] && op->x[0] >= 0) return i;
        if (fault->kind == FAULT_MASK_BIT && op->kind == OP_BACKWARD && (op->saved >= 0 || op->once >= 0)) return i;
        if (fault->kind == FAULT_MASK_BIT && matters[i] && plan->network->graph->node[op->node].draws) return i;
    }
    return -1;
}

enum status fault_find(const struct plan *plan, const struct fault *fault, bool arena, int *op)
{
    static const char *const wanted[] = {"",
                                         "saved tensors that its backward reads, or a recomputed dropout that is read",
                                         "a recomputation that a backward depends on",
                                         "a recomputation that a backward depends on and that reads the arena"};
    *op = -1;
    if (fault->kind == FAULT_NONE) return ST_OK;
    if (fault->kind == FAULT_STALE_READ && !arena)
        return fail(ST_SPEC, "fault.kind: stale_read needs an arena; expected memory: planned or poison");
    bool *needed = allocate((size_t)plan->lowered.buffers + 1, sizeof *needed);
    bool *matters = allocate((size_t)plan->lowered.ops + 1, sizeof *matters);
    find_readers(plan, needed, matters);
    *op = first_op(plan, fault, matters);
    free(needed);
    free(matters);
    if (*op >= 0) return ST_OK;
    return fail(ST_SPEC, "fault: in this plan node '%s' lacks %s", plan->network->graph->node[fault->node].name,
                wanted[fault->kind]);
}

enum { PIECE = 4096 };

void fault_flip_bytes(struct backend *backend, void *at, size_t bytes)
{
    unsigned char piece[PIECE];
    for (size_t first = 0, count; first < bytes; first += count) {
        count = bytes - first < sizeof piece ? bytes - first : sizeof piece;
        backend->kind->download(backend, piece, (char *)at + first, count);
        for (size_t i = 0; i < count; i++) piece[i] = !piece[i];
        backend->kind->upload(backend, (char *)at + first, piece, count);
    }
}

void fault_flip_floats(struct backend *backend, float *at, size_t bytes)
{
    float piece[PIECE / sizeof(float)];
    for (size_t first = 0, count; first < bytes / sizeof *at; first += count) {
        count = bytes / sizeof *at - first;
        if (count > PIECE / sizeof *at) count = PIECE / sizeof *at;
        backend->kind->download(backend, piece, at + first, count * sizeof *at);
        for (size_t i = 0; i < count; i++) piece[i] = piece[i] == 0;
        backend->kind->upload(backend, at + first, piece, count * sizeof *at);
    }
}

/* Whether two blocks hold positive floats at different places. Different bytes are not enough: the backward of a relu
 * reads signs. */
static bool signs_differ(struct backend *backend, const char *a, const char *b, size_t bytes)
{
    float x[PIECE / sizeof(float)], y[PIECE / sizeof(float)];
    for (size_t first = 0, count; first < bytes; first += count) {
        count = bytes - first < PIECE ? bytes - first : PIECE;
        backend->kind->download(backend, x, a + first, count);
        backend->kind->download(backend, y, b + first, count);
        for (size_t i = 0; i < count / sizeof *x; i++)
            if ((x[i] > 0) != (y[i] > 0)) return true;
    }
    return false;
}

void *fault_stale(struct backend *backend, char *arena, size_t arena_bytes, const void *x, size_t bytes)
{
    enum { PLACES = 16 };
    for (size_t i = 0; i < PLACES; i++) {
        char *place = arena + (arena_bytes - bytes) / (PLACES - 1) * i / ALIGNMENT * ALIGNMENT;
        if (signs_differ(backend, x, place, bytes)) return place;
    }
    return arena;
}

void fault_copy(struct backend *backend, char *to, const char *from, size_t bytes)
{
    char piece[PIECE];
    for (size_t first = 0, count; first < bytes; first += count) {
        count = bytes - first < PIECE ? bytes - first : PIECE;
        backend->kind->download(backend, piece, from + first, count);
        backend->kind->upload(backend, to + first, piece, count);
    }
}
