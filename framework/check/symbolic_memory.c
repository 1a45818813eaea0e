#include "check/symbolic_memory.h"

#include <stdarg.h>
#include <stdio.h>

enum status machine_wrong(const struct machine *m, const char *format, ...)
{
    char op[128] = "", what[384];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (m->at >= m->data->ops) return fail(ST_DIFFERS, "at the end: %s", what);
    const struct op *o = &m->data->op[m->at];
    op_text(o, m->data->node[o->node].name, op);
    return fail(ST_DIFFERS, "op %d (%s): %s", m->at, op, what);
}

const char *machine_buffer(const struct machine *m, int id)
{
    const struct buffer *b = &m->data->buffer[id];
    char text[128];
    return region_text(m->region, "%s", buffer_text(b, m->data->node[b->node].name, text));
}

static size_t rounded(const struct machine *m, size_t bytes)
{
    size_t unit = m->data->granularity, rest = bytes % unit;
    return rest ? bytes - rest + unit : bytes;
}

int machine_first(const struct machine *m) { return m->op->slice == WHOLE_BATCH ? 0 : m->op->slice; }
int machine_last(const struct machine *m) { return m->op->slice == WHOLE_BATCH ? m->slices - 1 : m->op->slice; }

size_t machine_calls(const struct machine *m, int node) { return m->data->node[node].whole ? 1 : (size_t)m->slices; }

struct cell *machine_cell(const struct machine *m, int id, int slice)
{
    return &m->cell[(size_t)id * (size_t)m->slices + (size_t)slice];
}

struct operand machine_part(const struct machine *m, size_t bytes)
{
    if (m->op->slice == WHOLE_BATCH) return (struct operand){bytes, bytes};
    return (struct operand){bytes / (size_t)m->slices, bytes};
}

struct operand machine_share(const struct machine *m, size_t bytes)
{
    return (struct operand){machine_part(m, bytes).bytes, 0};
}

struct operand machine_call(size_t bytes) { return (struct operand){bytes, 0}; }

enum status machine_look(const struct machine *m, int id, struct operand operand, const char *what)
{
    if (!operand.bytes) {
        MUST(id == BUFFER_NONE, "%s is buffer %d; expected none, it has no bytes", what, id);
        return ST_OK;
    }
    MUST(id >= 0, "%s has no buffer; expected one of %zu bytes", what, rounded(m, operand.bytes));
    const struct buffer *b = &m->data->buffer[id];
    const bool all = operand.all && b->slice == WHOLE_BATCH;
    const size_t bytes = rounded(m, all ? operand.all : operand.bytes);
    MUST(all || b->slice == m->op->slice, "%s: buffer %d (%s) is of slice %d; expected %d", what, id,
         machine_buffer(m, id), b->slice, m->op->slice);
    MUST(b->bytes == bytes, "%s: buffer %d (%s) has %zu bytes; expected %zu", what, id, machine_buffer(m, id), b->bytes,
         bytes);
    MUST(m->living[id], "%s: buffer %d (%s) lives from op %d to op %d; expected it to be alive here", what, id,
         machine_buffer(m, id), b->birth, b->death);
    return ST_OK;
}

enum status machine_reads(const struct machine *m, int id, struct operand operand, uint64_t content, const char *what)
{
    TRY(machine_look(m, id, operand, what));
    for (int k = machine_first(m); operand.bytes && k <= machine_last(m); k++) {
        const uint64_t held = machine_cell(m, id, k)->content;
        MUST(held == content, "expected %s in buffer %d (%s), which holds %s", what, id, machine_buffer(m, id),
             held ? "something else" : "nothing yet");
    }
    return ST_OK;
}

enum status machine_writes(struct machine *m, int id, struct operand operand, uint64_t content, const char *what)
{
    TRY(machine_look(m, id, operand, what));
    for (int k = machine_first(m); operand.bytes && k <= machine_last(m); k++)
        *machine_cell(m, id, k) = (struct cell){m->at, content};
    return ST_OK;
}

