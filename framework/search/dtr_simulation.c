#include "search/dtr_simulation.h"

#include <assert.h>

#include "base/units.h"

enum { NODES_MAX = 4000, REPLAYS_PER_NODE = 64 };

struct machine {
    const struct dtr_simulation *e;
    const struct graph *graph;
    struct dtr_residency *r;
    struct schedule *schedule;
    size_t limit, peak;
    size_t once, base; /* stashes and masks so far; they and gradients: what is live besides storages */
    int recomputations;
    bool *due;  /* node -> it will be run again, and its reads are counted as uses */
    int *stack; /* room for every node */
};

static enum status list_moments(struct dtr_simulation *e, const struct lowered *l)
{
    const int nodes = e->network->graph->nodes;
    size_t *bytes, *gap;
    NEW(e->region, bytes, (size_t)l->ops + 1);
    NEW(e->region, gap, (size_t)l->ops + 1);
    for (int i = 0; i < l->buffers; i++) {
        const struct buffer *b = &l->buffer[i];
        if (b->category != CATEGORY_GRADIENT && b->category != CATEGORY_SCRATCH) continue;
        for (int op = b->birth; op <= b->death; op++) bytes[op] += b->bytes;
        for (int op = b->birth + 1; op <= b->death; op++) gap[op] += b->bytes;
    }
    for (int n = 0; n < nodes; n++)
        if (l->op[n].rng_state >= 0) e->once[n] = l->buffer[l->op[n].rng_state].bytes;
    /* ops come from the last node to the first */
    int count = 0, op = l->ops;
    for (int n = 0; n < nodes; n++) {
        int from = op;
        while (from > nodes && l->op[from - 1].node == n) from--;
        e->moments[n] = count;
        e->gap[n] = gap[from];
        for (int i = from; i < op; i++) {
            const struct op *o = &l->op[i];
            const double *time = e->network->cost[n].backward;
            e->moment[count++] = (struct moment){o->parts,
                                                 (o->parts & PART_PARAMS ? time[PART_INDEX_PARAMS] : 0) +
                                                     (o->parts & PART_INPUT ? time[PART_INDEX_INPUT] : 0),
                                                 bytes[i]};
        }
        op = from;
    }
    e->moments[nodes] = count;
    assert(op == nodes);
    return ST_OK;
}

/* Gradients, scratch and masks are the same whatever is recomputed: those of storing everything. */
enum status dtr_simulation_create(const struct network *network, const struct lower_options *options,
                                  struct region *region, struct dtr_simulation *eviction)
{
    const int nodes = network->graph->nodes;
    struct lowered lowered;
    struct schedule schedule = schedule_empty(region);
    if (nodes > NODES_MAX)
        return fail(ST_SPEC, "policy dtr: %d nodes; expected at most %d, for the time it takes", nodes, NODES_MAX);
    *eviction = (struct dtr_simulation){.network = network, .region = region};
    schedule_append(&schedule, STEP_FORWARD, 0, nodes);
    schedule_append(&schedule, STEP_BACKWARD, 0, nodes);
    TRY(lower(network, &schedule, options, region, &lowered));
    NEW(region, eviction->once, (size_t)nodes);
    NEW(region, eviction->gap, (size_t)nodes);
    NEW(region, eviction->moments, (size_t)nodes + 1);
    NEW(region, eviction->moment, (size_t)lowered.ops);
    return list_moments(eviction, &lowered);
}

static bool fits(const struct machine *m, size_t bytes) { return m->r->locked + m->base + bytes <= m->limit; }

/* Evicts until bytes more can be there. */
static enum status make_room(struct machine *m, size_t bytes, const char *pass, int node)
{
    struct dtr_residency *r = m->r;
    char takes[UNIT_TEXT], limit[UNIT_TEXT];
    if (!fits(m, bytes))
        return fail(ST_SPEC, "%s of '%s' takes %s, the limit is %s", pass, m->graph->node[node].name,
                    exact_bytes_text(r->locked + m->base + bytes, takes), exact_bytes_text(m->limit, limit));
    while (r->held + m->base + bytes > m->limit) TRY(dtr_residency_evict(r));
    if (r->held + m->base + bytes > m->peak) m->peak = r->held + m->base + bytes;
    return ST_OK;
}

