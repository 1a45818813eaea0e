#include "plan/plan_data.h"

#include "backend/traced.h"

const char *const static_names[STATICS] = {"parameters", "gradients", "optimizer", "state", "inputs", "device"};

const char *const plan_data_count_names[COUNTS] = {
    [COUNT_STATIC] = "static_bytes",
    [COUNT_ARENA] = "arena_bytes",
    [COUNT_PEAK] = "peak_bytes",
    [COUNT_LIVE_PEAK] = "live_peak_bytes",
    [COUNT_SAMPLED_FORWARD] = "sampled_forward_bytes",
    [COUNT_SAMPLED_GRADIENTS] = "sampled_gradients_bytes",
    [COUNT_RECOMPUTATIONS] = "recomputations",
    [COUNT_DROPPED] = "dropped_recomputations",
};

const char *const plan_data_real_names[REALS] = {
    [REAL_FORWARD_FLOPS] = "forward_flops",
    [REAL_BACKWARD_FLOPS] = "backward_flops",
    [REAL_RECOMPUTE_FLOPS] = "recompute_flops",
    [REAL_TIME] = "time",
    [REAL_SLOWDOWN] = "slowdown",
};

static const char *name_of(const struct plan_data *data, int node, bool backward)
{
    const bool traced = backward && data->operators && data->traced[node].has_backward;
    return traced ? data->traced[node].backward : data->node[node].name;
}

const char *plan_data_op_name(const struct plan_data *data, const struct op *op)
{
    return name_of(data, op->node, op->kind == OP_BACKWARD);
}

const char *plan_data_buffer_name(const struct plan_data *data, const struct buffer *b)
{
    return name_of(data, b->node, b->category == CATEGORY_GRADIENT || b->category == CATEGORY_PARAMETER_GRADIENT);
}

#define WITHIN(value, least, most, ...)                                                                                \
    do {                                                                                                               \
        long long within = (value);                                                                                    \
        if (within < (least) || within > (most))                                                                       \
            return fail(ST_DIFFERS, __VA_ARGS__, within, (long long)(least), (long long)(most));                       \
    } while (0)
#define EXPECTED " is %lld; expected %lld..%lld"

/* Whether the node's kernel has the parameter: its own, or one that it shares. */
static bool is_of(const struct plan_data *a, int parameter, int node)
{
    return a->parameter[parameter].node == node || a->node[node].tied == parameter + 1;
}

/* A node reads what was written before it; its value wants a gradient where it, or what it reads, has
 * parameters that are trained. */
static enum status check_node(const struct plan_data *a, int i)
{
    const struct plan_data_node *node = &a->node[i];
    bool wants = false;
    WITHIN(node->whole, a->slices == 1, 1, "node %d (%s): whole" EXPECTED, i, node->name);
    for (int k = 0; k < NODE_INPUTS_MAX; k++) {
        int value = node->inputs[k];
        WITHIN(value, k || a->operators ? -1 : 0, a->operators ? -1 : i, "node %d (%s): input %d" EXPECTED, i,
               node->name, k);
        if (value > 0) wants |= a->node[value - 1].wants_gradient;
    }
    WITHIN(node->tied, 0, a->parameters, "node %d (%s): tied" EXPECTED, i, node->name);
    for (int p = 0; p < a->parameters; p++) wants |= is_of(a, p, i) && !a->parameter[p].frozen;
    size_t partial = 0; /* of a slice, which is added to those of the slices before */
    for (int p = 0; p < a->parameters; p++)
        if (is_of(a, p, i) && !a->parameter[p].frozen && !node->footprint.adds)
            partial += round_up(a->parameter[p].elements * sizeof(float));
    if (!node->whole && node->footprint.backward_scratch[PART_INDEX_PARAMS] < partial)
        return fail(ST_DIFFERS,
                    "node %d (%s): its backward has %zu bytes of scratch; expected at least %zu, for gradients "
                    "of a slice",
                    i, node->name, node->footprint.backward_scratch[PART_INDEX_PARAMS], partial);
    if (node->wants_gradient != wants)
        return fail(ST_DIFFERS, "node %d (%s): wants_gradient is %d; expected %d", i, node->name, node->wants_gradient,
                    wants);
    return ST_OK;
}

