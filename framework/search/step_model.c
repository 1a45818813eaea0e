#include "search/step_model.h"

#include <string.h>

/* Of the ops of storing everything: bytes of gradients, parameters' gradients, scratch, stashes and masks while each
 * runs, and of those that live before it. */
static void list_bytes(const struct lowered *l, struct region *region, size_t **during, size_t **before)
{
    bool *once;
    NEW(region, once, (size_t)l->buffers);
    NEW(region, *during, (size_t)l->ops + 1);
    NEW(region, *before, (size_t)l->ops + 1);
    for (int i = 0; i < l->ops; i++)
        if (l->op[i].once >= 0) once[l->op[i].once] = true;
    for (int i = 0; i < l->buffers; i++) {
        const struct buffer *b = &l->buffer[i];
        if ((b->category == CATEGORY_ACTIVATION || b->category == CATEGORY_SAVED) && !once[i]) continue;
        (*during)[b->birth] += b->bytes; /* what changes there; size_t is modular */
        (*before)[b->birth + 1] += b->bytes;
        (*during)[b->death + 1] -= b->bytes;
        (*before)[b->death + 1] -= b->bytes;
    }
    for (int op = 0; op < l->ops; op++) {
        (*during)[op + 1] += (*during)[op];
        (*before)[op + 1] += (*before)[op];
    }
}

/* Appends an event of ops [from, to); at: the op that reads its operands, to: none does. */
static void add_event(struct step_model *m, struct step_event event, const size_t *during, int from, int at, int to)
{
    for (int op = from; op < to; op++) {
        size_t *most = op <= at && at < to ? &event.during : &event.after;
        if (during[op] > *most) *most = during[op];
    }
    m->event[m->events++] = event;
}

/* Appends the events of node's backward, whose ops are [from, to). */
static void add_backward(struct step_model *m, const struct lowered *l, const size_t *during, const size_t *before,
                         int node, int from, int to)
{
    const struct footprint *f = &m->network->binding[node].footprint;
    unsigned parts = network_parts(m->network, node);
    struct step_event event = {.node = node, .kind = STEP_BACKWARD};
    int at = from;
    while (at < to && l->op[at].kind != OP_BACKWARD) at++;
    if (parts == (PART_PARAMS | PART_INPUT) && f->split) {
        event.half = true;
        event.reads = f->reads[PART_INDEX_PARAMS];
        event.before = before[from];
        add_event(m, event, during, from, at, at + 1);
        event.half = false;
        parts = PART_INPUT;
        from = ++at;
    }
    event.reads = footprint_reads(f->reads, parts);
    event.before = before[from];
    for (int op = at; op < to; op++) /* the last of an update in parts */
        if (l->op[op].kind == OP_BACKWARD) at = op;
    add_event(m, event, during, from, at, to);
}

static void list_nodes(struct step_model *m, struct region *region)
{
    const struct graph *graph = m->network->graph;
    NEW(region, m->value, (size_t)m->nodes);
    NEW(region, m->saved, (size_t)m->nodes);
    NEW(region, m->unsaved, (size_t)m->nodes);
    NEW(region, m->scratch, (size_t)m->nodes);
    NEW(region, m->time, (size_t)m->nodes);
    NEW(region, m->over, (size_t)m->nodes);
    NEW(region, m->again, (size_t)m->nodes);
    NEW(region, m->needed, (size_t)m->nodes);
    NEW(region, m->backward, (size_t)m->nodes);
    NEW(region, m->once, (size_t)m->nodes);
    NEW(region, m->unread, (size_t)m->nodes);
    NEW(region, m->masks, (size_t)m->nodes + 1);
    for (int n = 0; n < m->nodes; n++) {
        const struct footprint *f = &m->network->binding[n].footprint;
        const int x = graph->node[n].layer->inputs ? graph->node[n].inputs[0] : 0;
        m->value[n] = network_round(m->network, graph->value[n + 1].bytes);
        m->saved[n] = network_round(m->network, f->saved);
        m->scratch[n] = network_round(m->network, f->forward_scratch);
        m->unsaved[n] = network_round(m->network, f->forward_scratch + network_unsaved(m->network, n)) - m->scratch[n];
        m->time[n] = m->network->cost[n].forward;
        m->over[n] = f->y_over_x && x && m->value[x - 1] == m->value[n];
        m->again[n] = !m->network->binding[n].runs_once;
        m->floor += network_first_time(m->network, n);
        if (network_parts(m->network, n)) m->floor += network_backward_time(m->network, n);
    }
}

