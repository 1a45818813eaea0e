#include "policies/rivals.h"

#include <string.h>

#include "policies/slice_rivals.h"
#include "search/engines.h"
#include "search/limits.h"

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
    if (!slice_rivals_are_batches(pool->network)) {
        slice_rivals_add_stretches(pool);
        return;
    }
    region_auto *region = region_create();
    struct pool *slice = rivals_pool(network_of_slice(pool->network, region), &pool->options, pool->without);
    if (slice->chain) {
        optimum_within(slice->chain, SIZE_MAX);
        pool_add_chain(slice);
    }
    slice_rivals_add_batches(pool, slice);
    pool_destroy(slice);
}

struct pool *rivals_pool(const struct network *network, const struct plan_options *options, const bool *without)
{
    struct pool *pool = pool_create(network, options);
    for (int e = 0; without && e < ENGINES; e++) pool->without[e] |= without[e];
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

void rivals_with_budget(struct pool *pool, const struct policy_input *input)
{
    const struct policy_settings least = {{0}};
    const struct policy_input same = {input->network, input->settings, input->options},
                              smallest = {input->network, &least, input->options};
    if (pool->without[ENGINE_POLICIES]) return;
    for (const struct policy *const *policy = policy_table; *policy; policy++)
        if ((*policy)->fills && strcmp((*policy)->name, "optimal") != 0 && !add_policy(pool, *policy, &same))
            add_policy(pool, *policy, &smallest);
}

struct pool *rivals_front(const struct network *network, const struct plan_options *options)
{
    struct pool *pool = rivals_pool(network, options, NULL);
    const struct policy_settings least = {{0}};
    rivals_with_budget(pool, &(struct policy_input){network, &least, options});
    engines_front(pool);
    return pool;
}
