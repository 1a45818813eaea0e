#include "simulate.h"

#include <stdarg.h>
#include <stdio.h>

enum { CELL = 256, FREE = -1 };
enum symbol { VALUE = 1, SAVED, ONCE, INPUT_GRADIENT, SUM, DERIVED };

struct cell {
    int owner, writer; /* buffer and op */
    uint64_t content;  /* 0: undefined */
};

struct machine {
    const struct plan *plan;
    const struct plan_options *options;
    const struct graph *graph;
    const struct op *op; /* the one that runs */
    int at;              /* its number */
    struct cell *cell;
    uint64_t *gradient;                  /* value -> its whole gradient */
    int *forwards, *value_at, *saved_at; /* node -> forwards so far, ops that wrote its newest value and saved set */
    unsigned *done;                      /* node -> parts of its backward that have run */
    bool *value_read, *saved_read;       /* op -> is what it wrote read later? */
    int first_forwards;
    size_t live, live_peak;
    char *wrong;
};

/* A name for (symbol, a, b): equal only for equal arguments, up to chance. */
static uint64_t name(enum symbol symbol, uint64_t a, uint64_t b)
{
    uint64_t h = (uint64_t)symbol;
    const uint64_t part[] = {a, b};
    for (int i = 0; i < 2; i++) {
        h = (h ^ part[i]) * UINT64_C(0x9E3779B97F4A7C15) + 0x7F4A7C15;
        h ^= h >> 29;
    }
    return h ? h : 1;
}

static uint64_t sum(uint64_t a, uint64_t b) { return a < b ? name(SUM, a, b) : name(SUM, b, a); } /* a + b = b + a */

static bool wrong(struct machine *m, const char *format, ...)
{
    char op[128] = "end", what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (m->at < m->plan->lowered.ops) plan_op_text(m->plan, m->at, op);
    m->wrong = region_text(m->plan->region, "op %d (%s): %s", m->at, op, what);
    return false;
}

#define MUST(condition, ...)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) return wrong(m, __VA_ARGS__);                                                                \
    } while (0)
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if (!(call)) return false;                                                                                     \
    } while (0)

static const struct buffer *buffer_of(const struct machine *m, int id) { return &m->plan->lowered.buffer[id]; }

/* What the cells of a buffer hold; they must be its own, of the right number, and hold one thing, which is not nothing.
 */
static bool look(struct machine *m, int id, size_t bytes, const char *what, struct cell *found)
{
    MUST(id >= 0 && id < m->plan->lowered.buffers, "no buffer for %s", what);
    const struct buffer *b = buffer_of(m, id);
    MUST(b->bytes == (bytes + CELL - 1) / CELL * CELL, "%s: %zu bytes in a buffer of %zu", what, bytes, b->bytes);
    *found = m->cell[b->offset / CELL];
    for (size_t i = b->offset / CELL; i < (b->offset + b->bytes) / CELL; i++) {
        MUST(m->cell[i].owner == id, "%s: buffer %d is not alive", what, id);
        MUST(m->cell[i].content == found->content && m->cell[i].writer == found->writer, "%s: torn", what);
    }
    return true;
}

static bool reads(struct machine *m, int id, size_t bytes, uint64_t content, const char *what)
{
    struct cell found;
    CHECK(look(m, id, bytes, what, &found));
    MUST(found.content == content, "%s is not in buffer %d%s", what, id, found.content ? "" : ", nothing is");
    return true;
}

static bool writes(struct machine *m, int id, size_t bytes, uint64_t content, const char *what)
{
    struct cell before;
    CHECK(look(m, id, bytes, what, &before));
    const struct buffer *b = buffer_of(m, id);
    for (size_t i = b->offset / CELL; i < (b->offset + b->bytes) / CELL; i++)
        m->cell[i].content = content, m->cell[i].writer = m->at;
    return true;
}

static bool reads_value(struct machine *m, int id, int value)
{
    struct cell found;
    if (value == 0) {
        MUST(id == BUFFER_BATCH, "the batch is read from buffer %d", id);
        return true;
    }
    CHECK(reads(m, id, m->graph->value[value].bytes, name(VALUE, (uint64_t)value, 0), "a value"));
    CHECK(look(m, id, m->graph->value[value].bytes, "a value", &found));
    MUST(found.writer == m->value_at[value - 1], "value %d is not the newest", value);
    m->value_read[found.writer] = true;
    return true;
}

