/* What an online runtime would do that evicts a tensor whenever memory is short and recomputes it on demand: Kirisame
 * et al., "Dynamic Tensor Rematerialization", 2021, run at plan time on the step's known ops. Eager eviction as in the
 * paper: what the step reads no more is freed at once.
 *
 * Unlike the paper's runtime it never exceeds its budget, which counts gradients, scratch, masks and the placement; the
 * simulation is run with the budget and with limits above it and below, and the fastest schedule that can be placed is
 * taken: a schedule may need more than its simulation's limit, for gaps between buffers, and less, since an evicted
 * storage is dead after its last read already. The simulation is of the whole batch; of a batch in slices the same
 * schedule often needs less, and the budget is for that. Unlike the paper's prototype it examines every tensor each
 * time, small or large. Unlike `optimal` it keeps to no class of schedules: a kept tensor may be evicted at any time;
 * and it guarantees nothing about time. */
#include <string.h>

#include "policies/rivals.h"

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct budget_settings *settings = (const void *)input->settings;
    bool without[ENGINES];
    memset(without, true, sizeof without);
    without[ENGINE_DTR] = false;
    return rivals_emit(input, "dtr", settings->budget, without, schedule);
}

const struct policy policy_dtr = {.name = "dtr",
                                  .doc = "dynamic tensor rematerialization, simulated under a budget",
                                  .keys = policy_budget_keys,
                                  .emit = emit,
                                  .takes_slices = true,
                                  .fills = true};
