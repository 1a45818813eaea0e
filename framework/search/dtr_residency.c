#include "search/dtr_residency.h"

#include <assert.h>
#include <math.h>

static double cost_of(const struct dtr_residency *r, int node) { return r->network->cost[node].forward; }

static const struct node *node_of(const struct dtr_residency *r, int node) { return &r->network->graph->node[node]; }

/* Not resident, and the step will read it. */
static bool lacks(const struct dtr_residency *r, int node, int which)
{
    const struct storage *s = storage_of(r, node, which);
    return !s->resident && s->uses > 0;
}

/* Nodes between their first forward and their backward: only those can run again. */
static bool is_open(const struct dtr_residency *r, int node) { return node < r->forward && node < r->backward; }

/* Time of everything that must run to compute node's inputs. */
static double above(struct dtr_residency *r, int node)
{
    double sum = 0;
    for (int k = 0; k < node_of(r, node)->layer->inputs; k++) {
        int producer = node_of(r, node)->inputs[k] - 1;
        if (producer < 0 || r->seen[producer] == r->walk || storage_of(r, producer, STORAGE_Y)->resident) continue;
        r->seen[producer] = r->walk;
        sum += cost_of(r, producer) + above(r, producer);
    }
    return sum;
}

/* Adds the time of nodes that will run again and read node's value, directly or through values that are not resident;
 * returns whether there are any. */
static bool below(struct dtr_residency *r, int node, double *sum)
{
    bool any = false;
    for (int i = r->readers[node]; i < r->readers[node + 1]; i++) {
        int reader = r->reader[i];
        if (!is_open(r, reader)) continue;
        if (r->seen[reader] != r->walk) {
            r->seen[reader] = r->walk;
            bool needed = !storage_of(r, reader, STORAGE_Y)->resident && below(r, reader, sum);
            r->rerun[reader] = needed || lacks(r, reader, STORAGE_Y) || lacks(r, reader, STORAGE_SAVED);
            if (r->rerun[reader]) *sum += cost_of(r, reader);
        }
        any |= r->rerun[reader];
    }
    return any;
}

static double score(struct dtr_residency *r, const struct storage *s, int node)
{
    r->walk++;
    double cost = cost_of(r, node) + above(r, node);
    if (r->score == DTR_MSPS) return cost / (double)s->bytes;
    double stale = (double)s->bytes * (r->clock - s->time);
    if (s == storage_of(r, node, STORAGE_Y)) below(r, node, &cost);
    return stale > 0 ? cost / stale : INFINITY;
}

static void touch(struct dtr_residency *r, struct storage *s)
{
    s->time = r->clock;
    s->order = ++r->accesses;
}

void dtr_residency_appear(struct dtr_residency *r, struct storage *s)
{
    assert(!s->resident);
    s->resident = true;
    r->held += s->bytes;
    if (s->locks) r->locked += s->bytes;
    touch(r, s);
}

void dtr_residency_leave(struct dtr_residency *r, struct storage *s)
{
    assert(s->resident && !s->locks);
    s->resident = false;
    r->held -= s->bytes;
    r->evictions += s->uses > 0;
}

void dtr_residency_lock(struct dtr_residency *r, struct storage *s)
{
    if (!s->locks++ && s->resident) r->locked += s->bytes;
}

void dtr_residency_read(struct dtr_residency *r, struct storage *s)
{
    assert(s->resident && s->locks > 0 && s->uses > 0);
    touch(r, s);
    s->uses--;
    if (--s->locks) return;
    r->locked -= s->bytes;
    if (!s->uses) dtr_residency_leave(r, s);
}

void dtr_residency_evict(struct dtr_residency *r)
{
    struct storage *best = NULL;
    double least = 0;
    for (int i = 0; i < r->forward * STORAGES; i++) {
        struct storage *s = &r->storage[i];
        if (!s->resident || s->locks || !s->bytes) continue;
        double value = score(r, s, i / STORAGES);
        if (best && (value > least || (value == least && s->order >= best->order))) continue;
        best = s;
        least = value;
    }
    assert(best);
    dtr_residency_leave(r, best);
}

static void list_readers(struct dtr_residency *r)
{
    const struct graph *graph = r->network->graph;
    int *next;
    NEW(r->region, r->readers, (size_t)graph->nodes + 1);
    NEW(r->region, r->reader, (size_t)graph->nodes * NODE_INPUTS_MAX);
    NEW(r->region, next, (size_t)graph->nodes);
    for (int n = 0; n < graph->nodes; n++)
        for (int k = 0; k < graph->node[n].layer->inputs; k++)
            if (graph->node[n].inputs[k]) r->readers[graph->node[n].inputs[k]]++;
    for (int n = 0; n < graph->nodes; n++) r->readers[n + 1] += next[n] = r->readers[n];
    for (int n = 0; n < graph->nodes; n++)
        for (int k = 0; k < graph->node[n].layer->inputs; k++)
            if (graph->node[n].inputs[k]) r->reader[next[graph->node[n].inputs[k] - 1]++] = n;
}

static void count_uses(struct dtr_residency *r)
{
    for (int n = 0; n < r->network->graph->nodes; n++) {
        const struct node *node = node_of(r, n);
        unsigned reads = network_reads(r->network, n);
        struct storage *y = storage_of(r, n, STORAGE_Y), *saved = storage_of(r, n, STORAGE_SAVED);
        y->bytes = network_round(r->network, r->network->graph->value[node->output].bytes);
        saved->bytes = network_round(r->network, r->network->binding[n].footprint.saved);
        y->uses += (reads & READS_Y) != 0;
        saved->uses = reads & READS_SAVED && saved->bytes;
        for (int k = 0; k < node->layer->inputs; k++) {
            struct storage *x = storage_of_input(r, node, k);
            if (x) x->uses += 1 + (k < inputs_read(reads, node->layer->inputs));
        }
    }
}

struct dtr_residency *dtr_residency_create(const struct network *network, struct region *region)
{
    size_t nodes = (size_t)network->graph->nodes;
    struct dtr_residency *r;
    NEW(region, r, 1);
    *r = (struct dtr_residency){.network = network, .region = region, .backward = network->graph->nodes};
    NEW(region, r->storage, nodes * STORAGES);
    NEW(region, r->seen, nodes);
    NEW(region, r->rerun, nodes);
    list_readers(r);
    count_uses(r);
    return r;
}