static bool reads_saved(struct machine *m, int node)
{
    struct cell found;
    size_t bytes = m->plan->network->binding[node].footprint.saved;
    CHECK(reads(m, m->op->saved, bytes, name(SAVED, (uint64_t)node, 0), "the saved set"));
    CHECK(look(m, m->op->saved, bytes, "the saved set", &found));
    MUST(found.writer == m->saved_at[node], "the saved set is not the newest");
    m->saved_read[found.writer] = true;
    return true;
}

/* How many operands of the op are the buffer. */
static int uses(const struct op *op, int id)
{
    const int operand[] = {op->x[0], op->x[1], op->y, op->dx[0], op->dx[1], op->dy, op->saved, op->scratch, op->once};
    int count = 0;
    for (size_t i = 0; i < sizeof operand / sizeof *operand; i++) count += operand[i] == id;
    return count;
}

/* An output that is no other operand, but for an input whose place it may take (shared: how often that input is one).
 */
static bool apart(struct machine *m, int id, int partner, int shared, const char *what)
{
    int allowed = id == partner ? 1 + shared : 1;
    MUST(id < 0 || uses(m->op, id) == allowed, "%s shares buffer %d with another operand", what, id);
    return true;
}

static bool scratch(struct machine *m, size_t bytes)
{
    if (bytes) CHECK(writes(m, m->op->scratch, bytes, 0, "scratch"));
    MUST(bytes || m->op->scratch == BUFFER_NONE, "scratch that nobody asked for");
    return apart(m, m->op->scratch, BUFFER_NONE, 0, "scratch");
}

/* The stash or mask of a random node: written by its first forward. */
static bool once(struct machine *m, const struct node *node, bool wanted)
{
    size_t bytes = sizeof(uint64_t);
    wanted &= node->layer->random && m->options->lower.rng != RNG_COUNTER;
    MUST(wanted || m->op->once == BUFFER_NONE, "a stash that nobody asked for");
    if (!wanted) return true;
    if (m->options->lower.rng == RNG_MASK) {
        int64_t elements = shape_elements(&m->graph->value[node->output].shape);
        bytes = (size_t)((elements + 7) / 8 * m->graph->batch);
    }
    CHECK(apart(m, m->op->once, BUFFER_NONE, 0, "the stash"));
    uint64_t content = name(ONCE, (uint64_t)node->index, 0);
    if (m->op->kind == OP_FORWARD && !m->op->replay) return writes(m, m->op->once, bytes, content, "the stash");
    return reads(m, m->op->once, bytes, content, "the stash");
}

static bool forward(struct machine *m, const struct node *node, const struct footprint *f)
{
    const struct op *op = m->op;
    MUST(op->replay == (m->forwards[node->index] > 0), "replay is marked wrong");
    if (!op->replay) MUST(m->first_forwards++ == node->index, "first forwards are out of order");
    m->forwards[node->index]++;
    for (int k = 0; k < node->layer->inputs; k++) CHECK(reads_value(m, op->x[k], node->inputs[k]));
    CHECK(once(m, node, true));
    CHECK(scratch(m, f->forward_scratch));
    CHECK(apart(m, op->y, f->y_over_x ? op->x[0] : BUFFER_NONE, (op->x[0] == op->y) + (op->x[1] == op->y), "y"));
    CHECK(writes(m, op->y, m->graph->value[node->output].bytes, name(VALUE, (uint64_t)node->output, 0), "y"));
    m->value_at[node->index] = m->at;
    MUST(op->save == (op->saved != BUFFER_NONE), "save without a place for it");
    if (!op->save) return true;
    m->saved_at[node->index] = m->at;
    CHECK(apart(m, op->saved, BUFFER_NONE, 0, "the saved set"));
    return writes(m, op->saved, f->saved, name(SAVED, (uint64_t)node->index, 0), "the saved set");
}

/* The parts that a node's backward has. */
static unsigned wanted_parts(const struct machine *m, const struct node *node)
{
    unsigned parts = node->parameters ? PART_PARAMS : 0;
    for (int k = 0; k < node->layer->inputs; k++)
        if (m->graph->value[node->inputs[k]].wants_gradient) parts |= PART_INPUT;
    return m->plan->network->binding[node->index].footprint.passes_gradient ? parts & PART_PARAMS : parts;
}

