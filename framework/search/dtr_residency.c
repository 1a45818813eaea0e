#include "search/dtr_residency.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static double cost_of(const struct dtr_residency *r, int node) { return r->network->cost[node].forward; }

static const struct node *node_of(const struct dtr_residency *r, int node) { return &r->network->graph->node[node]; }

/* Not there, and the step will read it. */
static bool lacks(const struct dtr_residency *r, int node, int which)
{
    const struct storage *s = storage_of(r, node, which);
    return !s->there && s->uses > 0;
}

/* Nodes whose forward is behind and whose backward is to come: only those can be run again. */
static bool is_open(const struct dtr_residency *r, int node) { return node < r->forward && node < r->backward; }

/* Time of all that must be run to have node's inputs. */
static double above(struct dtr_residency *r, int node)
{
    double sum = 0;
    for (int k = 0; k < node_of(r, node)->layer->inputs; k++) {
        int maker = node_of(r, node)->inputs[k] - 1;
        if (maker < 0 || r->seen[maker] == r->walk || storage_of(r, maker, STORAGE_Y)->there) continue;
        r->seen[maker] = r->walk;
        sum += cost_of(r, maker) + above(r, maker);
    }
    return sum;
}

/* Adds the time of what will be run again and reads node's value, at once or through values that are not there; is
 * there any? */
static bool below(struct dtr_residency *r, int node, double *sum)
{
    bool any = false;
    for (int i = r->readers[node]; i < r->readers[node + 1]; i++) {
        int reader = r->reader[i];
        if (!is_open(r, reader)) continue;
        if (r->seen[reader] != r->walk) {
            r->seen[reader] = r->walk;
            bool asked = !storage_of(r, reader, STORAGE_Y)->there && below(r, reader, sum);
            r->asked[reader] = asked || lacks(r, reader, STORAGE_Y) || lacks(r, reader, STORAGE_SAVED);
            if (r->asked[reader]) *sum += cost_of(r, reader);
        }
        any |= r->asked[reader];
    }
    return any;
}

static int root_of(struct set *set, int element)
{
    while (set[element].parent != element) element = set[element].parent = set[set[element].parent].parent;
    return element;
}

static void unite(struct dtr_residency *r, int a, int b)
{
    a = root_of(r->set, r->element[a]);
    b = root_of(r->set, r->element[b]);
    if (a == b) return;
    r->set[b].parent = a;
    r->set[a].cost += r->set[b].cost;
}

static enum status new_element(struct dtr_residency *r, int node)
{
    if (r->sets == r->room) {
        struct set *more;
        NEW(r->region, more, (size_t)r->room * 2);
        memcpy(more, r->set, (size_t)r->sets * sizeof *more);
        r->set = more;
        r->room *= 2;
    }
    r->element[node] = r->sets;
    r->set[r->sets] = (struct set){.parent = r->sets, .cost = cost_of(r, node)};
    r->sets++;
    return ST_OK;
}

/* Brings the sets up to date with what of node is there. */
static enum status regroup(struct dtr_residency *r, int node)
{
    if (!r->set) return ST_OK;
    bool gone = !storage_of(r, node, STORAGE_Y)->there;
    if (!is_open(r, node) || (!gone && !lacks(r, node, STORAGE_SAVED))) {
        if (r->element[node] >= 0) r->set[root_of(r->set, r->element[node])].cost -= cost_of(r, node);
        r->element[node] = -1;
        return ST_OK;
    }
    if (r->element[node] < 0) TRY(new_element(r, node));
    for (int k = 0; k < node_of(r, node)->layer->inputs; k++) {
        int maker = node_of(r, node)->inputs[k] - 1;
        if (maker >= 0 && r->element[maker] >= 0 && !storage_of(r, maker, STORAGE_Y)->there) unite(r, maker, node);
    }
    for (int i = r->readers[node]; gone && i < r->readers[node + 1]; i++)
        if (r->element[r->reader[i]] >= 0) unite(r, node, r->reader[i]);
    return ST_OK;
}

/* The cost of node's set, the first time in a walk. */
static double set_cost(struct dtr_residency *r, int node)
{
    if (r->element[node] < 0) return 0;
    struct set *set = &r->set[root_of(r->set, r->element[node])];
    double cost = set->walk == r->walk ? 0 : set->cost;
    set->walk = r->walk;
    return cost;
}

static double per_byte_and_time(const struct dtr_residency *r, const struct storage *s, double cost)
{
    double stale = (double)s->bytes * (r->clock - s->time);
    return stale > 0 ? cost / stale : INFINITY;
}

static double score_dtr(struct dtr_residency *r, const struct storage *s, int node)
{
    r->walk++;
    double cost = cost_of(r, node) + above(r, node);
    if (s == storage_of(r, node, STORAGE_Y)) below(r, node, &cost);
    return per_byte_and_time(r, s, cost);
}

