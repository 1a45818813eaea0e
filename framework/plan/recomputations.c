#include "plan/recomputations.h"

#include <stdlib.h>

#include "base/region.h"
#include "plan/events.h"

/* Of each buffer and slice: whether a later op that matters reads what it holds. */
struct need {
    const struct plan_data *data;
    bool *of;
};

/* Of the parts of a buffer that an op works on: its slice's, or all. */
static void set(const struct need *need, const struct op *op, int buffer, bool is)
{
    const int slices = (int)need->data->slices;
    for (int k = 0; buffer >= 0 && k < slice_places(slices, op->slice); k++)
        need->of[slice_place(slices, buffer, op->slice) + k] = is;
}

static bool any(const struct need *need, const struct op *op, int buffer)
{
    const int slices = (int)need->data->slices;
    bool is = false;
    for (int k = 0; buffer >= 0 && k < slice_places(slices, op->slice); k++)
        is |= need->of[slice_place(slices, buffer, op->slice) + k];
    return is;
}

static void read_operands(const struct need *need, const struct op *op)
{
    set(need, op, op->x[0], true);
    set(need, op, op->x[1], true);
    if (op->kind != OP_BACKWARD) return;
    set(need, op, op->y, true);
    set(need, op, op->saved, true);
}

static bool does_nothing(const struct plan_data_node *node, const struct op *op)
{
    return op->y >= 0 && op->y == op->x[0] && node->inputs[1] < 0 && node->footprint.passes_gradient;
}

int recomputations_live(const struct plan_data *data, unsigned char *live)
{
    const struct need need = {data, allocate((size_t)data->buffers * data->slices + 1, sizeof *need.of)};
    int count = 0;
    for (int i = data->ops - 1; i >= 0; i--) {
        const struct op *op = &data->op[i];
        const bool forward = op->kind == OP_FORWARD;
        live[i] = 0;
        if (forward && op->recompute) {
            if (any(&need, op, op->y)) live[i] |= LIVE_OUTPUT;
            if (op->save && any(&need, op, op->saved)) live[i] |= LIVE_SAVED;
            if (!live[i]) continue;
            if (does_nothing(&data->node[op->node], op)) live[i] = 0;
            count += live[i] != 0;
        }
        if (forward) set(&need, op, op->y, false);
        if (forward && op->save) set(&need, op, op->saved, false);
        read_operands(&need, op);
    }
    free(need.of);
    return count;
}

/* Whether op may follow before where slices run in turn at each node. */
static bool in_turn(const struct plan_data *data, const struct op *before, const struct op *op)
{
    if (before->kind != op->kind) return op->kind == OP_BACKWARD;
    if (before->node != op->node) return (op->node > before->node) == (op->kind == OP_FORWARD);
    if (op->slice == WHOLE_BATCH) return true;
    return op->parts == before->parts ? op->slice > before->slice
                                      : !op->slice && before->slice + 1 == (int)data->slices;
}

bool recomputations_by_slice(const struct plan_data *data)
{
    const struct op *before = NULL;
    for (int i = 0; i < data->ops; i++) {
        const struct op *op = &data->op[i];
        if (op->recompute || (op->kind != OP_FORWARD && op->kind != OP_BACKWARD)) continue;
        if (before && !in_turn(data, before, op)) return true;
        before = op;
    }
    return false;
}

bool recomputations_none(const struct plan_data *data)
{
    for (int i = 0; i < data->ops; i++)
        if (data->op[i].recompute) return false;
    return !recomputations_by_slice(data);
}