/* What the first forward writes once. A recomputation reads it, too; of a traced step it does not, and what no backward
 * reads is live beside that forward alone. */
static void note_once(struct step_model *m, const struct lowered *l, int op)
{
    const int once = l->op[op].once, node = l->op[op].node;
    if (once < 0 || (m->network->traced && l->buffer[once].death == op)) return;
    m->once[node] = l->buffer[once].bytes;
    if (l->buffer[once].death == op) m->unread[node] = m->once[node];
}

struct step_model step_model_create(const struct network *network, const struct lower_options *options,
                                    struct region *region)
{
    const int nodes = network->graph->nodes;
    struct step_model m = {.network = network, .nodes = nodes};
    const struct schedule all = schedule_store_all(nodes, region);
    size_t *during, *before;
    const struct lowered l = lower(network, &all, options, region);
    list_bytes(&l, region, &during, &before);
    list_nodes(&m, region);
    NEW(region, m.event, 3 * (size_t)nodes);
    int op = 0;
    for (int n = 0; n < nodes; n++) {
        const bool any = network_has_forward(network, n);
        add_event(&m, (struct step_event){.node = n, .before = before[op]}, during, op, op, op + any);
        if (any) note_once(&m, &l, op);
        m.masks[n + 1] = m.masks[n] + m.once[n] - m.unread[n];
        op += any;
        m.forwards += any;
    }
    for (int n = nodes - 1, from = op; n >= 0; n--) {
        int to = from;
        while (to < l.ops && l.op[to].node == n) to++;
        m.backward[n] = m.events;
        add_backward(&m, &l, during, before, n, from, to);
        from = to;
    }
    return m;
}

static void meet(struct sweep *s, size_t live)
{
    if (live > s->cost.peak) s->cost.peak = live;
    if (live > s->limit) s->cost.excess += (double)(live - s->limit);
}

static size_t needed_bytes(const struct step_model *m, int node, unsigned needed)
{
    return (needed & NEEDED_Y ? m->value[node] : 0) + (needed & NEEDED_SAVED ? m->saved[node] : 0) +
           (needed & NEEDED_ONCE ? m->unread[node] : 0);
}

bool sweep_need(struct sweep *s, int node, enum needed what)
{
    unsigned *needed = &s->model->needed[node];
    if (*needed & what) return false;
    *needed |= what;
    s->held += needed_bytes(s->model, node, what);
    return true;
}

/* What a forward reads; returns whether nothing needed the first input so far. */
static bool need_inputs(struct sweep *s, int node)
{
    const struct node *at = &s->model->network->graph->node[node];
    bool first = false;
    for (int k = 0; k < at->layer->inputs; k++)
        if (at->inputs[k] && sweep_need(s, at->inputs[k] - 1, NEEDED_Y) && !k) first = true;
    return first;
}

/* base: bytes besides the forward's operands and outputs. */
static void sweep_forward(struct sweep *s, int node, size_t base, bool again)
{
    const struct step_model *m = s->model;
    const unsigned needed = m->needed[node];
    size_t outputs = m->value[node] + (needed & NEEDED_SAVED ? m->saved : m->unsaved)[node];
    m->needed[node] = 0;
    s->held -= needed_bytes(m, node, needed);
    if (again && m->unread[node]) sweep_need(s, node, NEEDED_ONCE);
    if (need_inputs(s, node) && m->over[node]) outputs -= m->value[node];
    meet(s, s->held + outputs + base);
}

void sweep_recomputation(struct sweep *s, int node, int event)
{
    s->cost.time += s->model->time[node];
    sweep_forward(s, node, s->model->event[event].before + s->model->scratch[node], true);
}

