#include "search/state_search.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLICES = STATE_NODES_MAX / 8, POSITIONS_MAX = 16 };

/* Nodes whose values, and whose saved tensors, must be live. */
struct needs {
    uint64_t y, saved;
};

struct state {
    struct needs needs;
    size_t held; /* bytes of needs */
    double time; /* of the recomputations after it */
    double bound;
    int origin; /* the trace before it */
    int item;   /* of the sequence, by which it was reached */
    int at;     /* place in the heap, -1: expanded */
};

/* An expanded state. */
struct trace {
    int origin, item;
};

/* What one recomputation frees: a node's value, its saved tensors, or both. */
struct item {
    int node;
    bool y, saved;
    size_t bytes;
    double time;
};

/* An earlier backward at which needs must fit beside its own operands. */
struct tight {
    struct needs operands, until; /* and those of the events between it and the current position, its own included */
    size_t bytes;                 /* besides */
};

/* The states at the position before an event: found by a hash of their needs, and in a heap by their bounds. */
struct frontier {
    int event;
    struct state *state;
    int *heap, *slot; /* slot: state + 1, 0: free */
    int count, heaped, room, slots;
    struct tight tight[POSITIONS_MAX];
    int tights;
};

struct search {
    const struct step_model *model;
    size_t limit;
    double below;
    size_t weight[2][SLICES][256]; /* bytes of eight nodes' values or saved tensors */
    struct needs *operands;        /* by event */
    uint64_t *inputs;              /* by node */
    struct item *item;             /* by time for their bytes, cheapest first */
    int items;
    struct region *region;
    struct trace *trace;
    int traces;
};

static uint64_t bit(int node) { return UINT64_C(1) << node; }

static size_t weigh_set(const struct search *s, int which, uint64_t set)
{
    size_t bytes = 0;
    for (int i = 0; set; i++, set >>= 8) bytes += s->weight[which][i][set & 255];
    return bytes;
}

static size_t weigh(const struct search *s, const struct needs *needs)
{
    return weigh_set(s, 0, needs->y) + weigh_set(s, 1, needs->saved);
}

/* The least time of recomputing all but limit bytes of the needs at an earlier backward, as a fractional knapsack. */
static double knapsack(const struct search *s, const struct needs *needs, const struct tight *t)
{
    const struct needs all = {needs->y | t->until.y, needs->saved | t->until.saved};
    const size_t bytes = weigh(s, &all) + t->bytes;
    double time = 0;
    if (bytes <= s->limit) return 0;
    size_t excess = bytes - s->limit;
    const uint64_t y = all.y & ~t->operands.y, saved = all.saved & ~t->operands.saved;
    for (int i = 0; i < s->items && excess; i++) {
        const struct item *item = &s->item[i];
        if ((y >> item->node & 1) != item->y || (saved >> item->node & 1) != item->saved) continue;
        if (item->bytes >= excess) return time + item->time * (double)excess / (double)item->bytes;
        excess -= item->bytes;
        time += item->time;
    }
    return excess ? INFINITY : time;
}

static double bound_of(const struct search *s, const struct frontier *l, const struct state *state)
{
    double most = 0;
    for (int i = 0; i < l->tights && state->time + most < s->below; i++) {
        const double least = knapsack(s, &state->needs, &l->tight[i]);
        if (least > most) most = least;
    }
    return state->time + most;
}

static bool before(const struct frontier *l, int a, int b)
{
    const struct state *x = &l->state[a], *y = &l->state[b];
    if (x->bound != y->bound) return x->bound < y->bound;
    if (x->held != y->held) return x->held < y->held;
    if (x->needs.y != y->needs.y) return x->needs.y < y->needs.y;
    return x->needs.saved < y->needs.saved;
}

static void place(struct frontier *l, int at, int state)
{
    l->heap[at] = state;
    l->state[state].at = at;
}

static void rise(struct frontier *l, int at)
{
    const int state = l->heap[at];
    for (; at && before(l, state, l->heap[(at - 1) / 2]); at = (at - 1) / 2) place(l, at, l->heap[(at - 1) / 2]);
    place(l, at, state);
}

static int pop(struct frontier *l)
{
    const int top = l->heap[0], last = l->heap[--l->heaped];
    int at = 0;
    for (int child; (child = 2 * at + 1) < l->heaped; at = child) {
        if (child + 1 < l->heaped && before(l, l->heap[child + 1], l->heap[child])) child++;
        if (!before(l, l->heap[child], last)) break;
        place(l, at, l->heap[child]);
    }
    if (l->heaped) place(l, at, last);
    l->state[top].at = -1;
    return top;
}

