/* What an online runtime would do that gives up a tensor whenever memory is short and computes it again when it is
 * asked for: Kirisame et al., "Dynamic Tensor Rematerialization", 2021, run at plan time on the step's known ops. Eager
 * eviction as in the paper: what the step reads no more is let go at once.
 *
 * Unlike the paper's runtime it never runs over its budget, which counts gradients, scratch, masks and the placement;
 * where a schedule turns out to need more than the simulation's limit, the limit is lowered. Unlike the paper's
 * prototype it looks at every tensor each time, small or large. Unlike `optimal` it keeps to no class of schedules:
 * what is kept may be given up at any time; and it promises nothing about their time. */
#include <assert.h>
#include <stdio.h>

#include "base/units.h"
#include "policies/policy.h"
#include "search/budget.h"
#include "search/dtr_simulation.h"

enum { LOWERED = 12, RAISED = 8, RESOLUTION = 200 };

struct search {
    const struct network *network;
    const struct plan_options *options;
    struct region *region;
    struct dtr_simulation eviction;
    int heuristic;
    size_t all;  /* bytes with which nothing is given up */
    double time; /* of the forwards then */
};

/* A schedule and its plan; NULL: there is none. */
struct found {
    struct schedule schedule;
    double time; /* of the forwards */
    struct plan *plan;
    size_t limit; /* of its simulation */
    int evictions;
};

/* Halves the limits between one with which there is no schedule and one with which there is. They need not all lie on
 * one side of the least; the one found will do. */
static enum status find_least(const struct search *s, struct found *least)
{
    size_t no = 0, yes = s->all;
    struct evicted evicted;
    while (yes - no > yes / RESOLUTION + 1) {
        size_t at = no + (yes - no) / 2;
        struct schedule schedule = schedule_empty(s->region);
        enum status status = dtr_simulation_schedule(&s->eviction, s->heuristic, at, &schedule, &evicted);
        if (status != ST_OK && status != ST_SPEC) return status;
        if (status == ST_OK) {
            yes = at;
        } else {
            no = at;
        }
    }
    *least = (struct found){.schedule = schedule_empty(s->region), .limit = yes};
    TRY(dtr_simulation_schedule(&s->eviction, s->heuristic, yes, &least->schedule, &evicted));
    least->evictions = evicted.evictions;
    return plan_build(s->network, &least->schedule, s->options, &least->plan);
}

static double time_of(const struct search *s, const struct schedule *schedule)
{
    double time = 0;
    for (size_t i = 0; i < schedule->steps; i++)
        for (int n = schedule->step[i].from; schedule->step[i].kind == STEP_FORWARD && n < schedule->step[i].to; n++)
            time += s->network->cost[n].forward;
    return time;
}

/* Of the plan of a schedule, without placing it, which takes longer than all the rest. */
static enum status find_live_peak(const struct search *s, const struct schedule *schedule, size_t *peak)
{
    struct region *region = region_create();
    struct lowered l;
    size_t *live = NULL;
    if (!region) return fail(ST_FAILED, "out of memory for a schedule");
    enum status status = lower(s->network, schedule, &s->options->lower, region, &l);
    if (status == ST_OK) status = NEWLY(region, live, (size_t)l.ops + 1);
    if (status == ST_OK) *peak = buffers_live(l.buffer, l.buffers, l.ops, live);
    region_destroy(region);
    return status;
}

/* Simulates with a limit of at bytes; what is found is best where its arena keeps limit and it is faster. *over: bytes
 * above limit. */
static enum status improve(const struct search *s, size_t at, size_t limit, struct found *best, size_t *over)
{
    struct found found = {.schedule = schedule_empty(s->region), .limit = at};
    struct evicted evicted;
    size_t bytes = 0;
    *over = 0;
    enum status status = dtr_simulation_schedule(&s->eviction, s->heuristic, at, &found.schedule, &evicted);
    if (status != ST_OK) return status == ST_SPEC ? ST_OK : status;
    found.evictions = evicted.evictions;
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

/* The arena may take more than the simulation had, for gaps between buffers: then with less. And it may take less, for
 * what is evicted is dead since its last read and not since its eviction: then also with more. */
static enum status find_within(const struct search *s, size_t limit, struct found *best)
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

static enum status take(const struct found *found, struct schedule *schedule, struct policy_notes *notes)
{
    char bytes[UNIT_TEXT];
    if (notes)
        snprintf(notes->found, sizeof notes->found, "%d evictions in a simulation with at most %s", found->evictions,
                 exact_bytes_text(found->limit, bytes));
    schedule_append_all(schedule, &found->schedule);
    return ST_OK;
}

/* all: a plan that gives nothing up. */
static enum status choose(struct search *s, const struct budget *budget, const struct plan *all,
                          struct schedule *schedule, struct policy_notes *notes)
{
    struct found found = {.plan = NULL}, least = {.plan = NULL};
    size_t limit, baseline;
    TRY(budget_limit(s->network, budget, s->options, all, &limit, &baseline));
    enum status status = budget->kind == BUDGET_LEAST ? ST_OK : find_within(s, limit, &found);
    if (status == ST_OK && !found.plan) status = find_least(s, &least);
    if (status == ST_OK && found.plan) status = take(&found, schedule, notes);
    if (status == ST_OK && least.plan) {
        bool kept = budget->kind == BUDGET_LEAST || least.plan->arena_bytes <= limit;
        status = kept ? take(&least, schedule, notes) : budget_refuse(budget, least.plan, baseline, "dtr");
    }
    plan_destroy(found.plan);
    plan_destroy(least.plan);
    return status;
}

static enum status emit(const struct network *network, const struct policy_settings *settings, struct region *region,
                        struct schedule *schedule)
{
    struct search s = {.network = network,
                       .options = policy_plan_options(settings),
                       .region = region,
                       .heuristic = settings->heuristic};
    struct budget budget;
    struct found all;
    struct evicted evicted;
    TRY(budget_parse(settings->budget ? settings->budget : "least", &budget));
    TRY(dtr_simulation_create(network, &s.options->lower, region, &s.eviction));
    all = (struct found){.schedule = schedule_empty(region)};
    TRY(dtr_simulation_schedule(&s.eviction, s.heuristic, SIZE_MAX, &all.schedule, &evicted));
    s.all = evicted.peak;
    TRY(plan_build(network, &all.schedule, s.options, &all.plan));
    assert(all.plan);
    s.time = time_of(&s, &all.schedule);
    enum status status = choose(&s, &budget, all.plan, schedule, settings->notes);
    plan_destroy(all.plan);
    return status;
}

static const struct setting keys[] = {
    POLICY_SETTING_BUDGET,
    {"heuristic", SETTING_CHOICE, offsetof(struct policy_settings, heuristic), 0, 0, "dtr", heuristic_names,
     "what to give up first: least cost per byte and staleness, counting what would have to be run with it (dtr), the "
     "same by union-find (dtr_eq), or not (dtr_local); least recently used (lru); largest (size); least cost per byte "
     "with what would have to be run before it (msps)"},
    {.key = NULL}};

const struct policy policy_dtr = {
    .name = "dtr", .doc = "dynamic tensor rematerialization, simulated under a budget", .keys = keys, .emit = emit};
