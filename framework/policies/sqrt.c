/* About sqrt(n) segments of sqrt(n) units: O(sqrt n) memory for one more forward (Chen et al., "Training Deep Nets with
 * Sublinear Memory Cost", 2016, section 4.1). */
#include <math.h>

#include "policy.h"

static enum status emit(const struct network *network, const struct policy_settings *settings, struct region *region,
                        struct word *word)
{
    struct ranges units;
    TRY(chain_units(network->graph, (enum unit)settings->unit, region, &units));
    return policy_uniform_emit(network, lround(sqrt(units.count)), settings, region, word);
}

static const struct field fields[] = {
    POLICY_FIELD_UNIT, POLICY_FIELD_KEEP_LAST, POLICY_FIELD_KEEP_SAVED, {.key = NULL}};

const struct policy policy_sqrt = {.name = "sqrt", .fields = fields, .emit = emit};
