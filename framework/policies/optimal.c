/* The fastest schedule that was found and can be placed within a budget. The schedules come from the programme on
 * stages, which is optimal in its class (search/optimum.h), from searches outside that class (search/engines.h), and
 * from the other policies. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "policies/rivals.h"
#include "search/budget.h"
#include "search/engines.h"
#include "search/limits.h"

struct optimal_settings {
    struct budget_settings budget;
    struct setting_list without;
};
POLICY_SETTINGS_FIT(struct optimal_settings);

/* engine_names, as texts list them. */
#define ENGINES_TEXT "chain, dtr, drops, states, windows, policies, slices"

struct outcome {
    struct selection selection;
    bool proven; /* it is the fastest of all schedules whose live peak keeps the budget */
};

static void note_found(const struct pool *pool, const struct outcome *outcome, struct policy_notes *notes)
{
    const char *approximation = pool_approximation(pool);
    const struct member *member = outcome->selection.member;
    *notes = (struct policy_notes){
        .live_peak = member->point.peak, .tries = outcome->selection.tries, .lost = outcome->selection.lost};
    if (member->found_by)
        snprintf(notes->found, sizeof notes->found, "the schedule of %s%s", member->found_by,
                 outcome->proven ? "; proven the fastest of any class" : "");
    else if (outcome->proven)
        snprintf(notes->found, sizeof notes->found, "proven the fastest of any class");
    else if (approximation)
        snprintf(notes->found, sizeof notes->found, "%s", approximation);
}

/* The fastest that can be placed; where that is not the fastest of all, after searches for lower ones. */
static struct selection select_placed(struct pool *pool, size_t limit)
{
    struct selection selection = pool_select(pool, limit);
    for (int i = 0; i < POOL_BELOW && selection.fastest && (!selection.member || selection.lost > 0); i++) {
        const double time = selection.member ? selection.member->point.time : INFINITY;
        if (!selection.missed || !engines_below(pool, selection.missed - 1, time)) break;
        selection = pool_select(pool, limit);
    }
    return selection;
}

static enum status read_engines(const struct setting_list *names, bool *without)
{
    for (size_t i = 0; i < names->count; i++) {
        int at = 0;
        while (engine_names[at] && strcmp(engine_names[at], names->texts[i]) != 0) at++;
        if (!engine_names[at])
            return fail(ST_SPEC, "policy.without: '%s' is not known; expected some of " ENGINES_TEXT, names->texts[i]);
        without[at] = true;
    }
    return ST_OK;
}

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct optimal_settings *settings = (const void *)input->settings;
    bool without[ENGINES] = {false};
    const struct plan_options *options = policy_plan_options(input);
    struct budget budget;
    struct outcome outcome = {.proven = false};
    TRY(read_engines(&settings->without, without));
    TRY(budget_parse(settings->budget.budget ? settings->budget.budget : "least", &budget));
    const bool least = budget.kind == BUDGET_LEAST;
    size_t limit = least ? 0 : budget_room(input->network, &budget, options);
    struct pool *pool = rivals_pool(input->network, options, without);
    rivals_with_budget(pool, input);
    if (least) {
        engines_least(pool);
        limit = pool_arena(pool, pool_least(pool));
    } else {
        outcome.proven = engines_within(pool, limit) && pool->network == pool->whole;
    }
    outcome.selection = select_placed(pool, limit);
    enum status status = ST_OK;
    if (!outcome.selection.member) {
        engines_least(pool);
        pool_least(pool); /* its arena is known then, so that it is not passed over */
        outcome.selection = pool_select(pool, limit);
    }
    if (outcome.selection.member) {
        outcome.proven &= !(outcome.selection.lost > 0);
        pool_schedule(pool, outcome.selection.member, schedule);
        if (input->notes) note_found(pool, &outcome, input->notes);
    } else {
        plan_auto *smallest = pool_plan(pool, pool_least(pool));
        status = budget_refuse(input->network, &budget, options, smallest, "optimal");
    }
    pool_destroy(pool);
    return status;
}

static const struct setting keys[] = {POLICY_SETTING_BUDGET(struct optimal_settings, "least"),
                                      {"without", SETTING_TEXTS, offsetof(struct optimal_settings, without), 0, ENGINES,
                                       "", NULL, "searches that are left out, to see what each wins: " ENGINES_TEXT},
                                      {.key = NULL}};

const struct policy policy_optimal = {
    .name = "optimal",
    .doc = "the fastest schedule found within a budget: of all persistent ones, and of searches beyond",
    .keys = keys,
    .emit = emit,
    .takes_slices = true,
    .fills = true};
