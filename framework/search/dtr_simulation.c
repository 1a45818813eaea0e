#include "search/dtr_simulation.h"

#include <assert.h>

#include "base/units.h"

enum { RECOMPUTATIONS_PER_NODE = 64 };

struct dtr_step {
    const struct dtr_simulation *simulation;
    const struct graph *graph;
    struct dtr_residency *r;
    struct schedule *schedule;
    size_t limit, peak;
    size_t once, base; /* stashes and masks so far; they and gradients: what is live besides storages */
    int recomputations;
    bool *due;              /* node -> it will be run again, and its reads are counted as uses */
    int *stack;             /* of a walk; room for every node */
    int *pending, pendings; /* nodes to run again, each for the one before it */
};

static void list_backward_ops(struct dtr_simulation *simulation, const struct lowered *l)
{
    const int nodes = simulation->network->graph->nodes;
    size_t *bytes, *gap;
    NEW(simulation->region, bytes, (size_t)l->ops + 1);
    NEW(simulation->region, gap, (size_t)l->ops + 1);
    for (int i = 0; i < l->buffers; i++) {
        const struct buffer *b = &l->buffer[i];
        if (b->category == CATEGORY_ACTIVATION || b->category == CATEGORY_SAVED) continue;
        for (int op = b->birth; op <= b->death; op++) bytes[op] += b->bytes;
        for (int op = b->birth + 1; op <= b->death; op++) gap[op] += b->bytes;
    }
    int forwards = 0;
    for (; l->op[forwards].kind == OP_FORWARD; forwards++)
        if (l->op[forwards].once >= 0) simulation->once[l->op[forwards].node] = l->buffer[l->op[forwards].once].bytes;
    /* ops come from the last node to the first */
    int count = 0, op = l->ops;
    for (int n = 0; n < nodes; n++) {
        int from = op;
        while (from > forwards && l->op[from - 1].node == n) from--;
        simulation->first[n] = count;
        simulation->gap[n] = gap[from];
        for (int i = from; i < op; i++) {
            const struct op *o = &l->op[i];
            const double *time = simulation->network->cost[n].backward;
            simulation->op[count++] =
                (struct backward_op){o->parts,
                                     (o->parts & PART_PARAMS && o->part < 2 ? time[PART_INDEX_PARAMS] : 0) +
                                         (o->parts & PART_INPUT ? time[PART_INDEX_INPUT] : 0),
                                     bytes[i]};
        }
        op = from;
    }
    simulation->first[nodes] = count;
    assert(op == forwards);
}

/* Gradients, scratch and masks are the same whatever is recomputed: those of storing everything. */
enum status dtr_simulation_create(const struct network *network, const struct lower_options *options,
                                  struct region *region, struct dtr_simulation *simulation)
{
    const int nodes = network->graph->nodes;
    const struct schedule all = schedule_store_all(nodes, region);
    const struct lowered lowered = lower(network, &all, options, region);
    *simulation = (struct dtr_simulation){.network = network, .region = region};
    NEW(region, simulation->once, (size_t)nodes);
    NEW(region, simulation->gap, (size_t)nodes);
    NEW(region, simulation->first, (size_t)nodes + 1);
    NEW(region, simulation->op, (size_t)lowered.ops);
    list_backward_ops(simulation, &lowered);
    return ST_OK;
}

static bool fits(const struct dtr_step *step, size_t bytes)
{
    return step->r->locked + step->base + bytes <= step->limit;
}

/* Evicts until bytes more fit. */
static enum status make_room(struct dtr_step *step, size_t bytes, const char *pass, int node)
{
    struct dtr_residency *r = step->r;
    char takes[UNIT_TEXT], limit[UNIT_TEXT];
    if (!fits(step, bytes))
        return fail(ST_SPEC, "%s of '%s' needs %s, the limit is %s", pass, step->graph->node[node].name,
                    exact_bytes_text(r->locked + step->base + bytes, takes), exact_bytes_text(step->limit, limit));
    while (r->held + step->base + bytes > step->limit) dtr_residency_evict(r);
    if (r->held + step->base + bytes > step->peak) step->peak = r->held + step->base + bytes;
    return ST_OK;
}

static void each_input(struct dtr_step *step, const struct node *node,
                       void (*act)(struct dtr_residency *r, struct storage *storage))
{
    for (int k = 0; k < node->layer->inputs; k++)
        if (node->inputs[k]) act(step->r, storage_of_input(step->r, node, k));
}

