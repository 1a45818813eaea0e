#include "graph_search.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { EVENTS_MAX = 3 * GRAPH_SEARCH_NODES_MAX, ITEMS_MAX = 2 * GRAPH_SEARCH_NODES_MAX };

/* Item n is node n's value; the items after the values are saved tensors. */
struct event {
    int node;
    bool backward, half;
    unsigned reads; /* items */
    size_t during, after, before;
};

struct world {
    const struct network *network;
    size_t limit;
    bool halves;
    int nodes, items, events;
    size_t bytes[ITEMS_MAX];
    int saved[GRAPH_SEARCH_NODES_MAX]; /* item, -1: none */
    struct event event[EVENTS_MAX];
    float *least; /* by state: time + 1, 0: not seen */
    uint32_t *from;
    int16_t *by; /* node recomputed, -1: an event */
    struct entry *heap;
    size_t entries, room;
};

struct entry {
    float time;
    uint32_t state;
};

static unsigned inputs_of(const struct world *w, int n)
{
    const struct node *node = &w->network->graph->node[n];
    unsigned set = 0;
    for (int k = 0; k < node->layer->inputs; k++)
        if (node->inputs[k]) set |= 1U << (node->inputs[k] - 1);
    return set;
}

static size_t held(const struct world *w, unsigned live)
{
    size_t bytes = 0;
    for (int i = 0; i < w->items; i++)
        if (live >> i & 1) bytes += w->bytes[i];
    return bytes;
}

/* Bytes of gradients, scratch and what is written once at op, and those of them born before it. */
static size_t fixed(const struct lowered *l, int op, bool before)
{
    size_t bytes = 0;
    for (int i = 0; i < l->buffers; i++) {
        const struct buffer *b = &l->buffer[i];
        bool once = false;
        for (int k = 0; k < l->ops; k++) once |= l->op[k].once == i;
        if (b->category == CATEGORY_ACTIVATION || (b->category == CATEGORY_SAVED && !once)) continue;
        if (b->birth + before <= op && op <= b->death) bytes += b->bytes;
    }
    return bytes;
}

static unsigned operands(const struct world *w, int n, unsigned reads)
{
    unsigned set = 0;
    if (reads & READS_X) set |= inputs_of(w, n);
    if (reads & READS_Y) set |= 1U << n;
    if (reads & READS_SAVED && w->saved[n] >= 0) set |= 1U << w->saved[n];
    return set;
}

static void add_backward(struct world *w, const struct lowered *l, int n, int *op)
{
    const struct footprint *f = &w->network->binding[n].footprint;
    const unsigned parts = network_parts(w->network, n);
    const bool split = parts == 3 && f->split;
    for (int half = split ? 1 : 0; half >= 0; half--) {
        struct event *e = &w->event[w->events++];
        unsigned reads = split ? f->reads[half ? 0 : 1] : footprint_reads(f->reads, parts);
        *e = (struct event){.node = n, .backward = true, .half = half, .before = fixed(l, *op, true)};
        e->reads = operands(w, n, reads);
        bool read = false;
        for (; *op < l->ops && l->op[*op].node == n && l->op[*op].kind != OP_FORWARD; ++*op) {
            const size_t bytes = fixed(l, *op, false);
            bool later = false; /* a backward is still to come, for which operands are held */
            for (int k = *op; k < l->ops && l->op[k].node == n; k++) later |= l->op[k].kind == OP_BACKWARD;
            if (half && read) break;
            if (later) {
                if (bytes > e->during) e->during = bytes;
            } else if (bytes > e->after) {
                e->after = bytes;
            }
            read |= l->op[*op].kind == OP_BACKWARD;
        }
    }
}

static void describe(struct world *w, struct region *region)
{
    struct schedule all = schedule_empty(region);
    w->nodes = w->items = w->network->graph->nodes;
    cr_assert(w->nodes <= GRAPH_SEARCH_NODES_MAX);
    schedule_append(&all, STEP_FORWARD, 0, w->nodes);
    schedule_append(&all, STEP_BACKWARD, 0, w->nodes);
    const struct lowered l = lower(w->network, &all, &(struct lower_options){.drop_dead = true}, region);
    for (int n = 0; n < w->nodes; n++) {
        w->bytes[n] = network_round(w->network, w->network->graph->value[n + 1].bytes);
        w->saved[n] = -1;
        if (w->network->binding[n].footprint.saved && network_reads(w->network, n) & READS_SAVED) {
            w->bytes[w->items] = network_round(w->network, w->network->binding[n].footprint.saved);
            w->saved[n] = w->items++;
        }
        w->event[w->events++] = (struct event){.node = n, .during = fixed(&l, n, false), .before = fixed(&l, n, true)};
    }
    int op = w->nodes;
    for (int n = w->nodes - 1; n >= 0; n--) add_backward(w, &l, n, &op);
}

static void push(struct world *w, float time, uint32_t state, uint32_t from, int by)
{
    if (w->least[state] && w->least[state] <= time + 1) return;
    w->least[state] = time + 1;
    w->from[state] = from;
    w->by[state] = (int16_t)by;
    if (w->entries == w->room) w->heap = realloc(w->heap, (w->room = w->room * 2 + 1024) * sizeof *w->heap);
    size_t at = w->entries++;
    for (; at && w->heap[(at - 1) / 2].time > time; at = (at - 1) / 2) w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = (struct entry){time, state};
}

