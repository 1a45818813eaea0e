/* Multi-level recomputation of a chain with a fixed number of checkpoints: the binomial schedule of Griewank and
 * Walther, "Algorithm 799: revolve", ACM TOMS 26(1), 2000, which needs the fewest advances there are where all units
 * cost the same and all checkpoints have the same size. It ignores the bytes and times of units.
 *
 * slots counts as the paper does: the first state, here the batch, takes one of them. An advance is one unit's forward
 * that is not the one its backward follows at once. */
#include "policies/policy.h"

struct revolve_settings {
    struct segment_settings segment;
    int64_t slots; /* 0: by the length */
};
POLICY_SETTINGS_FIT(struct revolve_settings);

struct reversal {
    const struct network *network;
    const struct node_range *unit;
    bool keep_saved;
    int forwarded; /* units below had their first forward */
    struct schedule *schedule;
};

/* The number of units to advance from the first of units states, kept in a slot, to the state that takes the next slot.
 * With r repetitions, the fewest for which C(slots + r, slots) >= units, an advance is cheapest wherever neither part
 * needs more repetitions than are left to it; the longest such is taken. */
static int to_advance(int64_t units, int64_t slots)
{
    int64_t r = 1, before = 1, reach = slots + 1; /* C(slots + r - 1, slots), C(slots + r, slots) */
    for (; reach < units; r++) {
        before = reach;
        reach = reach * (slots + r + 1) / (r + 1);
    }
    int64_t rest = before * slots / (slots + r - 1); /* C(slots + r - 2, slots - 1) */
    return (int)(before < units - rest ? before : units - rest);
}

static void advance(struct reversal *r, int from, int to)
{
    if (to > r->forwarded) r->forwarded = to;
    schedule_append(r->schedule, STEP_FORWARD, r->unit[from].from, r->unit[to - 1].to);
}

/* Units [from, to), the state before the first of them in one of the slots. */
static void reverse(struct reversal *r, int from, int to, int64_t slots)
{
    while (to - from > 1) {
        int middle = from + to_advance(to - from, slots);
        advance(r, from, middle);
        reverse(r, middle, to, slots - 1);
        to = middle;
    }
    if (from < r->forwarded) {
        stages_recompute(r->network, r->unit[from].from, r->unit[from].to, r->keep_saved, r->schedule);
    } else {
        advance(r, from, to);
        schedule_append(r->schedule, STEP_BACKWARD, r->unit[from].from, r->unit[from].to);
    }
}

/* The fewest slots that need no more repetitions than slots: both grow with the logarithm of the length (Griewank,
 * "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic differentiation", 1992). */
static int64_t logarithmic(int units)
{
    int64_t slots = 1;
    for (int64_t reach = 2; reach < units; slots++) reach = reach * 2 * (2 * slots + 1) / (slots + 1); /* C(2s, s) */
    return slots;
}

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct revolve_settings *settings = (const void *)input->settings;
    struct node_ranges units;
    TRY(units_find(input->network->graph, (enum unit)settings->segment.unit, schedule->region, &units));
    struct reversal r = {.network = input->network,
                         .unit = units.range,
                         .keep_saved = policy_keeps_saved(input->network, settings->segment.keep_saved),
                         .schedule = schedule};
    int64_t slots = settings->slots ? settings->slots : logarithmic(units.count);
    reverse(&r, 0, units.count, slots < units.count ? slots : units.count);
    return ST_OK;
}

static const struct setting keys[] = {{"slots", SETTING_INT, offsetof(struct revolve_settings, slots), 0, 1e6, "0",
                                       NULL,
                                       "checkpoints, the first state among them; 0: the fewest that need no more "
                                       "repetitions than checkpoints"},
                                      POLICY_SETTING_UNIT,
                                      POLICY_SETTING_KEEP_SAVED,
                                      {.key = NULL}};

const struct policy policy_revolve = {
    .name = "revolve", .doc = "binomial checkpointing over several levels", .keys = keys, .emit = emit};
