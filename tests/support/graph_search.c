#include "graph_search.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { EVENTS_MAX = 3 * GRAPH_SEARCH_NODES_MAX, ITEMS_MAX = 2 * GRAPH_SEARCH_NODES_MAX, PATH_MAX_STEPS = 2048 };

/* Item n is node n's value; the items after the values are saved tensors. */
struct event {
    int node;
    bool backward, half;
    unsigned reads; /* items */
    size_t during, after, before;
};

/* How many events are done, and the live items. */
struct state {
    uint32_t done, live;
    double time; /* least found of the recomputations before it */
    int from;    /* the state before it, -1: none */
    int by;      /* node recomputed, -1: an event */
};

struct entry {
    double least; /* time of all recomputations: at least those that the state still needs */
    double time;
    int state;
};

struct world {
    const struct network *network;
    size_t limit;
    double below;
    int nodes, items, events;
    size_t bytes[ITEMS_MAX];
    int saved[GRAPH_SEARCH_NODES_MAX]; /* item, -1: none */
    unsigned inputs[GRAPH_SEARCH_NODES_MAX];
    struct event event[EVENTS_MAX];
    unsigned future[EVENTS_MAX + 1]; /* items that events from here on read */
    struct state *state;
    int *slot; /* by hash: state + 1, 0: free */
    int states, slots;
    struct entry *heap;
    size_t entries, room;
};

static unsigned inputs_of(const struct network *network, int n)
{
    const struct node *node = &network->graph->node[n];
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
    if (reads & READS_X) set |= w->inputs[n];
    if (reads & READS_X0 && w->network->graph->node[n].inputs[0])
        set |= 1U << (w->network->graph->node[n].inputs[0] - 1);
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
        w->inputs[n] = inputs_of(w->network, n);
        w->saved[n] = -1;
        if (w->network->binding[n].footprint.saved && network_reads(w->network, n) & READS_SAVED) {
            w->bytes[w->items] = network_round(w->network, w->network->binding[n].footprint.saved);
            w->saved[n] = w->items++;
        }
        w->event[w->events++] = (struct event){.node = n, .during = fixed(&l, n, false), .before = fixed(&l, n, true)};
    }
    int op = w->nodes;
    for (int n = w->nodes - 1; n >= 0; n--) add_backward(w, &l, n, &op);
    cr_assert(w->items <= ITEMS_MAX);
    for (int e = w->events - 1; e >= 0; e--)
        w->future[e] = w->future[e + 1] | (w->event[e].backward ? w->event[e].reads : w->inputs[w->event[e].node]);
}

/* The time of the recomputations that a state still needs: of each item that is read later and is not live, and of the
 * inputs for it that are not live. */
static double still(const struct world *w, unsigned done, unsigned live)
{
    const int run = done < (unsigned)w->nodes ? (int)done : w->nodes;
    unsigned missing = w->future[done] & ~live;
    double time = 0;
    for (int n = run - 1; n >= 0; n--) {
        if (!(missing >> n & 1) && !(w->saved[n] >= 0 && missing >> w->saved[n] & 1)) continue;
        time += w->network->cost[n].forward;
        missing |= w->inputs[n] & ~live;
    }
    return time;
}

static int *slot_of(const struct world *w, uint32_t done, uint32_t live)
{
    uint64_t hash = ((uint64_t)done << 32 | live) * 0x9e3779b97f4a7c15u;
    for (hash = hash ^ hash >> 29;; hash++) {
        int *slot = &w->slot[hash & (uint64_t)(w->slots - 1)];
        if (!*slot || (w->state[*slot - 1].done == done && w->state[*slot - 1].live == live)) return slot;
    }
}

static void grow(struct world *w)
{
    w->slots = w->slots ? 2 * w->slots : 1 << 16;
    free(w->slot);
    w->slot = calloc((size_t)w->slots, sizeof *w->slot);
    w->state = realloc(w->state, (size_t)w->slots / 2 * sizeof *w->state);
    for (int i = 0; i < w->states; i++) *slot_of(w, w->state[i].done, w->state[i].live) = i + 1;
}

static void push(struct world *w, double time, uint32_t done, uint32_t live, int from, int by)
{
    const double least = time + still(w, done, live);
    if (least >= w->below) return;
    if (w->states * 2 >= w->slots) grow(w);
    int *slot = slot_of(w, done, live);
    if (*slot && w->state[*slot - 1].time <= time) return;
    if (!*slot) *slot = ++w->states;
    w->state[*slot - 1] = (struct state){done, live, time, from, by};
    if (w->entries == w->room) w->heap = realloc(w->heap, (w->room = w->room * 2 + 1024) * sizeof *w->heap);
    size_t at = w->entries++;
    for (; at && w->heap[(at - 1) / 2].least > least; at = (at - 1) / 2) w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = (struct entry){least, time, *slot - 1};
}

