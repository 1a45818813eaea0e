/* Forward and backward of the whole network for one slice of the batch after the other: what gradient accumulation
 * does. Nothing is recomputed; the values of one slice are live at a time, and gradients of parameters are summed. */
#include "policies/policy.h"

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct graph *graph = input->network->graph;
    const struct slicing slicing = graph_slicing(graph);
    if (slicing.slices == 1)
        return fail(ST_SPEC,
                    "policy: microbatch runs slice by slice, but the batch has one; expected slices: 2 or more");
    for (int i = 0; i < graph->nodes; i++)
        if (slicing_whole(&slicing, i))
            return fail(
                ST_SPEC,
                "policy: microbatch runs every layer slice by slice, but '%s' computes the whole batch at once; "
                "expected layers without slices: 1 and whole_layers: none, or policy sliced",
                graph->node[i].name);
    const struct schedule all = schedule_store_all(graph->nodes, schedule->region);
    schedule_append_by_slice(schedule, &slicing, &all);
    return ST_OK;
}

static const struct setting keys[] = {{.key = NULL}};

const struct policy policy_microbatch = {.name = "microbatch",
                                         .doc = "the whole network for one slice of the batch after the other",
                                         .keys = keys,
                                         .emit = emit,
                                         .takes_slices = true,
                                         .needs_slices = true};
