#include "policy_text.h"

#include <criterion/criterion.h>
#include <string.h>

static void set(const struct setting *setting, struct policy_settings *settings, char *value, struct region *region)
{
    enum { ITEMS_MAX = 64 };
    const char *item[ITEMS_MAX];
    char *rest = NULL;
    size_t items = 0;
    int bad;
    if (setting->type != SETTING_TEXTS) {
        cr_assert(setting_set(setting, settings, value, region) == ST_OK, "%s", status_message());
        return;
    }
    for (char *one = strtok_r(value, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) item[items++] = one;
    cr_assert(setting_set_list(setting, settings, items, item, region, &bad) == ST_OK, "%s", status_message());
}

struct policy_settings policy_text_settings(const struct policy *policy, const char *text, struct region *region)
{
    struct policy_settings settings = {0};
    char *copy = region_text(region, "%s", text), *rest = NULL;
    cr_assert(setting_defaults(policy->keys, &settings, region) == ST_OK, "%s", status_message());
    for (char *key = strtok_r(copy, " ", &rest); key; key = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(key, '=');
        cr_assert(value, "'%s' has no '='", key);
        *value++ = '\0';
        const struct setting *setting = setting_find(policy->keys, key);
        if (setting) set(setting, &settings, value, region);
    }
    return settings;
}

enum status policy_text_emit(const struct network *network, const char *policy, const char *settings,
                             struct schedule *schedule)
{
    const struct policy *p = policy_find(policy);
    const struct policy_settings own = policy_text_settings(p, settings, schedule->region);
    return p->emit(&(struct policy_input){.network = network, .settings = &own}, schedule);
}

struct schedule policy_text_schedule(const struct network *network, const char *policy, const char *settings,
                                     struct region *region)
{
    struct schedule schedule = schedule_empty(region);
    cr_assert(policy_text_emit(network, policy, settings, &schedule) == ST_OK, "%s: %s", policy, status_message());
    return schedule;
}

struct plan *policy_text_plan(const struct network *network, const char *policy, const char *settings,
                              const struct plan_options *options)
{
    struct region *region = region_create();
    const struct policy *p = policy_find(policy);
    const struct policy_settings own = policy_text_settings(p, settings, region);
    const struct policy_input input = {.network = network, .settings = &own, .options = options};
    struct schedule schedule = schedule_empty(region);
    cr_assert(p->emit(&input, &schedule) == ST_OK, "%s: %s", policy, status_message());
    struct plan *plan = plan_build(network, &schedule, policy_plan_options(&input));
    region_destroy(region);
    return plan;
}

struct plan *policy_text_try(const struct network *network, const char *policy, const char *settings,
                             const struct plan_options *options)
{
    struct region *region = region_create();
    const struct policy_settings own = policy_text_settings(policy_find(policy), settings, region);
    struct plan *plan = NULL;
    const enum status status =
        policy_plan(policy_find(policy), &(struct policy_input){network, &own, options, NULL}, &plan);
    cr_assert(status == ST_OK || status == ST_SPEC, "%s: %s", policy, status_message());
    region_destroy(region);
    return status == ST_OK ? plan : NULL;
}
