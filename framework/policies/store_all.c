/* Keeps whatever a backward reads: the baseline of every comparison. */
#include "policies/policy.h"

static enum status emit(const struct network *network, const struct policy_settings *settings, struct region *region,
                        struct word *word)
{
    (void)settings, (void)region;
    TRY(word_append(word, STEP_FORWARD, 0, network->graph->nodes));
    return word_append(word, STEP_BACKWARD, 0, network->graph->nodes);
}

static const struct field fields[] = {{.key = NULL}};

const struct policy policy_store_all = {
    .name = "store_all", .doc = "keeps whatever a backward reads", .fields = fields, .emit = emit};
