#include "policies/rivals.h"

#include <stdio.h>
#include <string.h>

#include "search/budget.h"
#include "search/engines.h"
#include "search/limits.h"
#include "search/slices.h"

static bool add_policy(struct pool *pool, const struct policy *policy, const struct policy_input *input)
{
    region_auto *region = region_create();
    struct schedule schedule = schedule_empty(region);
    const bool emits = policy_schedule(policy, input, &schedule) == ST_OK;
    if (emits) pool_add(pool, &schedule, policy->name);
    return emits;
}

/* Tries all values of the keys from setting on; the keys before are set. Returns whether some give a schedule. */
static bool vary(struct pool *pool, const struct policy *policy, const struct setting *setting,
                 struct policy_settings *settings)
{
    if (!setting->key)
        return add_policy(
            pool, policy,
            &(struct policy_input){.network = pool->whole, .settings = settings, .options = &pool->options});
    void *member = (char *)settings + setting->offset;
    const bool numbers = setting->type == SETTING_INT && pool->whole->graph->nodes <= RIVALS_NUMBER_NODES;
    bool any = true, emits = false;
    for (int value = 0; any; value++) {
        if (numbers && value <= RIVALS_NUMBER)
            *(int64_t *)member = value;
        else if (setting->type == SETTING_BOOL && value < 2)
            *(bool *)member = value;
        else if (setting->type == SETTING_CHOICE && setting->values[value] && !strcmp(setting->values[value], "auto"))
            continue; /* it stands for one of the others */
        else if (setting->type == SETTING_CHOICE && setting->values[value])
            *(int *)member = value;
        else if (value)
            break; /* a setting of another type keeps its default */
        any = vary(pool, policy, setting + 1, settings);
        emits |= any;
        any |= !numbers; /* a number that is too large refuses all larger ones */
    }
    return emits;
}

static void add_slices(struct pool *pool)
{
    if (!slices_are_batches(pool->network)) {
        slices_add_stretches(pool);
        return;
    }
    region_auto *region = region_create();
    struct pool *slice = rivals_pool(network_of_slice(pool->network, region), &pool->options, pool->without);
    if (slice->chain) {
        optimum_within(slice->chain, SIZE_MAX);
        pool_add_chain(slice);
    }
    slices_add_batches(pool, slice);
    pool_destroy(slice);
}

struct pool *rivals_pool(const struct network *network, const struct plan_options *options, const bool *without)
{
    struct pool *pool = pool_create(network, options, without);
    engines_prepare(pool);
    if (network->slice && !pool->without[ENGINE_SLICES]) add_slices(pool);
    if (pool->without[ENGINE_POLICIES]) return pool;
    if (pool->stages == network->graph->nodes && pool->chain && !network->slice) return pool;
    for (const struct policy *const *policy = policy_table; *policy; policy++) {
        if ((*policy)->fills || (*policy)->needs_slices) continue;
        struct policy_settings settings = policy_defaults(*policy, pool->region);
        vary(pool, *policy, (*policy)->keys, &settings);
    }
    return pool;
}

struct pool *rivals_front(const struct network *network, const struct plan_options *options)
{
    struct pool *pool = rivals_pool(network, options, NULL);
    engines_front(pool);
    return pool;
}

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

enum status rivals_emit(const struct policy_input *input, const char *policy, const char *budget, const bool *without,
                        struct schedule *schedule)
{
    const struct plan_options *options = policy_plan_options(input);
    struct budget given;
    struct outcome outcome = {.proven = false};
    TRY(budget_parse(budget ? budget : "least", &given));
    const bool least = given.kind == BUDGET_LEAST;
    size_t limit = least ? 0 : budget_room(input->network, &given, options);
    struct pool *pool = rivals_pool(input->network, options, without);
    if (least) {
        engines_least(pool);
        limit = pool_arena(pool, pool_least(pool));
    } else {
        outcome.proven = engines_within(pool, limit) && pool->network == pool->whole;
    }
    outcome.selection = pool_select(pool, limit);
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
        status = budget_refuse(input->network, &given, options, smallest, policy);
    }
    pool_destroy(pool);
    return status;
}