static struct entry pop(struct world *w)
{
    const struct entry top = w->heap[0], last = w->heap[--w->entries];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < w->entries; at = child) {
        if (child + 1 < w->entries && w->heap[child + 1].least < w->heap[child].least) child++;
        if (w->heap[child].least >= last.least) break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = last;
    return top;
}

/* All ways to go on from live after touching a set, of which any part may be dropped. */
static void leave(struct world *w, int from, uint32_t done, unsigned live, unsigned touched, double time, int by)
{
    const double all = w->state[from].time + time;
    for (unsigned drop = touched;; drop = (drop - 1) & touched) {
        push(w, all, done, live & ~drop, from, by);
        if (!drop) return;
    }
}

/* Node's forward, for whichever of its outputs are kept; in the place of its first input where that dies here. */
static void forward(struct world *w, int from, int n, size_t base, bool first)
{
    const unsigned inputs = w->inputs[n], own = 1U << n, live = w->state[from].live;
    const int x = w->network->graph->node[n].inputs[0] - 1;
    const uint32_t to = w->state[from].done + first;
    const bool over = w->network->binding[n].footprint.y_over_x && x >= 0 && w->bytes[x] == w->bytes[n];
    if ((live & inputs) != inputs) return;
    for (int save = 0; save <= (w->saved[n] >= 0); save++) {
        const unsigned saved = save ? 1U << w->saved[n] : 0;
        const size_t bytes = held(w, live | own | saved) + base;
        const double time = first ? 0 : w->network->cost[n].forward;
        if (live & saved) continue;
        if (!first && live & own && !saved) continue;
        if (bytes <= w->limit) {
            leave(w, from, to, live | own | saved, inputs | own, time, first ? -1 : n);
        } else if (over && !(live & own) && bytes - w->bytes[n] <= w->limit) {
            leave(w, from, to, (live | own | saved) & ~(1U << x), (inputs & ~(1U << x)) | own, time, first ? -1 : n);
        }
    }
}

static void meet(struct world *w, int from, const struct event *v)
{
    const unsigned live = w->state[from].live;
    const uint32_t to = w->state[from].done + 1;
    if (!v->backward) {
        forward(w, from, v->node, v->during, true);
        return;
    }
    if ((live & v->reads) != v->reads || held(w, live) + v->during > w->limit) return;
    for (unsigned drop = v->reads;; drop = (drop - 1) & v->reads) {
        if (held(w, live & ~drop) + v->after <= w->limit) push(w, w->state[from].time, to, live & ~drop, from, -1);
        if (!drop) return;
    }
}

static void write(const struct world *w, int goal, struct schedule *schedule)
{
    int path[PATH_MAX_STEPS], length = 0;
    for (int at = goal; w->state[at].from >= 0; at = w->state[at].from) {
        cr_assert(length < PATH_MAX_STEPS);
        path[length++] = at;
    }
    while (length-- > 0) {
        const int by = w->state[path[length]].by;
        const struct event *e = &w->event[w->state[path[length]].done - 1];
        if (by >= 0)
            schedule_append(schedule, STEP_FORWARD, by, by + 1);
        else if (e->backward)
            schedule_append(schedule, e->half ? STEP_PARAMS : STEP_BACKWARD, e->node, e->node + 1);
        else
            schedule_append(schedule, STEP_FORWARD, e->node, e->node + 1);
    }
}

static void expand(struct world *w, int at)
{
    const int done = (int)w->state[at].done;
    const struct event *v = &w->event[done];
    meet(w, at, v);
    for (int n = 0; n < w->nodes && n < done; n++)
        if (n < (v->backward ? v->node + 1 : v->node))
            forward(w, at, n, v->before + network_round(w->network, w->network->binding[n].footprint.forward_scratch),
                    false);
}

bool graph_search(const struct network *network, size_t limit, double below, double *time, struct schedule *schedule)
{
    struct world *w = calloc(1, sizeof *w);
    bool found = false;
    *w = (struct world){.network = network, .limit = limit, .below = below};
    describe(w, schedule->region);
    push(w, 0, 0, 0, -1, -1);
    while (w->entries && !found) {
        const struct entry e = pop(w);
        if (e.time != w->state[e.state].time) continue;
        found = w->state[e.state].done == (uint32_t)w->events;
        if (found) {
            *time = e.time;
            write(w, e.state, schedule);
        } else {
            expand(w, e.state);
        }
    }
    free(w->state);
    free(w->slot);
    free(w->heap);
    free(w);
    return found;
}