bool machine_called(const struct machine *m, int id, enum category category, int node)
{
    if (id < 0 || machine_cell(m, id, machine_first(m))->writer >= 0) return true;
    const struct buffer *b = &m->data->buffer[id];
    return b->category == category && b->node == node;
}

/* The number of operands of the op in the buffer. */
static int uses(const struct op *op, int id)
{
    int count = 0;
    for (int k = 0; k < OP_OPERANDS; k++) count += op->buffer[k] == id;
    for (int k = 0; k < op->reads + op->writes; k++) count += op->operand[k] == id;
    return count;
}

enum status machine_apart(const struct machine *m, int id, int partner, int shared, const char *what)
{
    int allowed = id == partner ? 1 + shared : 1;
    MUST(id < 0 || uses(m->op, id) == allowed,
         "%s is in buffer %d (%s), which is another operand's; expected a buffer of its own", what, id,
         machine_buffer(m, id));
    return ST_OK;
}

void machine_list_lifetimes(struct machine *m)
{
    const struct plan_data *a = m->data;
    for (int i = 0; i < a->ops; i++) m->born[i] = m->dies[i] = -1;
    for (int id = a->buffers - 1; id >= 0; id--) {
        const struct buffer *b = &a->buffer[id];
        m->next_born[id] = m->born[b->birth];
        m->next_dying[id] = m->dies[b->death];
        m->born[b->birth] = m->dies[b->death] = id;
    }
}

enum status machine_bear(struct machine *m, int id)
{
    const struct buffer *b = &m->data->buffer[id], *other;
    size_t unit = m->data->granularity, arena = m->data->count[COUNT_ARENA];
    MUST(b->bytes && b->bytes % unit == 0 && b->offset % unit == 0,
         "buffer %d (%s) has %zu bytes at %zu; expected multiples of %zu", id, machine_buffer(m, id), b->bytes,
         b->offset, unit);
    MUST(b->bytes <= arena && b->offset <= arena - b->bytes,
         "buffer %d (%s) has %zu bytes at %zu; expected it to end within the arena's %zu", id, machine_buffer(m, id),
         b->bytes, b->offset, arena);
    MUST(uses(m->op, id), "buffer %d (%s) is born here; expected it to be used", id, machine_buffer(m, id));
    for (int i = 0; i < m->alives; i++) {
        other = &m->data->buffer[m->alive[i]];
        MUST(b->offset + b->bytes <= other->offset || other->offset + other->bytes <= b->offset,
             "buffer %d (%s, %zu bytes at %zu) overlaps buffer %d (%s, %zu bytes at %zu); expected them apart", id,
             machine_buffer(m, id), b->bytes, b->offset, m->alive[i], machine_buffer(m, m->alive[i]), other->bytes,
             other->offset);
    }
    m->alive[m->alives++] = id;
    m->living[id] = true;
    for (int k = 0; k < m->slices; k++) *machine_cell(m, id, k) = (struct cell){.writer = -1};
    m->live += b->bytes;
    m->live_by[b->category] += b->bytes;
    if (b->offset + b->bytes > m->outcome.extent) m->outcome.extent = b->offset + b->bytes;
    return ST_OK;
}

enum status machine_bury(struct machine *m, int id)
{
    const struct buffer *b = &m->data->buffer[id];
    MUST((m->stays[id] && m->at + 1 == m->data->ops) || uses(m->op, id),
         "buffer %d (%s) dies here; expected it to be used to the last", id, machine_buffer(m, id));
    for (int i = 0; i < m->alives; i++)
        if (m->alive[i] == id) m->alive[i--] = m->alive[--m->alives];
    m->living[id] = false;
    m->live -= b->bytes;
    m->live_by[b->category] -= b->bytes;
    return ST_OK;
}