static struct entry pop(struct world *w)
{
    const struct entry top = w->heap[0], last = w->heap[--w->entries];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < w->entries; at = child) {
        if (child + 1 < w->entries && w->heap[child + 1].time < w->heap[child].time) child++;
        if (w->heap[child].time >= last.time) break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = last;
    return top;
}

/* All ways to go on from live after touching a set, of which any part may be dropped. */
static void leave(struct world *w, const struct entry *e, int done, unsigned live, unsigned touched, float time, int by)
{
    for (unsigned drop = touched;; drop = (drop - 1) & touched) {
        push(w, e->time + time, (uint32_t)done << w->items | (live & ~drop), e->state, by);
        if (!drop) return;
    }
}

/* Node's forward, for whichever of its outputs are kept; in the place of its first input where that dies here. */
static void forward(struct world *w, const struct entry *e, int n, size_t base, bool first)
{
    const unsigned inputs = inputs_of(w, n), own = 1U << n, live = e->state & ((1U << w->items) - 1);
    const int done = (int)(e->state >> w->items), x = w->network->graph->node[n].inputs[0] - 1;
    const bool over = w->network->binding[n].footprint.y_over_x && x >= 0 && w->bytes[x] == w->bytes[n];
    if ((live & inputs) != inputs) return;
    for (int save = 0; save <= (w->saved[n] >= 0); save++) {
        const unsigned saved = save ? 1U << w->saved[n] : 0;
        const size_t bytes = held(w, live | own | saved) + base;
        const float time = first ? 0 : (float)w->network->cost[n].forward;
        const int to = done + first;
        if (live & saved) continue;
        if (!first && live & own && !saved) continue;
        if (bytes <= w->limit) {
            leave(w, e, to, live | own | saved, inputs | own, time, first ? -1 : n);
        } else if (over && !(live & own) && bytes - w->bytes[n] <= w->limit) {
            leave(w, e, to, (live | own | saved) & ~(1U << x), (inputs & ~(1U << x)) | own, time, first ? -1 : n);
        }
    }
}

static void meet(struct world *w, const struct entry *e, const struct event *v)
{
    const unsigned live = e->state & ((1U << w->items) - 1);
    if (!v->backward) {
        forward(w, e, v->node, v->during, true);
        return;
    }
    if ((live & v->reads) != v->reads || held(w, live) + v->during > w->limit) return;
    for (unsigned drop = v->reads;; drop = (drop - 1) & v->reads) {
        if (held(w, live & ~drop) + v->after <= w->limit)
            push(w, e->time, ((e->state >> w->items) + 1) << w->items | (live & ~drop), e->state, -1);
        if (!drop) return;
    }
}

static void write(const struct world *w, uint32_t goal, struct schedule *schedule)
{
    uint32_t path[1024];
    int length = 0;
    for (uint32_t at = goal; at; at = w->from[at]) {
        cr_assert(length < 1024);
        path[length++] = at;
    }
    while (length-- > 0) {
        const int by = w->by[path[length]];
        const struct event *e = &w->event[(path[length] >> w->items) - 1];
        if (by >= 0)
            schedule_append(schedule, STEP_FORWARD, by, by + 1);
        else if (e->backward)
            schedule_append(schedule, e->half ? STEP_PARAMS : STEP_BACKWARD, e->node, e->node + 1);
        else
            schedule_append(schedule, STEP_FORWARD, e->node, e->node + 1);
    }
}

bool graph_search(const struct network *network, size_t limit, bool halves, double *time, struct schedule *schedule)
{
    struct world *w = calloc(1, sizeof *w);
    bool found = false;
    *w = (struct world){.network = network, .limit = limit, .halves = halves};
    describe(w, schedule->region);
    const size_t states = (size_t)(w->events + 1) << w->items;
    cr_assert(states <= (size_t)1 << 28, "%d items", w->items);
    w->least = calloc(states, sizeof *w->least);
    w->from = calloc(states, sizeof *w->from);
    w->by = calloc(states, sizeof *w->by);
    w->heap = NULL;
    w->least[0] = 1;
    struct entry start = {0, 0};
    forward(w, &start, 0, w->event[0].during, true);
    while (w->entries && !found) {
        const struct entry e = pop(w);
        if (e.time + 1 != w->least[e.state]) continue;
        const int done = (int)(e.state >> w->items);
        found = done == w->events;
        if (found) {
            *time = e.time;
            write(w, e.state, schedule);
            break;
        }
        const struct event *v = &w->event[done];
        meet(w, &e, v);
        if (done && w->event[done - 1].half && !halves) continue;
        for (int n = 0; n < w->nodes && n < done; n++)
            if (n < (v->backward ? v->node + 1 : v->node))
                forward(w, &e, n, v->before + network_round(network, network->binding[n].footprint.forward_scratch),
                        false);
    }
    free(w->least);
    free(w->from);
    free(w->by);
    free(w->heap);
    free(w);
    return found;
}
