#include "search/bounds.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/slicing.h"
#include "search/closure_bound.h"
#include "search/limits.h"

static size_t value_bytes(const struct network *network, int value)
{
    return value ? network_round(network, network->graph->value[value].bytes) : 0; /* the batch is static */
}

static size_t gradient_bytes(const struct network *network, int value)
{
    return network_round(network, network->graph->value[value].gradient_bytes);
}

static size_t saved_bytes(const struct network *network, int node)
{
    bool read = network->traced || network_reads(network, node) & READS_SAVED;
    return read ? network_round(network, network->binding[node].footprint.saved) : 0;
}

/* Input k, unless an earlier input is the same value. */
static bool is_new(const struct node *node, int k)
{
    for (int j = 0; j < k; j++)
        if (node->inputs[j] == node->inputs[k]) return false;
    return true;
}

/* Least live bytes of the forward that saves for the backward. */
static size_t forward_bytes(const struct network *network, int i)
{
    const struct node *node = &network->graph->node[i];
    const struct footprint *f = &network->binding[i].footprint;
    size_t bytes = saved_bytes(network, i) + network_round(network, f->forward_scratch);
    for (int k = 0; k < node->layer->inputs; k++)
        if (is_new(node, k)) bytes += value_bytes(network, node->inputs[k]);
    size_t y = value_bytes(network, node->output);
    bool over = f->y_over_x && node->layer->inputs && value_bytes(network, node->inputs[0]) == y;
    return bytes + (over ? 0 : y);
}

/* Parts of node's backward that its op number op runs, 0: there is no such op. */
static unsigned op_parts(const struct network *network, int i, int op)
{
    unsigned parts = network_parts(network, i);
    bool two = parts == (PART_PARAMS | PART_INPUT) && network->binding[i].footprint.split;
    if (!two) return op ? 0 : parts;
    return op ? PART_INPUT : PART_PARAMS;
}

/* Bytes of the node's value or saved tensors. */
static size_t held_bytes(const struct network *network, int node, bool saved)
{
    return saved ? network_round(network, network->binding[node].footprint.saved) : value_bytes(network, node + 1);
}

/* What an op of a backward reads of the forward, each once. */
static size_t read_bytes(const struct network *network, int i, unsigned parts)
{
    const unsigned read = footprint_reads(network->binding[i].footprint.reads, parts);
    size_t bytes = 0;
    for (struct reading r = reading_of(network, i, read); reading_next(&r);) {
        bool known = false;
        for (struct reading before = reading_of(network, i, read);
             !network->traced && reading_next(&before) && before.next < r.next;)
            known |= before.node == r.node && before.saved == r.saved;
        if (!known) bytes += held_bytes(network, r.node, r.saved);
    }
    return bytes;
}

/* reads: bytes of values and saved tensors that an op of a backward reads; others: of its gradients and scratch, of a
 * traced step of all that are live there. */
static void backward_bytes(const struct network *network, int i, unsigned parts, size_t *reads, size_t *others)
{
    const struct node *node = &network->graph->node[i];
    const struct footprint *f = &network->binding[i].footprint;
    size_t dy = gradient_bytes(network, node->output), dx = 0;
    *reads = read_bytes(network, i, parts);
    if (network->traced) {
        *others = network->binding[i].traced->live + f->backward_scratch[PART_INDEX_INPUT];
        return;
    }
    for (int k = 0; k < node->layer->inputs; k++) {
        if (!is_new(node, k)) continue;
        size_t bytes = gradient_bytes(network, node->inputs[k]);
        bool over = k == 0 && f->dx_over_dy && bytes == dy;
        if (parts & PART_INPUT && !over) dx += bytes;
    }
    *others = dy + dx + network_round(network, footprint_scratch(f->backward_scratch, parts)) +
              network_round(network, f->gradients);
}

/* Of bytes for the whole batch and scratch, what a call of node's kernel has. */
static size_t call_bytes(const struct network *network, int node, size_t all, size_t scratch)
{
    const struct slicing slicing = graph_slicing(network->graph);
    return (all - network_round(network, scratch)) / (size_t)slicing_calls(&slicing, node) +
           network_buffer_bytes(network, scratch);
}

