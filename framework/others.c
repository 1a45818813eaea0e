#include "others.h"

#include <string.h>

#include "units.h"

/* The plan of a policy with its presets and the budget of settings; NULL: it refuses. */
static enum status plan_preset(const struct network *network, const struct policy *policy,
                               const struct policy_settings *settings, struct plan **plan)
{
    struct region *region = region_create();
    if (!region) return fail(ST_FAILED, "out of memory for a plan");
    struct word word = word_empty(region);
    struct policy_settings preset = {0};
    *plan = NULL;
    enum status status = field_defaults(policy->fields, &preset, region);
    preset.budget = settings->budget;
    preset.plan = settings->plan;
    if (status == ST_OK) status = policy->emit(network, &preset, region, &word);
    if (status == ST_OK) status = plan_build(network, &word, policy_plan_options(settings), plan);
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

enum status others_refuse(const struct network *network, const struct budget *budget, size_t limit,
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
