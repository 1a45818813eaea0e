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

static bool is_cut(const struct dtr_residency *r, int node) { return r->cut[r->cut_at[node]] == node; }

/* Adds a node's time to the sum of a walk, once. */
static bool visit(struct dtr_residency *r, int node, struct reach *reach)
{
    if (r->seen[node] == r->walk) return false;
    r->seen[node] = r->walk;
    reach->sum += cost_of(r, node);
    return true;
}

/* Nodes visited from which a walk does not go on: a cut, where it ends; of others, the sum is part of a known one. */
static bool ends(struct dtr_residency *r, enum way way, int node, struct reach *reach)
{
    const bool cut = is_cut(r, node);
    r->part[way][node] |= !cut;
    reach->open |= cut;
    return cut;
}

/* Everything that must run to compute node's inputs. */
static void walk_above(struct dtr_residency *r, int node, struct reach *reach)
{
    int count = 0;
    for (r->stack[count++] = node; count;) {
        const struct node *of = node_of(r, r->stack[--count]);
        for (int k = 0; k < of->layer->inputs; k++) {
            const struct storage *x = storage_of_input(r, of, k);
            const int producer = of->inputs[k] - 1;
            if (!x || x->resident || !visit(r, producer, reach) || ends(r, ABOVE, producer, reach)) continue;
            r->stack[count++] = producer;
        }
    }
}

/* Nodes that will run again and read node's value, directly or through values that are not resident. */
static void walk_below(struct dtr_residency *r, int node, struct reach *reach)
{
    int count = 0;
    for (r->stack[count++] = node; count;) {
        const int of = r->stack[--count];
        for (int i = r->readers[of]; i < r->readers[of + 1]; i++) {
            const int reader = r->reader[i];
            if (!r->rerun[reader] || !visit(r, reader, reach) || storage_of(r, reader, STORAGE_Y)->resident ||
                ends(r, BELOW, reader, reach))
                continue;
            r->stack[count++] = reader;
        }
    }
}

static const struct reach *find_reach(struct dtr_residency *r, enum way way, int node)
{
    struct reach *reach = &r->reach[way][node];
    if (reach->known) return reach;
    *reach = (struct reach){.known = true};
    r->walk++;
    (way == ABOVE ? walk_above : walk_below)(r, node, reach);
    return reach;
}

/* Cut k among a way's leaves: walks from it go on to the left. */
static int leaf_of(const struct dtr_residency *r, enum way way, int k)
{
    return r->leaves + (way == ABOVE ? k : r->cuts - 1 - k);
}

static const struct reach *find_subtree(struct dtr_residency *r, enum way way, int at)
{
    struct reach *reach = &r->tree[way][at];
    if (reach->known) return reach;
    if (at >= r->leaves) {
        const int k = way == ABOVE ? at - r->leaves : r->cuts - 1 - (at - r->leaves);
        return *reach = *find_reach(r, way, r->cut[k]), reach;
    }
    *reach = *find_subtree(r, way, 2 * at + 1);
    if (!reach->open) return reach;
    const struct reach *left = find_subtree(r, way, 2 * at);
    reach->sum += left->sum;
    reach->open = left->open;
    return reach;
}

/* The sum of the walks from cut k on, each of which begins where the one before it ends. */
static double sum_from(struct dtr_residency *r, enum way way, int k)
{
    int at = leaf_of(r, way, k);
    const struct reach *reach = find_subtree(r, way, at);
    double sum = reach->sum;
    for (; reach->open; at /= 2) {
        if (at % 2 == 0) continue;
        reach = find_subtree(r, way, at - 1);
        sum += reach->sum;
    }
    return sum;
}

/* Costs that depend on a walk from node are no longer known. */
static void forget(struct dtr_residency *r, enum way way, int node)
{
    if (!r->reach[way][node].known) return;
    r->reach[way][node].known = false;
    storage_of(r, node, STORAGE_Y)->known = 0;
    if (way == ABOVE) storage_of(r, node, STORAGE_SAVED)->known = 0;
    if (!is_cut(r, node)) return;
    r->changes++;
    for (int at = leaf_of(r, way, r->cut_at[node]); at && r->tree[way][at].known; at /= 2)
        r->tree[way][at].known = false;
}

