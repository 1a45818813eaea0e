#include "search/bounds.h"

#include <math.h>
#include <stdint.h>

#include "search/closure_bound.h"
#include "search/knapsack_bound.h"

/* Of the events, and of the forward that saves for the backward. */
static void memory_floor(const struct moments *m, struct bounds *bounds)
{
    for (int i = 0; i < m->count; i++) {
        const struct moment *at = &m->moment[i];
        const struct step_event *e = &m->model->event[at->event];
        size_t most = at->live;
        if (e->kind == STEP_FORWARD && m->saved[e->node] >= 0 && !m->model->unsaved[e->node]) {
            const size_t saves = at->live - e->during + m->model->scratch[e->node] + m->model->saved[e->node];
            if (saves > most) most = saves;
        }
        if (most < bounds->memory || (most == bounds->memory && e->node >= bounds->memory_node)) continue;
        bounds->memory = most;
        bounds->memory_node = e->node;
    }
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

/* Where the saved tensors of a stage do not fit beside the next stage's backward, a forward that is no advance makes
 * them after it. The slots are what fits beside a backward, and the x that it reads. */
static double binomial(const struct moments *m, struct region *region)
{
    const struct step_model *model = m->model;
    const struct network *network = model->network;
    size_t value = SIZE_MAX, left = 0, *beside; /* by node: bytes that the events of its backward that read x leave */
    int taped = 0;
    double time = INFINITY;
    if (network->traced || model->nodes < 2) return 0;
    NEW(region, beside, (size_t)model->nodes);
    for (int n = 0; n < model->nodes; n++) {
        const struct node *node = &network->graph->node[n];
        if (node->layer->inputs != 1 || node->inputs[0] != n || !inputs_read(network_reads(network, n), 1)) return 0;
        beside[n] = SIZE_MAX;
        time = fmin(time, model->time[n]);
        if (model->value[n] < value) value = model->value[n];
    }
    for (int i = 0; i < m->count; i++) {
        const struct step_event *e = &model->event[m->moment[i].event];
        const bool reads = e->kind == STEP_BACKWARD && inputs_read(e->reads, 1);
        if (reads && m->moment[i].room < beside[e->node]) beside[e->node] = m->moment[i].room;
    }
    for (int n = 1; n < model->nodes; n++) {
        if (beside[n] > left) left = beside[n];
        taped += m->saved[n - 1] >= 0 && model->saved[n - 1] > beside[n];
    }
    if (!value) return 0;
    const size_t slots = left / value + 1;
    const double advances =
        slots < (size_t)model->nodes ? bounds_advances(model->nodes, (int64_t)slots) : model->nodes - 1;
    return (advances + 1 - model->nodes + taped) * time;
}

/* Beside the events of these nodes, where what is kept may be divided; NULL: of all, and it may not. */
static void bound_events(const struct network *network, const bool *nodes, struct bounds *bounds)
{
    region_auto *region = region_create();
    const struct lower_options fewest = {.drop_dead = true, .rng = RNG_COUNTER};
    const struct step_model model = step_model_create(network, &fewest, region);
    const struct moments moments = moments_find(&model, nodes, bounds->budget, region);
    memory_floor(&moments, bounds);
    bounds->knapsack += knapsack_bound(&moments, nodes);
    bounds->closure += closure_bound(&moments, nodes);
    if (!nodes) bounds->binomial += binomial(&moments, region);
    bounds->best = fmax(bounds->closure, fmax(bounds->knapsack, bounds->binomial));
}

/* A schedule of slices is one of each slice alone, with at most as many bytes live; and all slices have reached an op
 * of a whole node and none has passed it. Values are counted as one buffer there. */
static void bound_slices(const struct network *network, struct bounds *bounds, struct region *region)
{
    const struct bounds slice = bounds_find(network_of_slice(network, region), bounds->budget);
    const double slices = (double)network->graph->slices;
    struct network *batch = network_unsliced(network, region);
    batch->granularity = 1;
    bounds->memory = slice.memory;
    bounds->memory_node = slice.memory_node;
    bound_events(batch, network->graph->whole, bounds);
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
    for (int i = 0; i < network->graph->nodes; i++)
        bounds.floor += network_first_time(network, i) + network_backward_time(network, i);
    bounds.knapsack = bounds.binomial = bounds.closure = bounds.floor;
    if (network->slice)
        bound_slices(network, &bounds, region);
    else
        bound_events(network, NULL, &bounds);
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
