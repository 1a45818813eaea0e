/* About sqrt(n) segments of sqrt(n) units, each recomputed whole, once: O(sqrt n) memory for one more forward where
 * units are equal (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.1). */
#include <math.h>

#include "policies/policy.h"

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct segment_settings *settings = (const void *)input->settings;
    struct node_ranges units;
    TRY(units_find(input->network->graph, (enum unit)settings->unit, schedule->region, &units));
    return policy_uniform_emit(input->network, &units, lround(sqrt(units.count)), settings, schedule);
}

static const struct setting keys[] = {
    POLICY_SETTING_UNIT, POLICY_SETTING_KEEP_LAST, POLICY_SETTING_KEEP_SAVED, {.key = NULL}};

const struct policy policy_sqrt = {
    .name = "sqrt", .doc = "about as many segments as each has units", .keys = keys, .emit = emit};
