#include "train/fault.h"

#include "plan/recomputations.h"

/* live: of each op, as recomputations_live() sets it. A mask that is drawn anew is altered in the output that it was
 * drawn for, so something must read that. */
static int first_op(const struct plan *plan, const struct fault *fault, const unsigned char *live)
{
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->node != fault->node) continue;
        if (fault->kind == FAULT_SKIP_RECOMPUTE && live[i]) return i;
        if (fault->kind == FAULT_STALE_READ && live[i] && op->x[0] >= 0) return i;
        if (fault->kind == FAULT_MASK_BIT && op->kind == OP_BACKWARD && (op->saved >= 0 || op->once >= 0)) return i;
        if (fault->kind == FAULT_MASK_BIT && live[i] & LIVE_OUTPUT && plan->network->graph->node[op->node].draws)
            return i;
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
    region_auto *region = region_create();
    struct plan_data data;
    unsigned char *live;
    plan_to_data(plan, region, &data);
    NEW(region, live, (size_t)data.ops + 1);
    recomputations_live(&data, live);
    *op = first_op(plan, fault, live);
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

/* Positive floats of b, INT64_MAX where a has them at the same places: different bytes are not enough, since the
 * backward of a relu reads signs. */
static int64_t other_positives(struct backend *backend, const char *a, const char *b, size_t bytes)
{
    float x[PIECE / sizeof(float)], y[PIECE / sizeof(float)];
    int64_t positives = 0;
    bool differ = false;
    for (size_t first = 0, count; first < bytes; first += count) {
        count = bytes - first < PIECE ? bytes - first : PIECE;
        backend->kind->download(backend, x, a + first, count);
        backend->kind->download(backend, y, b + first, count);
        for (size_t i = 0; i < count / sizeof *x; i++) differ |= (x[i] > 0) != (y[i] > 0), positives += y[i] > 0;
    }
    return differ ? positives : INT64_MAX;
}

void *fault_stale(struct backend *backend, char *arena, size_t arena_bytes, const void *x, size_t bytes)
{
    enum { PLACES = 16 };
    char *found = arena;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < PLACES; i++) {
        char *place = arena + (arena_bytes - bytes) / (PLACES - 1) * i / ALIGNMENT * ALIGNMENT;
        const int64_t positives = other_positives(backend, x, place, bytes);
        if (positives < least) least = positives, found = place;
    }
    return found;
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
