/* What an online runtime would do that evicts a tensor whenever memory is short and recomputes it on demand: Kirisame
 * et al., "Dynamic Tensor Rematerialization", 2021, run at plan time on the step's known ops. Eager eviction as in the
 * paper: what the step reads no more is freed at once.
 *
 * Unlike the paper's runtime it never exceeds its budget, which counts gradients, scratch, masks and the placement;
 * where a schedule needs more than the simulation's limit, the limit is lowered. Unlike the paper's prototype it
 * examines every tensor each time, small or large. Unlike `optimal` it keeps to no class of schedules: a kept tensor
 * may be evicted at any time; and it guarantees nothing about time. */
#include <stdio.h>

#include "base/units.h"
#include "policies/policy.h"
#include "search/budget.h"
#include "search/dtr_simulation.h"

enum { LOWERED = 12, RAISED = 8, RESOLUTION = 200 };

struct dtr_search {
    const struct network *network;
    const struct plan_options *options;
    struct region *region;
    struct dtr_simulation simulation;
    size_t all;  /* bytes with which nothing is evicted */
    double time; /* of the forwards then */
};

/* A schedule and its plan; NULL: there is none. */
struct dtr_found {
    struct schedule schedule;
    double time; /* of the forwards */
    struct plan *plan;
    size_t limit; /* of its simulation */
    int evictions;
    bool kept; /* the budget */
};

/* Bisects the limits between one with a schedule and one without. Feasibility need not be monotone in the limit, so the
 * limit found need not be the least. */
static enum status find_least(const struct dtr_search *s, struct dtr_found *least)
{
    size_t no = 0, yes = s->all;
    struct dtr_result result;
    while (yes - no > yes / RESOLUTION + 1) {
        size_t at = no + (yes - no) / 2;
        struct schedule schedule = schedule_empty(s->region);
        enum status status = dtr_simulation_schedule(&s->simulation, at, &schedule, &result);
        if (status != ST_OK && status != ST_SPEC) return status;
        if (status == ST_OK) {
            yes = at;
        } else {
            no = at;
        }
    }
    *least = (struct dtr_found){.schedule = schedule_empty(s->region), .limit = yes};
    TRY(dtr_simulation_schedule(&s->simulation, yes, &least->schedule, &result));
    least->evictions = result.evictions;
    return plan_build(s->network, &least->schedule, s->options, &least->plan);
}

static double time_of(const struct dtr_search *s, const struct schedule *schedule)
{
    double time = 0;
    for (size_t i = 0; i < schedule->steps; i++)
        for (int n = schedule->step[i].from; schedule->step[i].kind == STEP_FORWARD && n < schedule->step[i].to; n++)
            time += s->network->cost[n].forward;
    return time;
}

/* Live peak of the plan of a schedule, without placing it, which takes longer than all the rest. */
static enum status find_live_peak(const struct dtr_search *s, const struct schedule *schedule, size_t *peak)
{
    struct region *region = region_create();
    struct lowered l;
    size_t *live;
    enum status status = lower(s->network, schedule, &s->options->lower, region, &l);
    if (status == ST_OK) *peak = buffers_live(l.buffer, l.buffers, l.ops, NEW(region, live, (size_t)l.ops + 1));
    region_destroy(region);
    return status;
}

/* Simulates with a limit of at bytes; the schedule found becomes best where its arena keeps limit and it is faster.
 * *over: bytes above limit. */
static enum status improve(const struct dtr_search *s, size_t at, size_t limit, struct dtr_found *best, size_t *over)
{
    struct dtr_found found = {.schedule = schedule_empty(s->region), .limit = at};
    struct dtr_result result;
    size_t bytes = 0;
    *over = 0;
    enum status status = dtr_simulation_schedule(&s->simulation, at, &found.schedule, &result);
    if (status != ST_OK) return status == ST_SPEC ? ST_OK : status;
    found.evictions = result.evictions;
    found.time = time_of(s, &found.schedule);
    if (best->plan && found.time >= best->time) return ST_OK;
    TRY(find_live_peak(s, &found.schedule, &bytes));
    if (bytes <= limit) {
        TRY(plan_build(s->network, &found.schedule, s->options, &found.plan));
        bytes = found.plan->arena_bytes;
    }
    if (bytes > limit) *over = bytes - limit;
    plan_destroy(*over ? found.plan : best->plan);
    if (!*over) *best = found;
    return ST_OK;
}

