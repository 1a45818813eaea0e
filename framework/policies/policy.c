#include "policies/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "search/budget.h"

#define POLICY(name) extern const struct policy policy_##name;
#include "policies/policies.def"
#undef POLICY

#define POLICY(name) &policy_##name,
const struct policy *const policy_table[] = {
#include "policies/policies.def"
    NULL};
#undef POLICY

const char *const policy_unit_names[] = {"auto", "group", "stage", NULL};

enum status policy_budget_check(const char *text)
{
    char suggestion[TEXT_SUGGESTION], message[256];
    double share;
    struct budget budget;
    const enum status status = budget_parse(text, &budget);
    if (status != ST_SPEC) return status;
    text_size_suggestion(text, suggestion);
    if (!text_to_real(text, &share) && share > 0 && share < 1)
        snprintf(suggestion, sizeof suggestion, " (did you mean '%.10g%%'?)", 100 * share);
    snprintf(message, sizeof message, "%s", status_message());
    const int before = (int)strcspn(message, ";"); /* which what is expected follows */
    return fail(ST_SPEC, "%.*s%s%s", before, message, suggestion, message + before);
}

const struct setting policy_budget_keys[] = {POLICY_SETTING_BUDGET(struct budget_settings, "least"), {.key = NULL}};

const struct policy *policy_find(const char *name)
{
    for (const struct policy *const *p = policy_table; *p; p++)
        if (!strcmp((*p)->name, name)) return *p;
    return NULL;
}

struct policy_settings policy_defaults(const struct policy *policy, struct region *region)
{
    struct policy_settings settings = {0};
    const enum status status = setting_defaults(policy->keys, &settings, region);
    assert(status == ST_OK);
    return settings;
}

const char *policy_budget(const struct policy *policy, const struct policy_settings *settings)
{
    const struct setting *setting = setting_find(policy->keys, "budget");
    return setting ? *(const char *const *)(settings->bytes + setting->offset) : NULL;
}

const struct plan_options *policy_plan_options(const struct policy_input *input)
{
    static const struct plan_options usual = {.lower = {.drop_dead = true, .rng = RNG_COUNTER}};
    return input->options ? input->options : &usual;
}

enum status policy_schedule(const struct policy *policy, const struct policy_input *input, struct schedule *schedule)
{
    struct policy_input own = *input;
    if (!policy->takes_slices && input->network->slice)
        own.network = network_unsliced(input->network, schedule->region);
    TRY(policy->emit(&own, schedule));
    const struct slicing slicing = graph_slicing(input->network->graph);
    return schedule_check(schedule, &slicing, false);
}

enum status policy_plan(const struct policy *policy, const struct policy_input *input, struct plan **plan)
{
    region_auto *region = region_create();
    struct schedule schedule = schedule_empty(region);
    enum status status = policy_schedule(policy, input, &schedule);
    if (status == ST_OK) *plan = plan_build(input->network, &schedule, policy_plan_options(input));
    /* a budget is kept by the arena that the search for placements finds */
    if (status == ST_OK && policy->fills && !policy_plan_options(input)->unplaced) plan_search_placement(*plan);
    return status;
}

enum status policy_group(const struct graph *graph, const char *name, int *group)
{
    *group = graph_find_group(graph, name);
    if (*group >= 0) return ST_OK;
    return fail(ST_SPEC, "policy.groups: the model has no group '%s'%s%s", name,
                graph->groups ? "; its first is " : ", nor any other", graph->groups ? graph->group[0].name : "");
}

const char *const policy_keep_names[] = {"auto", "true", "false", NULL};

bool policy_keeps_saved(const struct network *network, enum keep keep)
{
    return keep == KEEP_AUTO ? network->backend != NULL : keep == KEEP_TRUE;
}

void policy_segments_emit(const struct network *network, const struct node_range *segment, const bool *recompute,
                          int segments, enum keep keep_saved, struct schedule *schedule)
{
    schedule_append(schedule, STEP_FORWARD, 0, network->graph->nodes);
    for (int s = segments - 1; s >= 0; s--) {
        if (recompute[s]) {
            stages_recompute(network, segment[s].from, segment[s].to, policy_keeps_saved(network, keep_saved),
                             schedule);
        } else {
            schedule_append(schedule, STEP_BACKWARD, segment[s].from, segment[s].to);
        }
    }
}

void policy_cuts_emit(const struct network *network, const struct node_ranges *units, const bool *cut,
                      const struct segment_settings *settings, struct schedule *schedule)
{
    struct node_range *segment;
    bool *recompute;
    int segments = 0;
    NEW(schedule->region, segment, (size_t)units->count);
    NEW(schedule->region, recompute, (size_t)units->count);
    for (int u = 0; u < units->count; u++) {
        if (!u || cut[u]) segment[segments++].from = units->range[u].from;
        segment[segments - 1].to = units->range[u].to;
    }
    for (int s = 0; s < segments; s++) recompute[s] = s + 1 < segments || !settings->keep_last;
    policy_segments_emit(network, segment, recompute, segments, settings->keep_saved, schedule);
}

enum status policy_uniform_emit(const struct network *network, const struct node_ranges *units, int64_t segments,
                                const struct segment_settings *settings, struct schedule *schedule)
{
    bool *cut;
    if (segments > units->count)
        return fail(ST_SPEC, "policy.segments: %lld segments of %d units; expected 0..%d", (long long)segments,
                    units->count, units->count);
    if (!segments) return policy_find("store_all")->emit(&(struct policy_input){.network = network}, schedule);
    NEW(schedule->region, cut, (size_t)units->count);
    for (int s = 1; s < segments; s++) cut[s * (units->count / (int)segments)] = true;
    policy_cuts_emit(network, units, cut, settings, schedule);
    return ST_OK;
}
