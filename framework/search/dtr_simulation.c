#include "search/dtr_simulation.h"

#include <assert.h>

enum { RECOMPUTATIONS_PER_NODE = 64 };

struct dtr_step {
    const struct step_model *model;
    const struct step_event *event; /* that runs, or that nodes run again for */
    struct dtr_residency *r;
    struct schedule *schedule;
    size_t limit, peak;
    int recomputations;
    bool *due;              /* node -> it will be run again, and its reads are counted as uses */
    int *stack;             /* of a walk; room for every node */
    int *pending, pendings; /* nodes to run again, each for the one before it */
};

static const struct node *node_of(const struct dtr_step *step, int node)
{
    return &step->model->network->graph->node[node];
}

/* bytes: besides what is resident. */
static bool fits(const struct dtr_step *step, size_t bytes) { return step->r->locked + bytes <= step->limit; }

/* Evicts until so many bytes fit; false: they never do. */
static bool make_room(struct dtr_step *step, size_t bytes)
{
    struct dtr_residency *r = step->r;
    if (!fits(step, bytes)) return false;
    while (r->held + bytes > step->limit) dtr_residency_evict(r);
    if (r->held + bytes > step->peak) step->peak = r->held + bytes;
    return true;
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
    each_input(step, node_of(step, node), dtr_residency_expect);
}

