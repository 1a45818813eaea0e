#include "plan/stages.h"

struct node_ranges stages_find(const struct graph *graph, struct region *region)
{
    struct node_ranges stages = {.count = 0};
    int *last; /* last node that reads each value */
    NEW(region, last, (size_t)graph->values);
    NEW(region, stages.range, (size_t)graph->nodes);
    for (int i = 0; i < graph->nodes; i++)
        for (int k = 0; k < graph->node[i].layer->inputs; k++) last[graph->node[i].inputs[k]] = i;
    int from = 0, reach = 0; /* reach: last reader of any value that nodes before i write */
    for (int i = 0; i < graph->nodes; i++) {
        if (graph->together && graph->together[i] > reach) reach = graph->together[i];
        if (reach <= i) { /* of the values so far, only node i's is read later */
            stages.range[stages.count++] = (struct node_range){from, i + 1};
            from = i + 1;
        }
        if (last[i + 1] > reach) reach = last[i + 1];
    }
    return stages;
}

/* The outermost group that starts at node, -1: none. */
static int group_at(const struct graph *graph, int node)
{
    for (int g = 0; g < graph->groups; g++)
        if (graph->group[g].parent < 0 && graph->group[g].from == node && graph->group[g].to > node) return g;
    return -1;
}

enum status units_find(const struct graph *graph, enum unit unit, struct region *region, struct node_ranges *units)
{
    const struct node_ranges stages = stages_find(graph, region);
    if (unit == UNIT_STAGE || (unit == UNIT_AUTO && !graph->groups)) return *units = stages, ST_OK;
    if (!graph->groups) return fail(ST_SPEC, "unit: group, but the model names no group");
    NEW(region, units->range, (size_t)graph->nodes);
    units->count = 0;
    for (int node = 0, s = 0; node < graph->nodes;) {
        while (stages.range[s].to <= node) s++;
        int group = group_at(graph, node), to = group >= 0 ? graph->group[group].to : stages.range[s].to;
        for (int next = node + 1; group < 0 && next < to; next++) /* a group may begin inside a stage */
            if (group_at(graph, next) >= 0) to = next;
        units->range[units->count++] = (struct node_range){node, to};
        node = to;
    }
    return ST_OK;
}

/* Marks the nodes of [from, to) to recompute: those whose y a backward of the range reads, and those that these y are
 * computed from. Returns the last node whose backward needs one of them, from - 1: none does. */
static int mark_needed(const struct network *network, int from, int to, bool *needed)
{
    const struct graph *graph = network->graph;
    int first_use = from - 1;
    for (int i = from; i < to; i++) {
        bool uses = false;
        for (struct reading r = reading_of(network, i, network_reads(network, i)); reading_next(&r);)
            if (!r.saved && r.node >= from && r.node + 1 < to) /* the last one's is a checkpoint, still resident */
                needed[r.node - from] = uses = true;
        if (uses) first_use = i;
    }
    for (int i = to - 1; i >= from; i--) {
        if (!needed[i - from]) continue;
        const struct node *node = &graph->node[i];
        for (int k = 0; k < node->layer->inputs; k++)
            if (node->inputs[k] - 1 >= from) needed[node->inputs[k] - 1 - from] = true;
    }
    return first_use;
}

void stages_recompute(const struct network *network, int from, int to, bool keep_saved, struct schedule *schedule)
{
    if (!keep_saved) {
        schedule_append(schedule, STEP_FORWARD, from, to);
        schedule_append(schedule, STEP_BACKWARD, from, to);
        return;
    }
    bool *needed;
    NEW(schedule->region, needed, (size_t)(to - from));
    int first_use = mark_needed(network, from, to, needed);
    schedule_append(schedule, STEP_BACKWARD, first_use + 1, to);
    for (int i = from; i < to; i++)
        if (needed[i - from]) schedule_append(schedule, STEP_FORWARD, i, i + 1);
    schedule_append(schedule, STEP_BACKWARD, from, first_use + 1);
}
