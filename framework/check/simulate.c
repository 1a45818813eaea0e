/* What every op must read and write, derived from the nodes. symbolic_memory.c is the machine's memory; plan_claims.c
 * judges the numbers. */
#include "check/simulate.h"

#include <string.h>

#include "check/operands.h"
#include "check/traced_ops.h"

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a < b ? symbol_name(SUM, a, b) : symbol_name(SUM, b, a);
} /* a + b = b + a */

/* ---- the fused update ---- */

/* How many updates a node's parameters have, each by a part of their gradients: 0 where gradients are static. A part is
 * of so many elements of the first parameter; *bytes: of the largest, which has the other parameters' gradients too. */
static int updates_of(const struct plan_data *a, int n, size_t *bytes)
{
    const size_t part = a->node[n].footprint.part_elements;
    size_t elements = 0;
    *bytes = 0;
    for (int p = a->parameters - 1; p >= 0; p--) {
        if (a->parameter[p].node != n) continue;
        *bytes += round_up(elements * sizeof(float));
        elements = a->parameter[p].elements; /* of the first in the end */
    }
    *bytes += round_up((part && part < elements ? part : elements) * sizeof(float));
    if (!a->node[n].footprint.gradients || a->evaluate) return 0;
    return part ? (int)((elements + part - 1) / part) : 1;
}

/* The part that a backward or an update must be of, after so many of them. */
static int part_after(const struct machine *m, int count)
{
    return m->data->node[m->op->node].footprint.part_elements ? count + 1 : 0;
}

static uint64_t gradients_of(const struct op *op)
{
    return symbol_name(PARAMETER_GRADIENT, (uint64_t)op->node, (uint64_t)op->part);
}

static enum status writes_gradients(struct machine *m)
{
    const struct op *op = m->op;
    size_t bytes;
    if (!(op->parts & PART_PARAMS) || !updates_of(m->data, op->node, &bytes)) bytes = 0;
    TRY(operand_called(m, op->gradients, CATEGORY_PARAMETER_GRADIENT, op->node));
    TRY(machine_apart(m, op->gradients, BUFFER_NONE, 0, "the parameters' gradient"));
    return machine_writes(m, op->gradients, (struct operand){bytes, bytes}, gradients_of(op),
                          "the parameters' gradient"); /* of slices: it has that of this slice, too */
}

/* Parameters that were updated are read by no later op of the step. */
static enum status reads_parameters(const struct machine *m)
{
    MUST(!m->updated[m->op->node], "reads parameters after their update; expected it before");
    return ST_OK;
}

static enum status update(struct machine *m)
{
    const struct op *op = m->op;
    size_t bytes;
    const int updates = updates_of(m->data, op->node, &bytes);
    MUST(m->updated[op->node] < updates, "is update %d of its node; expected %d", m->updated[op->node] + 1, updates);
    MUST(op->part == part_after(m, m->updated[op->node]), "part %d; expected %d", op->part,
         part_after(m, m->updated[op->node]));
    m->updated[op->node]++;
    return machine_reads(m, op->gradients, (struct operand){bytes, bytes}, gradients_of(op),
                         "the parameters' gradient");
}

/* ---- ops ---- */