/* The arena may need more than the simulation's limit, for gaps between buffers: then lower limits are tried. And it
 * may need less, since an evicted storage is dead after its last read already: then higher limits are tried, too. */
static enum status find_within(const struct dtr_search *s, size_t limit, struct dtr_found *best)
{
    size_t over = 0, at = limit, step = limit < s->all ? (s->all - limit) / (RAISED + 1) : 0;
    for (int i = 0; i < LOWERED && over <= at; i++) {
        at -= over;
        TRY(improve(s, at, limit, best, &over));
        if (!over) break;
    }
    for (int i = 1; step && i <= RAISED && !(best->plan && best->time <= s->time); i++)
        TRY(improve(s, limit + step * (size_t)i, limit, best, &over));
    return ST_OK;
}

/* The fastest schedule found that keeps the budget; else, and for the least budget, that of least memory. *limit of the
 * arena, *baseline: as budget_limit() has them. */
static enum status search_network(struct dtr_search *s, const struct budget *budget, struct dtr_found *found,
                                  size_t *baseline)
{
    struct schedule schedule = schedule_empty(s->region);
    struct dtr_result result;
    struct plan *all;
    size_t limit;
    TRY(dtr_simulation_create(s->network, &s->options->lower, s->region, &s->simulation));
    TRY(dtr_simulation_schedule(&s->simulation, SIZE_MAX, &schedule, &result));
    s->all = result.peak;
    s->time = time_of(s, &schedule);
    TRY(plan_build(s->network, &schedule, s->options, &all));
    enum status status = budget_limit(s->network, budget, s->options, all, &limit, baseline);
    plan_destroy(all);
    if (status == ST_OK && budget->kind != BUDGET_LEAST) status = find_within(s, limit, found);
    if (status == ST_OK && !found->plan) status = find_least(s, found);
    found->kept = found->plan && (budget->kind == BUDGET_LEAST || found->plan->arena_bytes <= limit);
    return status;
}

/* Open relus keep sign bits; where that does not keep the budget, and for the least budget, what the network has them
 * keep if that takes less memory. */
static enum status search_relus(const struct policy_input *input, const struct budget *budget, struct region *region,
                                struct dtr_found *best, size_t *baseline)
{
    const bool open = network_any_relu_open(input->network);
    for (int bits = 1; bits >= (open ? 0 : 1); bits--) {
        struct dtr_search s = {input->network, policy_plan_options(input), .region = region};
        struct dtr_found found = {.plan = NULL};
        if (best->kept && budget->kind != BUDGET_LEAST) break;
        if (open && bits) s.network = policy_keep_sign_bits(input->network, region);
        enum status status = search_network(&s, budget, &found, baseline);
        if (status == ST_OK && open && bits) policy_state_sign_bits(input->network, &found.schedule);
        const bool better =
            found.plan && (!best->plan || found.kept > best->kept || found.plan->live_peak < best->plan->live_peak);
        plan_destroy(better ? best->plan : found.plan);
        if (better) *best = found;
        TRY(status);
    }
    return ST_OK;
}

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct budget_settings *settings = (const void *)input->settings;
    struct dtr_found found = {.plan = NULL};
    struct budget budget;
    size_t baseline;
    char bytes[UNIT_TEXT];
    TRY(budget_parse(settings->budget ? settings->budget : "least", &budget));
    enum status status = search_relus(input, &budget, schedule->region, &found, &baseline);
    if (status == ST_OK && !found.kept) status = budget_refuse(&budget, found.plan, baseline, "dtr");
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
                                  .chooses_relus = true};
