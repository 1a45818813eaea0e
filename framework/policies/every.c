/* Replays every unit, keeping only what crosses from one to the next: what libraries of transformers call gradient
 * checkpointing (Hugging Face, gradient_checkpointing_enable). It assumes that what is inside a unit takes more than
 * what crosses, and looks at neither. One extra forward in time. */
#include "policies/policy.h"

static enum status emit(const struct network *network, const struct policy_settings *settings, struct region *region,
                        struct word *word)
{
    struct ranges units;
    bool *replay;
    TRY(chain_units(network->graph, (enum unit)settings->unit, region, &units));
    TRY(NEW(region, replay, (size_t)units.count));
    for (int u = 0; u < units.count; u++) replay[u] = true;
    return policy_segments_emit(network, units.range, replay, units.count, settings->keep_saved, word);
}

static const struct field fields[] = {POLICY_FIELD_UNIT, POLICY_FIELD_KEEP_SAVED, {.key = NULL}};

const struct policy policy_every = {
    .name = "every", .doc = "each unit is replayed alone", .fields = fields, .emit = emit};