static enum status check_op(const struct plan_data *a, int i)
{
    const struct op *op = &a->op[i];
    WITHIN((int)op->kind, 0, OP_KINDS - 1, "op %d: kind" EXPECTED, i);
    WITHIN(op->node, 0, a->nodes - 1, "op %d: node" EXPECTED, i);
    WITHIN(op->slice, WHOLE_BATCH, (long long)a->slices - 1, "op %d: slice" EXPECTED, i);
    WITHIN((int)op->parts, 0, PART_PARAMS | PART_INPUT, "op %d: parts" EXPECTED, i);
    WITHIN(op->part, 0, INT32_MAX, "op %d: part" EXPECTED, i);
    for (int k = 0; k < OP_OPERANDS; k++)
        WITHIN(op->buffer[k], BUFFER_BATCH, a->buffers - 1, "op %d: an operand" EXPECTED, i);
    return ST_OK;
}

static enum status check_buffer(const struct plan_data *a, int i)
{
    const struct buffer *b = &a->buffer[i];
    WITHIN((int)b->category, 0, CATEGORIES - 1, "buffer %d: category" EXPECTED, i);
    WITHIN(b->node, 0, a->nodes - 1, "buffer %d: node" EXPECTED, i);
    WITHIN(b->slice, WHOLE_BATCH, (long long)a->slices - 1, "buffer %d: slice" EXPECTED, i);
    WITHIN(b->birth, 0, a->ops - 1, "buffer %d: birth" EXPECTED, i);
    WITHIN(b->death, b->birth, a->ops - 1, "buffer %d: death" EXPECTED, i);
    return ST_OK;
}

/* What a traced step has besides. */
static enum status check_traced(const struct plan_data *a)
{
    WITHIN(a->operators, a->nodes, a->nodes, "operators" EXPECTED);
    WITHIN((long long)a->slices, 1, 1, "slices of a traced step" EXPECTED);
    WITHIN(a->parameters + a->states, 0, 0, "parameters of a traced step" EXPECTED);
    for (int i = 0; i < a->reads; i++) {
        const struct plan_data_read *r = &a->read[i];
        WITHIN(r->node, i ? a->read[i - 1].node : 0, a->nodes - 1, "read %d: node" EXPECTED, i);
        WITHIN(r->of, 0, r->backward ? a->nodes - 1 : r->node - 1, "read %d: of" EXPECTED, i);
        WITHIN((int)r->what, 0, r->backward ? HELD_ONCE : HELD_VALUE, "read %d: what" EXPECTED, i);
        WITHIN(a->traced[r->of].forward, 1, 1, "read %d: forward" EXPECTED, i);
        WITHIN(r->backward ? a->traced[r->node].has_backward : a->traced[r->node].forward, 1, 1,
               "read %d: pass" EXPECTED, i);
    }
    for (int i = 0; i < a->uses; i++) {
        WITHIN(a->use[i].node, i ? a->use[i - 1].node : 0, a->nodes - 1, "use %d: node" EXPECTED, i);
        WITHIN(a->use[i].tensor, 0, a->tensors - 1, "use %d: tensor" EXPECTED, i);
        WITHIN(a->traced[a->use[i].node].has_backward, 1, 1, "use %d: backward" EXPECTED, i);
    }
    for (int i = 0; i < a->operands; i++) {
        WITHIN(a->operand[i].op, i ? a->operand[i - 1].op : 0, a->ops - 1, "operand %d: op" EXPECTED, i);
        WITHIN(a->operand[i].buffer, BUFFER_NONE, a->buffers - 1, "operand %d: buffer" EXPECTED, i);
    }
    return ST_OK;
}

enum status plan_data_check(const struct plan_data *data)
{
    const struct plan_data *a = data;
    if (a->nodes < 1 || a->ops < 1) return fail(ST_DIFFERS, "%d nodes and %d ops; expected some", a->nodes, a->ops);
    if (a->granularity < 1) return fail(ST_DIFFERS, "granularity is 0; expected at least 1");
    WITHIN((long long)a->slices, 1, SLICED_NODES_MAX / a->nodes > 1 ? SLICED_NODES_MAX / a->nodes : 1,
           "slices" EXPECTED);
    WITHIN((long long)a->rng, 0, RNG_UNSAFE, "rng" EXPECTED);
    WITHIN((long long)a->drop_dead, 0, 1, "drop_dead" EXPECTED);
    for (int i = 0; i < a->parameters; i++)
        WITHIN(a->parameter[i].node, 0, a->nodes - 1, "parameter %d: node" EXPECTED, i);
    for (int i = 0; i < a->states; i++) WITHIN(a->state[i].node, 0, a->nodes - 1, "running state %d: node" EXPECTED, i);
    for (int i = 0; i < a->nodes; i++) TRY(check_node(a, i));
    for (int i = 0; i < a->ops; i++) TRY(check_op(a, i));
    for (int i = 0; i < a->buffers; i++) TRY(check_buffer(a, i));
    return a->operators || a->reads || a->tensors || a->uses || a->operands ? check_traced(a) : ST_OK;
}