/* Node will run again: each of its inputs has one more use, so that an input that two of its producers need stays in
 * between. */
static void add_due(struct dtr_step *step, int node)
{
    step->due[node] = true;
    each_input(step, &step->graph->node[node], dtr_residency_expect);
}

/* The same for the producers of all that node needs and that is not resident. */
static void add_all_due(struct dtr_step *step, int node)
{
    int count = 0;
    if (step->due[node]) return;
    add_due(step, node);
    for (step->stack[count++] = node; count;) {
        const struct node *due = &step->graph->node[step->stack[--count]];
        for (int k = 0; k < due->layer->inputs; k++) {
            const struct storage *x = storage_of_input(step->r, due, k);
            if (!x || x->resident || step->due[due->inputs[k] - 1]) continue;
            step->stack[count++] = due->inputs[k] - 1;
            add_due(step, due->inputs[k] - 1);
        }
    }
}

/* The producer of the first input that is not resident; -1: all are. */
static int missing_input(const struct dtr_step *step, const struct node *node)
{
    for (int k = 0; k < node->layer->inputs; k++) {
        const struct storage *x = storage_of_input(step->r, node, k);
        if (x && !x->resident) return node->inputs[k] - 1;
    }
    return -1;
}

static enum status run(struct dtr_step *step, int n);

/* A node to run again as soon as its inputs are resident: pending. */
static enum status begin(struct dtr_step *step, int node)
{
    if (++step->recomputations > RECOMPUTATIONS_PER_NODE * step->graph->nodes)
        return fail(ST_SPEC, "%d recomputations, the last of '%s': too many", step->recomputations,
                    step->graph->node[node].name);
    add_all_due(step, node);
    each_input(step, &step->graph->node[node], dtr_residency_lock);
    step->pending[step->pendings++] = node;
    return ST_OK;
}

/* Runs node again, and before it the producers of all that it needs and that is not resident. */
static enum status obtain(struct dtr_step *step, int node)
{
    TRY(begin(step, node));
    while (step->pendings) {
        const int last = step->pending[step->pendings - 1];
        const int missing = missing_input(step, &step->graph->node[last]);
        if (missing >= 0) {
            TRY(begin(step, missing));
        } else {
            TRY(run(step, last));
            step->pendings--;
        }
    }
    return ST_OK;
}

/* Locks the inputs of a node and computes those that are not resident. */
static enum status hold_inputs(struct dtr_step *step, const struct node *node)
{
    each_input(step, node, dtr_residency_lock);
    for (int missing; (missing = missing_input(step, node)) >= 0;) TRY(obtain(step, missing));
    return ST_OK;
}

/* The input that the output can overwrite, where no other pending op needs it; else NULL. */
static struct storage *input_to_overwrite(const struct dtr_step *step, const struct node *node, bool *dies)
{
    struct storage *x = node->layer->inputs ? storage_of_input(step->r, node, 0) : NULL;
    const struct storage *y = storage_of(step->r, node->index, STORAGE_Y);
    *dies = false;
    if (!x || y->resident || x->bytes != y->bytes ||
        !step->simulation->network->binding[node->index].footprint.y_over_x)
        return NULL;
    int reads = 0;
    for (int k = 0; k < node->layer->inputs; k++) reads += storage_of_input(step->r, node, k) == x;
    *dies = x->uses == reads;
    return x->locks == reads ? x : NULL;
}

/* A forward, the node's first or a recomputation, whose inputs are resident and locked. It writes those of its storages
 * that are not resident, the saved tensors only where they fit or a pending op needs them. */
