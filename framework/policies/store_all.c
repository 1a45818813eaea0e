/* Keeps whatever a backward reads: the baseline of every comparison. */
#include "policies/policy.h"

static enum status emit(const struct network *network, const struct policy_settings *settings, struct region *region,
                        struct schedule *schedule)
{
    (void)settings, (void)region;
    schedule_append(schedule, STEP_FORWARD, 0, network->graph->nodes);
    schedule_append(schedule, STEP_BACKWARD, 0, network->graph->nodes);
    return ST_OK;
}

static const struct setting keys[] = {{.key = NULL}};

const struct policy policy_store_all = {
    .name = "store_all", .doc = "keeps whatever a backward reads", .keys = keys, .emit = emit};