static enum status forward(struct machine *m, const struct plan_data_node *node)
{
    const struct op *op = m->op;
    int n = op->node;
    for (int k = machine_first(m); k <= machine_last(m); k++) {
        int *forwards = &m->forwards[machine_slot(m, n, k)], *due = &m->first_forwards[k];
        *due = traced_next(m->data, *due);
        MUST(op->recompute == (*forwards > 0), "recompute is %d; expected %d, after %d forwards of the node",
             op->recompute, *forwards > 0, *forwards);
        MUST(op->recompute || *due == n, "is a first forward; expected that of node %d", *due);
        MUST(op->recompute || k == 0 || k > machine_first(m) || m->first_forwards[k - 1] > n,
             "is a first forward; expected slice %d before it", k - 1);
        *due += !op->recompute;
        ++*forwards;
    }
    TRY(reads_parameters(m));
    if (m->data->operators) TRY(traced_forward_reads(m));
    for (int k = 0; k < NODE_INPUTS_MAX; k++) {
        if (node->inputs[k] >= 0) TRY(operand_value(m, op->x[k], node->inputs[k], "x"));
        MUST(node->inputs[k] >= 0 || op->x[k] == BUFFER_NONE, "x %d is buffer %d; expected none", k, op->x[k]);
    }
    TRY(operand_once(m, node, !m->data->operators || !op->recompute));
    const size_t unsaved = m->data->operators && !op->save ? node->footprint.saved : 0;
    TRY(operand_scratch(m, node->footprint.forward_scratch + unsaved));
    const int over = m->data->operators ? traced_over(m) : node->footprint.y_over_x ? op->x[0] : BUFFER_NONE;
    TRY(machine_apart(m, op->y, over, m->data->operators ? 1 : (op->x[0] == op->y) + (op->x[1] == op->y), "y"));
    TRY(operand_called(m, op->y, CATEGORY_ACTIVATION, n));
    TRY(machine_writes(m, op->y, machine_part(m, node->output_bytes), symbol_name(VALUE, (uint64_t)n + 1, 0), "y"));
    for (int k = machine_first(m); k <= machine_last(m); k++) m->value_at[machine_slot(m, n, k)] = m->at;
    if (!op->save) {
        MUST(op->saved == BUFFER_NONE, "the saved tensors are in buffer %d; expected none, the op saves nothing",
             op->saved);
        return ST_OK;
    }
    m->saved_at[machine_slot(m, n, machine_first(m))] = m->at;
    TRY(machine_apart(m, op->saved, BUFFER_NONE, 0, "the saved tensors"));
    TRY(operand_called(m, op->saved, CATEGORY_SAVED, n));
    return machine_writes(m, op->saved, machine_share(m, node->footprint.saved), symbol_name(SAVED, (uint64_t)n, 0),
                          "the saved tensors");
}

static enum status backward_order(struct machine *m, const struct plan_data_node *node)
{
    const int n = m->op->node, first = machine_first(m);
    unsigned parts = m->op->parts, wanted = m->parts[n], done = m->done[machine_slot(m, n, first)];
    bool split = node->footprint.split && wanted == (PART_PARAMS | PART_INPUT);
    for (int k = first; k <= machine_last(m); k++) {
        int *due = &m->due[k];
        while (*due > n && m->done[machine_slot(m, *due, k)] == m->parts[*due]) --*due;
        MUST(*due == n, "out of order; expected the backward of node %d (%s)", *due, m->data->node[*due].name);
    }
    MUST(first == 0 || m->op->slice == WHOLE_BATCH || !(parts & ~m->done[machine_slot(m, n, first - 1)]),
         "out of order; expected the backward of slice %d before it", first - 1);
    MUST(!(done & parts), "runs a second time; expected once");
    if (node->footprint.part_elements) {
        const unsigned next = wanted & ~done & PART_INPUT ? PART_INPUT : PART_PARAMS;
        const int part = next == PART_PARAMS ? m->parted[m->op->node] + 1 : 0;
        MUST(parts == next && m->op->part == part, "parts %u, %d; expected %u, %d: INPUT, then PARAMS part by part",
             parts, m->op->part, next, part);
    } else if (split) {
        unsigned next = done ? PART_INPUT : PART_PARAMS;
        MUST(parts == next, "parts %u; expected %u, a split backward runs PARAMS, then INPUT", parts, next);
    } else {
        MUST(parts == wanted, "parts %u; expected %u", parts, wanted);
    }
    MUST(node->footprint.part_elements || !m->op->part, "part %d; expected 0", m->op->part);
    return ST_OK;
}

