/* Two sweeps. Over the schedule's steps: an event for each node and slice. Backward over the events: which values are
 * read later, hence which recomputations are dead, which forwards save, and which parameters nothing reads any more. */
#include "plan/events.h"

struct listing {
    const struct network *network;
    const struct graph *graph;
    bool drop_dead;
    struct region *region;
    struct slicing slicing;
    int slices;
    struct event *event;
    size_t events;
    int dropped;
};

static const struct footprint *footprint_of(const struct listing *b, int node)
{
    return &b->network->binding[node].footprint;
}

unsigned event_reads(const struct network *network, const struct event *event)
{
    const struct footprint *f = &network->binding[event->node].footprint;
    return f->part_elements ? network_reads(network, event->node) : footprint_reads(f->reads, event->parts);
}

/* The slices of a step at a node: WHOLE_BATCH alone, or a range. */
struct slices {
    int from, to;
};
static struct slices slices_of(const struct listing *b, const struct step *s, int node)
{
    if (slicing_whole(&b->slicing, node)) return (struct slices){WHOLE_BATCH, WHOLE_BATCH + 1};
    if (s->slice == WHOLE_BATCH) return (struct slices){0, b->slices};
    return (struct slices){s->slice, s->slice + 1};
}

/* Appends the event of the first half of a split backward; false: the node's is not split. */
static bool expand_half(struct listing *b, int node, int slice)
{
    const bool split = network_parts(b->network, node) == (PART_PARAMS | PART_INPUT) && footprint_of(b, node)->split;
    if (split)
        b->event[b->events++] =
            (struct event){.kind = STEP_BACKWARD, .node = node, .slice = slice, .parts = PART_PARAMS, .first = true};
    return split;
}

/* One or two events for a node's backward; halved: there was one already. With an update in parts, which no sliced node
 * has: INPUT, then PARAMS part by part. */
static void expand_backward(struct listing *b, int node, int slice, bool halved)
{
    const bool first = !halved && !expand_half(b, node, slice);
    const int updates = network_update_parts(b->network, node);
    struct event event = {.kind = STEP_BACKWARD, .node = node, .slice = slice, .first = first, .last = !updates};
    event.parts = first ? network_parts(b->network, node) : PART_INPUT;
    if (updates) event.parts &= PART_INPUT;
    if (event.parts || !updates) b->event[b->events++] = event;
    event.first = !event.parts;
    event.parts = PART_PARAMS;
    for (event.part = 1; event.part <= updates; event.part++, event.first = false) {
        event.last = event.part == updates;
        b->event[b->events++] = event;
    }
}

/* The events of a step at one node; forward, halved: by slice, below which nodes have had their first forward, and the
 * last one halved. */
static void expand_step(struct listing *b, const struct step *s, int node, int *forward, int *halved)
{
    const struct slices range = slices_of(b, s, node);
    /* the first halves of all slices first, after which whole inputs die */
    for (int slice = range.from; s->kind == STEP_BACKWARD && range.to > range.from + 1 && slice < range.to; slice++)
        if (node != halved[slice] && expand_half(b, node, slice)) halved[slice] = node;
    for (int slice = range.from; slice < range.to; slice++) {
        const int k = slice_place(b->slices, 0, slice);
        if (s->kind == STEP_FORWARD && !network_has_forward(b->network, node)) continue;
        if (s->kind == STEP_FORWARD) {
            b->event[b->events++] =
                (struct event){.kind = STEP_FORWARD, .node = node, .slice = slice, .first = node >= forward[k]};
            for (int i = k; i < k + slice_places(b->slices, slice); i++)
                if (node >= forward[i]) forward[i] = node + 1;
        } else if (s->kind == STEP_BACKWARD) {
            expand_backward(b, node, slice, node == halved[k]);
        } else if (expand_half(b, node, slice)) {
            halved[k] = node;
        }
    }
}

