/* Equal counts of units a segment, the rest to the last: the division of torch.utils.checkpoint.checkpoint_sequential
 * (PyTorch documentation), blind to bytes and time. */
#include "policies/policy.h"

static enum status emit(const struct network *network, const struct policy_settings *settings, struct region *region,
                        struct schedule *schedule)
{
    return policy_uniform_emit(network, settings->segments, settings, region, schedule);
}

static const struct setting keys[] = {{"segments", SETTING_INT, offsetof(struct policy_settings, segments), 0, 1e6,
                                       NULL, NULL, "number of segments; 0 keeps everything"},
                                      POLICY_SETTING_UNIT,
                                      POLICY_SETTING_KEEP_LAST,
                                      POLICY_SETTING_KEEP_SAVED,
                                      {.key = NULL}};

const struct policy policy_segments = {
    .name = "segments", .doc = "equal numbers of units, recomputed segment by segment", .keys = keys, .emit = emit};