static bool backward_order(struct machine *m, const struct node *node, const struct footprint *f)
{
    unsigned parts = m->op->parts, wanted = wanted_parts(m, node), done = m->done[node->index];
    for (int n = node->index + 1; n < m->graph->nodes; n++)
        MUST(m->done[n] == wanted_parts(m, &m->graph->node[n]), "node %d's backward has not been run", n);
    MUST(!(done & parts), "run a second time");
    if (f->split && wanted == (PART_PARAMS | PART_INPUT)) {
        MUST(parts == (done ? PART_INPUT : PART_PARAMS), "a split backward runs PARAMS, then INPUT");
    } else {
        MUST(parts == wanted, "parts %u instead of %u", parts, wanted);
    }
    return true;
}

static bool backward_gradients(struct machine *m, const struct node *node, const struct footprint *f)
{
    const struct op *op = m->op;
    size_t bytes = m->graph->value[node->output].bytes;
    uint64_t dy = m->gradient[node->output];
    if (node->layer->loss) {
        MUST(op->dy == BUFFER_NONE, "a loss has no dy");
    } else {
        uint64_t derived = name(DERIVED, (uint64_t)node->index, dy);
        CHECK(reads(m, op->dy, bytes, f->writes_dy && m->done[node->index] ? derived : dy, "dy"));
        if (f->writes_dy && !m->done[node->index]) CHECK(writes(m, op->dy, bytes, derived, "dy"));
    }
    for (int k = 0; k < NODE_INPUTS_MAX; k++) {
        const struct value *x = k < node->layer->inputs ? &m->graph->value[node->inputs[k]] : NULL;
        bool wanted = x && op->parts & PART_INPUT && x->wants_gradient;
        MUST(wanted || op->dx[k] == BUFFER_NONE, "a dx that nobody asked for");
        if (!wanted) continue;
        CHECK(apart(m, op->dx[k], k == 0 && f->dx_over_dy ? op->dy : BUFFER_NONE, 1, "dx"));
        CHECK(writes(m, op->dx[k], x->bytes, name(INPUT_GRADIENT, (uint64_t)node->index, (uint64_t)k), "dx"));
    }
    return true;
}

static bool backward(struct machine *m, const struct node *node, const struct footprint *f)
{
    const struct op *op = m->op;
    CHECK(backward_order(m, node, f));
    bool params = op->parts & PART_PARAMS, input = op->parts & PART_INPUT;
    unsigned read = (params ? f->reads[PART_INDEX_PARAMS] : 0) | (input ? f->reads[PART_INDEX_INPUT] : 0);
    for (int k = 0; k < NODE_INPUTS_MAX; k++) {
        bool wanted = read & READS_X && k < node->layer->inputs;
        MUST(wanted || op->x[k] == BUFFER_NONE, "an x that nobody asked for");
        if (wanted) CHECK(reads_value(m, op->x[k], node->inputs[k]));
    }
    MUST(read & READS_Y || op->y == BUFFER_NONE, "a y that nobody asked for");
    if (read & READS_Y) CHECK(reads_value(m, op->y, node->output));
    MUST((read & READS_SAVED && f->saved) || op->saved == BUFFER_NONE, "a saved set that nobody asked for");
    if (read & READS_SAVED && f->saved) CHECK(reads_saved(m, node->index));
    CHECK(once(m, node, input));
    size_t a = params ? f->backward_scratch[PART_INDEX_PARAMS] : 0,
           b = input ? f->backward_scratch[PART_INDEX_INPUT] : 0;
    CHECK(scratch(m, a > b ? a : b));
    CHECK(backward_gradients(m, node, f));
    m->done[node->index] |= op->parts;
    return true;
}

/* COPY and ACCUMULATE take gradients as they find them: a wrong one is caught where it is read as dy. */
static bool combine(struct machine *m)
{
    const struct op *op = m->op;
    struct cell a, b = {0};
    bool two = op->kind == OP_ACCUMULATE;
    CHECK(look(m, op->x[0], op->bytes, "a gradient", &a));
    MUST(two || buffer_of(m, op->x[0])->death > m->at, "a copy of what nobody else reads");
    if (two) CHECK(look(m, op->x[1], op->bytes, "a gradient", &b));
    MUST(a.content && (b.content || !two), "a gradient that was not written");
    int shared = (op->x[0] == op->y) + (op->x[1] == op->y);
    CHECK(apart(m, op->y, two && shared ? op->y : BUFFER_NONE, shared, "the sum"));
    return writes(m, op->y, op->bytes, two ? sum(a.content, b.content) : a.content, "a gradient");
}

