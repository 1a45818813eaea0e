#include "search/state_search.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/work.h"
#include "search/limits.h"
#include "search/state_frontier.h"

/* An expanded state. */
struct trace {
    int origin, item;
};

/* What one recomputation frees: a node's value, its saved tensors, or both. */
struct item {
    int at; /* the node's place */
    bool y, saved;
    size_t bytes;
    double time;
};

struct search {
    const struct step_model *model;
    int first, last;    /* events that are searched: [first, last) */
    int nodes;          /* that are in sets, by their place among them: */
    const int *node;    /* by place: the node */
    int *place;         /* by node; -1: it is in no set */
    const bool *again;  /* by node: it may be recomputed; NULL: all may */
    size_t outside;     /* bytes that are live throughout and in no set */
    unsigned char *out; /* by node: what of it is counted there */
    size_t limit;
    double below;
    struct state_effort effort;
    size_t weight[2][STATE_NODES_MAX / 8][256]; /* bytes of eight nodes' values or saved tensors */
    struct needs *operands;                     /* by event, from event back on */
    int back;           /* the first event whose operands are known: earlier ones bound nothing */
    struct set *inputs; /* by place */
    struct set passing;
    struct item *item; /* by time for their bytes, cheapest first */
    int items;
    struct region *region;
    struct trace *trace;
    int traces;
};

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

/* The time of recomputing those inputs of a node that are not there, and theirs in turn, which are put to there. */
static double time_of_inputs(const struct search *s, int at, struct set *there)
{
    double time = 0;
    for (int x = -1; (x = next_of(&s->inputs[at], x + 1)) < s->nodes;) {
        if (has(there, x)) continue;
        put(there, x);
        time += s->model->time[s->node[x]] + time_of_inputs(s, x, there);
    }
    return time;
}

/* The least time of recomputing excess bytes of the needs, as a fractional knapsack; *likely: with its last item in
 * whole, and the items' inputs that are not there. The items are put to freed. */
static double knapsack(const struct search *s, const struct needs *needs, struct set there, size_t excess,
                       double *likely, struct needs *freed)
{
    double time = 0, inputs = 0;
    for (int i = 0; i < s->items && excess; i++) {
        const struct item *item = &s->item[i];
        if (has(&needs->y, item->at) != item->y || has(&needs->saved, item->at) != item->saved) continue;
        if (item->y) put(&freed->y, item->at);
        if (item->saved) put(&freed->saved, item->at);
        if (s->effort.estimate != ESTIMATE_ITEMS) {
            put(&there, item->at);
            inputs += time_of_inputs(s, item->at, &there);
        }
        *likely = time + item->time + inputs;
        if (item->bytes >= excess) return time + item->time * (double)excess / (double)item->bytes;
        excess -= item->bytes;
        time += item->time;
    }
    if (excess) time = INFINITY;
    *likely = time + inputs;
    return time;
}

/* The earlier backward with most bytes above the limit, of the state's needs without those freed; *all: what is live
 * there, *excess: those bytes. NULL: none has any. */
static const struct tight *most_excess(const struct search *s, const struct frontier *l, const struct state *state,
                                       const struct needs *freed, struct needs *all, size_t *excess)
{
    const struct tight *worst = NULL;
    size_t most = s->limit;
    for (int i = 0; i < l->tights; i++) {
        const struct tight *tight = &l->tight[i];
        struct needs at = {both(&state->needs.y, &tight->until.y), both(&state->needs.saved, &tight->until.saved)};
        if (freed) {
            at = (struct needs){without(&at.y, &freed->y), without(&at.saved, &freed->saved)};
            at = (struct needs){both(&at.y, &tight->operands.y), both(&at.saved, &tight->operands.saved)};
        }
        const size_t bytes = weigh(s, &at) + tight->bytes + s->outside;
        if (bytes > most) worst = tight, *all = at, most = bytes;
    }
    *excess = most - s->limit;
    return worst;
}

/* The least time of all recomputations, for which only the backward with most excess is counted; sets the estimate. */
static double bound(const struct search *s, const struct frontier *l, struct state *state)
{
    struct needs all, freed = {0};
    size_t excess;
    double likely = 0, least = state->time;
    const struct tight *at = most_excess(s, l, state, NULL, &all, &excess);
    state->estimate = state->time;
    for (bool first = true; at && isfinite(likely); first = false) {
        const struct needs dropped = {without(&all.y, &at->operands.y), without(&all.saved, &at->operands.saved)};
        const double time = knapsack(s, &dropped, all.y, excess, &likely, &freed);
        if (first) least += time;
        state->estimate += likely;
        at = s->effort.estimate == ESTIMATE_BACKWARDS ? most_excess(s, l, state, &freed, &all, &excess) : NULL;
    }
    return least;
}