static void expand(struct listing *b, const struct schedule *schedule)
{
    const size_t slices = (size_t)b->slices;
    size_t room = 0;
    for (size_t i = 0; i < schedule->steps; i++)
        for (int n = schedule->step[i].from; n < schedule->step[i].to; n++)
            room +=
                2 * (schedule->step[i].slice == WHOLE_BATCH ? slices : 1) + (size_t)network_update_parts(b->network, n);
    NEW(b->region, b->event, room);
    int *forward, *halved;
    NEW(b->region, forward, slices);
    NEW(b->region, halved, slices);
    for (size_t k = 0; k < slices; k++) halved[k] = -1;
    for (size_t i = 0; i < schedule->steps; i++) {
        const struct step *s = &schedule->step[i];
        for (int k = 0; k < s->to - s->from; k++)
            expand_step(b, s, s->kind == STEP_FORWARD ? s->from + k : s->to - 1 - k, forward, halved);
    }
}

/* What the events after the current one read of the incarnations that are newest there. */
struct reads_ahead {
    bool *value, *saved; /* by value or node, and slice */
    bool *joint;         /* by value and slice: an op of the whole batch reads it, before the slice is written again */
    int *written;        /* value -> slices written since, going back from that op */
};

static void read_ahead(const struct listing *b, struct reads_ahead *ahead, int value, int slice)
{
    for (int k = slice_place(b->slices, value, slice), end = k + slice_places(b->slices, slice); k < end; k++) {
        ahead->value[k] = true;
        if (slice == WHOLE_BATCH) ahead->joint[k] = true;
    }
    if (slice == WHOLE_BATCH) ahead->written[value] = 0;
}

/* A forward that is not dead writes what was read; a slice's part of a joint buffer opens it where the others follow.
 */
static void mark_forward(struct listing *b, struct reads_ahead *ahead, struct event *e)
{
    const int value = slice_place(b->slices, e->node + 1, e->slice), node = slice_place(b->slices, e->node, e->slice);
    bool read = false;
    for (int k = 0; k < slice_places(b->slices, e->slice); k++) {
        read |= ahead->value[value + k] || ahead->saved[node + k];
        e->save |= ahead->saved[node + k];
    }
    e->dropped = !e->first && ((!read && b->drop_dead) || b->network->binding[e->node].runs_once);
    if (e->dropped) return;
    e->joint = e->slice != WHOLE_BATCH && ahead->joint[value];
    e->opens = e->joint && ++ahead->written[e->node + 1] == b->slices;
    for (int k = 0; k < slice_places(b->slices, e->slice); k++)
        ahead->value[value + k] = ahead->saved[node + k] = ahead->joint[value + k] = false;
}

static void mark_backward(const struct listing *b, struct reads_ahead *ahead, const struct event *e)
{
    for (struct reading r = reading_of(b->network, e->node, event_reads(b->network, e)); reading_next(&r);) {
        if (!r.saved) read_ahead(b, ahead, r.node + 1, e->slice);
        for (int k = 0; r.saved && k < slice_places(b->slices, e->slice); k++)
            ahead->saved[slice_place(b->slices, r.node, e->slice) + k] = true;
    }
}

/* Sweeps the events from the last to the first and marks dead recomputations and forwards that save. */
static void mark(struct listing *b)
{
    struct reads_ahead ahead;
    bool *later; /* node -> a later event reads its parameters or adds to their gradients */
    NEW(b->region, ahead.value, (size_t)(b->graph->values * b->slices));
    NEW(b->region, ahead.saved, (size_t)(b->graph->nodes * b->slices));
    NEW(b->region, ahead.joint, (size_t)(b->graph->values * b->slices));
    NEW(b->region, ahead.written, (size_t)b->graph->values);
    NEW(b->region, later, (size_t)b->graph->nodes);
    for (size_t i = b->events; i-- > 0;) {
        struct event *e = &b->event[i];
        const struct node *node = &b->graph->node[e->node];
        if (e->kind == STEP_FORWARD) {
            mark_forward(b, &ahead, e);
            b->dropped += e->dropped;
            if (e->dropped) continue;
            for (int k = 0; k < node->layer->inputs; k++) read_ahead(b, &ahead, node->inputs[k], e->slice);
        } else {
            mark_backward(b, &ahead, e);
        }
        e->updates = !later[e->node];
        if (!e->part) later[e->node] = true;
    }
}

struct events events_list(const struct network *network, const struct schedule *schedule, bool drop_dead,
                          struct region *region)
{
    struct listing b = {.network = network, .graph = network->graph, .drop_dead = drop_dead, .region = region};
    b.slicing = graph_slicing(network->graph);
    b.slices = b.slicing.slices;
    expand(&b, schedule);
    mark(&b);
    return (struct events){b.event, b.events, b.dropped};
}