static void memory_floor(const struct network *network, struct bounds *bounds)
{
    for (int i = 0; i < network->graph->nodes; i++) {
        const struct footprint *f = &network->binding[i].footprint;
        size_t most = call_bytes(network, i, forward_bytes(network, i), f->forward_scratch), reads, others;
        for (int op = 0; op < 2; op++) {
            unsigned parts = op_parts(network, i, op);
            if (!parts) break;
            backward_bytes(network, i, parts, &reads, &others);
            const size_t scratch = footprint_scratch(f->backward_scratch, parts);
            const size_t bytes = call_bytes(network, i, reads + others, scratch);
            if (bytes > most) most = bytes;
        }
        if (most <= bounds->memory) continue;
        bounds->memory = most;
        bounds->memory_node = i;
    }
}

/* What later backwards read of one forward: its value, its saved tensors, or both. */
enum holds { HOLDS_VALUE = 1, HOLDS_SAVED = 2, HOLDS_MAX = 4 };

struct item {
    size_t bytes;
    double time;
    int node;
    unsigned holds; /* enum holds, or'ed */
};

static int by_worth(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    double one = a->time * (double)b->bytes, two = b->time * (double)a->bytes;
    return one != two ? (one < two) - (one > two) : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* A sum over the items that apply to an op, in the order of all: a binary tree whose leaves are the items. */
struct sum {
    size_t bytes;
    double time;
};

/* The data of all ops, and the items of one op. Sorting is done once: a node has one item for each of enum holds, and
 * an op picks those that apply to it. */
struct knapsack {
    const struct network *network;
    const bool *whole; /* by node: bounded beside its ops, and items may be divided; NULL: all, and they may not */
    size_t budget;
    struct item *all; /* by worth */
    int alls;
    int *first_reader; /* of a node's value at 2 n, of its saved tensors at 2 n + 1: the first node whose backward
                          reads it; nodes: none */
    int *leaf;         /* by node and enum holds: the item's place in all, -1: it has no bytes */
    struct sum *sum;   /* 1: the root; leaves + i: item i where it applies */
    int leaves;        /* a power of 2 */
    int *read, *from;  /* numbers there by first reader; from[i + 1]: where those of node i begin */
    /* of one op */
    unsigned *held;    /* by node: enum holds */
    struct item *item; /* by worth */
    size_t *bytes;     /* of items [0, i) */
    double *time;      /* of items [i, items) */
    int items;
    size_t room;
    int branches; /* of all ops' searches together; after BOUNDS_BRANCHES the relaxed bounds are used, which hold, too
                   */
    double most;  /* the largest bound of an op so far: a search that cannot exceed it is cut off */
    double least; /* least time of the items that one op leaves out, so far */
};

/* Sets what is held of a node's forward. */
static void hold(struct knapsack *s, int node, unsigned holds)
{
    const unsigned change[] = {s->held[node], holds};
    if (s->held[node] == holds) return;
    s->held[node] = holds;
    for (int k = 0; k < 2; k++) {
        const int leaf = change[k] ? s->leaf[node * HOLDS_MAX + (int)change[k]] : -1;
        if (leaf < 0) continue;
        int at = s->leaves + leaf;
        s->sum[at] = k ? (struct sum){s->all[leaf].bytes, s->all[leaf].time} : (struct sum){0, 0};
        while (at /= 2)
            s->sum[at] = (struct sum){s->sum[2 * at].bytes + s->sum[2 * at + 1].bytes,
                                      s->sum[2 * at].time + s->sum[2 * at + 1].time};
    }
}

/* Least time left out with the op's room, where items may be divided; *kept: time of the part of one that is kept. */
static double relaxed_all(const struct knapsack *s, double *kept)
{
    size_t room = s->room;
    double out = 0;
    int at = 1;
    *kept = 0;
    if (s->sum[1].bytes <= room) return 0;
    while (at < s->leaves) {
        at *= 2;
        if (s->sum[at].bytes <= room)
            room -= s->sum[at++].bytes;
        else
            out += s->sum[at + 1].time;
    }
    *kept = s->sum[at].time * ((double)room / (double)s->sum[at].bytes);
    return out + s->sum[at].time * (1 - (double)room / (double)s->sum[at].bytes);
}

/* Least time left out of items [from, items) with room bytes, where items may be divided. */
static double relaxed(const struct knapsack *s, int from, size_t room)
{
    int low = from, high = s->items; /* items [from, low) fit */
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (s->bytes[middle] - s->bytes[from] <= room)
            low = middle;
        else
            high = middle - 1;
    }
    if (low == s->items) return 0;
    size_t left = room - (s->bytes[low] - s->bytes[from]);
    return s->time[low + 1] + s->item[low].time * (1 - (double)left / (double)s->item[low].bytes);
}