/* Bytes that an event reads, are in no set, and are not counted yet. */
static size_t read_outside(const struct search *s, int event, unsigned char *counted)
{
    const struct step_model *m = s->model;
    size_t bytes = 0;
    for (struct reading r = step_reading(m, &m->event[event]); reading_next(&r);) {
        const unsigned char what = r.saved ? NEEDED_SAVED : NEEDED_Y;
        if (s->place[r.node] >= 0 || counted[r.node] & what) continue;
        counted[r.node] |= what;
        bytes += r.saved ? m->saved[r.node] : m->value[r.node];
    }
    return bytes;
}

/* The backwards before the position that take more bytes besides than all earlier ones: beside any other one, an
 * earlier one has as much to hold. */
static void find_tight(struct search *s, struct frontier *l)
{
    const struct step_model *m = s->model;
    region_auto *region = region_create();
    struct needs until = {0};
    size_t outside = 0;
    unsigned char *counted = NULL;
    if (s->out) {
        NEW(region, counted, (size_t)m->nodes);
        memcpy(counted, s->out, (size_t)m->nodes);
    }
    NEW(s->region, l->tight, (size_t)(l->event > s->back ? l->event - s->back : 0) + 1);
    for (int e = l->event - 1; e >= s->back; e--) {
        const struct needs *operands = &s->operands[e - s->back];
        until = (struct needs){both(&until.y, &operands->y), both(&until.saved, &operands->saved)};
        if (counted) outside += read_outside(s, e, counted);
        l->tight[e - s->back] = (struct tight){*operands, until, m->event[e].during + outside};
    }
    for (int i = 0; i < l->event - s->back; i++)
        if (!i || l->tight[i].bytes > l->tight[l->tights - 1].bytes) l->tight[l->tights++] = l->tight[i];
}

static void begin(struct search *s, int event, struct frontier *l)
{
    frontier_begin(l, event);
    find_tight(s, l);
}

/* Adds a state, or improves the equal one. */
static void offer(const struct search *s, struct frontier *l, struct state *state)
{
    const struct state *equal = frontier_find(l, &state->needs);
    if (equal && equal->time <= state->time) return;
    if (bound(s, l, state) < s->below) frontier_put(l, state);
}

/* The state before a forward of node, base bytes besides its operands and outputs; false: it does not fit. */
static bool before_forward(const struct search *s, int node, size_t base, struct state *state)
{
    const struct step_model *m = s->model;
    const int at = s->place[node];
    if (at < 0) return true; /* it has no forward */
    const struct set new = without(&s->inputs[at], &state->needs.y);
    const size_t saved = has(&state->needs.saved, at) ? m->saved[node] : 0;
    size_t outputs = m->value[node] + (saved ? saved : m->unsaved[node]);
    if (has(&state->needs.y, at)) state->held -= m->value[node];
    state->held += weigh_set(s, 0, &new) - saved;
    state->needs.y = both(&state->needs.y, &new);
    take(&state->needs.y, at);
    take(&state->needs.saved, at);
    if (m->over[node] && has(&new, s->place[m->network->graph->node[node].inputs[0] - 1])) outputs -= m->value[node];
    return state->held + outputs + base <= s->limit;
}

static bool before_backward(const struct search *s, int event, struct state *state)
{
    const struct step_event *e = &s->model->event[event];
    const struct needs *o = &s->operands[event - s->back];
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
    state.depth = 0;
    if (met) offer(s, next, &state);
    const struct set again = both(&origin.needs.y, &origin.needs.saved);
    if (here->event == m->events) return;
    for (int at = -1; (at = next_of(&again, at + 1)) < s->nodes;) {
        const int node = s->node[at];
        if (!m->again[node] || (s->again && !s->again[node])) continue;
        state = origin;
        state.item = node;
        state.depth++;
        state.time += m->time[node];
        if (before_forward(s, node, e->before + m->scratch[node], &state)) offer(s, here, &state);
    }
}

static int by_worth(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    const double one = a->time * (double)b->bytes, two = b->time * (double)a->bytes;
    return one != two ? (one > two) - (one < two) : (a->at > b->at) - (a->at < b->at);
}

