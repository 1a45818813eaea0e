#include "search/dtr_residency.h"

#include <assert.h>
#include <math.h>

static double cost_of(const struct dtr_residency *r, int node) { return r->model->time[node]; }

static const struct node *node_of(const struct dtr_residency *r, int node)
{
    return &r->model->network->graph->node[node];
}

/* Not resident, and the step will read it. */
static bool lacks(const struct dtr_residency *r, int node, int which)
{
    const struct storage *s = storage_of(r, node, which);
    return !s->resident && s->uses > 0;
}

static bool is_missing(const struct dtr_residency *r, int node) { return !storage_of(r, node, STORAGE_Y)->resident; }

/* Nodes between their first forward and their backward: only those can run again. */
static bool is_open(const struct dtr_residency *r, int node) { return node < r->forward && node < r->backward; }

/* Such a node will: the step or a node that will run again reads what it wrote and is not resident. */
static bool will_rerun(const struct dtr_residency *r, int node)
{
    if (!is_open(r, node)) return false;
    if (lacks(r, node, STORAGE_Y) || lacks(r, node, STORAGE_SAVED)) return true;
    const struct links *readers = &r->links[BELOW][node];
    bool any = false;
    for (int i = 0; is_missing(r, node) && i < readers->count; i++) any |= r->rerun[readers->node[i]];
    return any;
}

static bool is_cut(const struct dtr_residency *r, int node) { return r->cut[r->cut_at[node]] == node; }

/* What runs with node: upwards all that must, to compute its inputs; downwards what will, because it reads node's
 * value, directly or through values that are not resident. */
