/* Two levels: segments that are recomputed whole, once (Chen et al., "Training Deep Nets with Sublinear Memory Cost",
 * 2016, section 4.1).
 *
 * by count: about sqrt(n) segments of sqrt(n) units, O(sqrt n) memory for one more forward where units are equal.
 * by bytes: whatever units need, the cuts for which the values that cross them and the largest need of any segment are
 * least in sum, of equal ones the fastest. For a largest need the cheapest cuts are a shortest path over the units, and
 * all needs are tried that can still be better: a smaller one never has cheaper cuts. A segment needs the values and
 * saved tensors of its nodes that a backward reads, but its last value, which is the cut's, and the most that any one
 * op has in gradients and scratch; that outputs may take the place of inputs is left out. */
#include <math.h>
#include <string.h>

#include "policies/policy.h"

enum sqrt_by { BY_COUNT, BY_BYTES };

/* A unit as the division by bytes sees it. */
struct weight {
    size_t cut;    /* of values that cross from the units before it */
    size_t inside; /* of values and saved tensors that its backward reads */
    size_t last;   /* its last value's part of that */
    size_t op;     /* gradients and scratch of one op, the most there are */
    double time;   /* of its forward */
};

/* From a unit to the end. */
struct path {
    size_t cuts;
    double time; /* of recomputations */
    int next;    /* where the segment ends */
    bool found;
};

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t op_bytes(const struct network *network, int node)
{
    const struct graph *graph = network->graph;
    const struct footprint *f = &network->binding[node].footprint;
    const struct node *n = &graph->node[node];
    size_t dy = graph->value[n->output].gradient_bytes, dx = 0;
    for (int k = 0; k < n->layer->inputs && !f->passes_gradient; k++) dx += graph->value[n->inputs[k]].gradient_bytes;
    size_t gradients = f->dx_over_dy ? larger(dy, dx) : dy + dx;
    return larger(f->forward_scratch, gradients + larger(f->backward_scratch[0], f->backward_scratch[1]));
}

/* Values that a backward reads, of all of them: read[v]. And what crosses from before each node. */
static enum status gather_values(const struct network *network, struct region *region, bool **read, size_t **crossing)
{
    const struct graph *graph = network->graph;
    int *last;
    NEW(region, *read, (size_t)graph->values);
    NEW(region, *crossing, (size_t)graph->nodes + 1);
    NEW(region, last, (size_t)graph->values);
    for (int i = 0; i < graph->nodes; i++) {
        unsigned reads = network_reads(network, i);
        if (reads & READS_Y) (*read)[i + 1] = true;
        for (int k = 0; k < graph->node[i].layer->inputs; k++) {
            last[graph->node[i].inputs[k]] = i;
            if (reads & READS_X) (*read)[graph->node[i].inputs[k]] = true;
        }
    }
    for (int v = 1; v < graph->values; v++)
        for (int i = v; i <= last[v]; i++) (*crossing)[i] += network_round(network, graph->value[v].bytes);
    return ST_OK;
}

static enum status weigh(const struct network *network, const struct node_ranges *units, struct region *region,
                         struct weight **weights)
{
    bool *read;
    size_t *crossing;
    TRY(gather_values(network, region, &read, &crossing));
    NEW(region, *weights, (size_t)units->count);
    for (int u = 0; u < units->count; u++) {
        struct weight *w = &(*weights)[u];
        w->cut = crossing[units->range[u].from];
        for (int i = units->range[u].from; i < units->range[u].to; i++) {
            w->last = read[i + 1] ? network_round(network, network->graph->value[i + 1].bytes) : 0;
            w->inside += w->last;
            if (network_reads(network, i) & READS_SAVED)
                w->inside += network_round(network, network->binding[i].footprint.saved);
            w->op = larger(w->op, op_bytes(network, i));
            w->time += network->cost[i].forward;
        }
    }
    return ST_OK;
}

/* The division being sought: the best so far. */
struct division {
    int units;
    bool keep_last;
    struct weight *weight;
    struct path *path; /* of the last try; one more than units: the end */
    bool *cut;         /* before a unit */
    size_t bytes;      /* cuts and largest segment */
    double time;
};

