#include "check/operands.h"

uint64_t symbol_name(enum symbol symbol, uint64_t a, uint64_t b)
{
    uint64_t h = 0;
    const uint64_t part[] = {(uint64_t)symbol, a, b};
    for (int i = 0; i < 3; i++) {
        h = (h ^ part[i]) * UINT64_C(0x9E3779B97F4A7C15) + 0x7F4A7C15;
        h ^= h >> 29;
    }
    return h ? h : 1;
}

enum status operand_value(struct machine *m, int id, int value, const char *what)
{
    if (value == 0) {
        MUST(id == BUFFER_BATCH, "%s is buffer %d; expected the batch", what, id);
        return ST_OK;
    }
    size_t bytes = m->data->node[value - 1].output_bytes;
    TRY(machine_reads(m, id, machine_part(m, bytes), symbol_name(VALUE, (uint64_t)value, 0), what));
    for (int k = machine_first(m); k <= machine_last(m); k++) {
        const int newest = m->value_at[machine_slot(m, value - 1, k)];
        MUST(!bytes || machine_cell(m, id, k)->writer == newest,
             "%s: buffer %d (%s) was written by op %d; expected the newest, by op %d", what, id, machine_buffer(m, id),
             machine_cell(m, id, k)->writer, newest);
        m->value_read[newest] = true;
    }
    return ST_OK;
}

enum status operand_saved(struct machine *m, int id, int node, size_t bytes)
{
    TRY(machine_reads(m, id, machine_share(m, bytes), symbol_name(SAVED, (uint64_t)node, 0), "the saved tensors"));
    const int writer = machine_cell(m, id, machine_first(m))->writer;
    const int newest = m->saved_at[machine_slot(m, node, machine_first(m))];
    MUST(writer == newest, "the saved tensors in buffer %d (%s) were written by op %d; expected the newest, by op %d",
         id, machine_buffer(m, id), writer, newest);
    m->saved_read[writer] = true;
    return ST_OK;
}

enum status operand_called(const struct machine *m, int id, enum category category, int node)
{
    const struct buffer expected = {
        .category = category, .node = node, .slice = id < 0 ? 0 : m->data->buffer[id].slice};
    char text[128];
    MUST(machine_called(m, id, category, node), "buffer %d is described as %s; expected %s", id, machine_buffer(m, id),
         buffer_text(&expected, m->data->node[node].name, text));
    return ST_OK;
}

enum status operand_scratch(struct machine *m, size_t bytes)
{
    TRY(operand_called(m, m->op->scratch, CATEGORY_SCRATCH, m->op->node));
    TRY(machine_writes(m, m->op->scratch, machine_call(bytes), 0, "scratch"));
    return machine_apart(m, m->op->scratch, BUFFER_NONE, 0, "scratch");
}

enum status operand_once(struct machine *m, const struct plan_data_node *node, bool wanted)
{
    const struct plan_data *a = m->data;
    struct operand bytes = a->rng == RNG_MASK ? machine_share(m, (node->draws + 7) / 8 * a->batch)
                                              : machine_call(sizeof(uint64_t)); /* a place in the stream */
    if (a->rng == RNG_COUNTER) bytes = machine_call(0);
    if (!node->draws) bytes = machine_share(m, node->footprint.once);
    if (!wanted || a->evaluate) bytes = machine_call(0);
    TRY(machine_apart(m, m->op->once, BUFFER_NONE, 0, "what is written once"));
    TRY(operand_called(m, m->op->once, CATEGORY_SAVED, m->op->node));
    uint64_t content = symbol_name(ONCE, (uint64_t)m->op->node, 0);
    if (m->op->kind == OP_FORWARD && !m->op->recompute)
        return machine_writes(m, m->op->once, bytes, content, "what is written once");
    return machine_reads(m, m->op->once, bytes, content, "what is written once");
}
