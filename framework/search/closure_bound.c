#include "search/closure_bound.h"

#include <math.h>

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

struct closure {
    const struct moments *moments;
    bool divided;
    bool *wanted; /* by node, of one moment: a recomputation of it is considered */
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
    if (!c->divided) room = room / c->unit * c->unit; /* what is kept has such a multiple of bytes */
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
static void add_node(struct closure *c, const struct moment *at, int n, struct cut *all, struct cut *nothing)
{
    const struct moments *m = c->moments;
    const struct node *node = &m->model->network->graph->node[n];
    const size_t value = moment_value(m, at, n), saved = moment_saved(m, at, n);
    if (value) connect(c, SOURCE, recomputed(n), 0, value);
    if (saved) connect(c, SOURCE, recomputed(n), 0, saved);
    if (!value && !m->free[n]) connect(c, needed(n), recomputed(n), 0, m->model->value[n]);
    connect(c, recomputed(n), SINK, m->model->time[n], 0);
    for (int k = 0; k < node->layer->inputs; k++) {
        const int x = node->inputs[k] - 1;
        if (x < 0 || m->free[x]) continue;
        c->wanted[x] = true;
        if (m->y[x] <= at->event) connect(c, recomputed(n), needed(x), INFINITY, 0);
    }
    all->bytes += value + saved;
    nothing->time += m->model->time[n];
}

static void bound_moment(struct closure *c, const struct moment *at)
{
    struct cut all = {0, 0}, nothing = {0, 0};
    c->edges = 0;
    c->unit = 0;
    c->vertices = needed(at->done);
    for (int v = 0; v < c->vertices; v++) c->first[v] = -1;
    moment_mark(c->moments, at, true);
    for (int n = 0; n < at->done; n++)
        c->wanted[n] = moment_value(c->moments, at, n) || moment_saved(c->moments, at, n);
    for (int n = at->done - 1; n >= 0; n--)
        if (c->wanted[n]) add_node(c, at, n, &all, &nothing);
    moment_mark(c->moments, at, false);
    if (all.bytes > at->room && nothing.time > c->most) find_price(c, at->room, all, nothing);
}

double closure_bound(const struct moments *moments, bool divided)
{
    region_auto *region = region_create();
    struct closure c = {.moments = moments, .divided = divided};
    const struct step_model *model = moments->model;
    const size_t nodes = (size_t)model->nodes, vertices = (size_t)needed(model->nodes);
    size_t edges = 4 * nodes;
    for (int n = 0; n < model->nodes; n++) edges += (size_t)model->network->graph->node[n].layer->inputs;
    NEW(region, c.wanted, nodes);
    NEW(region, c.edge, 2 * edges);
    NEW(region, c.first, vertices);
    NEW(region, c.at, vertices);
    NEW(region, c.level, vertices);
    NEW(region, c.queue, vertices);
    for (int i = 0; i < moments->count && moments->moment[i].excess && c.scanned < BOUNDS_CLOSURE_EDGES; i++)
        bound_moment(&c, &moments->moment[i]);
    return c.most;
}
