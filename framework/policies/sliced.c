/* Named groups are recomputed and differentiated for one slice of the batch after the other, everything else is stored.
 * Of a stretch of groups, its input, its output and their gradients are whole, and the inside of one slice is live at a
 * time, for one more forward. A stretch that ends the network is differentiated at once, without a second forward. */
#include "policies/policy.h"

struct sliced_settings {
    struct setting_list groups;
};
POLICY_SETTINGS_FIT(struct sliced_settings);

/* Marks the nodes of the groups. */
static enum status choose(const struct graph *graph, const struct setting_list *names, bool *chosen)
{
    const struct slicing slicing = graph_slicing(graph);
    if (slicing.slices == 1)
        return fail(ST_SPEC, "policy: sliced runs slice by slice, but the batch has one; expected slices: 2 or more");
    if (!names->count) return fail(ST_SPEC, "policy.groups: none; expected names of groups");
    for (size_t i = 0; i < names->count; i++) {
        int g;
        TRY(policy_group(graph, names->texts[i], &g));
        for (int n = graph->group[g].from; n < graph->group[g].to; n++) {
            if (slicing_whole(&slicing, n))
                return fail(ST_SPEC,
                            "policy.groups: layer '%s' of '%s' computes the whole batch at once; expected groups "
                            "without it, or layers without slices: 1 and whole_layers: none",
                            graph->node[n].name, names->texts[i]);
            chosen[n] = true;
        }
    }
    return ST_OK;
}

/* Forward, then backward where differentiate, of each slice. */
static void run(struct schedule *schedule, int from, int to, int slices, bool differentiate)
{
    for (int k = 0; k < slices; k++) {
        schedule_append_step(schedule, (struct step){STEP_FORWARD, from, to, k});
        if (differentiate) schedule_append_step(schedule, (struct step){STEP_BACKWARD, from, to, k});
    }
}

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct sliced_settings *settings = (const struct sliced_settings *)(const void *)input->settings;
    const struct graph *graph = input->network->graph;
    const struct slicing slicing = graph_slicing(graph);
    bool *chosen;
    NEW(schedule->region, chosen, (size_t)graph->nodes + 1);
    TRY(choose(graph, &settings->groups, chosen));
    int end = graph->nodes; /* of what is not differentiated yet */
    for (int from = 0, to; from < graph->nodes; from = to) {
        for (to = from + 1; to < graph->nodes && chosen[to] == chosen[from];) to++;
        if (!chosen[from])
            schedule_append(schedule, STEP_FORWARD, from, to);
        else
            run(schedule, from, to, slicing.slices, to == graph->nodes);
        if (chosen[from] && to == graph->nodes) end = from;
    }
    for (int to = end, from; to > 0; to = from) {
        for (from = to - 1; from > 0 && chosen[from - 1] == chosen[to - 1];) from--;
        if (chosen[from])
            run(schedule, from, to, slicing.slices, true);
        else
            schedule_append(schedule, STEP_BACKWARD, from, to);
    }
    return ST_OK;
}

static const struct setting keys[] = {
    {"groups", SETTING_TEXTS, offsetof(struct sliced_settings, groups), 0, 1e6, "", NULL,
     "names of the groups to run slice by slice; neighbours are one stretch; everything else is stored"},
    {.key = NULL}};

const struct policy policy_sliced = {.name = "sliced",
                                     .doc = "the named groups are recomputed and differentiated slice by slice",
                                     .keys = keys,
                                     .emit = emit,
                                     .takes_slices = true,
                                     .needs_slices = true};
