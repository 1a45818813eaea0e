/* Recomputes every unit and keeps only what crosses from one to the next: what libraries of transformers call gradient
 * checkpointing (Hugging Face, gradient_checkpointing_enable). It is good where the inside of a unit takes more
 * than what crosses, which it does not check. One extra forward in time. */
#include "policies/policy.h"

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct segment_settings *settings = (const void *)input->settings;
    struct node_ranges units;
    TRY(units_find(input->network->graph, (enum unit)settings->unit, schedule->region, &units));
    return policy_uniform_emit(input->network, &units, units.count, settings, schedule);
}

static const struct setting keys[] = {POLICY_SETTING_UNIT, POLICY_SETTING_KEEP_SAVED, {.key = NULL}};

const struct policy policy_every = {
    .name = "every", .doc = "each unit is recomputed alone", .keys = keys, .emit = emit};