/* Fills path: the cheapest cuts whose segments need at most most. */
static void find_paths(struct division *d, size_t most)
{
    d->path[d->units] = (struct path){.found = true};
    for (int u = d->units - 1; u >= 0; u--) {
        struct path best = {.found = false};
        size_t inside = 0, op = 0;
        double time = 0;
        for (int to = u + 1; to <= d->units; to++) {
            const struct weight *w = &d->weight[to - 1];
            inside += w->inside;
            op = larger(op, w->op);
            time += w->time;
            if (inside - w->last + op > most) break; /* a longer one needs no less */
            if (!d->path[to].found) continue;
            struct path p = {d->path[to].cuts, d->path[to].time, to, true};
            if (to < d->units) p.cuts += w[1].cut;
            if (to < d->units || !d->keep_last) p.time += time;
            if (!best.found || p.cuts < best.cuts || (p.cuts == best.cuts && p.time < best.time)) best = p;
        }
        d->path[u] = best;
    }
}

/* The most that a segment of the path from unit 0 needs. */
static size_t largest_segment(const struct division *d)
{
    size_t largest = 0;
    for (int u = 0; u < d->units; u = d->path[u].next) {
        size_t inside = 0, op = 0;
        for (int i = u; i < d->path[u].next; i++) {
            inside += d->weight[i].inside;
            op = larger(op, d->weight[i].op);
        }
        largest = larger(largest, inside - d->weight[d->path[u].next - 1].last + op);
    }
    return largest;
}

/* Tries segments that need at most *most, which becomes what the largest of them does; takes them where they are
 * better. */
static void divide(struct division *d, size_t *most)
{
    find_paths(d, *most);
    if (!d->path[0].found) return;
    *most = largest_segment(d);
    const size_t bytes = d->path[0].cuts + *most;
    if (bytes > d->bytes || (bytes == d->bytes && d->path[0].time >= d->time)) return;
    d->bytes = bytes;
    d->time = d->path[0].time;
    memset(d->cut, 0, (size_t)d->units * sizeof *d->cut);
    for (int u = d->path[0].next; u < d->units; u = d->path[u].next) d->cut[u] = true;
}

/* First rough tries, from single units on, each twice as large. Then down from the largest need that could still be as
 * good: with less, the cuts cost no less. */
static void search(struct division *d)
{
    size_t most = 1, rough;
    for (int u = 0; u < d->units; u++) most = larger(most, d->weight[u].inside - d->weight[u].last + d->weight[u].op);
    for (;; most *= 2) {
        rough = most;
        divide(d, &rough);
        if (d->path[0].next == d->units || most > SIZE_MAX / 2) break;
    }
    most = d->bytes;
    do {
        divide(d, &most);
        if (!d->path[0].found || d->path[0].cuts > d->bytes) return;
        if (most > d->bytes - d->path[0].cuts + 1) most = d->bytes - d->path[0].cuts + 1;
    } while (most-- > 0);
}

static enum status emit(const struct network *network, const struct policy_settings *settings, struct region *region,
                        struct schedule *schedule)
{
    struct node_ranges units;
    TRY(units_find(network->graph, (enum unit)settings->unit, region, &units));
    if (settings->by == BY_COUNT)
        return policy_uniform_emit(network, lround(sqrt(units.count)), settings, region, schedule);
    struct division d = {.units = units.count, .keep_last = settings->keep_last, .bytes = SIZE_MAX, .time = INFINITY};
    TRY(weigh(network, &units, region, &d.weight));
    NEW(region, d.path, (size_t)units.count + 1);
    NEW(region, d.cut, (size_t)units.count);
    search(&d);
    return policy_cuts_emit(network, &units, d.cut, settings, region, schedule);
}

static const char *const by_names[] = {"count", "bytes", NULL};
static const struct setting keys[] = {{"by", SETTING_CHOICE, offsetof(struct policy_settings, by), 0, 0, "count",
                                       by_names,
                                       "count: equal numbers of units a segment; bytes: the least that cuts and the "
                                       "largest segment need"},
                                      POLICY_SETTING_UNIT,
                                      POLICY_SETTING_KEEP_LAST,
                                      POLICY_SETTING_KEEP_SAVED,
                                      {.key = NULL}};

const struct policy policy_sqrt = {.name = "sqrt",
                                   .doc = "about as many segments as each has units, or the cuts of least bytes",
                                   .keys = keys,
                                   .emit = emit};