/* From now on node will be run again: its inputs have one more use each, so that what two of its makers need is not let
 * go in between. */
static void add_due(struct machine *m, int node)
{
    m->due[node] = true;
    for (int k = 0; k < m->graph->node[node].layer->inputs; k++) {
        struct storage *x = storage_of_input(m->r, &m->graph->node[node], k);
        if (x) x->uses++;
    }
}

static enum status run(struct machine *m, int n);

/* Runs node again, and before it all that it needs and that is not there. */
static enum status obtain(struct machine *m, int node)
{
    int count = 0;
    if (!m->due[node]) {
        add_due(m, node);
        m->stack[count++] = node;
    }
    while (count) {
        const struct node *due = &m->graph->node[m->stack[--count]];
        for (int k = 0; k < due->layer->inputs; k++) {
            const struct storage *x = storage_of_input(m->r, due, k);
            if (!x || x->there || m->due[due->inputs[k] - 1]) continue;
            m->stack[count++] = due->inputs[k] - 1;
            add_due(m, due->inputs[k] - 1);
        }
    }
    return run(m, node);
}

/* Locks the inputs of a node and makes those there that are not. */
static enum status hold_inputs(struct machine *m, const struct node *node)
{
    for (int k = 0; k < node->layer->inputs; k++)
        if (storage_of_input(m->r, node, k)) dtr_residency_lock(m->r, storage_of_input(m->r, node, k));
    for (int k = 0; k < node->layer->inputs; k++) {
        const struct storage *x = storage_of_input(m->r, node, k);
        if (x && !x->there) TRY(obtain(m, node->inputs[k] - 1));
    }
    return ST_OK;
}

static enum status read_inputs(struct machine *m, const struct node *node)
{
    for (int k = 0; k < node->layer->inputs; k++) {
        struct storage *x = storage_of_input(m->r, node, k);
        if (x) TRY(dtr_residency_read(m->r, x));
    }
    return ST_OK;
}

/* The input whose place the output can take, where no other op that is due needs it; else NULL. */
static struct storage *place_to_take(const struct machine *m, const struct node *node, bool *dies)
{
    struct storage *x = storage_of_input(m->r, node, 0);
    const struct storage *y = storage_of(m->r, node->index, STORAGE_Y);
    *dies = false;
    if (!x || y->there || x->bytes != y->bytes || !m->e->network->binding[node->index].footprint.y_over_x) return NULL;
    int reads = 0;
    for (int k = 0; k < node->layer->inputs; k++) reads += storage_of_input(m->r, node, k) == x;
    *dies = x->uses == reads;
    return x->locks == reads ? x : NULL;
}

/* A forward, the node's first or a recomputation. It makes whatever is not there of what it writes, the saved tensors
 * only where there is room or somebody waits for it. */
static enum status run(struct machine *m, int n)
{
    struct dtr_residency *r = m->r;
    const struct node *node = &m->graph->node[n];
    const struct footprint *f = &m->e->network->binding[n].footprint;
    struct storage *y = storage_of(r, n, STORAGE_Y), *saved = storage_of(r, n, STORAGE_SAVED);
    const bool first = n >= r->forward;
    if (!first && ++m->recomputations > REPLAYS_PER_NODE * m->graph->nodes)
        return fail(ST_SPEC, "recomputes got out of hand: %d of them, the last of '%s'", m->recomputations, node->name);
    TRY(hold_inputs(m, node));
    m->due[n] = false;
    bool dies;
    struct storage *x = place_to_take(m, node, &dies);
    size_t bytes = network_round(m->e->network, f->forward_scratch) + (first ? m->e->once[n] : 0);
    size_t wanted = !saved->there && saved->uses ? saved->bytes : 0, needed = saved->locks ? wanted : 0;
    if (!y->there) bytes += y->bytes;
    if (x && !dies && fits(m, bytes + needed)) x = NULL; /* it is read again: better not */
    if (x) bytes -= x->bytes;
    const bool save = wanted && (saved->locks || fits(m, bytes + wanted));
    TRY(make_room(m, bytes + (save ? wanted : 0), first ? "the forward" : "a recomputation", n));
    schedule_append(m->schedule, STEP_FORWARD, n, n + 1);
    r->clock += m->e->network->cost[n].forward;
    if (first) {
        m->base += m->e->once[n];
        m->once += m->e->once[n];
        r->forward = n + 1;
    }
    TRY(read_inputs(m, node));
    if (x && x->there) TRY(dtr_residency_leave(r, x));
    if (!y->there) TRY(dtr_residency_appear(r, y));
    if (save) TRY(dtr_residency_appear(r, saved));
    return y->uses || y->locks ? ST_OK : dtr_residency_leave(r, y);
}