static void branch(struct knapsack *s, int from, size_t room, double out)
{
    while (from < s->items && ++s->branches < BOUNDS_BRANCHES) {
        if (s->least <= s->most || out + relaxed(s, from, room) >= s->least) return;
        if (s->item[from].bytes <= room) branch(s, from + 1, room - s->item[from].bytes, out);
        out += s->item[from++].time;
    }
    if (from == s->items && out < s->least) s->least = out;
}

/* Time left out where each item that still fits is kept, in order of worth. */
static double greedy(const struct knapsack *s)
{
    size_t room = s->room;
    double out = 0;
    for (int i = 0; i < s->items; i++) {
        if (s->item[i].bytes <= room)
            room -= s->item[i].bytes;
        else
            out += s->item[i].time;
    }
    return out;
}

/* What later backwards read while node's backward runs: before node 0's it is nothing. */
static void hold_for(struct knapsack *s, int node)
{
    for (int i = s->from[node]; node && i < s->from[node + 1]; i++)
        hold(s, s->read[i] / 2, s->held[s->read[i] / 2] | (s->read[i] % 2 ? HOLDS_SAVED : HOLDS_VALUE));
}

/* Leaves out what is counted as operands of the op, or takes it back. */
static void hold_operands(struct knapsack *s, int node, unsigned parts, bool held)
{
    const unsigned read = footprint_reads(s->network->binding[node].footprint.reads, parts);
    for (struct reading r = reading_of(s->network, node, read); reading_next(&r);) {
        const unsigned what = r.saved ? HOLDS_SAVED : HOLDS_VALUE;
        if (s->first_reader[2 * r.node + r.saved] < node)
            hold(s, r.node, held ? s->held[r.node] | what : s->held[r.node] & ~what);
    }
}

/* The room that an op of node's backward leaves. false: the op alone exceeds the budget, as the memory floor shows. */
static bool find_room(struct knapsack *s, int node, unsigned parts)
{
    size_t reads, others;
    backward_bytes(s->network, node, parts, &reads, &others);
    if (reads + others > s->budget) return false;
    s->room = s->budget - reads - others;
    return true;
}

/* Collects the items of the op: what later backwards read and the op itself does not. */
static void gather(struct knapsack *s)
{
    s->items = 0;
    for (int i = 0; i < s->alls; i++)
        if (s->all[i].holds == s->held[s->all[i].node]) s->item[s->items++] = s->all[i];
    s->bytes[0] = 0;
    for (int i = 0; i < s->items; i++) s->bytes[i + 1] = s->bytes[i] + s->item[i].bytes;
    s->time[s->items] = 0;
    for (int i = s->items; i-- > 0;) s->time[i] = s->time[i + 1] + s->item[i].time;
}

static void find_readers(struct knapsack *s)
{
    const int nodes = s->network->graph->nodes;
    for (int k = 0; k < 2 * nodes; k++) s->first_reader[k] = nodes;
    for (int i = nodes - 1; i >= 0; i--)
        for (struct reading r = reading_of(s->network, i, network_reads(s->network, i)); reading_next(&r);)
            s->first_reader[2 * r.node + r.saved] = i;
    for (int k = 0; k < 2 * nodes; k++)
        if (s->first_reader[k] < nodes) s->from[s->first_reader[k] + 1]++;
    for (int i = 0; i < nodes; i++) s->from[i + 1] += s->from[i];
    for (int k = 2 * nodes - 1; k >= 0; k--)
        if (s->first_reader[k] < nodes) s->read[--s->from[s->first_reader[k] + 1]] = k;
}

