#include "bounds.h"

#include <stdint.h>
#include <stdlib.h>

enum { BRANCHES_MAX = 20000 };

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
    bool read = network_reads(network, node) & READS_SAVED;
    return read ? network_round(network, network->binding[node].footprint.saved) : 0;
}

/* Input k, unless an earlier input is the same value. */
static bool is_new(const struct node *node, int k)
{
    for (int j = 0; j < k; j++)
        if (node->inputs[j] == node->inputs[k]) return false;
    return true;
}

/* What the forward that saves for the backward must have live. */
static size_t forward_bytes(const struct network *network, int i)
{
    const struct node *node = &network->graph->node[i];
    const struct footprint *f = &network->binding[i].footprint;
    size_t bytes = saved_bytes(network, i) + network_round(network, f->forward_scratch);
    for (int k = 0; k < node->layer->inputs; k++)
        if (is_new(node, k)) bytes += value_bytes(network, node->inputs[k]);
    size_t y = value_bytes(network, node->output);
    bool over = f->y_over_x && value_bytes(network, node->inputs[0]) == y;
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

/* Values and the saved set that an op of a backward reads; gradients and scratch that it needs besides. */
static void backward_bytes(const struct network *network, int i, unsigned parts, size_t *reads, size_t *others)
{
    const struct node *node = &network->graph->node[i];
    const struct footprint *f = &network->binding[i].footprint;
    unsigned read = 0;
    size_t scratch = 0, dy = gradient_bytes(network, node->output), dx = 0;
    for (int part = 0; part < 2; part++) {
        if (!(parts >> part & 1)) continue;
        read |= f->reads[part];
        if (f->backward_scratch[part] > scratch) scratch = f->backward_scratch[part];
    }
    *reads = (read & READS_Y ? value_bytes(network, node->output) : 0) +
             (read & READS_SAVED ? network_round(network, f->saved) : 0);
    for (int k = 0; k < node->layer->inputs; k++) {
        if (!is_new(node, k)) continue;
        if (read & READS_X) *reads += value_bytes(network, node->inputs[k]);
        size_t bytes = gradient_bytes(network, node->inputs[k]);
        bool over = k == 0 && f->dx_over_dy && bytes == dy;
        if (parts & PART_INPUT && !over) dx += bytes;
    }
    *others = dy + dx + network_round(network, scratch);
}

static size_t memory_floor(const struct network *network)
{
    size_t floor = 0;
    for (int i = 0; i < network->graph->nodes; i++) {
        size_t bytes = forward_bytes(network, i), reads, others;
        if (bytes > floor) floor = bytes;
        for (int op = 0; op < 2; op++) {
            unsigned parts = op_parts(network, i, op);
            if (!parts) break;
            backward_bytes(network, i, parts, &reads, &others);
            if (reads + others > floor) floor = reads + others;
        }
    }
    return floor;
}

/* What one forward makes that later backwards read. */
struct item {
    size_t bytes;
    double time;
};

static int by_worth(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    double one = a->time * (double)b->bytes, two = b->time * (double)a->bytes;
    return one != two ? (one < two) - (one > two) : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

struct knapsack {
    const struct item *item; /* by worth */
    int items, branches;
    double least; /* time of what is left out, best so far */
};

/* Time that must be left out of items [from, items) with room bytes, parts of items allowed. */
static double relaxed(const struct knapsack *k, int from, size_t room)
{
    double out = 0;
    bool full = false;
    for (int i = from; i < k->items; i++) {
        const struct item *item = &k->item[i];
        if (full) {
            out += item->time;
        } else if (item->bytes <= room) {
            room -= item->bytes;
        } else {
            out += item->time * (1 - (double)room / (double)item->bytes);
            full = true;
        }
    }
    return out;
}

static void branch(struct knapsack *k, int from, size_t room, double out)
{
    while (from < k->items && ++k->branches < BRANCHES_MAX) {
        if (out + relaxed(k, from, room) >= k->least) return;
        if (k->item[from].bytes <= room) branch(k, from + 1, room - k->item[from].bytes, out);
        out += k->item[from++].time;
    }
    if (from == k->items && out < k->least) k->least = out;
}

/* A value read by the backward of a node below node. */
static bool read_before(const struct network *network, int value, int node)
{
    const struct graph *graph = network->graph;
    for (int i = value - 1; i < node; i++) {
        unsigned reads = network_reads(network, i);
        if (i == value - 1 && reads & READS_Y) return true;
        for (int k = 0; i >= value && reads & READS_X && k < graph->node[i].layer->inputs; k++)
            if (graph->node[i].inputs[k] == value) return true;
    }
    return false;
}

static bool op_reads(const struct network *network, int i, unsigned parts, int value)
{
    const struct node *node = &network->graph->node[i];
    unsigned read = 0;
    for (int part = 0; part < 2; part++)
        if (parts >> part & 1) read |= network->binding[i].footprint.reads[part];
    if (read & READS_Y && node->output == value) return true;
    for (int k = 0; read & READS_X && k < node->layer->inputs; k++)
        if (node->inputs[k] == value) return true;
    return false;
}

/* Time of replays that must come after an op of node's backward. */
static double replays_after(const struct network *network, int node, unsigned parts, size_t budget, struct item *item)
{
    size_t reads, others;
    struct knapsack k = {.item = item};
    double all = 0;
    backward_bytes(network, node, parts, &reads, &others);
    if (reads + others > budget) return 0; /* not to be done at all: the memory floor says so */
    for (int i = 0; i <= node; i++) {
        bool needed = read_before(network, i + 1, node) && !op_reads(network, node, parts, i + 1);
        struct item made = {(needed ? value_bytes(network, i + 1) : 0) + (i < node ? saved_bytes(network, i) : 0),
                            network->cost[i].forward};
        if (!made.bytes) continue;
        item[k.items++] = made;
        all += made.time;
    }
    qsort(item, (size_t)k.items, sizeof *item, by_worth);
    double bound = relaxed(&k, 0, budget - reads - others);
    k.least = all;
    branch(&k, 0, budget - reads - others, 0);
    return k.branches < BRANCHES_MAX ? k.least : bound;
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

static double binomial(const struct network *network, size_t budget)
{
    const struct graph *graph = network->graph;
    size_t value = SIZE_MAX, gradient = SIZE_MAX;
    double time = 0;
    for (int i = 0; i < graph->nodes; i++) {
        const struct node *node = &graph->node[i];
        if (node->layer->inputs != 1 || node->inputs[0] != i || !(network_reads(network, i) & READS_X)) return 0;
        if (!i || network->cost[i].forward < time) time = network->cost[i].forward;
        if (i + 1 < graph->nodes && value_bytes(network, i + 1) < value) value = value_bytes(network, i + 1);
        if (gradient_bytes(network, i + 1) < gradient) gradient = gradient_bytes(network, i + 1);
    }
    if (graph->nodes < 2 || !value || budget < gradient) return 0;
    size_t slots = (budget - gradient) / value;
    if (slots >= (size_t)graph->nodes) return 0;
    double replays = bounds_advances(graph->nodes, (int64_t)slots) + 1 - graph->nodes;
    return replays > 0 ? replays * time : 0;
}

enum status bounds_find(const struct network *network, size_t budget, struct bounds *bounds)
{
    const struct graph *graph = network->graph;
    struct item *item = calloc((size_t)graph->nodes, sizeof *item);
    if (!item) return fail(ST_FAILED, "out of memory for lower bounds");
    *bounds = (struct bounds){.memory = memory_floor(network)};
    double replays = 0;
    for (int i = 0; i < graph->nodes; i++) {
        bounds->floor += network->cost[i].forward + network_backward_time(network, i);
        unsigned parts;
        for (int op = 0; op < 2 && (parts = op_parts(network, i, op)); op++) {
            double time = replays_after(network, i, parts, budget, item);
            if (time > replays) replays = time;
        }
    }
    free(item);
    bounds->knapsack = bounds->floor + replays;
    bounds->binomial = bounds->floor + binomial(network, budget);
    bounds->best = bounds->knapsack > bounds->binomial ? bounds->knapsack : bounds->binomial;
    return ST_OK;
}

double bounds_gap(const struct bounds *bounds, double time)
{
    return bounds->best > 0 ? 100 * (time - bounds->best) / bounds->best : 0;
}
