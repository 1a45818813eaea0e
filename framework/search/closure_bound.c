#include "search/closure_bound.h"

#include <math.h>
#include <stdlib.h>

#include "search/limits.h"

enum { SOURCE = 0, SINK = 1, FIRST = 2 };

/* Of a flow network: the first vertex's side of a cut is what is recomputed or needed. Edges 2 i and 2 i + 1 are
 * opposite. */
struct edge {
    int to, next;
    double time;  /* what cutting it costs ... */
    size_t bytes; /* ... besides what keeping these bytes does */
    double room;
};

/* One op, and what is read after it. */
struct moment {
    int event, done; /* nodes below have had their first forward, its own included */
    size_t room;     /* that it leaves for what it does not read */
    size_t excess;   /* of all that is read later */
};

struct closure {
    const struct step_model *model;
    const bool *whole;
    struct region *region;
    size_t limit;
    int *y, *saved;    /* by node: the last event that reads it, -1: none */
    bool *free, *read; /* by node, of one moment: its value is live there; its saved tensors are */
    bool *wanted;      /* by node, of one moment: a recomputation of it is considered */
    struct edge *edge;
    int edges, vertices;
    int *first, *at, *level, *queue; /* by vertex */
    size_t unit;                     /* that divides the bytes of everything that may be kept */
    double tiny, most;               /* times that rounding may leave; the bound so far */
    int64_t scanned;
};

/* A cut: time of what is recomputed, bytes of what is kept. */
struct cut {
    double time;
    size_t bytes;
};

static int recomputed(int node) { return FIRST + 2 * node; }
static int needed(int node) { return FIRST + 2 * node + 1; }

static void connect(struct closure *c, int from, int to, double time, size_t bytes)
{
    for (size_t a = bytes, b = c->unit; a;) { /* the greatest common divisor */
        c->unit = a;
        a = b % a;
        b = c->unit;
    }
    c->edge[c->edges] = (struct edge){to, c->first[from], time, bytes, 0};
    c->first[from] = c->edges++;
    c->edge[c->edges] = (struct edge){from, c->first[to], 0, 0, 0};
    c->first[to] = c->edges++;
}

static bool find_levels(struct closure *c)
{
    int length = 0;
    for (int v = 0; v < c->vertices; v++) c->level[v] = -1, c->at[v] = c->first[v];
    c->level[SOURCE] = 0;
    c->queue[length++] = SOURCE;
    for (int k = 0; k < length; k++)
        for (int e = c->first[c->queue[k]]; e >= 0; e = c->edge[e].next, c->scanned++) {
            const int to = c->edge[e].to;
            if (c->level[to] >= 0 || c->edge[e].room <= c->tiny) continue;
            c->level[to] = c->level[c->queue[k]] + 1;
            c->queue[length++] = to;
        }
    return c->level[SINK] >= 0;
}

/* Pushes at most most from the vertex to the sink along rising levels; returns how much. */
static double push(struct closure *c, int from, double most)
{
    double pushed = 0;
    if (from == SINK) return most;
    for (int *e = &c->at[from]; *e >= 0 && pushed < most; c->scanned++) {
        struct edge *edge = &c->edge[*e];
        double part = 0;
        if (edge->room > c->tiny && c->level[edge->to] == c->level[from] + 1)
            part = push(c, edge->to, fmin(most - pushed, edge->room));
        edge->room -= part;
        c->edge[*e ^ 1].room += part;
        pushed += part;
        if (pushed < most) *e = edge->next;
    }
    return pushed;
}

/* The largest flow (Dinic, 1970) where a byte has this price, at most the least cost of a cut. Afterwards, unless too
 * many edges were scanned, what has a level is the source's side of that cut. */
static double flow(struct closure *c, double price)
{
    double sum = 0;
    for (int e = 0; e < c->edges; e++) c->edge[e].room = c->edge[e].time + price * (double)c->edge[e].bytes;
    while (c->scanned < BOUNDS_CLOSURE_EDGES && find_levels(c)) sum += push(c, SOURCE, INFINITY);
    return sum;
}

static struct cut read_cut(const struct closure *c)
{
    struct cut cut = {0, 0};
    for (int e = 0; e < c->edges; e += 2) {
        if (c->level[c->edge[e ^ 1].to] < 0 || c->level[c->edge[e].to] >= 0) continue;
        cut.time += c->edge[e].time;
        cut.bytes += c->edge[e].bytes;
    }
    return cut;
}

