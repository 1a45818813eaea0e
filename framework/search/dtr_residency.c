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

/* Such a node will: the step or a node that will run again reads what it wrote and is not resident. */
static bool will_rerun(const struct dtr_residency *r, int node)
{
    if (!is_open(r, node)) return false;
    if (lacks(r, node, STORAGE_Y) || lacks(r, node, STORAGE_SAVED)) return true;
    bool any = false;
    for (int i = r->readers[node]; !storage_of(r, node, STORAGE_Y)->resident && i < r->readers[node + 1]; i++)
        any |= r->rerun[r->reader[i]];
    return any;
}

/* Adds a node's time to the sum of a walk, once. */
static bool visit(struct dtr_residency *r, int node, double *sum)
{
    if (r->seen[node] == r->walk) return false;
    r->seen[node] = r->walk;
    *sum += cost_of(r, node);
    return true;
}

/* Adds the time of everything that must run to compute node's inputs. */
static void add_above(struct dtr_residency *r, int node, double *sum)
{
    int count = 0;
    for (r->stack[count++] = node; count;) {
        const struct node *of = node_of(r, r->stack[--count]);
        for (int k = 0; k < of->layer->inputs; k++) {
            const struct storage *x = storage_of_input(r, of, k);
            const int producer = of->inputs[k] - 1;
            if (!x || x->resident || !visit(r, producer, sum)) continue;
            r->above[producer] = true;
            r->stack[count++] = producer;
        }
    }
}

/* Adds the time of nodes that will run again and read node's value, directly or through values that are not resident.
 */
static void add_below(struct dtr_residency *r, int node, double *sum)
{
    int count = 0;
    for (r->stack[count++] = node; count;) {
        const int of = r->stack[--count];
        for (int i = r->readers[of]; i < r->readers[of + 1]; i++) {
            const int reader = r->reader[i];
            if (!r->rerun[reader] || !visit(r, reader, sum) || storage_of(r, reader, STORAGE_Y)->resident) continue;
            r->below[reader] = true;
            r->stack[count++] = reader;
        }
    }
}

/* What must run to compute node's value has changed, and so have the costs of what reads it. */
static void forget_below(struct dtr_residency *r, int node)
{
    int count = 0;
    for (r->stack[count++] = node; count;) {
        const int of = r->stack[--count];
        for (int i = r->readers[of]; i < r->readers[of + 1]; i++) {
            const int reader = r->reader[i];
            for (int which = 0; which < STORAGES; which++) storage_of(r, reader, which)->known = false;
            if (!r->above[reader]) continue;
            r->above[reader] = false;
            r->stack[count++] = reader;
        }
    }
}

/* The nodes that will run again because of node have changed, and so have the costs of its inputs. */
static void forget_above(struct dtr_residency *r, int node)
{
    int count = 0;
    for (r->stack[count++] = node; count;) {
        const struct node *of = node_of(r, r->stack[--count]);
        for (int k = 0; k < of->layer->inputs; k++) {
            struct storage *x = storage_of_input(r, of, k);
            const int producer = of->inputs[k] - 1;
            if (x) x->known = false;
            if (!x || x->resident) continue;
            const bool rerun = will_rerun(r, producer);
            if (!r->below[producer] && r->rerun[producer] == rerun) continue;
            r->below[producer] = false;
            r->rerun[producer] = rerun;
            r->stack[count++] = producer;
        }
    }
}

/* A storage of node has changed; moved: its value became resident or left. */
static void change(struct dtr_residency *r, int node, bool moved)
{
    const bool rerun = will_rerun(r, node);
    if (!moved && r->rerun[node] == rerun) return;
    r->rerun[node] = rerun;
    forget_above(r, node);
    if (moved) forget_below(r, node);
}

static void change_residency(struct dtr_residency *r, const struct storage *s)
{
    const int index = (int)(s - r->storage);
    change(r, index / STORAGES, index % STORAGES == STORAGE_Y);
}

static double cost(struct dtr_residency *r, const struct storage *s)
{
    const int index = (int)(s - r->storage), node = index / STORAGES;
    double sum = cost_of(r, node);
    r->walk++;
    add_above(r, node, &sum);
    if (index % STORAGES == STORAGE_Y && r->score != DTR_MSPS) add_below(r, node, &sum);
    return sum;
}

static double score(struct dtr_residency *r, struct storage *s)
{
    if (!s->known) s->cost = cost(r, s);
    s->known = true;
    const double stale = r->score == DTR_MSPS ? 1 : r->clock - s->time, share = (double)s->bytes * stale;
    return share > 0 ? s->cost / share : INFINITY;
}

static void list(struct dtr_residency *r, struct storage *s)
{
    if (s->locks || !s->bytes) return;
    s->listed = r->evictables;
    r->evictable[r->evictables++] = s;
}

static void unlist(struct dtr_residency *r, struct storage *s)
{
    if (s->locks || !s->bytes) return;
    r->evictable[s->listed] = r->evictable[--r->evictables];
    r->evictable[s->listed]->listed = s->listed;
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
    list(r, s);
    touch(r, s);
    change_residency(r, s);
}

void dtr_residency_leave(struct dtr_residency *r, struct storage *s)
{
    assert(s->resident && !s->locks);
    s->resident = false;
    r->held -= s->bytes;
    r->evictions += s->uses > 0;
    unlist(r, s);
    change_residency(r, s);
}

void dtr_residency_lock(struct dtr_residency *r, struct storage *s)
{
    if (s->resident) unlist(r, s);
    if (!s->locks++ && s->resident) r->locked += s->bytes;
}

void dtr_residency_read(struct dtr_residency *r, struct storage *s)
{
    assert(s->resident && s->locks > 0 && s->uses > 0);
    touch(r, s);
    s->uses--;
    if (--s->locks) return;
    r->locked -= s->bytes;
    list(r, s);
    if (!s->uses) dtr_residency_leave(r, s);
}

void dtr_residency_expect(struct dtr_residency *r, struct storage *s)
{
    if (!s->uses++ && !s->resident) change(r, (int)(s - r->storage) / STORAGES, false);
}

void dtr_residency_close(struct dtr_residency *r, int node)
{
    r->backward = node;
    change(r, node, false);
}

void dtr_residency_evict(struct dtr_residency *r)
{
    struct storage *best = NULL;
    double least = 0;
    for (int i = 0; i < r->evictables; i++) {
        struct storage *s = r->evictable[i];
        double value = score(r, s);
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
    NEW(region, r->above, nodes);
    NEW(region, r->below, nodes);
    NEW(region, r->stack, nodes * 2 + 1);
    NEW(region, r->rerun, nodes);
    NEW(region, r->evictable, nodes * STORAGES);
    list_readers(r);
    count_uses(r);
    return r;
}