/* Nodes whose values no backward reads and one node does: they are live only to be read by that node. */
static struct set find_passing(const struct search *s)
{
    const struct step_model *m = s->model;
    struct set kept = {0}, passing = {0};
    for (int e = s->back; e < s->last; e++) kept = both(&kept, &s->operands[e - s->back].y);
    for (int i = 0; i < s->nodes && !s->again; i++)
        if (m->network->graph->value[s->node[i] + 1].consumers == 1 && !has(&kept, i)) put(&passing, i);
    return passing;
}

/* The least price of the passing inputs that a recomputation of a node needs, where a byte that is kept costs rate:
 * each is kept or recomputed. */
static double price_inputs(const struct search *s, int at, double rate)
{
    const struct step_model *m = s->model;
    double sum = 0;
    for (int x = -1; (x = next_of(&s->inputs[at], x + 1)) < s->nodes;) {
        if (!has(&s->passing, x)) continue;
        sum += fmin(rate * (double)m->value[s->node[x]], m->time[s->node[x]] + price_inputs(s, x, rate));
    }
    return sum;
}

/* The least time for which a recomputation frees bytes: for part of them a passing input may be kept instead. */
static double time_to_free(const struct search *s, int at, size_t bytes)
{
    const double own = s->model->time[s->node[at]];
    double low = 0, high = s->model->floor / (double)bytes; /* as if every pass were recomputed */
    if (has(&s->passing, at)) return 0;                     /* counted at its reader */
    for (int i = 0; i < 50; i++) {
        const double rate = (low + high) / 2;
        *(rate * (double)bytes < own + price_inputs(s, at, rate) ? &low : &high) = rate;
    }
    return low * (double)bytes;
}

static void list_items(struct search *s)
{
    const struct step_model *m = s->model;
    s->passing = find_passing(s);
    NEW(s->region, s->item, 3 * (size_t)s->nodes);
    for (int i = 0; i < s->nodes; i++)
        for (int holds = 1; holds <= 3; holds++) {
            const int n = s->node[i];
            const bool y = holds & 1, saved = holds & 2;
            const size_t bytes = (y ? m->value[n] : 0) + (saved ? m->saved[n] : 0);
            if (!bytes || !m->again[n] || (saved && !m->saved[n])) continue;
            s->item[s->items++] = (struct item){i, y, saved, bytes, time_to_free(s, i, bytes)};
        }
    qsort(s->item, (size_t)s->items, sizeof *s->item, by_worth);
}

/* What an event reads, of the nodes in sets. */
static struct needs operands_of(const struct search *s, const struct step_event *e)
{
    struct needs operands = {0};
    for (struct reading r = step_reading(s->model, e); reading_next(&r);)
        if (s->place[r.node] >= 0) put(r.saved ? &operands.saved : &operands.y, s->place[r.node]);
    return operands;
}

static void prepare(struct search *s)
{
    const struct step_model *m = s->model;
    NEW(s->region, s->operands, (size_t)(s->last - s->back));
    NEW(s->region, s->inputs, (size_t)s->nodes);
    NEW(s->region, s->place, (size_t)m->nodes);
    for (int n = 0; n < m->nodes; n++) s->place[n] = -1;
    for (int i = 0; i < s->nodes; i++) s->place[s->node[i]] = i;
    for (int i = 0; i < s->nodes; i++) {
        const struct node *node = &m->network->graph->node[s->node[i]];
        for (int k = 0; k < node->layer->inputs; k++)
            if (node->inputs[k] && s->place[node->inputs[k] - 1] >= 0)
                put(&s->inputs[i], s->place[node->inputs[k] - 1]);
        for (int byte = 0; byte < 256; byte++)
            if (byte >> i % 8 & 1) {
                s->weight[0][i / 8][byte] += m->value[s->node[i]];
                s->weight[1][i / 8][byte] += m->saved[s->node[i]];
            }
    }
    for (int e = s->back; e < s->last; e++) s->operands[e - s->back] = operands_of(s, &m->event[e]);
    list_items(s);
}

/* The items from the state to the end. */
static struct sequence trace_back(const struct search *s, const struct state *first, struct region *region)
{
    struct sequence sequence = {0, NULL};
    assert(s->trace); /* of the state after the last event */
    for (int at = first->origin; at > 0; at = s->trace[at].origin) sequence.length++;
    sequence.length++;
    NEW(region, sequence.item, 2 * (size_t)sequence.length);
    sequence.item[0] = first->item;
    for (int at = first->origin, i = 1; at > 0; at = s->trace[at].origin) sequence.item[i++] = s->trace[at].item;
    return sequence;
}

