#include "policies/policy.h"

#include <string.h>

#define POLICY(name) extern const struct policy policy_##name;
#include "policies/policies.def"
#undef POLICY

#define POLICY(name) &policy_##name,
const struct policy *const policy_table[] = {
#include "policies/policies.def"
    NULL};
#undef POLICY

const char *const policy_unit_names[] = {"auto", "group", "stage", NULL};

const struct policy *policy_find(const char *name)
{
    for (const struct policy *const *p = policy_table; *p; p++)
        if (!strcmp((*p)->name, name)) return *p;
    return NULL;
}

/* Says what the relus keep of which nothing is said yet. */
static enum status say(const struct graph *graph, enum relu_save relus, struct schedule *schedule)
{
    const struct schedule silent = *schedule;
    *schedule = schedule_empty(silent.region);
    for (size_t i = 0; i < silent.steps; i++) {
        const struct step *s = &silent.step[i];
        if (s->kind == STEP_FORWARD) schedule_append(schedule, STEP_FORWARD, s->from, s->to);
        for (int n = s->to - 1; s->kind == STEP_BACKWARD && n >= s->from; n--) {
            const bool open = s->relu == RELU_AUTO && graph->node[n].relu_save == RELU_AUTO;
            schedule_append_backward(schedule, n, n + 1, open ? relus : s->relu);
        }
    }
    return ST_OK;
}

enum status policy_emit(const struct policy *policy, const struct network *network,
                        const struct policy_settings *settings, enum relu_save relus, struct region *region,
                        struct schedule *schedule)
{
    struct network *kept;
    if (relus == RELU_AUTO) return policy->emit(network, settings, region, schedule);
    kept = network_copy(network, region);
    for (int i = 0; i < network->graph->nodes; i++)
        if (network_relu_open(network, i)) footprint_keep_sign_bits(&kept->binding[i].footprint, relus == RELU_BITS);
    TRY(policy->emit(kept, settings, region, schedule));
    return say(network->graph, relus, schedule);
}

struct question {
    const struct policy *policy;
    const struct network *network;
    struct region *region;
};

/* What a policy makes where relus keep this. */
struct answer {
    enum relu_save relus;
    struct schedule schedule;
    struct policy_notes notes;
    size_t live_peak;
    double time;
};

static enum status ask(const struct question *q, const struct policy_settings *settings, enum relu_save relus,
                       struct answer *answer)
{
    struct policy_settings told = *settings;
    struct plan_options options = *policy_plan_options(settings);
    struct plan *plan;
    *answer = (struct answer){.relus = relus, .schedule = schedule_empty(q->region)};
    told.notes = &answer->notes;
    options.unplaced = true; /* placing takes most of the time, and who needs it does it again */
    TRY(policy_emit(q->policy, q->network, &told, relus, q->region, &answer->schedule));
    TRY(plan_build(q->network, &answer->schedule, &options, &plan));
    answer->live_peak = plan->live_peak;
    answer->time = plan->time;
    plan_destroy(plan);
    return ST_OK;
}

static bool is_bounded(const struct policy *policy, const struct policy_settings *settings)
{
    return setting_find(policy->keys, "budget") && settings->budget && strcmp(settings->budget, "least") != 0;
}

static bool is_better(const struct answer *a, const struct answer *b, bool bounded)
{
    if (bounded) return a->time < b->time || (a->time <= b->time && a->live_peak < b->live_peak);
    return a->live_peak < b->live_peak || (a->live_peak == b->live_peak && a->time < b->time);
}

/* ST_SPEC: there is none. */
static enum status find_best(const struct question *q, const struct policy_settings *settings, struct answer *best)
{
    bool any = false;
    for (int relus = RELU_AUTO; relus >= RELU_OUTPUT; relus--) {
        struct answer answer;
        enum status status = ask(q, settings, (enum relu_save)relus, &answer);
        if (status == ST_SPEC) continue;
        TRY(status);
        if (!any || is_better(&answer, best, is_bounded(q->policy, settings))) *best = answer;
        any = true;
    }
    return any ? ST_OK : ST_SPEC;
}

enum status policy_schedule(const struct policy *policy, const struct network *network,
                            const struct policy_settings *settings, struct region *region, struct schedule *schedule)
{
    const struct question question = {policy, network, region};
    struct answer best;
    if (policy->chooses_relus || !network_any_relu_open(network))
        return policy->emit(network, settings, region, schedule);
    enum status status = find_best(&question, settings, &best);
    if (status == ST_SPEC && is_bounded(policy, settings)) { /* the refusal that names the smallest budget */
        struct policy_settings least = *settings;
        least.budget = "least";
        TRY(find_best(&question, &least, &best));
        return policy_emit(policy, network, settings, best.relus, region, schedule);
    }
    TRY(status);
    if (settings->notes) *settings->notes = best.notes;
    schedule_append_all(schedule, &best.schedule);
    return ST_OK;
}

enum status policy_segments_emit(const struct network *network, const struct node_range *segment, const bool *recompute,
                                 int segments, bool keep_saved, struct schedule *schedule)
{
    schedule_append(schedule, STEP_FORWARD, 0, network->graph->nodes);
    for (int s = segments - 1; s >= 0; s--) {
        if (recompute[s]) {
            stages_recompute(network, segment[s].from, segment[s].to, keep_saved, schedule);
        } else {
            schedule_append(schedule, STEP_BACKWARD, segment[s].from, segment[s].to);
        }
    }
    return ST_OK;
}

enum status policy_cuts_emit(const struct network *network, const struct node_ranges *units, const bool *cut,
                             const struct policy_settings *settings, struct region *region, struct schedule *schedule)
{
    struct node_range *segment;
    bool *recompute;
    int segments = 0;
    NEW(region, segment, (size_t)units->count);
    NEW(region, recompute, (size_t)units->count);
    for (int u = 0; u < units->count; u++) {
        if (!u || cut[u]) segment[segments++].from = units->range[u].from;
        segment[segments - 1].to = units->range[u].to;
    }
    for (int s = 0; s < segments; s++) recompute[s] = s + 1 < segments || !settings->keep_last;
    return policy_segments_emit(network, segment, recompute, segments, settings->keep_saved, schedule);
}

enum status policy_uniform_emit(const struct network *network, int64_t segments, const struct policy_settings *settings,
                                struct region *region, struct schedule *schedule)
{
    struct node_ranges units;
    bool *cut;
    TRY(units_find(network->graph, (enum unit)settings->unit, region, &units));
    if (segments < 0 || segments > units.count)
        return fail(ST_SPEC, "policy.segments: %lld segments of %d units; expected 0..%d", (long long)segments,
                    units.count, units.count);
    if (!segments) return policy_find("store_all")->emit(network, settings, region, schedule);
    NEW(region, cut, (size_t)units.count);
    for (int s = 1; s < segments; s++) cut[s * (units.count / (int)segments)] = true;
    return policy_cuts_emit(network, &units, cut, settings, region, schedule);
}

const struct plan_options *policy_plan_options(const struct policy_settings *settings)
{
    static const struct plan_options usual = {.lower = {.drop_dead = true, .rng = RNG_COUNTER}};
    return settings->plan ? settings->plan : &usual;
}