static const struct reach *find_reach(struct dtr_residency *r, enum way way, int node)
{
    struct reach *reach = &r->reach[way][node];
    int count = 0;
    if (reach->known) return reach;
    *reach = (struct reach){.known = true};
    r->walk++;
    for (r->stack[count++] = node; count;) {
        const struct links *links = &r->links[way][r->stack[--count]];
        for (int i = 0; i < links->count; i++) {
            const int n = links->node[i];
            const bool missing = is_missing(r, n), cut = is_cut(r, n);
            if (r->seen[n] == r->walk || !(way == ABOVE ? missing : r->rerun[n])) continue;
            r->seen[n] = r->walk;
            reach->sum += cost_of(r, n);
            if (!missing) continue;
            reach->open |= cut; /* the walk ends there */
            if (cut) continue;
            r->part[way][n] = true;
            r->stack[count++] = n;
        }
    }
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

/* BELOW: what must run to compute node's value has changed, and so have the costs of what reads it. ABOVE: the nodes
 * that will run again because of node have changed, and so have the costs of its inputs. */
static void forget_all(struct dtr_residency *r, enum way way, int node)
{
    const enum way back = way == ABOVE ? BELOW : ABOVE;
    int count = 0;
    for (r->stack[count++] = node; count;) {
        const struct links *links = &r->links[way][r->stack[--count]];
        for (int i = 0; i < links->count; i++) {
            const int n = links->node[i];
            const bool before = r->rerun[n];
            forget(r, back, n);
            if (way == ABOVE && !is_missing(r, n)) continue;
            if (way == ABOVE) r->rerun[n] = will_rerun(r, n);
            if (!r->part[back][n] && r->rerun[n] == before) continue;
            r->part[back][n] = false;
            r->stack[count++] = n;
        }
    }
}

/* A storage of node has changed; moved: its value became resident or left. */
static void change(struct dtr_residency *r, int node, bool moved)
{
    const bool rerun = will_rerun(r, node);
    if (!moved && r->rerun[node] == rerun) return;
    r->rerun[node] = rerun;
    forget_all(r, ABOVE, node);
    if (moved) forget_all(r, BELOW, node);
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

/* What a forward that runs once wrote is locked as long as a recomputation of a later node may read it. */
static bool stays(const struct dtr_residency *r, const struct storage *s)
{
    return !r->model->again[(s - r->storage) / STORAGES];
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
    unlist(r, s);
    change_residency(r, s);
}

void dtr_residency_lock(struct dtr_residency *r, struct storage *s)
{
    if (s->resident) unlist(r, s);
    if (!s->locks++ && s->resident) r->locked += s->bytes;
}

static void unlock(struct dtr_residency *r, struct storage *s)
{
    if (--s->locks) return;
    r->locked -= s->bytes;
    list(r, s);
    if (!s->uses) dtr_residency_leave(r, s);
}

void dtr_residency_read(struct dtr_residency *r, struct storage *s)
{
    assert(s->resident && s->locks > 0 && s->uses > 0);
    touch(r, s);
    s->uses--;
    unlock(r, s);
}

void dtr_residency_expect(struct dtr_residency *r, struct storage *s)
{
    if (!s->uses++ && !s->resident) change(r, (int)(s - r->storage) / STORAGES, false);
}

void dtr_residency_close(struct dtr_residency *r, int node)
{
    for (; r->staying >= 0 && r->until[r->staying] >= node; r->staying--)
        for (int k = 0; k < STORAGES; k++) {
            struct storage *s = storage_of(r, r->staying, k);
            if (s->resident && stays(r, s)) unlock(r, s);
        }
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

static void add_link(struct dtr_residency *r, enum way way, int from, int to)
{
    struct links *links = &r->links[way][from];
    region_grow(r->region, &links->node, links->count, sizeof *links->node);
    links->node[links->count++] = to;
}

/* What each storage takes and how often it is read, and by which nodes. */
static void list_uses(struct dtr_residency *r)
{
    const struct network *network = r->model->network;
    for (int n = 0; n < r->model->nodes; n++) {
        const struct node *node = node_of(r, n);
        struct storage *y = storage_of(r, n, STORAGE_Y), *saved = storage_of(r, n, STORAGE_SAVED);
        y->bytes = r->model->value[n];
        saved->bytes = r->model->saved[n];
        for (int k = 0; k < node->layer->inputs; k++) {
            if (!node->inputs[k]) continue;
            storage_of_input(r, node, k)->uses++;
            add_link(r, ABOVE, n, node->inputs[k] - 1);
            add_link(r, BELOW, node->inputs[k] - 1, n);
        }
        for (struct reading read = reading_of(network, n, network_reads(network, n)); reading_next(&read);) {
            storage_of(r, read.node, read.saved ? STORAGE_SAVED : STORAGE_Y)->uses++;
            if (n < r->until[read.node]) r->until[read.node] = n;
        }
    }
    for (int n = r->model->nodes - 2; n >= 0; n--)
        if (r->until[n + 1] < r->until[n]) r->until[n] = r->until[n + 1];
}

static void list_cuts(struct dtr_residency *r)
{
    const int nodes = r->model->nodes;
    for (int n = 0, last = 0; n < nodes; n++) {
        r->cut_at[n] = r->cuts;
        if (last <= n) r->cut[r->cuts++] = n;
        const struct links *readers = &r->links[BELOW][n]; /* ascending */
        if (readers->count && readers->node[readers->count - 1] > last) last = readers->node[readers->count - 1];
    }
    r->cut_at[nodes] = r->cuts;
}

struct dtr_residency *dtr_residency_create(const struct step_model *model, struct region *region)
{
    const size_t nodes = (size_t)model->nodes;
    struct dtr_residency *r;
    NEW(region, r, 1);
    *r = (struct dtr_residency){.model = model, .region = region, .backward = model->nodes, .changes = 1, .leaves = 1};
    NEW(region, r->storage, nodes * STORAGES);
    NEW(region, r->until, nodes);
    for (size_t n = 0; n < nodes; n++) r->until[n] = r->backward;
    r->staying = r->backward - 1;
    NEW(region, r->seen, nodes);
    NEW(region, r->cut, nodes);
    NEW(region, r->cut_at, nodes + 1);
    NEW(region, r->stack, nodes * 2 + 1);
    NEW(region, r->rerun, nodes);
    NEW(region, r->evictable, nodes * STORAGES);
    for (enum way way = 0; way < WAYS; way++) NEW(region, r->links[way], nodes);
    list_uses(r);
    list_cuts(r);
    while (r->leaves < r->cuts) r->leaves *= 2;
    for (enum way way = 0; way < WAYS; way++) {
        NEW(region, r->part[way], nodes);
        NEW(region, r->reach[way], nodes);
        NEW(region, r->tree[way], 2 * (size_t)r->leaves);
    }
    return r;
}