static enum status backward_gradients(struct machine *m, const struct plan_data_node *node)
{
    const struct op *op = m->op;
    bool again = m->done[machine_slot(m, op->node, machine_first(m))] || op->part > 1;
    const struct operand whole = machine_part(m, node->gradient_bytes);
    uint64_t dy = m->gradient[op->node + 1], derived = symbol_name(DERIVED, (uint64_t)op->node, dy);
    if (op->node + 1 == m->data->nodes && !again) { /* no op writes it: it is born here, if it has bytes */
        TRY(operand_called(m, op->dy, CATEGORY_GRADIENT, op->node));
        TRY(machine_writes(m, op->dy, whole, dy, "dy"));
    }
    TRY(machine_reads(m, op->dy, whole, node->footprint.writes_dy && again ? derived : dy, "dy"));
    if (node->footprint.writes_dy && !again) TRY(machine_writes(m, op->dy, whole, derived, "dy"));
    for (int k = 0; k < NODE_INPUTS_MAX; k++) {
        int x = node->inputs[k];
        bool wanted = x > 0 && op->parts & PART_INPUT && m->data->node[x - 1].wants_gradient;
        size_t bytes = wanted ? m->data->node[x - 1].gradient_bytes : 0;
        TRY(machine_apart(m, op->dx[k], k == 0 && node->footprint.dx_over_dy ? op->dy : BUFFER_NONE, 1, "dx"));
        if (wanted) TRY(operand_called(m, op->dx[k], CATEGORY_GRADIENT, x - 1));
        TRY(machine_writes(m, op->dx[k], machine_part(m, bytes),
                           symbol_name(INPUT_GRADIENT, (uint64_t)op->node, (uint64_t)k), "dx"));
    }
    return ST_OK;
}

static enum status backward(struct machine *m, const struct plan_data_node *node)
{
    const struct op *op = m->op;
    TRY(backward_order(m, node));
    if (m->data->operators) {
        TRY(operand_scratch(m, node->footprint.backward_scratch[PART_INDEX_INPUT]));
        m->done[op->node] |= op->parts;
        return traced_backward(m);
    }
    if (op->parts & PART_INPUT) TRY(reads_parameters(m));
    const bool parted = node->footprint.part_elements; /* each op keeps all that the backward reads */
    const unsigned read = footprint_reads(node->footprint.reads, parted ? m->parts[op->node] : op->parts);
    for (int k = 0; k < NODE_INPUTS_MAX; k++) {
        bool wanted = (k == 0 ? read & (READS_X | READS_X0) : read & READS_X) && node->inputs[k] >= 0;
        MUST(wanted || op->x[k] == BUFFER_NONE, "x is buffer %d; expected none, it is not read", op->x[k]);
        if (wanted) TRY(operand_value(m, op->x[k], node->inputs[k], "x"));
    }
    MUST(read & READS_Y || op->y == BUFFER_NONE, "y is buffer %d; expected none, it is not read", op->y);
    if (read & READS_Y) TRY(operand_value(m, op->y, op->node + 1, "y"));
    bool saved = read & READS_SAVED && node->footprint.saved;
    MUST(saved || op->saved == BUFFER_NONE,
         "the saved tensors are in buffer %d; expected none, the op does not read them", op->saved);
    if (saved) TRY(operand_saved(m, op->saved, op->node, node->footprint.saved));
    TRY(operand_once(m, node, op->parts & PART_INPUT || node->footprint.once));
    TRY(operand_scratch(m, footprint_scratch(node->footprint.backward_scratch, op->parts)));
    TRY(writes_gradients(m));
    TRY(backward_gradients(m, node));
    size_t bytes;
    if (!parted || op->parts == PART_INPUT || ++m->parted[op->node] == updates_of(m->data, op->node, &bytes))
        for (int k = machine_first(m); k <= machine_last(m); k++) m->done[machine_slot(m, op->node, k)] |= op->parts;
    return ST_OK;
}

/* The contribution of a node to the gradient of its k-th input; 0: none. */
static uint64_t contribution(const struct machine *m, int node, int k)
{
    const struct plan_data_node *n = &m->data->node[node];
    if (n->inputs[k] <= 0 || !m->data->node[n->inputs[k] - 1].wants_gradient) return 0;
    return n->footprint.passes_gradient ? m->gradient[node + 1]
                                        : symbol_name(INPUT_GRADIENT, (uint64_t)node, (uint64_t)k);
}

