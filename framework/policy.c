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

enum status policy_uniform_emit(const struct network *network, int64_t segments, const struct policy_settings *settings,
                                struct region *region, struct word *word)
{
    struct ranges units;
    TRY(chain_units(network->graph, (enum unit)settings->unit, region, &units));
    if (segments < 0 || segments > units.count)
        return fail(ST_SPEC, "policy.segments: %lld segments of %d units; expected 0..%d", (long long)segments,
                    units.count, units.count);
    int count = segments ? (int)segments : 1, each = units.count / count;
    struct range *segment;
    bool *replay;
    TRY(NEW(region, segment, (size_t)count));
    TRY(NEW(region, replay, (size_t)count));
    for (int s = 0; s < count; s++) {
        int last = s + 1 < count ? (s + 1) * each - 1 : units.count - 1;
        segment[s] = (struct range){units.range[s * each].from, units.range[last].to};
        replay[s] = segments && (s + 1 < count || !settings->keep_last);
    }
    return policy_segments_emit(network, segment, replay, count, settings->keep_saved, word);
}