static unsigned reads_of(const struct footprint *f, unsigned parts)
{
    return (parts & PART_PARAMS ? f->reads[PART_INDEX_PARAMS] : 0) |
           (parts & PART_INPUT ? f->reads[PART_INDEX_INPUT] : 0);
}

/* Makes all there that the ops of node's backward read, and locks it. */
static enum status hold_operands(struct machine *m, const struct node *node)
{
    struct dtr_residency *r = m->r;
    const unsigned reads = network_reads(m->e->network, node->index);
    struct storage *y = storage_of(r, node->index, STORAGE_Y), *saved = storage_of(r, node->index, STORAGE_SAVED);
    const bool reads_saved = reads & READS_SAVED && saved->bytes;
    if (reads & READS_Y) dtr_residency_lock(r, y);
    if (reads_saved) dtr_residency_lock(r, saved);
    if (reads & READS_X) TRY(hold_inputs(m, node));
    return (reads & READS_Y && !y->there) || (reads_saved && !saved->there) ? obtain(m, node->index) : ST_OK;
}

/* What only this op and none after it in the node's backward reads. */
static enum status read_operands(struct machine *m, const struct node *node, unsigned reads)
{
    struct storage *saved = storage_of(m->r, node->index, STORAGE_SAVED);
    if (reads & READS_X) TRY(read_inputs(m, node));
    if (reads & READS_Y) TRY(dtr_residency_read(m->r, storage_of(m->r, node->index, STORAGE_Y)));
    return reads & READS_SAVED && saved->bytes ? dtr_residency_read(m->r, saved) : ST_OK;
}

static enum status backward(struct machine *m, int n)
{
    const struct node *node = &m->graph->node[n];
    const struct footprint *f = &m->e->network->binding[n].footprint;
    m->base = m->once + m->e->gap[n];
    TRY(hold_operands(m, node));
    schedule_append(m->schedule, STEP_BACKWARD, n, n + 1);
    for (int i = m->e->moments[n]; i < m->e->moments[n + 1]; i++) {
        const struct moment *moment = &m->e->moment[i];
        m->base = m->once + moment->bytes;
        TRY(make_room(m, 0, "the backward", n));
        m->r->clock += moment->time;
        unsigned later = 0;
        for (int j = i + 1; j < m->e->moments[n + 1]; j++) later |= reads_of(f, m->e->moment[j].parts);
        TRY(read_operands(m, node, reads_of(f, moment->parts) & ~later));
    }
    m->once -= m->e->once[n];
    return dtr_residency_close(m->r, n);
}

enum status dtr_simulation_schedule(const struct dtr_simulation *e, int heuristic, size_t limit,
                                    struct schedule *schedule, struct evicted *evicted)
{
    struct region *region = region_create();
    if (!region) return fail(ST_FAILED, "out of memory for a simulation");
    struct machine m = {.e = e, .graph = e->network->graph, .schedule = schedule, .limit = limit};
    enum status status = dtr_residency_create(e->network, heuristic, region, &m.r);
    if (status == ST_OK) status = NEWLY(region, m.due, (size_t)m.graph->nodes);
    if (status == ST_OK) status = NEWLY(region, m.stack, (size_t)m.graph->nodes);
    for (int n = 0; status == ST_OK && n < m.graph->nodes; n++) status = run(&m, n);
    for (int n = m.graph->nodes - 1; status == ST_OK && n >= 0; n--) status = backward(&m, n);
    assert(status != ST_OK || m.r->held == 0);
    *evicted = (struct evicted){m.peak, m.r ? m.r->evictions : 0};
    region_destroy(region);
    return status;
}
