#include "search/state_search.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/work.h"

enum { WORDS = STATE_NODES_MAX / 64, SLICES = STATE_NODES_MAX / 8 };

/* A set of nodes. */
struct set {
    uint64_t word[WORDS];
};

/* Nodes whose values, and whose saved tensors, must be live. */
struct needs {
    struct set y, saved;
};

struct state {
    struct needs needs;
    size_t held;     /* bytes of needs */
    double time;     /* of the recomputations after it */
    double estimate; /* of the time of all recomputations, by which states are expanded */
    int origin;      /* the trace before it */
    int item;        /* of the sequence, by which it was reached */
    int at;          /* place in the heap, -1: expanded */
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

/* The states at the position before an event: found by a hash of their needs, and in a heap by their estimates. */
struct frontier {
    int event;
    struct state *state;
    int *heap, *slot; /* slot: state + 1, 0: free */
    int count, heaped, room, slots;
    struct tight *tight;
    int tights;
};

struct search {
    const struct step_model *model;
    size_t limit;
    double below;
    size_t weight[2][SLICES][256]; /* bytes of eight nodes' values or saved tensors */
    struct needs *operands;        /* by event */
    struct set *inputs;            /* by node */
    struct set passing;            /* nodes */
    struct item *item;             /* by time for their bytes, cheapest first */
    int items;
    struct region *region;
    struct trace *trace;
    int traces;
};

static bool has(const struct set *set, int node) { return set->word[node / 64] >> node % 64 & 1; }

static void put(struct set *set, int node) { set->word[node / 64] |= UINT64_C(1) << node % 64; }

static void take(struct set *set, int node) { set->word[node / 64] &= ~(UINT64_C(1) << node % 64); }

/* a and b; a without b. */
static struct set both(const struct set *a, const struct set *b)
{
    struct set c;
    for (int i = 0; i < WORDS; i++) c.word[i] = a->word[i] | b->word[i];
    return c;
}

static struct set without(const struct set *a, const struct set *b)
{
    struct set c;
    for (int i = 0; i < WORDS; i++) c.word[i] = a->word[i] & ~b->word[i];
    return c;
}

/* The least node of the set that is at least node; STATE_NODES_MAX: none. */
static int next_of(const struct set *set, int node)
{
    for (; node < STATE_NODES_MAX; node = (node / 64 + 1) * 64)
        if (set->word[node / 64] >> node % 64) return node + __builtin_ctzll(set->word[node / 64] >> node % 64);
    return STATE_NODES_MAX;
}

static size_t weigh_set(const struct search *s, int which, const struct set *set)
{
    size_t bytes = 0;
    for (int word = 0; word < WORDS; word++) {
        uint64_t bits = set->word[word];
        for (int i = 8 * word; bits; i++, bits >>= 8) bytes += s->weight[which][i][bits & 255];
    }
    return bytes;
}

static size_t weigh(const struct search *s, const struct needs *needs)
{
    return weigh_set(s, 0, &needs->y) + weigh_set(s, 1, &needs->saved);
}

/* The least time of recomputing excess bytes of the needs, as a fractional knapsack; *whole: with its last item in
 * whole. */
static double knapsack(const struct search *s, const struct needs *needs, size_t excess, double *whole)
{
    double time = 0;
    for (int i = 0; i < s->items && excess; i++) {
        const struct item *item = &s->item[i];
        if (has(&needs->y, item->node) != item->y || has(&needs->saved, item->node) != item->saved) continue;
        *whole = time + item->time;
        if (item->bytes >= excess) return time + item->time * (double)excess / (double)item->bytes;
        excess -= item->bytes;
        time += item->time;
    }
    return *whole = excess ? INFINITY : time;
}

/* The least time of all recomputations; sets the estimate. Only the position with most excess is counted: the knapsack
 * at another one is rarely more. */
static double bound(const struct search *s, const struct frontier *l, struct state *state)
{
    const struct tight *worst = NULL;
    struct needs all;
    size_t most = s->limit;
    double whole;
    for (int i = 0; i < l->tights; i++) {
        const struct needs at = {both(&state->needs.y, &l->tight[i].until.y),
                                 both(&state->needs.saved, &l->tight[i].until.saved)};
        const size_t bytes = weigh(s, &at) + l->tight[i].bytes;
        if (bytes > most) worst = &l->tight[i], all = at, most = bytes;
    }
    state->estimate = state->time;
    if (!worst) return state->time;
    all = (struct needs){without(&all.y, &worst->operands.y), without(&all.saved, &worst->operands.saved)};
    const double least = knapsack(s, &all, most - s->limit, &whole);
    state->estimate += whole;
    return state->time + least;
}

static bool before(const struct frontier *l, int a, int b)
{
    const struct state *x = &l->state[a], *y = &l->state[b];
    if (x->estimate != y->estimate) return x->estimate < y->estimate;
    if (x->held != y->held) return x->held < y->held;
    return memcmp(&x->needs, &y->needs, sizeof x->needs) < 0;
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
    uint64_t hash = 0;
    for (int i = 0; i < WORDS; i++)
        hash = ((hash ^ n->y.word[i]) * UINT64_C(0x9e3779b97f4a7c15)) ^
               (n->saved.word[i] * UINT64_C(0xc2b2ae3d27d4eb4f)) ^ hash >> 29;
    size_t at = (size_t)((hash ^ hash >> 31) * UINT64_C(0xbf58476d1ce4e5b9) >> 20) & (size_t)(l->slots - 1);
    while (l->slot[at] && memcmp(&l->state[l->slot[at] - 1].needs, n, sizeof *n) != 0)
        at = (at + 1) & (size_t)(l->slots - 1);
    return &l->slot[at];
}

/* The backwards before the position that take more bytes besides than all earlier ones: beside any other one, an
 * earlier one has as much to hold. */
static void find_tight(struct search *s, struct frontier *l)
{
    const struct step_model *m = s->model;
    struct needs until = {0};
    NEW(s->region, l->tight, (size_t)m->events);
    for (int e = l->event - 1; e >= m->nodes; e--) {
        until = (struct needs){both(&until.y, &s->operands[e].y), both(&until.saved, &s->operands[e].saved)};
        l->tight[e - m->nodes] = (struct tight){s->operands[e], until, m->event[e].during};
    }
    for (int i = 0; i < l->event - m->nodes; i++)
        if (!i || l->tight[i].bytes > l->tight[l->tights - 1].bytes) l->tight[l->tights++] = l->tight[i];
}

static void frontier_begin(struct search *s, int event, struct frontier *l)
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
    if (bound(s, l, state) >= s->below) return;
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
    const struct set new = without(&s->inputs[node], &state->needs.y);
    const size_t saved = has(&state->needs.saved, node) ? m->saved[node] : 0;
    size_t outputs = m->value[node] + saved;
    if (has(&state->needs.y, node)) state->held -= m->value[node];
    state->held += weigh_set(s, 0, &new) - saved;
    state->needs.y = both(&state->needs.y, &new);
    take(&state->needs.y, node);
    take(&state->needs.saved, node);
    if (m->over[node] && has(&new, m->network->graph->node[node].inputs[0] - 1)) outputs -= m->value[node];
    return state->held + outputs + base <= s->limit;
}