/* What must run to compute node's value has changed, and so have the costs of what reads it. */
static void forget_below(struct dtr_residency *r, int node)
{
    int count = 0;
    for (r->stack[count++] = node; count;) {
        const int of = r->stack[--count];
        for (int i = r->readers[of]; i < r->readers[of + 1]; i++) {
            const int reader = r->reader[i];
            forget(r, ABOVE, reader);
            if (!r->part[ABOVE][reader]) continue;
            r->part[ABOVE][reader] = false;
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
            const struct storage *x = storage_of_input(r, of, k);
            const int producer = of->inputs[k] - 1;
            if (!x) continue;
            forget(r, BELOW, producer);
            if (x->resident) continue;
            const bool rerun = will_rerun(r, producer);
            if (!r->part[BELOW][producer] && r->rerun[producer] == rerun) continue;
            r->part[BELOW][producer] = false;
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

static void find_cost(struct dtr_residency *r, struct storage *s)
{
    const int index = (int)(s - r->storage), node = index / STORAGES;
    const struct reach *above = find_reach(r, ABOVE, node), *below = NULL;
    s->cost = cost_of(r, node) + above->sum;
    s->known = INT64_MAX;
    if (above->open) s->cost += sum_from(r, ABOVE, r->cut_at[node] - 1);
    if (index % STORAGES == STORAGE_Y && r->score != DTR_MSPS) {
        below = find_reach(r, BELOW, node);
        s->cost += below->sum;
        if (below->open) s->cost += sum_from(r, BELOW, r->cut_at[node + 1]);
    }
    if (above->open || (below && below->open)) s->known = r->changes;
}

static double score(struct dtr_residency *r, struct storage *s)
{
    if (s->known < r->changes) find_cost(r, s);
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

/* What a forward that runs once wrote is locked until its last read. */
static bool stays(const struct dtr_residency *r, const struct storage *s)
{
    return r->network->binding[(s - r->storage) / STORAGES].runs_once;
}

void dtr_residency_appear(struct dtr_residency *r, struct storage *s)
{
    assert(!s->resident);
    s->resident = true;
    if (s->uses && stays(r, s)) s->locks++;
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
    if (!--s->uses && stays(r, s)) s->locks--;
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
    size_t reads = 0;
    NEW(r->region, r->readers, (size_t)graph->nodes + 1);
    NEW(r->region, next, (size_t)graph->nodes);
    for (int n = 0; n < graph->nodes; n++)
        for (int k = 0; k < graph->node[n].layer->inputs; k++, reads++)
            if (graph->node[n].inputs[k]) r->readers[graph->node[n].inputs[k]]++;
    NEW(r->region, r->reader, reads + 1);
    for (int n = 0; n < graph->nodes; n++) r->readers[n + 1] += next[n] = r->readers[n];
    for (int n = 0; n < graph->nodes; n++)
        for (int k = 0; k < graph->node[n].layer->inputs; k++)
            if (graph->node[n].inputs[k]) r->reader[next[graph->node[n].inputs[k] - 1]++] = n;
}

static void list_cuts(struct dtr_residency *r)
{
    const int nodes = r->network->graph->nodes;
    for (int n = 0, last = 0; n < nodes; n++) {
        r->cut_at[n] = r->cuts;
        if (last <= n) r->cut[r->cuts++] = n;
        for (int i = r->readers[n]; i < r->readers[n + 1]; i++) last = r->reader[i] > last ? r->reader[i] : last;
    }
    r->cut_at[nodes] = r->cuts;
}

static void count_uses(struct dtr_residency *r)
{
    for (int n = 0; n < r->network->graph->nodes; n++) {
        const struct node *node = node_of(r, n);
        struct storage *y = storage_of(r, n, STORAGE_Y), *saved = storage_of(r, n, STORAGE_SAVED);
        y->bytes = network_round(r->network, r->network->graph->value[node->output].bytes);
        saved->bytes = network_round(r->network, r->network->binding[n].footprint.saved);
        for (int k = 0; k < node->layer->inputs; k++)
            if (storage_of_input(r, node, k)) storage_of_input(r, node, k)->uses++;
        for (struct reading read = reading_of(r->network, n, network_reads(r->network, n)); reading_next(&read);)
            storage_of(r, read.node, read.saved ? STORAGE_SAVED : STORAGE_Y)->uses++;
    }
}

struct dtr_residency *dtr_residency_create(const struct network *network, struct region *region)
{
    size_t nodes = (size_t)network->graph->nodes;
    struct dtr_residency *r;
    NEW(region, r, 1);
    *r = (struct dtr_residency){
        .network = network, .region = region, .backward = network->graph->nodes, .changes = 1, .leaves = 1};
    NEW(region, r->storage, nodes * STORAGES);
    NEW(region, r->seen, nodes);
    NEW(region, r->cut, nodes);
    NEW(region, r->cut_at, nodes + 1);
    NEW(region, r->stack, nodes * 2 + 1);
    NEW(region, r->rerun, nodes);
    NEW(region, r->evictable, nodes * STORAGES);
    list_readers(r);
    list_cuts(r);
    while (r->leaves < r->cuts) r->leaves *= 2;
    for (enum way way = 0; way < WAYS; way++) {
        NEW(region, r->part[way], nodes);
        NEW(region, r->reach[way], nodes);
        NEW(region, r->tree[way], 2 * (size_t)r->leaves);
    }
    count_uses(r);
    return r;
}