void sweep_event(struct sweep *s, int event)
{
    const struct step_model *m = s->model;
    const struct step_event *e = &m->event[event];
    if (e->kind == STEP_FORWARD) {
        sweep_forward(s, e->node, e->during, false);
        return;
    }
    meet(s, s->held + e->after);
    for (struct reading r = step_reading(m, e); reading_next(&r);)
        sweep_need(s, r.node, r.saved ? NEEDED_SAVED : NEEDED_Y);
    meet(s, s->held + e->during);
}

/* Sweeps the items from the last to `from`; where drop, those that nothing needs are left out and the others moved to
 * the end. Returns the place of the first that is kept. */
static int sweep_items(struct sweep *s, struct sequence *sequence, int from, bool drop)
{
    const struct step_model *m = s->model;
    int event = m->events, kept = sequence->length;
    for (int i = sequence->length - 1; i >= from; i--) {
        const int node = sequence->item[i];
        if (node >= 0 && !sweep_is_due(s, node)) continue;
        kept--;
        if (drop) sequence->item[kept] = node;
        if (node >= 0)
            sweep_recomputation(s, node, event);
        else
            sweep_event(s, --event);
    }
    return kept;
}

struct sequence_cost sequence_evaluate(const struct step_model *m, struct sequence *sequence, size_t limit)
{
    struct sweep s = {.model = m, .limit = limit, .cost = {.time = m->floor}};
    const int kept = sweep_items(&s, sequence, 0, true);
    sequence->length -= kept;
    memmove(sequence->item, sequence->item + kept, (size_t)sequence->length * sizeof *sequence->item);
    return s.cost;
}

void sequence_needs(const struct step_model *m, const struct sequence *sequence, int from, unsigned char *needed)
{
    struct sweep s = {.model = m, .limit = SIZE_MAX};
    struct sequence same = *sequence;
    sweep_items(&s, &same, from, false);
    for (int n = 0; n < m->nodes; n++) {
        needed[n] = (unsigned char)(m->needed[n] & (NEEDED_Y | NEEDED_SAVED));
        m->needed[n] = 0;
    }
}

struct sequence sequence_of(const struct step_model *m, const struct schedule *schedule, struct region *region)
{
    size_t length = (size_t)m->events;
    struct sequence sequence = {0, NULL};
    int event = 0;
    for (size_t i = 0; i < schedule->steps; i++) length += (size_t)(schedule->step[i].to - schedule->step[i].from);
    NEW(region, sequence.item, 2 * length);
    for (size_t i = 0; i < schedule->steps; i++) {
        const struct step *s = &schedule->step[i];
        for (int n = s->from; s->kind == STEP_FORWARD && n < s->to; n++) {
            const bool first = event < m->nodes && m->event[event].node == n;
            sequence.item[sequence.length++] = first ? STEP_NEXT : n;
            event += first;
        }
        if (s->kind == STEP_PARAMS && m->event[event].half) sequence.item[sequence.length++] = STEP_NEXT, event++;
        for (int n = s->to - 1; s->kind == STEP_BACKWARD && n >= s->from; n--)
            for (; event < m->events && m->event[event].node == n; event++)
                sequence.item[sequence.length++] = STEP_NEXT;
    }
    return sequence;
}

void sequence_schedule(const struct step_model *m, const struct sequence *sequence, struct schedule *schedule)
{
    for (int i = 0, event = 0; i < sequence->length; i++) {
        const int item = sequence->item[i];
        const struct step_event *e = &m->event[item < 0 ? event++ : 0];
        if (item >= 0)
            schedule_append(schedule, STEP_FORWARD, item, item + 1);
        else if (e->kind == STEP_FORWARD)
            schedule_append(schedule, STEP_FORWARD, e->node, e->node + 1);
        else if (e->half && sequence->item[i + 1] >= 0)
            schedule_append(schedule, STEP_PARAMS, e->node, e->node + 1);
        else if (!e->half)
            schedule_append(schedule, STEP_BACKWARD, e->node, e->node + 1);
    }
}