/* Raises the bound by the best price, between the cuts that keep everything and nothing. */
static void find_price(struct closure *c, size_t room, struct cut all, struct cut nothing)
{
    if (!c->whole) room = room / c->unit * c->unit; /* what is kept has such a multiple of bytes */
    c->tiny = 1e-13 * nothing.time;
    for (int round = 0; round < BOUNDS_CLOSURE_ROUNDS && all.bytes > room && c->scanned < BOUNDS_CLOSURE_EDGES;
         round++) {
        const double price = (nothing.time - all.time) / (double)(all.bytes - nothing.bytes);
        const double least = flow(c, price), before = all.time + price * (double)all.bytes;
        const struct cut cut = read_cut(c);
        c->most = fmax(c->most, least - price * (double)room);
        if (least > before * (1 - 1e-9) || cut.bytes >= all.bytes || cut.time >= nothing.time) return;
        *(cut.bytes > room ? &all : &nothing) = cut;
    }
}

/* Edges for a node that may have to be recomputed. */
static void add_node(struct closure *c, const struct moment *m, int n, struct cut *all, struct cut *nothing)
{
    const struct node *node = &c->model->network->graph->node[n];
    const size_t value = c->y[n] > m->event && !c->free[n] ? c->model->value[n] : 0;
    const size_t saved = c->saved[n] > m->event && !c->read[n] ? c->model->saved[n] : 0;
    if (value) connect(c, SOURCE, recomputed(n), 0, value);
    if (saved) connect(c, SOURCE, recomputed(n), 0, saved);
    if (!value && !c->free[n]) connect(c, needed(n), recomputed(n), 0, c->model->value[n]);
    connect(c, recomputed(n), SINK, c->model->time[n], 0);
    for (int k = 0; k < node->layer->inputs; k++) {
        const int x = node->inputs[k] - 1;
        if (x < 0 || c->free[x]) continue;
        c->wanted[x] = true;
        if (c->y[x] <= m->event) connect(c, recomputed(n), needed(x), INFINITY, 0);
    }
    all->bytes += value + saved;
    nothing->time += c->model->time[n];
}

/* What the event has live: an input whose place its output may take is not counted. */
static void mark_free(struct closure *c, const struct step_event *e, bool free)
{
    const struct node *node = &c->model->network->graph->node[e->node];
    const bool forward = e->kind == STEP_FORWARD;
    for (struct reading r = step_reading(c->model, e); !forward && reading_next(&r);)
        (r.saved ? c->read : c->free)[r.node] = free;
    if (forward) c->free[e->node] = free;
    for (int k = 0; forward && k < node->layer->inputs; k++) {
        const bool over = c->model->over[e->node] && node->inputs[k] == node->inputs[0];
        if (node->inputs[k] && !over) c->free[node->inputs[k] - 1] = free;
    }
}

static void bound_moment(struct closure *c, const struct moment *m)
{
    const struct step_event *e = &c->model->event[m->event];
    struct cut all = {0, 0}, nothing = {0, 0};
    c->edges = 0;
    c->unit = 0;
    c->vertices = needed(m->done);
    for (int v = 0; v < c->vertices; v++) c->first[v] = -1;
    mark_free(c, e, true);
    for (int n = 0; n < m->done; n++)
        c->wanted[n] = (c->y[n] > m->event && !c->free[n]) || (c->saved[n] > m->event && !c->read[n]);
    for (int n = m->done - 1; n >= 0; n--)
        if (c->wanted[n]) add_node(c, m, n, &all, &nothing);
    mark_free(c, e, false);
    if (all.bytes > m->room && nothing.time > c->most) find_price(c, m->room, all, nothing);
}

/* Adds what is marked free to what is live, takes it from what is read later, and removes the mark. */
static void count_free(struct closure *c, int event, int n, bool saved, size_t *live, size_t *later)
{
    if (n < 0 || !(saved ? c->read : c->free)[n]) return;
    (saved ? c->read : c->free)[n] = false;
    *live += saved ? c->model->saved[n] : c->model->value[n];
    if ((saved ? c->saved : c->y)[n] > event) *later -= saved ? c->model->saved[n] : c->model->value[n];
}

