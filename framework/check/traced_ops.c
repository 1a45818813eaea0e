#include "check/traced_ops.h"

int traced_next(const struct plan_data *data, int node)
{
    while (data->operators && node < data->nodes && !data->traced[node].forward) node++;
    return node;
}

/* The op's operand number k, counted over reads and writes; BUFFER_NONE: there are fewer. */
static int operand_at(const struct op *op, int k) { return k < op->reads + op->writes ? op->operand[k] : BUFFER_NONE; }

int traced_over(const struct machine *m)
{
    return m->op->reads && m->data->node[m->op->node].footprint.y_over_x ? m->op->operand[0] : BUFFER_NONE;
}

enum status traced_forward_reads(struct machine *m)
{
    const struct plan_data *a = m->data;
    const int n = m->op->node;
    int count = 0;
    for (int i = m->read_from[n]; i < m->read_from[n + 1]; i++)
        if (!a->read[i].backward) TRY(operand_value(m, operand_at(m->op, count++), a->read[i].of + 1, "an input"));
    MUST(m->op->reads == count && !m->op->writes, "%d operands are read and %d written; expected %d and 0",
         m->op->reads, m->op->writes, count);
    MUST(a->traced[n].forward, "is a forward of a node that has none");
    MUST(!m->op->recompute || !a->traced[n].runs_once, "runs again; expected once, as the step says");
    return ST_OK;
}

static enum status read_forward(struct machine *m, int id, const struct plan_data_read *read)
{
    const size_t kept = m->data->node[read->of].footprint.once;
    if (read->what == HELD_VALUE) return operand_value(m, id, read->of + 1, "a value");
    if (read->what == HELD_SAVED) return operand_saved(m, id, read->of, m->data->node[read->of].footprint.saved);
    return machine_reads(m, id, machine_share(m, kept), symbol_name(ONCE, (uint64_t)read->of, 0), "what is kept");
}

/* Whether another operand of the op that dies here, one that it reads of other backwards, is in the buffer. */
static bool takes_place(const struct machine *m, int id, int first)
{
    for (int k = first; k < m->op->reads; k++)
        if (m->op->operand[k] == id) return true;
    return false;
}

enum status traced_backward(struct machine *m)
{
    const struct plan_data *a = m->data;
    const struct op *op = m->op;
    const int n = op->node;
    int count = 0, writes = 0;
    for (int i = m->read_from[n]; i < m->read_from[n + 1]; i++)
        if (a->read[i].backward) TRY(read_forward(m, operand_at(op, count++), &a->read[i]));
    const int first = count;
    for (int i = m->use_from[n]; i < m->use_from[n + 1]; i++) {
        const struct plan_data_tensor *t = &a->tensor[a->use[i].tensor];
        if (a->use[i].writes) continue;
        TRY(machine_reads(m, operand_at(op, count++), machine_call(t->bytes),
                          symbol_name(TRACED, (uint64_t)a->use[i].tensor, 0), t->name));
    }
    MUST(op->reads == count, "%d operands are read; expected %d", op->reads, count);
    for (int i = m->use_from[n]; i < m->use_from[n + 1]; i++) {
        const struct plan_data_tensor *t = &a->tensor[a->use[i].tensor];
        const int id = operand_at(op, count);
        if (!a->use[i].writes) continue;
        const bool over = !writes++ && a->traced[n].in_place && takes_place(m, id, first);
        count++;
        TRY(machine_apart(m, id, over ? id : BUFFER_NONE, 1, t->name));
        TRY(operand_called(m, id, t->stays ? CATEGORY_PARAMETER_GRADIENT : CATEGORY_GRADIENT, n));
        TRY(machine_writes(m, id, machine_call(t->bytes), symbol_name(TRACED, (uint64_t)a->use[i].tensor, 0), t->name));
        if (id >= 0) m->stays[id] = t->stays; /* also where it takes the place of one that does not */
        MUST(!t->stays || !t->bytes || a->buffer[id].death + 1 == a->ops, "%s dies at op %d; expected it to stay",
             t->name, a->buffer[id].death);
    }
    MUST(op->writes == writes, "%d operands are written; expected %d", op->writes, writes);
    return ST_OK;
}
