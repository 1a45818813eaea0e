/* Equal counts of units a segment, the rest to the last: the division of torch.utils.checkpoint.checkpoint_sequential
 * (PyTorch documentation), blind to bytes and time. */
#include "policies/policy.h"

static enum status emit(const struct network *network, const struct policy_settings *settings, struct region *region,
                        struct word *word)
{
    return policy_uniform_emit(network, settings->segments, settings, region, word);
}

static const struct field fields[] = {{"segments", FIELD_INT, offsetof(struct policy_settings, segments), 0, 1e6, NULL,
                                       NULL, "number of segments; 0 keeps everything"},
                                      POLICY_FIELD_UNIT,
                                      POLICY_FIELD_KEEP_LAST,
                                      POLICY_FIELD_KEEP_SAVED,
                                      {.key = NULL}};

const struct policy policy_segments = {
    .name = "segments", .doc = "equal numbers of units, replayed segment by segment", .fields = fields, .emit = emit};