static void find_items(struct knapsack *s)
{
    for (int i = 0; i < s->network->graph->nodes; i++)
        for (unsigned holds = 1; holds < HOLDS_MAX; holds++) {
            struct item made = {.time = s->network->cost[i].forward, .node = i, .holds = holds};
            if (holds & HOLDS_VALUE) made.bytes += value_bytes(s->network, i + 1);
            if (holds & HOLDS_SAVED) made.bytes += saved_bytes(s->network, i);
            if (made.bytes) s->all[s->alls++] = made;
        }
    qsort(s->all, (size_t)s->alls, sizeof *s->all, by_worth);
    for (int i = 0; i < s->network->graph->nodes * HOLDS_MAX; i++) s->leaf[i] = -1;
    for (int i = 0; i < s->alls; i++) s->leaf[s->all[i].node * HOLDS_MAX + (int)s->all[i].holds] = i;
}

/* The bound of an op's items undivided, where that may be larger than the most so far. */
static void search_exactly(struct knapsack *s)
{
    gather(s);
    if ((s->least = greedy(s)) <= s->most) return;
    branch(s, 0, s->room, 0);
    if (s->branches < BOUNDS_BRANCHES && s->least > s->most) s->most = s->least;
}

/* Least time of recomputations: the most that any op forces after it. All ops are relaxed first; those whose exact
 * bound may be larger are searched: it is at most that of dividing no item and keeping all that come before. */
static double forced_recomputations(struct knapsack *s)
{
    const double noise = 1e-9;
    for (int exact = 0; exact < (s->whole ? 1 : 2); exact++) {
        for (int i = 0; i < s->network->graph->nodes; i++) hold(s, i, 0);
        for (int i = 0; i < s->network->graph->nodes && s->branches < BOUNDS_BRANCHES; i++) {
            unsigned parts;
            hold_for(s, i);
            if (s->whole && !s->whole[i]) continue;
            for (int op = 0; op < 2 && (parts = op_parts(s->network, i, op)); op++) {
                double kept;
                if (!find_room(s, i, parts)) continue;
                hold_operands(s, i, parts, false);
                const double time = relaxed_all(s, &kept);
                if (time > s->most) s->most = time;
                if (exact && (time + kept) * (1 + noise) > s->most) search_exactly(s);
                hold_operands(s, i, parts, true);
            }
        }
    }
    return s->most;
}

static double knapsack(const struct network *network, const bool *whole, size_t budget, struct region *region)
{
    const size_t nodes = (size_t)network->graph->nodes;
    struct knapsack s = {.network = network, .whole = whole, .budget = budget};
    NEW(region, s.all, nodes * (HOLDS_MAX - 1));
    NEW(region, s.item, nodes);
    NEW(region, s.first_reader, 2 * nodes);
    NEW(region, s.held, nodes);
    NEW(region, s.leaf, nodes * HOLDS_MAX);
    NEW(region, s.read, 2 * nodes);
    NEW(region, s.from, nodes + 1);
    NEW(region, s.bytes, nodes + 1);
    NEW(region, s.time, nodes + 1);
    find_readers(&s);
    find_items(&s);
    for (s.leaves = 1; s.leaves < s.alls; s.leaves *= 2) {
    }
    NEW(region, s.sum, 2 * (size_t)s.leaves);
    return forced_recomputations(&s);
}

double bounds_advances(int64_t steps, int64_t slots)
{
    if (steps < 2) return 0;
    if (slots < 1) slots = 1;
    double reach = 1, before = 0; /* C(slots + r, r) and C(slots + r, r - 1) */
    int64_t r = 0;
    while (reach < (double)steps) {
        r++;
        before = reach * (double)(slots + r) / (double)(slots + 1); /* C(n, r - 1) from C(n - 1, r - 1) */
        reach = reach * (double)(slots + r) / (double)r;
    }
    return (double)(r * steps) - before;
}

/* Bytes that an op of node i's backward that reads x leaves: the least of two. */
static size_t left_beside(const struct network *network, int i, size_t budget)
{
    size_t least = budget, reads, others;
    unsigned parts;
    for (int op = 0; op < 2 && (parts = op_parts(network, i, op)); op++) {
        if (!inputs_read(footprint_reads(network->binding[i].footprint.reads, parts), 1)) continue;
        backward_bytes(network, i, parts, &reads, &others);
        const size_t left = reads + others < budget ? budget - reads - others : 0;
        if (left < least) least = left;
    }
    return least;
}