static void *grown(void *array, size_t count, size_t size)
{
    void *larger = allocate(2 * count, size);
    memcpy(larger, array, count * size);
    free(array);
    return larger;
}

static int *slot_of(const struct frontier *l, const struct needs *n)
{
    uint64_t hash = (n->y * UINT64_C(0x9e3779b97f4a7c15)) ^ (n->saved * UINT64_C(0xc2b2ae3d27d4eb4f));
    size_t at = (size_t)((hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 20) & (size_t)(l->slots - 1);
    while (l->slot[at] &&
           (l->state[l->slot[at] - 1].needs.y != n->y || l->state[l->slot[at] - 1].needs.saved != n->saved))
        at = (at + 1) & (size_t)(l->slots - 1);
    return &l->slot[at];
}

/* Up to POSITIONS_MAX of the backwards before the position, the first among them. */
static void find_tight(const struct search *s, struct frontier *l)
{
    const struct step_model *m = s->model;
    const int all = l->event - m->nodes, stride = 1 + (all - 1) / POSITIONS_MAX;
    struct needs until = {0, 0};
    for (int e = l->event - 1; e >= m->nodes; e--) {
        until.y |= s->operands[e].y;
        until.saved |= s->operands[e].saved;
        if ((e - m->nodes) % stride) continue;
        l->tight[l->tights++] = (struct tight){s->operands[e], until, m->event[e].during};
    }
}

static void frontier_begin(const struct search *s, int event, struct frontier *l)
{
    *l = (struct frontier){.event = event, .room = 1024, .slots = 4096};
    l->state = allocate((size_t)l->room, sizeof *l->state);
    l->heap = allocate((size_t)l->room, sizeof *l->heap);
    l->slot = allocate((size_t)l->slots, sizeof *l->slot);
    find_tight(s, l);
}

static void frontier_end(struct frontier *l)
{
    free(l->state);
    free(l->heap);
    free(l->slot);
}

static void frontier_grow(struct frontier *l)
{
    l->state = grown(l->state, (size_t)l->room, sizeof *l->state);
    l->heap = grown(l->heap, (size_t)l->room, sizeof *l->heap);
    l->room *= 2;
    free(l->slot);
    l->slots *= 2;
    l->slot = allocate((size_t)l->slots, sizeof *l->slot);
    for (int i = 0; i < l->count; i++) *slot_of(l, &l->state[i].needs) = i + 1;
}

/* Adds a state, or improves the equal one. */
static void offer(const struct search *s, struct frontier *l, struct state *state)
{
    int *slot = slot_of(l, &state->needs);
    if (*slot && l->state[*slot - 1].time <= state->time) return;
    state->bound = bound_of(s, l, state);
    if (state->bound >= s->below) return;
    if (!*slot && l->count == l->room) {
        frontier_grow(l);
        slot = slot_of(l, &state->needs);
    }
    const int index = *slot ? *slot - 1 : l->count++;
    const int at = *slot && l->state[index].at >= 0 ? l->state[index].at : l->heaped++;
    *slot = index + 1;
    l->state[index] = *state;
    place(l, at, index);
    rise(l, at);
}

/* The state before a forward of node, base bytes besides its operands and outputs; false: it does not fit. */
static bool before_forward(const struct search *s, int node, size_t base, struct state *state)
{
    const struct step_model *m = s->model;
    const uint64_t own = bit(node), new = s->inputs[node] & ~state->needs.y;
    const size_t saved = state->needs.saved & own ? m->saved[node] : 0;
    size_t outputs = m->value[node] + saved;
    if (state->needs.y & own) state->held -= m->value[node];
    state->held += weigh_set(s, 0, new) - saved;
    state->needs.y = (state->needs.y & ~own) | new;
    state->needs.saved &= ~own;
    if (m->over[node] && new >> (m->network->graph->node[node].inputs[0] - 1) & 1) outputs -= m->value[node];
    return state->held + outputs + base <= s->limit;
}

static bool before_backward(const struct search *s, int event, struct state *state)
{
    const struct step_event *e = &s->model->event[event];
    const struct needs *o = &s->operands[event];
    const struct needs new = {o->y & ~state->needs.y, o->saved & ~state->needs.saved};
    if (state->held + e->after > s->limit) return false;
    state->held += weigh(s, &new);
    state->needs.y |= o->y;
    state->needs.saved |= o->saved;
    return state->held + e->during <= s->limit;
}

/* All states that come just before a state: of the same position after a recomputation there, and of the one before. */
static void expand(struct search *s, const struct state *from, struct frontier *here, struct frontier *next)
{
    const struct step_model *m = s->model;
    const struct step_event *e = &m->event[here->event], *last = e - 1;
    struct state state = *from;
    state.origin = s->traces++;
    region_grow(s->region, &s->trace, state.origin, sizeof *s->trace);
    s->trace[state.origin] = (struct trace){from->origin, from->item};
    const struct state origin = state;
    const bool met = last->kind == STEP_FORWARD ? before_forward(s, last->node, last->during, &state)
                                                : before_backward(s, here->event - 1, &state);
    state.item = STEP_NEXT;
    if (met) offer(s, next, &state);
    uint64_t again = origin.needs.y | origin.needs.saved;
    if (here->event == m->events) return;
    for (int node = 0; again; node++, again >>= 1) {
        if (!(again & 1)) continue;
        state = origin;
        state.item = node;
        state.time += m->time[node];
        if (before_forward(s, node, e->before + m->scratch[node], &state)) offer(s, here, &state);
    }
}

static int by_worth(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    const double one = a->time * (double)b->bytes, two = b->time * (double)a->bytes;
    return one != two ? (one > two) - (one < two) : (a->node > b->node) - (a->node < b->node);
}

static void list_items(struct search *s)
{
    const struct step_model *m = s->model;
    NEW(s->region, s->item, 3 * (size_t)m->nodes);
    for (int n = 0; n < m->nodes; n++)
        for (int holds = 1; holds <= 3; holds++) {
            const bool y = holds & 1, saved = holds & 2;
            const size_t bytes = (y ? m->value[n] : 0) + (saved ? m->saved[n] : 0);
            if (bytes && (m->saved[n] || !saved)) s->item[s->items++] = (struct item){n, y, saved, bytes, m->time[n]};
        }
    qsort(s->item, (size_t)s->items, sizeof *s->item, by_worth);
}

static void prepare(struct search *s)
{
    const struct step_model *m = s->model;
    NEW(s->region, s->operands, (size_t)m->events);
    NEW(s->region, s->inputs, (size_t)m->nodes);
    for (int n = 0; n < m->nodes; n++) {
        const struct node *node = &m->network->graph->node[n];
        for (int k = 0; k < node->layer->inputs; k++)
            if (node->inputs[k]) s->inputs[n] |= bit(node->inputs[k] - 1);
        for (int i = 0; i < 256; i++)
            if (i >> n % 8 & 1) {
                s->weight[0][n / 8][i] += m->value[n];
                s->weight[1][n / 8][i] += m->saved[n];
            }
    }
    list_items(s);
    for (int e = m->nodes; e < m->events; e++) {
        const int n = m->event[e].node;
        const unsigned reads = m->event[e].reads;
        if (reads & READS_Y) s->operands[e].y |= bit(n);
        if (reads & READS_X) s->operands[e].y |= s->inputs[n];
        if (reads & READS_SAVED && m->saved[n]) s->operands[e].saved |= bit(n);
    }
}

/* The items from the state to the end. */
static struct sequence trace_back(const struct search *s, const struct state *first, struct region *region)
{
    struct sequence sequence = {0, NULL};
    for (int at = first->origin; at > 0; at = s->trace[at].origin) sequence.length++;
    sequence.length++;
    NEW(region, sequence.item, 2 * (size_t)sequence.length);
    sequence.item[0] = first->item;
    for (int at = first->origin, i = 1; at > 0; at = s->trace[at].origin) sequence.item[i++] = s->trace[at].item;
    return sequence;
}

struct state_search_result state_search(const struct step_model *m, size_t limit, double below, int width,
                                        struct region *region)
{
    struct search s = {.model = m, .limit = limit, .below = below - m->floor, .region = region_create()};
    struct state_search_result result = {.proven = true};
    struct frontier here, next;
    prepare(&s);
    frontier_begin(&s, m->events, &here);
    offer(&s, &here, &(struct state){.origin = -1, .item = STEP_NEXT});
    for (int event = m->events; event > 0; event--) {
        int expanded = 0;
        frontier_begin(&s, event - 1, &next);
        for (; here.heaped && expanded < width; expanded++) {
            const struct state state = here.state[pop(&here)];
            expand(&s, &state, &here, &next);
        }
        result.proven &= !here.heaped;
        result.expanded += (size_t)expanded;
        frontier_end(&here);
        here = next;
    }
    if (here.count) {
        result.found = true;
        result.sequence = trace_back(&s, &here.state[0], region);
    }
    frontier_end(&here);
    region_destroy(s.region);
    return result;
}