static double score_sets(struct dtr_residency *r, const struct storage *s, int node)
{
    r->walk++;
    double cost = set_cost(r, node); /* where its other storage is gone already: then its own is in there */
    if (r->element[node] < 0) cost = cost_of(r, node);
    for (int k = 0; k < node_of(r, node)->layer->inputs; k++) {
        int maker = node_of(r, node)->inputs[k] - 1;
        if (maker >= 0 && !storage_of(r, maker, STORAGE_Y)->there) cost += set_cost(r, maker);
    }
    for (int i = r->readers[node]; s == storage_of(r, node, STORAGE_Y) && i < r->readers[node + 1]; i++)
        cost += set_cost(r, r->reader[i]);
    return per_byte_and_time(r, s, cost);
}

static double score_local(struct dtr_residency *r, const struct storage *s, int node)
{
    return per_byte_and_time(r, s, cost_of(r, node));
}

static double score_lru(struct dtr_residency *r, const struct storage *s, int node)
{
    (void)node;
    return r->clock > s->time ? 1 / (r->clock - s->time) : INFINITY;
}

static double score_size(struct dtr_residency *r, const struct storage *s, int node)
{
    (void)r, (void)node;
    return 1 / (double)s->bytes;
}

static double score_msps(struct dtr_residency *r, const struct storage *s, int node)
{
    r->walk++;
    return (cost_of(r, node) + above(r, node)) / (double)s->bytes;
}

#define HEURISTICS(ROW)                                                                                                \
    ROW(dtr, score_dtr, false)                                                                                         \
    ROW(dtr_eq, score_sets, true)                                                                                      \
    ROW(dtr_local, score_local, false)                                                                                 \
    ROW(lru, score_lru, false)                                                                                         \
    ROW(size, score_size, false)                                                                                       \
    ROW(msps, score_msps, false)

#define NAME(name, score, sets) #name,
const char *const heuristic_names[] = {HEURISTICS(NAME) NULL};

#define SCORE(name, score, sets) {score, sets},
static const struct {
    double (*score)(struct dtr_residency *r, const struct storage *s, int node);
    bool sets;
} heuristics[] = {HEURISTICS(SCORE)};

static enum status changed(struct dtr_residency *r, const struct storage *s)
{
    return regroup(r, (int)((s - r->storage) / STORAGES));
}

static void touch(struct dtr_residency *r, struct storage *s)
{
    s->time = r->clock;
    s->order = ++r->accesses;
}

enum status dtr_residency_appear(struct dtr_residency *r, struct storage *s)
{
    assert(!s->there);
    s->there = true;
    r->held += s->bytes;
    if (s->locks) r->locked += s->bytes;
    touch(r, s);
    return changed(r, s);
}

enum status dtr_residency_leave(struct dtr_residency *r, struct storage *s)
{
    assert(s->there && !s->locks);
    s->there = false;
    r->held -= s->bytes;
    r->evictions += s->uses > 0;
    return changed(r, s);
}

void dtr_residency_lock(struct dtr_residency *r, struct storage *s)
{
    if (!s->locks++ && s->there) r->locked += s->bytes;
}

enum status dtr_residency_read(struct dtr_residency *r, struct storage *s)
{
    assert(s->there && s->locks > 0 && s->uses > 0);
    touch(r, s);
    s->uses--;
    if (--s->locks) return ST_OK;
    r->locked -= s->bytes;
    return s->uses ? ST_OK : dtr_residency_leave(r, s);
}

enum status dtr_residency_evict(struct dtr_residency *r)
{
    struct storage *best = NULL;
    double least = 0;
    for (int i = 0; i < r->forward * STORAGES; i++) {
        struct storage *s = &r->storage[i];
        if (!s->there || s->locks || !s->bytes) continue;
        double value = heuristics[r->heuristic].score(r, s, i / STORAGES);
        if (best && (value > least || (value == least && s->order >= best->order))) continue;
        best = s;
        least = value;
    }
    assert(best);
    return dtr_residency_leave(r, best);
}

enum status dtr_residency_close(struct dtr_residency *r, int node)
{
    r->backward = node;
    return regroup(r, node);
}

static enum status list_readers(struct dtr_residency *r)
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
    return ST_OK;
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
            if (x) x->uses += 1 + ((reads & READS_X) != 0);
        }
    }
}

enum status dtr_residency_create(const struct network *network, int heuristic, struct region *region,
                                 struct dtr_residency **residence)
{
    size_t nodes = (size_t)network->graph->nodes;
    struct dtr_residency *r;
    NEW(region, r, 1);
    *r = (struct dtr_residency){.network = network, .region = region, .heuristic = heuristic};
    r->backward = network->graph->nodes;
    NEW(region, r->storage, nodes * STORAGES);
    NEW(region, r->seen, nodes);
    NEW(region, r->asked, nodes);
    NEW(region, r->element, nodes);
    for (size_t n = 0; n < nodes; n++) r->element[n] = -1;
    r->room = (int)nodes;
    if (heuristics[heuristic].sets) NEW(region, r->set, nodes);
    TRY(list_readers(r));
    count_uses(r);
    *residence = r;
    return ST_OK;
}