/* The part of a position's states that it counts to (struct state_effort). */
static int part_of(const struct search *s, const struct state *state)
{
    const int levels = s->effort.levels;
    const int level = (int)((double)state->held / ((double)s->limit + 1) * levels);
    const int depth = state->depth < STATE_DEPTHS ? state->depth : STATE_DEPTHS - 1;
    return s->effort.deep ? depth * levels + level : level;
}

/* Searches back from the state after the last event to the states before the first, which are left in *here; returns
 * whether the beam left none out. */
static bool run(struct search *s, struct state *after, struct frontier *here)
{
    struct frontier next;
    bool proven = true;
    begin(s, s->last, here);
    offer(s, here, after);
    for (int event = s->last; event > s->first; event--) {
        int expanded[STATE_DEPTHS * STATE_LEVELS_MAX] = {0};
        begin(s, event - 1, &next);
        while (here->heaped) {
            const struct state state = frontier_take(here);
            if (expanded[part_of(s, &state)]++ < s->effort.width)
                expand(s, &state, here, &next);
            else
                proven = false;
        }
        frontier_end(here);
        *here = next;
        if (!s->out) work_report("searching states", s->last - event + 1, s->last);
    }
    return proven;
}

struct state_search_result state_search(const struct step_model *m, size_t limit, double below,
                                        struct state_effort effort, struct region *region)
{
    struct search s = {
        .model = m, .limit = limit, .below = below - m->floor, .effort = effort, .region = region_create()};
    struct state_search_result result = {.proven = true};
    struct frontier here;
    int *all;
    NEW(s.region, all, (size_t)m->nodes);
    for (int n = 0; n < m->nodes; n++)
        if (network_has_forward(m->network, n)) all[s.nodes++] = n;
    s.node = all;
    s.last = m->events;
    s.back = m->nodes;
    prepare(&s);
    result.proven = run(&s, &(struct state){.origin = -1, .item = STEP_NEXT}, &here);
    if (here.count) {
        result.found = true;
        result.sequence = trace_back(&s, &here.state[0], region);
    }
    frontier_end(&here);
    region_destroy(s.region);
    return result;
}

/* The state after a window. */
static struct state state_after(struct search *s, const struct state_window *w)
{
    const struct step_model *m = s->model;
    struct state after = {.origin = -1, .item = STEP_NEXT};
    NEW(s->region, s->out, (size_t)m->nodes);
    for (int n = 0; n < m->nodes; n++) {
        const int at = s->place[n];
        const size_t bytes =
            (w->needed[n] & NEEDED_Y ? m->value[n] : 0) + (w->needed[n] & NEEDED_SAVED ? m->saved[n] : 0);
        after.held += bytes;
        if (at < 0) {
            s->out[n] = w->needed[n];
            s->outside += bytes;
            continue;
        }
        if (w->needed[n] & NEEDED_Y) put(&after.needs.y, at);
        if (w->needed[n] & NEEDED_SAVED) put(&after.needs.saved, at);
    }
    return after;
}

static int by_estimate(const void *x, const void *y)
{
    const struct state *a = x, *b = y;
    if (a->estimate != b->estimate) return a->estimate < b->estimate ? -1 : 1;
    if (a->held != b->held) return a->held < b->held ? -1 : 1;
    return memcmp(&a->needs, &b->needs, sizeof a->needs);
}

int state_search_window(const struct step_model *m, const struct state_window *w, size_t limit, double below,
                        struct state_effort effort, int most, struct sequence *sequence, struct region *region)
{
    struct search s = {.model = m,
                       .first = w->from,
                       .last = w->to,
                       .nodes = w->nodes,
                       .node = w->node,
                       .again = w->again,
                       .limit = limit,
                       .below = below,
                       .effort = effort,
                       .region = region_create()};
    struct frontier here;
    int count = 0;
    s.back = w->from - WINDOWS_AHEAD > m->nodes ? w->from - WINDOWS_AHEAD : m->nodes;
    prepare(&s);
    struct state after = state_after(&s, w);
    run(&s, &after, &here);
    qsort(here.state, (size_t)here.count, sizeof *here.state, by_estimate);
    for (; count < most && count < here.count; count++) sequence[count] = trace_back(&s, &here.state[count], region);
    frontier_end(&here);
    region_destroy(s.region);
    return count;
}