/* COPY copies its node's dy, ACCUMULATE adds its node's contribution to a sum. The sum is not checked here: a wrong one
 * is found where it is read as dy. */
static enum status combine(struct machine *m)
{
    const struct op *op = m->op;
    bool two = op->kind == OP_ACCUMULATE;
    const int slice = machine_first(m);
    const size_t calls = op->slice == WHOLE_BATCH ? 1 : (size_t)m->slices;
    MUST(op->bytes, "0 bytes; expected those of a gradient");
    const struct operand bytes = {op->bytes, op->bytes * calls};
    TRY(machine_look(m, op->x[0], bytes, "a gradient"));
    if (two) TRY(machine_look(m, op->x[1], bytes, "a gradient"));
    uint64_t a = machine_cell(m, op->x[0], slice)->content, b = two ? machine_cell(m, op->x[1], slice)->content : a;
    MUST(a && b, "expected gradients in its inputs, which are undefined");
    int of = !two && a == m->gradient[op->node + 1] ? op->node : -1; /* the node whose value's gradient it is */
    for (int k = 0; two && k < NODE_INPUTS_MAX; k++) {
        const int input = m->data->node[op->node].inputs[k] - 1;
        if (b != contribution(m, op->node, k)) continue;
        if (of < 0 || machine_called(m, op->y, CATEGORY_GRADIENT, input)) of = input;
    }
    MUST(of >= 0, "expected %s of node %d in buffer %d (%s)", two ? "a contribution" : "dy", op->node, op->x[two],
         machine_buffer(m, op->x[two]));
    MUST(two || (m->data->node[op->node].footprint.writes_dy && m->parts[op->node] &&
                 !m->done[machine_slot(m, op->node, slice)] && m->data->buffer[op->x[0]].death > m->at),
         "is a copy; expected one only before a backward that overwrites a gradient with later readers");
    int shared = (op->x[0] == op->y) + (op->x[1] == op->y);
    TRY(machine_apart(m, op->y, two && shared ? op->y : BUFFER_NONE, shared, "the sum"));
    TRY(operand_called(m, op->y, CATEGORY_GRADIENT, of));
    MUST(op->bytes == m->data->node[of].gradient_bytes / calls, "%zu bytes; expected those of a gradient, %zu",
         op->bytes, m->data->node[of].gradient_bytes / calls);
    TRY(machine_reads(m, op->x[0], bytes, a, "a gradient"));
    if (two) TRY(machine_reads(m, op->x[1], bytes, b, "a gradient"));
    return machine_writes(m, op->y, bytes, two ? sum(a, b) : a, "a gradient");
}

/* ---- the run ---- */

static void count(struct machine *m, const struct plan_data_node *node)
{
    struct outcome *o = &m->outcome;
    const double calls = (double)machine_calls(m, m->op->node);
    if (m->live > o->live_peak) {
        o->live_peak = m->live;
        o->peak_op = m->at;
        memcpy(o->peak, m->live_by, sizeof o->peak);
    }
    if (m->op->kind == OP_FORWARD) {
        o->time += (node->forward_time + (m->op->recompute ? 0 : node->once_time)) / calls;
        if (m->op->recompute) o->recompute_flops += node->forward_flops / calls;
        o->recomputations += m->op->recompute;
    }
    for (unsigned part = 0; m->op->kind == OP_BACKWARD && part < 2; part++)
        if (m->op->parts & 1u << part && m->op->part < 2) o->time += node->backward_time[part] / calls;
}