static bool before_backward(const struct search *s, int event, struct state *state)
{
    const struct step_event *e = &s->model->event[event];
    const struct needs *o = &s->operands[event];
    const struct needs new = {without(&o->y, &state->needs.y), without(&o->saved, &state->needs.saved)};
    if (state->held + e->after > s->limit) return false;
    state->held += weigh(s, &new);
    state->needs.y = both(&state->needs.y, &o->y);
    state->needs.saved = both(&state->needs.saved, &o->saved);
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
    const struct set again = both(&origin.needs.y, &origin.needs.saved);
    if (here->event == m->events) return;
    for (int node = -1; (node = next_of(&again, node + 1)) < m->nodes;) {
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

/* Nodes whose values no backward reads and one node does: they are live only to be read by that node. */
static struct set find_passing(const struct search *s)
{
    const struct step_model *m = s->model;
    struct set kept = {0}, passing = {0};
    for (int e = m->nodes; e < m->events; e++) kept = both(&kept, &s->operands[e].y);
    for (int n = 0; n < m->nodes; n++)
        if (m->network->graph->value[n + 1].consumers == 1 && !has(&kept, n)) put(&passing, n);
    return passing;
}

/* The least price of the passing inputs that a recomputation of node needs, where a byte that is kept costs rate: each
 * is kept or recomputed. */
static double price_inputs(const struct search *s, int node, double rate)
{
    const struct step_model *m = s->model;
    double sum = 0;
    for (int x = -1; (x = next_of(&s->inputs[node], x + 1)) < m->nodes;) {
        if (!has(&s->passing, x)) continue;
        sum += fmin(rate * (double)m->value[x], m->time[x] + price_inputs(s, x, rate));
    }
    return sum;
}

/* The least time for which a recomputation frees bytes: for part of them a passing input may be kept instead. */
static double time_to_free(const struct search *s, int node, size_t bytes)
{
    double low = 0, high = 1;
    if (has(&s->passing, node)) return 0; /* counted at its reader */
    while (high * (double)bytes < s->model->time[node] + price_inputs(s, node, high) && high < 1e300) high *= 2;
    for (int i = 0; i < 50; i++) {
        const double rate = (low + high) / 2;
        *(rate * (double)bytes < s->model->time[node] + price_inputs(s, node, rate) ? &low : &high) = rate;
    }
    return low * (double)bytes;
}

static void list_items(struct search *s)
{
    const struct step_model *m = s->model;
    s->passing = find_passing(s);
    NEW(s->region, s->item, 3 * (size_t)m->nodes);
    for (int n = 0; n < m->nodes; n++)
        for (int holds = 1; holds <= 3; holds++) {
            const bool y = holds & 1, saved = holds & 2;
            const size_t bytes = (y ? m->value[n] : 0) + (saved ? m->saved[n] : 0);
            if (!bytes || (saved && !m->saved[n])) continue;
            s->item[s->items++] = (struct item){n, y, saved, bytes, time_to_free(s, n, bytes)};
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
            if (node->inputs[k]) put(&s->inputs[n], node->inputs[k] - 1);
        for (int i = 0; i < 256; i++)
            if (i >> n % 8 & 1) {
                s->weight[0][n / 8][i] += m->value[n];
                s->weight[1][n / 8][i] += m->saved[n];
            }
    }
    for (int e = m->nodes; e < m->events; e++) {
        const int n = m->event[e].node;
        const unsigned reads = m->event[e].reads;
        const struct node *node = &m->network->graph->node[n];
        for (int k = 0; k < inputs_read(reads, node->layer->inputs); k++)
            if (node->inputs[k]) put(&s->operands[e].y, node->inputs[k] - 1);
        if (reads & READS_Y) put(&s->operands[e].y, n);
        if (reads & READS_SAVED && m->saved[n]) put(&s->operands[e].saved, n);
    }
    list_items(s);
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

struct state_search_result state_search(const struct step_model *m, size_t limit, double below,
                                        struct state_effort effort, struct region *region)
{
    struct search s = {.model = m, .limit = limit, .below = below - m->floor, .region = region_create()};
    struct state_search_result result = {.proven = true};
    struct frontier here, next;
    prepare(&s);
    frontier_begin(&s, m->events, &here);
    offer(&s, &here, &(struct state){.origin = -1, .item = STEP_NEXT});
    for (int event = m->events; event > 0; event--) {
        int expanded[STATE_LEVELS_MAX] = {0};
        frontier_begin(&s, event - 1, &next);
        while (here.heaped) {
            const struct state state = here.state[pop(&here)];
            const int level = (int)((double)state.held / ((double)limit + 1) * effort.levels);
            if (expanded[level]++ < effort.width)
                expand(&s, &state, &here, &next);
            else
                result.proven = false;
        }
        frontier_end(&here);
        here = next;
        work_report("searching states", m->events - event + 1, m->events);
    }
    if (here.count) {
        result.found = true;
        result.sequence = trace_back(&s, &here.state[0], region);
    }
    frontier_end(&here);
    region_destroy(s.region);
    return result;
}