/* Buffers that begin at this op take their cells, or (at its end) those that end here give them back. */
static bool turn(struct machine *m, bool begin)
{
    for (int id = 0; id < m->plan->lowered.buffers; id++) {
        const struct buffer *b = buffer_of(m, id);
        if ((begin ? b->birth : b->death) != m->at) continue;
        MUST(b->offset % CELL == 0 && b->bytes % CELL == 0 && b->bytes, "buffer %d is not aligned", id);
        MUST(b->offset + b->bytes <= m->plan->arena_bytes, "buffer %d lies beyond the arena", id);
        MUST(b->death >= b->birth && uses(m->op, id), "buffer %d is alive and not used", id);
        m->live += begin ? b->bytes : 0 - b->bytes;
        for (size_t i = b->offset / CELL; i < (b->offset + b->bytes) / CELL; i++) {
            MUST(m->cell[i].owner == (begin ? FREE : id), "buffers %d and %d overlap", id, m->cell[i].owner);
            m->cell[i] = (struct cell){.owner = begin ? id : FREE};
        }
    }
    return true;
}

static bool step(struct machine *m)
{
    const struct node *node = &m->graph->node[m->op->node];
    const struct footprint *f = &m->plan->network->binding[m->op->node].footprint;
    CHECK(turn(m, true));
    MUST(m->live == m->plan->live[m->at], "%zu bytes are live, not %zu", m->live, m->plan->live[m->at]);
    if (m->live > m->live_peak) m->live_peak = m->live;
    if (m->op->kind == OP_FORWARD) {
        CHECK(forward(m, node, f));
    } else if (m->op->kind == OP_BACKWARD) {
        CHECK(backward(m, node, f));
    } else {
        CHECK(combine(m));
    }
    return turn(m, false);
}

/* What must have happened by the end. */
static bool finished(struct machine *m)
{
    MUST(m->first_forwards == m->graph->nodes, "node %d never ran", m->first_forwards);
    MUST(m->live == 0, "%zu bytes are live", m->live);
    MUST(m->live_peak == m->plan->live_peak, "a live peak of %zu, not %zu", m->live_peak, m->plan->live_peak);
    for (int n = 0; n < m->graph->nodes && !m->options->forward_only; n++)
        MUST(m->done[n] == wanted_parts(m, &m->graph->node[n]), "node %d's backward has not been run", n);
    for (int i = 0; i < m->plan->lowered.ops; i++) {
        const struct op *op = &m->plan->lowered.op[i];
        if (op->kind != OP_FORWARD) continue;
        MUST(m->saved_read[i] || !op->save, "op %d saved for nobody", i);
        MUST(m->value_read[i] || m->saved_read[i] || !op->replay || !m->options->lower.drop_dead, "op %d is dead", i);
    }
    return true;
}

/* What every value's gradient is: contributions in reverse order of the nodes that read it. */
static void differentiate(struct machine *m)
{
    for (int n = m->graph->nodes - 1; n >= 0; n--) {
        const struct node *node = &m->graph->node[n];
        for (int k = 0; k < node->layer->inputs; k++) {
            uint64_t *to = &m->gradient[node->inputs[k]], from = name(INPUT_GRADIENT, (uint64_t)n, (uint64_t)k);
            if (m->plan->network->binding[n].footprint.passes_gradient) from = m->gradient[node->output];
            if (m->graph->value[node->inputs[k]].wants_gradient) *to = *to ? sum(*to, from) : from;
        }
    }
}

const char *simulate(const struct plan *plan, const struct plan_options *options)
{
    struct machine m = {.plan = plan, .options = options, .graph = plan->network->graph};
    size_t cells = plan->arena_bytes / CELL, nodes = (size_t)m.graph->nodes, ops = (size_t)plan->lowered.ops;
    if (NEW(plan->region, m.cell, cells) || NEW(plan->region, m.gradient, nodes + 1) ||
        NEW(plan->region, m.forwards, nodes) || NEW(plan->region, m.value_at, nodes) ||
        NEW(plan->region, m.saved_at, nodes) || NEW(plan->region, m.done, nodes) ||
        NEW(plan->region, m.value_read, ops) || NEW(plan->region, m.saved_read, ops))
        return status_message();
    for (size_t i = 0; i < cells; i++) m.cell[i].owner = FREE;
    differentiate(&m);
    for (; m.at < plan->lowered.ops; m.at++) {
        m.op = &plan->lowered.op[m.at];
        if (!step(&m)) return m.wrong;
    }
    return finished(&m) ? NULL : m.wrong;
}
