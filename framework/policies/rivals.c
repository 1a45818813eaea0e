#include "policies/rivals.h"

#include <string.h>

#include "base/units.h"

/* What the policy makes with these settings where relus keep this; false: it refuses. */
static enum status offer_one(struct optimum *o, const struct policy *policy, const struct policy_settings *settings,
                             enum relu_save relus, bool *emits)
{
    struct region *region = region_create();
    if (!region) return fail(ST_FAILED, "out of memory for a schedule");
    struct schedule schedule = schedule_empty(region);
    enum status status = policy_emit(policy, o->network, settings, relus, region, &schedule);
    *emits = status == ST_OK;
    if (status == ST_OK)
        status = candidate_points_add(&o->offers, o->network, o->stages.rng, &schedule, policy->name, o->region);
    region_destroy(region);
    return status == ST_SPEC ? ST_OK : status;
}

static enum status offer(struct optimum *o, const struct policy *policy, const struct policy_settings *settings,
                         bool *emits)
{
    const int last = network_any_relu_open(o->network) ? RELU_OUTPUT : RELU_AUTO;
    *emits = true;
    for (int relus = RELU_AUTO; *emits && relus >= last; relus--)
        TRY(offer_one(o, policy, settings, (enum relu_save)relus, emits));
    return ST_OK;
}

/* All values of the keys from setting on, the others being set. *emits: some of them make a schedule. */
static enum status vary(struct optimum *o, const struct policy *policy, const struct setting *setting,
                        struct policy_settings *settings, bool *emits)
{
    if (!setting->key) return offer(o, policy, settings, emits);
    void *member = (char *)settings + setting->offset;
    bool any = true;
    *emits = false;
    for (int value = 0; any; value++) {
        if (setting->type == SETTING_INT && value <= OTHERS_MOST)
            *(int64_t *)member = value;
        else if (setting->type == SETTING_BOOL && value < 2)
            *(bool *)member = value;
        else if (setting->type == SETTING_CHOICE && setting->values[value])
            *(int *)member = value;
        else if (value)
            break; /* a setting of another type keeps its preset */
        TRY(vary(o, policy, setting + 1, settings, &any));
        *emits |= any;
        any |= setting->type != SETTING_INT; /* a number that is too large refuses all larger ones */
    }
    return ST_OK;
}

/* Whether a group begins or ends within a stage, which `optimal` divides no further. */
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

enum status rivals_offer(struct optimum *optimum)
{
    bool divided;
    TRY(divide_stages(optimum->network->graph, optimum->region, &divided));
    for (const struct policy *const *policy = policy_table; *policy && (divided || optimum->stages.partial); policy++) {
        struct policy_settings settings = {0};
        bool emits;
        if (setting_find((*policy)->keys, "budget")) continue;
        TRY(setting_defaults((*policy)->keys, &settings, optimum->region));
        TRY(vary(optimum, *policy, (*policy)->keys, &settings, &emits));
    }
    return ST_OK;
}

enum status rivals_solve(const struct network *network, enum rng_mode rng, struct optimum **optimum)
{
    TRY(optimum_prepare(network, rng, optimum));
    enum status status = rivals_offer(*optimum);
    if (status == ST_OK) status = optimum_within(*optimum, SIZE_MAX);
    if (status == ST_OK) return ST_OK;
    optimum_destroy(*optimum);
    *optimum = NULL;
    return status;
}

/* The plan of a policy with its presets and the budget of settings; NULL: it refuses. */
static enum status plan_preset(const struct network *network, const struct policy *policy,
                               const struct policy_settings *settings, struct plan **plan)
{
    struct region *region = region_create();
    if (!region) return fail(ST_FAILED, "out of memory for a plan");
    struct schedule schedule = schedule_empty(region);
    struct policy_settings preset = {0};
    *plan = NULL;
    enum status status = setting_defaults(policy->keys, &preset, region);
    preset.budget = settings->budget;
    preset.plan = settings->plan;
    if (status == ST_OK) status = policy_schedule(policy, network, &preset, region, &schedule);
    if (status == ST_OK) status = plan_build(network, &schedule, policy_plan_options(settings), plan);
    region_destroy(region);
    return status == ST_SPEC ? ST_OK : status;
}

static enum status find_preset(const struct network *network, size_t limit, const struct policy_settings *settings,
                               const struct policy **by, struct plan **best)
{
    *best = NULL;
    for (const struct policy *const *policy = policy_table; *policy; policy++) {
        struct plan *plan = NULL;
        if (!strcmp((*policy)->name, "optimal")) continue;
        enum status status = plan_preset(network, *policy, settings, &plan);
        const bool better = plan && plan->arena_bytes <= limit && (!*best || plan->time < (*best)->time);
        plan_destroy(better ? *best : plan);
        if (better) *best = plan, *by = *policy;
        if (status != ST_OK) {
            plan_destroy(*best);
            return status;
        }
    }
    return ST_OK;
}

enum status rivals_refuse(const struct network *network, const struct budget *budget, size_t limit,
                          const struct policy_settings *settings)
{
    struct region *region = region_create();
    const char *refusal = region ? region_text(region, "%s", status_message()) : NULL;
    const struct policy *by = NULL;
    struct plan *plan = NULL;
    char bytes[UNIT_TEXT];
    enum status status = refusal ? find_preset(network, limit, settings, &by, &plan) : ST_FAILED;
    if (status == ST_OK && plan)
        fail(ST_SPEC, "%s; policy %s keeps it, with %s", refusal, by->name,
             exact_bytes_text(budget->kind == BUDGET_PERCENT ? plan->arena_bytes : plan_peak(plan), bytes));
    if (status == ST_OK && !plan) fail(ST_SPEC, "%s", refusal);
    if (status == ST_OK) plan_destroy(plan);
    region_destroy(region);
    return status == ST_OK ? ST_SPEC : status;
}
