#include "policies/rivals.h"

#include <string.h>

#include "policies/slice_rivals.h"
#include "search/schedule_search.h"

/* Adds the policy's schedule, of a batch in slices with the bytes that it has there; returns whether it has one. */
static bool add_candidate(struct optimum *o, const struct policy *policy, const struct policy_input *input)
{
    struct region *region = region_create();
    struct schedule schedule = schedule_empty(region);
    const bool emits = policy_schedule(policy, input, &schedule) == ST_OK;
    if (emits)
        (input->network->slice ? candidate_points_add_as_is : candidate_points_add)(
            &o->candidates, input->network, o->stages.rng, &schedule, policy->name, o->region);
    region_destroy(region);
    return emits;
}

/* Tries all values of the keys from setting on; the keys before are set. Returns whether some give a schedule. */
static bool vary(struct optimum *o, const struct policy *policy, const struct setting *setting,
                 struct policy_settings *settings)
{
    if (!setting->key)
        return add_candidate(o, policy, &(struct policy_input){.network = o->network, .settings = settings});
    void *member = (char *)settings + setting->offset;
    bool any = true, emits = false;
    for (int value = 0; any; value++) {
        if (setting->type == SETTING_INT && value <= RIVALS_NUMBER_MAX)
            *(int64_t *)member = value;
        else if (setting->type == SETTING_BOOL && value < 2)
            *(bool *)member = value;
        else if (setting->type == SETTING_CHOICE && setting->values[value] && !strcmp(setting->values[value], "auto"))
            continue; /* it stands for one of the others */
        else if (setting->type == SETTING_CHOICE && setting->values[value])
            *(int *)member = value;
        else if (value)
            break; /* a setting of another type keeps its default */
        any = vary(o, policy, setting + 1, settings);
        emits |= any;
        any |= setting->type != SETTING_INT; /* a number that is too large refuses all larger ones */
    }
    return emits;
}

static void add_slices(struct optimum *o, enum rng_mode rng)
{
    if (!slice_rivals_are_batches(o->target)) {
        slice_rivals_add_stretches(o, rng);
        return;
    }
    struct optimum *slice = rivals_prepare(network_of_slice(o->target, o->region), rng);
    optimum_within(slice, SIZE_MAX);
    slice_rivals_add_batches(o, slice, rng);
    optimum_destroy(slice);
}

struct optimum *rivals_prepare(const struct network *network, enum rng_mode rng)
{
    struct optimum *o = optimum_prepare(network, rng);
    schedule_search_prepare(o);
    if (network->slice) add_slices(o, rng);
    if (o->stages.count == network->graph->nodes || network->graph->nodes > RIVALS_NODES_MAX) return o;
    for (const struct policy *const *policy = policy_table; *policy; policy++) {
        if ((*policy)->keys == policy_budget_keys || (*policy)->solves || (*policy)->needs_slices) continue;
        struct policy_settings settings = policy_defaults(*policy, o->region);
        vary(o, *policy, (*policy)->keys, &settings);
    }
    return o;
}

void rivals_with_budget(struct optimum *o, const struct policy_input *input)
{
    const struct policy_settings least = {{0}};
    const struct policy_input same = {input->network, input->settings, input->options},
                              smallest = {input->network, &least, input->options};
    if (o->network->graph->nodes > RIVALS_NODES_MAX) return;
    for (const struct policy *const *policy = policy_table; *policy; policy++)
        if ((*policy)->keys == policy_budget_keys && strcmp((*policy)->name, "optimal") != 0 &&
            !add_candidate(o, *policy, &same))
            add_candidate(o, *policy, &smallest);
}

struct optimum *rivals_front(const struct network *network, enum rng_mode rng)
{
    struct optimum *o = rivals_prepare(network, rng);
    const struct policy_settings least = {{0}};
    rivals_with_budget(o, &(struct policy_input){.network = network, .settings = &least});
    optimum_within(o, SIZE_MAX);
    schedule_search_front(o);
    return o;
}
