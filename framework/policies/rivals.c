#include "policies/rivals.h"

#include <string.h>

#include "base/units.h"

/* Adds the policy's schedule with these settings; *emits: it does not refuse them. */
static enum status add_candidate(struct optimum *o, const struct policy *policy, const struct policy_settings *settings,
                                 bool *emits)
{
    const struct policy_input input = {.network = o->network, .settings = settings};
    struct region *region = region_create();
    struct schedule schedule = schedule_empty(region);
    enum status status = policy_schedule(policy, &input, &schedule);
    *emits = status == ST_OK;
    if (status == ST_OK)
        status = candidate_points_add(&o->candidates, o->network, o->stages.rng, &schedule, policy->name, o->region);
    region_destroy(region);
    return status == ST_SPEC ? ST_OK : status;
}

/* Tries all values of the keys from setting on; the keys before are set. *emits: some of them give a schedule. */
static enum status vary(struct optimum *o, const struct policy *policy, const struct setting *setting,
                        struct policy_settings *settings, bool *emits)
{
    if (!setting->key) return add_candidate(o, policy, settings, emits);
    void *member = (char *)settings + setting->offset;
    bool any = true;
    *emits = false;
    for (int value = 0; any; value++) {
        if (setting->type == SETTING_INT && value <= RIVALS_NUMBER_MAX)
            *(int64_t *)member = value;
        else if (setting->type == SETTING_BOOL && value < 2)
            *(bool *)member = value;
        else if (setting->type == SETTING_CHOICE && setting->values[value])
            *(int *)member = value;
        else if (value)
            break; /* a setting of another type keeps its default */
        TRY(vary(o, policy, setting + 1, settings, &any));
        *emits |= any;
        any |= setting->type != SETTING_INT; /* a number that is too large refuses all larger ones */
    }
    return ST_OK;
}

/* Whether a group begins or ends within a stage, which `optimal` does not divide. */
static enum status divide_stages(const struct graph *graph, struct region *region, bool *divided)
{
    struct node_ranges stages, units;
    stages = stages_find(graph, region);
    TRY(units_find(graph, UNIT_AUTO, region, &units));
    *divided = false;
    for (int u = 0, s = 0; u < units.count; u++) {
        while (stages.range[s].to <= units.range[u].from) s++;
        *divided |= stages.range[s].from != units.range[u].from;
    }
    return ST_OK;
}

enum status rivals_add(struct optimum *optimum)
{
    bool divided;
    TRY(divide_stages(optimum->network->graph, optimum->region, &divided));
    for (const struct policy *const *policy = policy_table; *policy && (divided || optimum->stages.partial); policy++) {
        struct policy_settings settings = {0};
        bool emits;
        if ((*policy)->keys == policy_budget_keys) continue;
        TRY(setting_defaults((*policy)->keys, &settings, optimum->region));
        TRY(vary(optimum, *policy, (*policy)->keys, &settings, &emits));
    }
    return ST_OK;
}

enum status rivals_solve(const struct network *network, enum rng_mode rng, struct optimum **optimum)
{
    TRY(optimum_prepare(network, rng, optimum));
    enum status status = rivals_add(*optimum);
    if (status == ST_OK) {
        optimum_within(*optimum, SIZE_MAX);
    } else {
        optimum_destroy(*optimum);
        *optimum = NULL;
    }
    return status;
}

/* The fastest plan of another policy with the budget of input and nothing else set; NULL: none keeps the limit. */
static enum status find_preset(const struct policy_input *input, size_t limit, struct region *region,
                               const struct policy **by, struct plan **best)
{
    *best = NULL;
    for (const struct policy *const *policy = policy_table; *policy; policy++) {
        struct policy_settings defaults = *input->settings;
        struct plan *plan = NULL;
        if (!strcmp((*policy)->name, "optimal")) continue;
        if ((*policy)->keys != policy_budget_keys)
            TRY(setting_defaults((*policy)->keys, memset(&defaults, 0, sizeof defaults), region));
        const enum status status =
            policy_plan(*policy, &(struct policy_input){input->network, &defaults, input->options, NULL}, &plan);
        if (status != ST_OK && status != ST_SPEC) return status;
        const bool better = plan && plan->arena_bytes <= limit && (!*best || plan->time < (*best)->time);
        plan_destroy(better ? *best : plan);
        if (better) *best = plan, *by = *policy;
    }
    return ST_OK;
}

enum status rivals_refuse(const struct policy_input *input, const struct budget *budget, size_t limit)
{
    struct region *region = region_create();
    const char *refusal = region_text(region, "%s", status_message());
    const struct policy *by;
    struct plan *plan;
    char bytes[UNIT_TEXT];
    enum status status = find_preset(input, limit, region, &by, &plan);
    if (status == ST_OK && plan)
        status = fail(ST_SPEC, "%s; policy %s keeps it, with %s", refusal, by->name,
                      exact_bytes_text(budget->kind == BUDGET_PERCENT ? plan->arena_bytes : plan_peak(plan), bytes));
    else if (status == ST_OK)
        status = fail(ST_SPEC, "%s", refusal);
    plan_destroy(plan);
    region_destroy(region);
    return status;
}