/* The room that the event leaves, and by how much what is read later, of so many bytes with what it reads itself,
 * exceeds it. */
static struct moment weigh(struct closure *c, int event, size_t later)
{
    const struct step_model *model = c->model;
    const struct step_event *e = &model->event[event];
    struct moment m = {event, event < model->nodes ? event + 1 : model->nodes, c->limit, 0};
    size_t live = e->during;
    mark_free(c, e, true);
    if (e->kind == STEP_FORWARD) {
        const struct node *node = &model->network->graph->node[e->node];
        for (int k = -1; k < node->layer->inputs; k++)
            count_free(c, event, k < 0 ? e->node : node->inputs[k] - 1, false, &live, &later);
    } else {
        for (struct reading r = step_reading(model, e); reading_next(&r);)
            count_free(c, event, r.node, r.saved, &live, &later);
    }
    m.room = live < c->limit ? c->limit - live : 0;
    m.excess = live <= c->limit && later > m.room ? later - m.room : 0; /* where it does not fit, no schedule does */
    return m;
}

/* The moments of all events, or of those of whole nodes. */
static int weigh_all(struct closure *c, struct moment *moment)
{
    const struct step_model *model = c->model;
    size_t later = 0, *read; /* bytes written so far that are read later; by event, those that none after it reads */
    int moments = 0;
    NEW(c->region, read, (size_t)model->events);
    for (int n = 0; n < model->nodes; n++) {
        if (c->y[n] >= 0) read[c->y[n]] += model->value[n];
        if (c->saved[n] >= 0) read[c->saved[n]] += model->saved[n];
    }
    for (int i = 0; i < model->events; i++) {
        if (i < model->nodes && c->y[i] >= 0) later += model->value[i];
        if (i < model->nodes && c->saved[i] >= 0) later += model->saved[i];
        later -= read[i];
        if (!c->whole || c->whole[model->event[i].node]) moment[moments++] = weigh(c, i, later);
    }
    return moments;
}

static int by_excess(const void *x, const void *y)
{
    const struct moment *a = x, *b = y;
    return a->excess != b->excess ? (a->excess < b->excess) - (a->excess > b->excess) : a->event - b->event;
}

/* The last event that reads each value and each node's saved tensors. */
static void list_readers(struct closure *c)
{
    const struct step_model *m = c->model;
    for (int n = 0; n < m->nodes; n++) c->y[n] = c->saved[n] = -1;
    for (int i = 0; i < m->events; i++) {
        const struct step_event *e = &m->event[i];
        const struct node *node = &m->network->graph->node[e->node];
        const bool forward = e->kind == STEP_FORWARD;
        for (struct reading r = step_reading(m, e); !forward && reading_next(&r);)
            (r.saved ? c->saved : c->y)[r.node] = i;
        for (int k = 0; forward && k < node->layer->inputs; k++)
            if (node->inputs[k]) c->y[node->inputs[k] - 1] = i;
    }
}

double closure_bound(const struct step_model *model, const bool *whole, size_t limit)
{
    region_auto *region = region_create();
    struct closure c = {.model = model, .whole = whole, .region = region, .limit = limit};
    const size_t nodes = (size_t)model->nodes, vertices = (size_t)needed(model->nodes);
    size_t edges = 4 * nodes;
    struct moment *moment;
    NEW(region, moment, (size_t)model->events);
    NEW(region, c.y, nodes);
    NEW(region, c.saved, nodes);
    NEW(region, c.free, nodes);
    NEW(region, c.read, nodes);
    NEW(region, c.wanted, nodes);
    for (int n = 0; n < model->nodes; n++) edges += (size_t)model->network->graph->node[n].layer->inputs;
    NEW(region, c.edge, 2 * edges);
    NEW(region, c.first, vertices);
    NEW(region, c.at, vertices);
    NEW(region, c.level, vertices);
    NEW(region, c.queue, vertices);
    list_readers(&c);
    const int moments = weigh_all(&c, moment);
    qsort(moment, (size_t)moments, sizeof *moment, by_excess);
    for (int i = 0; i < moments && moment[i].excess && c.scanned < BOUNDS_CLOSURE_EDGES; i++)
        bound_moment(&c, &moment[i]);
    return c.most;
}