/* The operands and flags that an op of its kind does not have. */
static enum status spare(const struct machine *m)
{
    const struct op *op = m->op;
    const bool passes = op->kind == OP_FORWARD || op->kind == OP_BACKWARD, back = op->kind == OP_BACKWARD,
               update = op->kind == OP_UPDATE;
    const bool gradients = back && !m->data->operators;
    const int none[] = {gradients ? -1 : op->dx[0],
                        gradients ? -1 : op->dx[1],
                        gradients ? -1 : op->dy,
                        passes ? -1 : op->saved,
                        passes ? -1 : op->scratch,
                        passes ? -1 : op->once,
                        op->kind == OP_COPY ? op->x[1] : -1};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        MUST(none[i] == BUFFER_NONE, "buffer %d is an operand; expected none there", none[i]);
    MUST(op->kind == OP_FORWARD || (!op->recompute && !op->save),
         "recompute is %d and save %d; expected 0 except of forwards", op->recompute, op->save);
    MUST(!passes || (op->slice == WHOLE_BATCH) == m->data->node[op->node].whole, "slice %d; expected %s", op->slice,
         m->data->node[op->node].whole ? "the whole batch" : "a slice");
    MUST(!update || op->slice == WHOLE_BATCH, "slice %d; expected the whole batch", op->slice);
    MUST(back || !op->parts, "parts %u; expected 0 except of a backward", op->parts);
    MUST(back || update || (op->gradients == BUFFER_NONE && !op->part),
         "part %d of gradients in buffer %d; expected none except of a backward or an update", op->part, op->gradients);
    MUST(!update || (op->x[0] == BUFFER_NONE && op->x[1] == BUFFER_NONE && op->y == BUFFER_NONE),
         "buffers %d, %d and %d are operands; expected none but the gradients", op->x[0], op->x[1], op->y);
    MUST(!(passes || update) || !op->bytes, "%zu bytes; expected 0 except of a copy or a sum", op->bytes);
    return ST_OK;
}

static enum status step(struct machine *m)
{
    const struct plan_data *a = m->data;
    const struct plan_data_node *node = &a->node[m->op->node];
    if (!m->forwarded && (m->op->kind != OP_FORWARD || m->op->recompute)) {
        m->forwarded = true;
        m->outcome.live_forward = m->live;
    }
    for (int id = m->born[m->at]; id >= 0; id = m->next_born[id]) TRY(machine_bear(m, id));
    count(m, node);
    TRY(spare(m));
    if (m->op->kind == OP_FORWARD) {
        TRY(forward(m, node));
    } else if (m->op->kind == OP_BACKWARD) {
        TRY(backward(m, node));
    } else if (m->op->kind == OP_UPDATE) {
        TRY(update(m));
    } else {
        TRY(combine(m));
    }
    size_t live = m->live;
    for (int id = m->dies[m->at]; id >= 0; id = m->next_dying[id]) TRY(machine_bury(m, id));
    MUST(a->live[m->at] == live, "live is %zu bytes; expected %zu", a->live[m->at], live);
    return ST_OK;
}

/* Conditions at the end. */
static enum status finish(struct machine *m)
{
    const struct plan_data *a = m->data;
    for (int k = 0; k < m->slices; k++)
        MUST(traced_next(a, m->first_forwards[k]) == a->nodes, "node %d (%s) has not run forward", m->first_forwards[k],
             a->node[m->first_forwards[k]].name);
    for (int i = a->nodes * m->slices - 1; i >= 0; i--)
        MUST(m->done[i] == m->parts[i / m->slices], "node %d (%s) has not run backward", i / m->slices,
             a->node[i / m->slices].name);
    for (int n = 0; n < a->nodes; n++) {
        size_t bytes;
        const int updates = updates_of(a, n, &bytes);
        MUST(m->updated[n] == updates, "node %d (%s) had %d updates; expected %d", n, a->node[n].name, m->updated[n],
             updates);
        MUST(!a->node[n].footprint.gradients || a->node[n].footprint.gradients == bytes,
             "node %d (%s): gradients of %zu bytes; expected %zu", n, a->node[n].name, a->node[n].footprint.gradients,
             bytes);
    }
    for (m->at = 0; m->at < a->ops; m->at++) {
        const struct op *op = &a->op[m->at];
        if (op->kind != OP_FORWARD) continue;
        MUST(m->saved_read[m->at] || !op->save, "saves tensors that no op reads; expected not to save");
        MUST(m->value_read[m->at] || m->saved_read[m->at] || !op->recompute || !a->drop_dead,
             "is a dead recomputation; expected it to be left out");
    }
    return ST_OK;
}

