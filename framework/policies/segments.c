/* Equal counts of units a segment, the rest to the last: the division of torch.utils.checkpoint.checkpoint_sequential
 * (PyTorch documentation), blind to bytes and time. */
#include "policies/policy.h"

struct segments_settings {
    struct segment_settings segment;
    int64_t segments;
};
POLICY_SETTINGS_FIT(struct segments_settings);

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct segments_settings *settings = (const void *)input->settings;
    struct node_ranges units;
    TRY(units_find(input->network->graph, (enum unit)settings->segment.unit, schedule->region, &units));
    return policy_uniform_emit(input->network, &units, settings->segments, &settings->segment, schedule);
}

static const struct setting keys[] = {{"segments", SETTING_INT, offsetof(struct segments_settings, segments), 0, 1e6,
                                       NULL, NULL, "number of segments; 0 keeps everything"},
                                      POLICY_SETTING_UNIT,
                                      POLICY_SETTING_KEEP_LAST,
                                      POLICY_SETTING_KEEP_SAVED,
                                      {.key = NULL}};

const struct policy policy_segments = {
    .name = "segments", .doc = "equal numbers of units, recomputed segment by segment", .keys = keys, .emit = emit};