static enum status run(struct dtr_step *step, int n)
{
    struct dtr_residency *r = step->r;
    const struct node *node = &step->graph->node[n];
    const struct footprint *f = &step->simulation->network->binding[n].footprint;
    struct storage *y = storage_of(r, n, STORAGE_Y), *saved = storage_of(r, n, STORAGE_SAVED);
    const bool first = n >= r->forward;
    step->due[n] = false;
    bool dies;
    struct storage *x = input_to_overwrite(step, node, &dies);
    size_t bytes =
        network_round(step->simulation->network, f->forward_scratch) + (first ? step->simulation->once[n] : 0);
    size_t wanted = !saved->resident && saved->uses ? saved->bytes : 0, needed = saved->locks ? wanted : 0;
    if (!y->resident) bytes += y->bytes;
    if (x && !dies && fits(step, bytes + needed)) x = NULL; /* it is read again and can stay */
    if (x) bytes -= x->bytes;
    const bool save = wanted && (saved->locks || fits(step, bytes + wanted));
    TRY(make_room(step, bytes + (save ? wanted : 0), first ? "the forward" : "a recomputation", n));
    schedule_append(step->schedule, STEP_FORWARD, n, n + 1);
    r->clock += step->simulation->network->cost[n].forward;
    if (first) {
        step->base += step->simulation->once[n];
        step->once += step->simulation->once[n];
        r->forward = n + 1;
    }
    each_input(step, node, dtr_residency_read);
    if (x && x->resident) dtr_residency_leave(r, x);
    if (!y->resident) dtr_residency_appear(r, y);
    if (save) dtr_residency_appear(r, saved);
    if (!y->uses && !y->locks) dtr_residency_leave(r, y);
    return ST_OK;
}

static struct storage *storage_read(const struct dtr_step *step, const struct reading *r)
{
    return storage_of(step->r, r->node, r->saved ? STORAGE_SAVED : STORAGE_Y);
}

/* Computes and locks all that the ops of node's backward read. */
static enum status hold_operands(struct dtr_step *step, int node)
{
    const struct network *network = step->simulation->network;
    const struct reading all = reading_of(network, node, network_reads(network, node));
    for (struct reading r = all; reading_next(&r);) dtr_residency_lock(step->r, storage_read(step, &r));
    for (struct reading r = all; reading_next(&r);)
        if (r.node != node && !storage_read(step, &r)->resident) TRY(obtain(step, r.node));
    for (struct reading r = all; reading_next(&r);)
        if (!storage_read(step, &r)->resident) TRY(obtain(step, r.node));
    return ST_OK;
}

/* What an op of node's backward reads, and none after it. */
static void read_operands(struct dtr_step *step, int node, unsigned reads, unsigned later)
{
    for (struct reading r = reading_of(step->simulation->network, node, reads); reading_next(&r);)
        if (!reading_again(&r, later)) dtr_residency_read(step->r, storage_read(step, &r));
}

static enum status backward(struct dtr_step *step, int n)
{
    const unsigned *reads = step->simulation->network->binding[n].footprint.reads;
    step->base = step->once + step->simulation->gap[n];
    TRY(hold_operands(step, n));
    schedule_append(step->schedule, STEP_BACKWARD, n, n + 1);
    for (int i = step->simulation->first[n]; i < step->simulation->first[n + 1]; i++) {
        const struct backward_op *op = &step->simulation->op[i];
        step->base = step->once + op->bytes;
        TRY(make_room(step, 0, "the backward", n));
        step->r->clock += op->time;
        unsigned later = 0;
        for (int j = i + 1; j < step->simulation->first[n + 1]; j++)
            later |= footprint_reads(reads, step->simulation->op[j].parts);
        read_operands(step, n, footprint_reads(reads, op->parts), later);
    }
    step->once -= step->simulation->once[n];
    dtr_residency_close(step->r, n);
    return ST_OK;
}

enum status dtr_simulation_schedule(const struct dtr_simulation *simulation, size_t limit, struct schedule *schedule,
                                    struct dtr_result *result)
{
    region_auto *region = region_create();
    struct dtr_step step = {
        .simulation = simulation, .graph = simulation->network->graph, .schedule = schedule, .limit = limit};
    enum status status = ST_OK;
    step.r = dtr_residency_create(simulation->network, region);
    step.r->score = simulation->score;
    NEW(region, step.due, (size_t)step.graph->nodes);
    NEW(region, step.stack, (size_t)step.graph->nodes);
    NEW(region, step.pending, (size_t)step.graph->nodes);
    for (int n = 0; status == ST_OK && n < step.graph->nodes; n++) {
        status = hold_inputs(&step, &step.graph->node[n]);
        if (status == ST_OK) status = run(&step, n);
    }
    for (int n = step.graph->nodes - 1; status == ST_OK && n >= 0; n--) status = backward(&step, n);
    assert(status != ST_OK || step.r->held == 0);
    *result = (struct dtr_result){step.peak, step.r->evictions};
    return status;
}