/* Where the saved tensors of a stage do not fit beside the next stage's backward, a forward that is no advance makes
 * them after it. The slots are what fits beside a backward, and the x that it reads. */
static double binomial(const struct network *network, size_t budget)
{
    const struct graph *graph = network->graph;
    size_t value = SIZE_MAX, left = 0;
    int taped = 0;
    double time = 0;
    if (network->traced) return 0;
    for (int i = 0; i < graph->nodes; i++) {
        const struct node *node = &graph->node[i];
        if (node->layer->inputs != 1 || node->inputs[0] != i || !inputs_read(network_reads(network, i), 1)) return 0;
        if (!i || network->cost[i].forward < time) time = network->cost[i].forward;
        if (i + 1 < graph->nodes && value_bytes(network, i + 1) < value) value = value_bytes(network, i + 1);
        const size_t beside = i ? left_beside(network, i, budget) : 0;
        if (beside > left) left = beside;
        taped += i && saved_bytes(network, i - 1) > beside;
    }
    if (graph->nodes < 2 || !value) return 0;
    const size_t slots = left / value + 1;
    const double advances =
        slots < (size_t)graph->nodes ? bounds_advances(graph->nodes, (int64_t)slots) : graph->nodes - 1;
    return (advances + 1 - graph->nodes + taped) * time;
}

static double closure(const struct network *network, const bool *whole, size_t budget, struct region *region)
{
    const struct lower_options fewest = {.drop_dead = true, .rng = RNG_COUNTER};
    const struct step_model model = step_model_create(network, &fewest, region);
    return closure_bound(&model, whole, budget);
}

/* Beside the ops of whole nodes, which all slices have reached and none has passed. Values are counted as one buffer.
 */
static void bound_whole_nodes(const struct network *network, struct bounds *bounds, struct region *region)
{
    struct network *batch = network_unsliced(network, region);
    batch->granularity = 1;
    bounds->knapsack += knapsack(batch, network->graph->whole, bounds->budget, region);
    bounds->closure += closure(batch, network->graph->whole, bounds->budget, region);
    bounds->best = fmax(bounds->closure, bounds->knapsack);
}

/* A schedule of slices is one of each slice alone, with at most as many bytes live. */
static void bound_slice(const struct network *network, struct bounds *bounds, struct region *region)
{
    const struct bounds slice = bounds_find(network_of_slice(network, region), bounds->budget);
    const double slices = (double)network->graph->slices;
    if (slices * slice.best <= bounds->best * (1 + 1e-12)) return;
    bounds->knapsack = slices * slice.knapsack;
    bounds->closure = slices * slice.closure;
    bounds->binomial = slices * slice.binomial;
    bounds->best = slices * slice.best;
    bounds->of_slice = true;
}

struct bounds bounds_find(const struct network *network, size_t budget)
{
    region_auto *region = region_create();
    struct bounds bounds = {.budget = budget};
    memory_floor(network, &bounds);
    for (int i = 0; i < network->graph->nodes; i++)
        bounds.floor += network_first_time(network, i) + network_backward_time(network, i);
    bounds.best = bounds.knapsack = bounds.binomial = bounds.closure = bounds.floor;
    if (network->slice) {
        bound_whole_nodes(network, &bounds, region);
        bound_slice(network, &bounds, region);
    } else {
        bounds.knapsack += knapsack(network, NULL, budget, region);
        bounds.binomial += binomial(network, budget);
        bounds.closure += closure(network, NULL, budget, region);
        bounds.best = fmax(bounds.closure, fmax(bounds.knapsack, bounds.binomial));
    }
    return bounds;
}

double bounds_slowdown(const struct bounds *bounds, double time)
{
    return bounds->floor > 0 ? time / bounds->floor : 1;
}

double bounds_gap(const struct bounds *bounds, double time)
{
    const double noise = 1e-12; /* sums of the same times in another order */
    double above = time - bounds->best;
    return above > noise * bounds->best ? 100 * above / bounds->best : 0;
}
