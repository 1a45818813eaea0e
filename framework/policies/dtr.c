/* What an online runtime would do that evicts a tensor whenever memory is short and recomputes it on demand: Kirisame
 * et al., "Dynamic Tensor Rematerialization", 2021, run at plan time on the step's known ops. Eager eviction as in the
 * paper: what the step reads no more is freed at once.
 *
 * Unlike the paper's runtime it never exceeds its budget, which counts gradients, scratch, masks and the placement;
 * where a schedule needs more than the simulation's limit, the limit is lowered. The simulation is of the whole batch;
 * of a batch in slices the same schedule often needs less, and the budget is for that. Unlike the paper's prototype it
 * examines every tensor each time, small or large. Unlike `optimal` it keeps to no class of schedules: a kept tensor
 * may be evicted at any time; and it guarantees nothing about time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "policies/policy.h"
#include "search/budget.h"
#include "search/dtr_simulation.h"

enum { LOWERED = 12, RAISED = 8, RESOLUTION = 200 };

struct dtr_search {
    const struct network *network; /* that is planned */
    const struct plan_options *options;
    struct region *region;
    struct dtr_simulation simulation; /* without slices */
    size_t all;                       /* bytes with which nothing is evicted */
};

/* A schedule and its plan; NULL: there is none. */
struct dtr_found {
    struct schedule schedule;
    struct plan_cost cost;
    struct plan *plan;
    size_t limit; /* of its simulation */
    int evictions;
    bool kept; /* the budget */
};

/* Whether there is a schedule with a limit of at bytes. */
static bool simulate(const struct dtr_search *s, size_t at, struct dtr_found *found)
{
    struct dtr_result result;
    *found = (struct dtr_found){.schedule = schedule_empty(s->region), .limit = at};
    if (dtr_simulation_schedule(&s->simulation, at, &found->schedule, &result) != ST_OK) return false;
    found->evictions = result.evictions;
    found->cost = plan_cost(s->network, &found->schedule, &s->options->lower);
    return true;
}

/* Bisects the limits between that of a schedule and none. Feasibility need not be monotone in the limit, so the limit
 * found need not be the least. */
static void find_least(const struct dtr_search *s, const struct plan_options *options, struct dtr_found *least)
{
    size_t no = 0;
    while (least->limit - no > least->limit / RESOLUTION + 1) {
        const size_t at = no + (least->limit - no) / 2;
        struct dtr_found found;
        if (simulate(s, at, &found))
            *least = found;
        else
            no = at;
    }
    least->plan = plan_build(s->network, &least->schedule, options);
}

/* The bytes of its arena above limit; where none are, it has a plan from now on. */
static size_t place(const struct dtr_search *s, size_t limit, struct dtr_found *found)
{
    if (found->cost.live_peak > limit) return found->cost.live_peak - limit;
    struct plan *plan = plan_build(s->network, &found->schedule, s->options);
    const size_t over = plan->arena_bytes > limit ? plan->arena_bytes - limit : 0;
    if (over)
        plan_destroy(plan);
    else
        found->plan = plan;
    return over;
}

static bool same(const struct schedule *a, const struct schedule *b)
{
    if (a->steps != b->steps || !a->steps) return a->steps == b->steps;
    return !memcmp(a->step, b->step, a->steps * sizeof *a->step);
}

/* The arena may need more than the simulation's limit, for gaps between buffers: then lower limits are tried. And it
 * may need less, since an evicted storage is dead after its last read already: then higher limits are tried, too, and
 * the fastest is placed first, since placing takes the longest. */
static void find_within(const struct dtr_search *s, size_t limit, struct dtr_found *best)
{
    const size_t step = limit < s->all ? (s->all - limit) / (RAISED + 1) : 0;
    struct dtr_found found, last = {.plan = NULL}, raised[RAISED], *fastest = raised;
    int count = 0;
    for (size_t i = 0, over = 0, at = limit; i < LOWERED && over <= at && !best->plan; i++, last = found) {
        at -= over;
        if (!simulate(s, at, &found)) break;
        if (!same(&found.schedule, &last.schedule)) over = place(s, limit, &found);
        if (found.plan) *best = found;
    }
    for (size_t i = 1; step && i <= RAISED && !(best->plan && !best->plan->recomputations); i++)
        count += simulate(s, limit + step * i, &raised[count]);
    for (int left = count; left > 0; left--, fastest->cost.time = INFINITY) {
        for (int i = 0; i < count; i++)
            if (raised[i].cost.time < fastest->cost.time) fastest = &raised[i];
        if (best->plan && fastest->cost.time >= best->plan->time) break;
        place(s, limit, fastest);
        if (!fastest->plan) continue;
        plan_destroy(best->plan);
        *best = *fastest;
        break;
    }
}

/* The fastest schedule found that keeps the budget; else, and for the least budget, that of least memory. */
static enum status search_network(struct dtr_search *s, const struct budget *budget, struct dtr_found *found)
{
    struct dtr_found least = {.schedule = schedule_empty(s->region)};
    struct dtr_result result;
    struct plan_options unplaced = *s->options;
    unplaced.unplaced = true;
    const struct network *whole = s->network->slice ? network_unsliced(s->network, s->region) : s->network;
    TRY(dtr_simulation_create(whole, &s->options->lower, s->region, &s->simulation));
    TRY(dtr_simulation_schedule(&s->simulation, SIZE_MAX, &least.schedule, &result));
    least.limit = s->all = result.peak;
    const bool fewest = budget->kind == BUDGET_LEAST;
    const size_t limit = fewest ? 0 : budget_room(s->network, budget, s->options);
    if (!fewest) find_within(s, limit, found);
    if (!found->plan) {
        find_least(s, fewest ? &unplaced : s->options, &least);
        *found = least;
    }
    found->kept = fewest || budget_keep(found->plan, limit);
    return ST_OK;
}

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct budget_settings *settings = (const void *)input->settings;
    struct dtr_found found = {.plan = NULL};
    struct budget budget;
    char bytes[UNIT_TEXT];
    TRY(budget_parse(settings->budget ? settings->budget : "least", &budget));
    struct dtr_search search = {input->network, policy_plan_options(input), .region = schedule->region};
    enum status status = search_network(&search, &budget, &found);
    if (status == ST_OK && !found.kept)
        status = budget_refuse(input->network, &budget, policy_plan_options(input), found.plan, "dtr");
    if (status == ST_OK && input->notes)
        snprintf(input->notes->found, sizeof input->notes->found, "%d evictions in a simulation with at most %s",
                 found.evictions, exact_bytes_text(found.limit, bytes));
    plan_destroy(found.plan);
    if (status == ST_OK) schedule_append_all(schedule, &found.schedule);
    return status;
}

const struct policy policy_dtr = {.name = "dtr",
                                  .doc = "dynamic tensor rematerialization, simulated under a budget",
                                  .keys = policy_budget_keys,
                                  .emit = emit,
                                  .takes_slices = true,
                                  .fills = true};