/* Every value's gradient: the sum of contributions in reverse order of the nodes that read it. */
static void differentiate(struct machine *m)
{
    const struct plan_data *a = m->data;
    m->gradient[a->nodes] = symbol_name(INPUT_GRADIENT, (uint64_t)a->nodes, 0);
    for (int n = a->nodes - 1; n >= 0; n--) {
        for (int k = 0; k < NODE_INPUTS_MAX; k++) {
            uint64_t from = contribution(m, n, k);
            if (!from) continue;
            uint64_t *to = &m->gradient[a->node[n].inputs[k]];
            *to = *to ? sum(*to, from) : from;
        }
    }
}

/* The parts that each node's backward has. */
static void find_parts(struct machine *m)
{
    const struct plan_data *a = m->data;
    if (a->evaluate) return;
    for (int n = 0; n < a->operators; n++) m->parts[n] = a->traced[n].has_backward ? PART_PARAMS | PART_INPUT : 0;
    for (int p = 0; p < a->parameters; p++)
        if (!a->parameter[p].frozen) m->parts[a->parameter[p].node] |= PART_PARAMS;
    for (int n = 0; n < a->nodes; n++)
        if (a->node[n].tied && !a->parameter[a->node[n].tied - 1].frozen) m->parts[n] |= PART_PARAMS;
    for (int n = 0; n < a->nodes; n++)
        for (int k = 0; k < NODE_INPUTS_MAX; k++) {
            int x = a->node[n].inputs[k];
            if (x > 0 && a->node[x - 1].wants_gradient && !a->node[n].footprint.passes_gradient)
                m->parts[n] |= PART_INPUT;
        }
}

/* Of a traced step, whose rows ascend by node. */
static void list_rows(struct machine *m)
{
    const struct plan_data *a = m->data;
    NEW(m->region, m->read_from, (size_t)a->nodes + 1);
    NEW(m->region, m->use_from, (size_t)a->nodes + 1);
    for (int n = 0, i = 0, k = 0; n < a->nodes; n++) {
        while (i < a->reads && a->read[i].node == n) i++;
        while (k < a->uses && a->use[k].node == n) k++;
        m->read_from[n + 1] = i;
        m->use_from[n + 1] = k;
    }
}

static void set_up(struct machine *m)
{
    const struct plan_data *a = m->data;
    const size_t nodes = (size_t)a->nodes, ops = (size_t)a->ops, buffers = (size_t)a->buffers;
    const size_t slices = a->slices;
    NEW(m->region, m->cell, buffers * slices);
    NEW(m->region, m->living, buffers);
    NEW(m->region, m->stays, buffers);
    NEW(m->region, m->alive, buffers);
    NEW(m->region, m->next_born, buffers);
    NEW(m->region, m->next_dying, buffers);
    NEW(m->region, m->born, ops);
    NEW(m->region, m->dies, ops);
    NEW(m->region, m->value_read, ops);
    NEW(m->region, m->saved_read, ops);
    NEW(m->region, m->parts, nodes);
    NEW(m->region, m->done, nodes * slices);
    NEW(m->region, m->parted, nodes);
    NEW(m->region, m->updated, nodes);
    NEW(m->region, m->forwards, nodes * slices);
    NEW(m->region, m->value_at, nodes * slices);
    NEW(m->region, m->saved_at, nodes * slices);
    NEW(m->region, m->first_forwards, slices);
    NEW(m->region, m->due, slices);
    NEW(m->region, m->gradient, nodes + 1);
    m->slices = (int)slices;
    for (size_t k = 0; k < slices; k++) m->due[k] = a->nodes - 1;
    m->outcome.parts = m->parts;
    find_parts(m);
    differentiate(m);
    machine_list_lifetimes(m);
    list_rows(m);
}

static enum status run(struct machine *m)
{
    TRY(plan_data_check(m->data));
    set_up(m);
    for (; m->at < m->data->ops; m->at++) {
        m->op = &m->data->op[m->at];
        TRY(step(m));
    }
    TRY(finish(m));
    return plan_claims_check(m->data, &m->outcome);
}

enum status simulate(const struct plan_data *data)
{
    region_auto *region = region_create();
    struct machine m = {.data = data, .region = region};
    return run(&m);
}
