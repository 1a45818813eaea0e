#include "policy.h"

#include <string.h>

#define POLICY(name) extern const struct policy policy_##name;
#include "policies.def"
#undef POLICY

#define POLICY(name) &policy_##name,
const struct policy *const policy_table[] = {
#include "policies.def"
    NULL};
#undef POLICY

const char *const policy_unit_names[] = {"auto", "group", "stage", NULL};

const struct policy *policy_find(const char *name)
{
    for (const struct policy *const *p = policy_table; *p; p++)
        if (!strcmp((*p)->name, name)) return *p;
    return NULL;
}

enum status policy_segments_emit(const struct network *network, const struct range *segment, const bool *replay,
                                 int segments, bool keep_saved, struct word *word)
{
    TRY(word_append(word, STEP_FORWARD, 0, network->graph->nodes));
    for (int s = segments - 1; s >= 0; s--) {
        if (replay[s]) {
            TRY(chain_replay(network, segment[s].from, segment[s].to, keep_saved, word));
        } else {
            TRY(word_append(word, STEP_BACKWARD, segment[s].from, segment[s].to));
        }
    }
    return ST_OK;
}

enum status policy_cuts_emit(const struct network *network, const struct ranges *units, const bool *cut,
                             const struct policy_settings *settings, struct region *region, struct word *word)
{
    struct range *segment;
    bool *replay;
    int segments = 0;
    TRY(NEW(region, segment, (size_t)units->count));
    TRY(NEW(region, replay, (size_t)units->count));
    for (int u = 0; u < units->count; u++) {
        if (!u || cut[u]) segment[segments++].from = units->range[u].from;
        segment[segments - 1].to = units->range[u].to;
    }
    for (int s = 0; s < segments; s++) replay[s] = s + 1 < segments || !settings->keep_last;
    return policy_segments_emit(network, segment, replay, segments, settings->keep_saved, word);
}

enum status policy_uniform_emit(const struct network *network, int64_t segments, const struct policy_settings *settings,
                                struct region *region, struct word *word)
{
    struct ranges units;
    bool *cut;
    TRY(chain_units(network->graph, (enum unit)settings->unit, region, &units));
    if (segments < 0 || segments > units.count)
        return fail(ST_SPEC, "policy.segments: %lld segments of %d units; expected 0..%d", (long long)segments,
                    units.count, units.count);
    if (!segments) return policy_find("store_all")->emit(network, settings, region, word);
    TRY(NEW(region, cut, (size_t)units.count));
    for (int s = 1; s < segments; s++) cut[s * (units.count / (int)segments)] = true;
    return policy_cuts_emit(network, &units, cut, settings, region, word);
}

const struct plan_options *policy_plan_options(const struct policy_settings *settings)
{
    static const struct plan_options usual = {.lower = {.drop_dead = true, .rng = RNG_COUNTER}};
    return settings->plan ? settings->plan : &usual;
}
