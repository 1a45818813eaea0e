/* Keeps whatever a backward reads: the baseline of every comparison. */
#include "policies/policy.h"

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    *schedule = schedule_store_all(input->network->graph->nodes, schedule->region);
    return ST_OK;
}

static const struct setting keys[] = {{.key = NULL}};

const struct policy policy_store_all = {
    .name = "store_all", .doc = "keeps whatever a backward reads", .keys = keys, .emit = emit};