/* The same for the producers of all that node needs and that is not resident. */
static void add_all_due(struct dtr_step *step, int node)
{
    int count = 0;
    if (step->due[node]) return;
    add_due(step, node);
    for (step->stack[count++] = node; count;) {
        const struct node *due = node_of(step, step->stack[--count]);
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

static bool run(struct dtr_step *step, int n);

/* A node to run again as soon as its inputs are resident: pending. */
static bool begin(struct dtr_step *step, int node)
{
    if (++step->recomputations > RECOMPUTATIONS_PER_NODE * step->model->nodes) return false;
    add_all_due(step, node);
    each_input(step, node_of(step, node), dtr_residency_lock);
    step->pending[step->pendings++] = node;
    return true;
}

/* Runs node again, and before it the producers of all that it needs and that is not resident. */
static bool obtain(struct dtr_step *step, int node)
{
    bool done = begin(step, node);
    while (done && step->pendings) {
        const int last = step->pending[step->pendings - 1];
        const int missing = missing_input(step, node_of(step, last));
        done = missing >= 0 ? begin(step, missing) : run(step, last);
        step->pendings -= missing < 0;
    }
    return done;
}

/* Locks the inputs of a node and computes those that are not resident. */
static bool hold_inputs(struct dtr_step *step, const struct node *node)
{
    bool done = true;
    each_input(step, node, dtr_residency_lock);
    for (int missing; done && (missing = missing_input(step, node)) >= 0;) done = obtain(step, missing);
    return done;
}

/* The input that the output can overwrite, where no other pending op needs it; else NULL. */
static struct storage *input_to_overwrite(const struct dtr_step *step, const struct node *node, bool *dies)
{
    const struct storage *y = storage_of(step->r, node->index, STORAGE_Y);
    *dies = false;
    if (y->resident || !step->model->over[node->index]) return NULL;
    struct storage *x = storage_of_input(step->r, node, 0);
    int reads = 0;
    for (int k = 0; k < node->layer->inputs; k++) reads += storage_of_input(step->r, node, k) == x;
    *dies = x->uses == reads;
    return x->locks == reads ? x : NULL;
}

/* A forward, the node's first or a recomputation, whose inputs are resident and locked. It writes those of its storages
 * that are not resident, the saved tensors only where they fit, a pending op needs them, or the node never runs again.
 */
static bool run(struct dtr_step *step, int n)
{
    struct dtr_residency *r = step->r;
    const struct node *node = node_of(step, n);
    struct storage *y = storage_of(r, n, STORAGE_Y), *saved = storage_of(r, n, STORAGE_SAVED);
    const bool first = n >= r->forward;
    step->due[n] = false;
    if (y->resident && !y->locks) dtr_residency_leave(r, y); /* written again, it must not be evicted on the way */
    bool dies;
    struct storage *x = input_to_overwrite(step, node, &dies);
    size_t bytes = first ? step->event->during : step->event->before + step->model->scratch[n];
    const size_t unsaved = step->model->unsaved[n];
    size_t wanted = !saved->resident && saved->uses ? saved->bytes : 0;
    const bool must = saved->locks || !step->model->again[n];
    const size_t needed = wanted && must ? wanted : unsaved;
    if (!y->resident) bytes += y->bytes;
    if (x && !dies && fits(step, bytes + needed)) x = NULL; /* it is read again and can stay */
    if (x) bytes -= x->bytes;
    const bool save = wanted && (must || fits(step, bytes + wanted));
    if (!make_room(step, bytes + (save ? wanted : unsaved))) return false;
    schedule_append(step->schedule, STEP_FORWARD, n, n + 1);
    r->clock += step->model->time[n];
    if (first) r->forward = n + 1;
    each_input(step, node, dtr_residency_read);
    if (x && x->resident) dtr_residency_leave(r, x);
    if (!y->resident) dtr_residency_appear(r, y);
    if (save) dtr_residency_appear(r, saved);
    if (!y->uses && !y->locks) dtr_residency_leave(r, y);
    return true;
}

static struct storage *storage_read(const struct dtr_step *step, const struct reading *r)
{
    return storage_of(step->r, r->node, r->saved ? STORAGE_SAVED : STORAGE_Y);
}

/* Computes and locks all that node's backward reads: what other nodes wrote first. */
static bool hold_operands(struct dtr_step *step, int node)
{
    const struct network *network = step->model->network;
    const struct reading all = reading_of(network, node, network_reads(network, node));
    bool done = true;
    for (struct reading r = all; reading_next(&r);) dtr_residency_lock(step->r, storage_read(step, &r));
    for (int own = 0; own < 2; own++)
        for (struct reading r = all; done && reading_next(&r);)
            if ((own || r.node != node) && !storage_read(step, &r)->resident) done = obtain(step, r.node);
    return done;
}

static double backward_time(const struct network *network, const struct step_event *e)
{
    const double *time = network->cost[e->node].backward;
    if (e->half) return time[PART_INDEX_PARAMS];
    return e[-1].half ? time[PART_INDEX_INPUT] : network_backward_time(network, e->node);
}

/* One of a node's one or two events. */
static bool backward(struct dtr_step *step)
{
    const struct step_event *e = step->event;
    if (!make_room(step, e->during)) return false;
    step->r->clock += backward_time(step->model->network, e);
    for (struct reading r = step_reading(step->model, e); reading_next(&r);)
        if (!e->half || !reading_again(&r, e[1].reads)) dtr_residency_read(step->r, storage_read(step, &r));
    return make_room(step, e->after);
}

static bool run_event(struct dtr_step *step)
{
    const struct step_event *e = step->event;
    if (e->kind == STEP_FORWARD) return hold_inputs(step, node_of(step, e->node)) && run(step, e->node);
    if (!e[-1].half) {
        if (!hold_operands(step, e->node)) return false;
        schedule_append(step->schedule, STEP_BACKWARD, e->node, e->node + 1);
    }
    if (!backward(step)) return false;
    if (!e->half) dtr_residency_close(step->r, e->node);
    return true;
}

size_t dtr_simulate(const struct step_model *model, enum dtr_score score, size_t limit, struct schedule *schedule)
{
    region_auto *region = region_create();
    struct dtr_step step = {.model = model, .event = model->event, .schedule = schedule, .limit = limit};
    const struct step_event *end = model->event + model->events;
    step.r = dtr_residency_create(model, region);
    step.r->score = score;
    NEW(region, step.due, (size_t)model->nodes);
    NEW(region, step.stack, (size_t)model->nodes);
    NEW(region, step.pending, (size_t)model->nodes);
    while (step.event < end && run_event(&step)) step.event++;
    if (step.event == end) dtr_residency_close(step.r, 0);
    assert(step.event < end || step.r->held == 0);
    return step.event < end ? 0 : step.peak;
}
