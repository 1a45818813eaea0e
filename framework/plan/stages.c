#include "plan/stages.h"

enum status stages_find(const struct graph *graph, struct region *region, struct node_ranges *stages)
{
    int *last; /* last node that reads each value */
    NEW(region, last, (size_t)graph->values);
    NEW(region, stages->range, (size_t)graph->nodes);
    for (int i = 0; i < graph->nodes; i++)
        for (int k = 0; k < graph->node[i].layer->inputs; k++) last[graph->node[i].inputs[k]] = i;
    stages->count = 0;
    int from = 0, reach = 0; /* reach: last reader of any value written before the one at hand */
    for (int i = 0; i < graph->nodes; i++) {
        if (reach <= i) { /* of the values so far only node i's own is read later */
            stages->range[stages->count++] = (struct node_range){from, i + 1};
            from = i + 1;
        }
        if (last[i + 1] > reach) reach = last[i + 1];
    }
    return ST_OK;
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
    struct node_ranges stages;
    TRY(stages_find(graph, region, &stages));
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

/* Marks the nodes of [from, to) whose y must be made again: those a backward of the range reads, and what they are made
 * from. Returns the last node whose backward needs one of them, from - 1 where none does. */
static int mark_needed(const struct network *network, int from, int to, bool *needed)
{
    const struct graph *graph = network->graph;
    int first_use = from - 1;
    for (int i = from; i < to; i++) {
        unsigned reads = network_reads(network, i);
        const struct node *node = &graph->node[i];
        bool uses = false;
        for (int k = 0; k < node->layer->inputs; k++) {
            int producer = node->inputs[k] - 1;
            if ((reads & READS_X) && producer >= from) needed[producer - from] = uses = true;
        }
        /* y of the range's last node is a cut value: it is still there */
        if ((reads & READS_Y) && i + 1 < to) needed[i - from] = uses = true;
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

enum status stages_recompute(const struct network *network, int from, int to, bool keep_saved,
                             struct schedule *schedule)
{
    if (!keep_saved) {
        TRY(schedule_append(schedule, STEP_FORWARD, from, to));
        return schedule_append(schedule, STEP_BACKWARD, from, to);
    }
    bool *needed;
    NEW(schedule->region, needed, (size_t)(to - from));
    int first_use = mark_needed(network, from, to, needed);
    TRY(schedule_append(schedule, STEP_BACKWARD, first_use + 1, to));
    for (int i = from; i < to; i++)
        if (needed[i - from]) TRY(schedule_append(schedule, STEP_FORWARD, i, i + 1));
    return schedule_append(schedule, STEP_BACKWARD, from, first_use + 1 > from ? first_use + 1 : from);
}
