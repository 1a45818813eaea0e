#include "analysis/plan_summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "search/optimum.h"

enum { FRONT_ROWS = 12 };

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static void count_node(struct stage_row *row, const struct network *network, int node)
{
    const struct node *n = &network->graph->node[node];
    const struct footprint *f = &network->binding[node].footprint;
    unsigned parts = network_parts(network, node);
    size_t backward = larger(parts & PART_PARAMS ? f->backward_scratch[PART_INDEX_PARAMS] : 0,
                             parts & PART_INPUT ? f->backward_scratch[PART_INDEX_INPUT] : 0);
    row->scratch_bytes = larger(row->scratch_bytes, network_round(network, larger(f->forward_scratch, backward)));
    row->forward_flops += n->flops.forward;
    row->backward_flops +=
        (parts & PART_PARAMS ? n->flops.backward_params : 0) + (parts & PART_INPUT ? n->flops.backward_input : 0);
}

/* Whether each node is saved by some forward of the plan, and how often it is recomputed. */
static void count_ops(const struct plan *plan, bool *saves, int *recomputations)
{
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->kind != OP_FORWARD) continue;
        saves[op->node] |= op->save;
        recomputations[op->node] += op->recompute;
    }
}

static const char *group_of(const struct graph *graph, struct node_range range)
{
    for (int i = 0; i < graph->groups; i++)
        if (graph->group[i].from <= range.from && range.to <= graph->group[i].to) return graph->group[i].name;
    return NULL;
}

static enum status gather_stages(struct plan_summary *o)
{
    const struct network *network = o->job->plan->network;
    const struct graph *graph = network->graph;
    struct node_ranges stages;
    bool *saves;
    int *recomputations;
    TRY(stages_find(graph, o->region, &stages));
    NEW(o->region, saves, (size_t)graph->nodes);
    NEW(o->region, recomputations, (size_t)graph->nodes);
    NEW(o->region, o->stage, (size_t)stages.count);
    count_ops(o->job->plan, saves, recomputations);
    o->stages = stages.count;
    for (int s = 0; s < stages.count; s++) {
        struct stage_row *row = &o->stage[s];
        row->range = stages.range[s];
        row->nodes = row->range.to - row->range.from;
        row->group = group_of(graph, row->range);
        row->output = graph->node[row->range.to - 1].output;
        row->output_bytes = network_round(network, graph->value[row->output].bytes);
        for (int i = row->range.from; i < row->range.to; i++) {
            count_node(row, network, i);
            if (saves[i]) row->saved_bytes += network_round(network, network->binding[i].footprint.saved);
            row->recomputed += recomputations[i] > 0;
            row->recomputations += recomputations[i];
        }
    }
    return ST_OK;
}

static int by_bytes(const void *a, const void *b)
{
    const struct tensor_row *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes) : x->buffer - y->buffer;
}

enum status plan_tensors(const struct plan *plan, struct region *region, struct tensor_row **tensor, int *tensors)
{
    NEW(region, *tensor, (size_t)plan->lowered.buffers);
    *tensors = 0;
    for (int i = 0; i < plan->lowered.buffers; i++) {
        const struct buffer *b = &plan->lowered.buffer[i];
        if (b->birth <= plan->peak_op && plan->peak_op <= b->death)
            (*tensor)[(*tensors)++] = (struct tensor_row){i, b->bytes};
    }
    qsort(*tensor, (size_t)*tensors, sizeof **tensor, by_bytes);
    return ST_OK;
}

/* A library names its slow fallback "ref..."; a kernel that uses several calls names them all. */
static bool is_slow(const char *implementation)
{
    return strncmp(implementation, "ref", 3) == 0 || strstr(implementation, " ref");
}

static enum status gather_slow(struct plan_summary *o)
{
    const struct network *network = o->job->plan->network;
    int *node;
    NEW(o->region, node, (size_t)network->graph->nodes);
    o->slow_node = node;
    if (!network->backend || !strcmp(network->backend->kind->name, "ref")) return ST_OK; /* chosen, so no surprise */
    for (int i = 0; i < network->graph->nodes; i++)
        if (is_slow(network->binding[i].footprint.implementation)) node[o->slow++] = i;
    return ST_OK;
}

static enum status add_reason(struct plan_summary *o, const char *reason)
{
    if (!reason) return ST_FAILED;
    o->reason[o->reasons++] = reason;
    return ST_OK;
}

/* The peak of a plan that recomputes lies before its first recomputation: in the part that it keeps. */
static bool peak_is_kept(const struct plan *plan)
{
    for (int i = 0; i <= plan->peak_op; i++)
        if (plan->lowered.op[i].recompute) return false;
    return plan->recomputations > 0;
}

static enum status gather_reasons(struct plan_summary *o)
{
    static const double mostly = 0.8;
    const struct plan *plan = o->job->plan;
    char a[UNIT_TEXT], b[UNIT_TEXT], op[128];
    size_t fixed = plan_static(plan), stored = fixed + o->store_all_live;
    if ((double)fixed >= mostly * (double)stored)
        TRY(add_reason(o, region_text(o->region,
                                      "parameters, gradients, optimizer and inputs are %s, %.0f %% of what storing "
                                      "everything needs; no checkpointing touches them",
                                      bytes_text((double)fixed, a), 100 * (double)fixed / (double)stored)));
    if (plan->recomputations == 0 && o->job->spec->policy != policy_find("store_all"))
        TRY(add_reason(o, region_text(o->region, "policy %s recomputes nothing on this network: it stores everything",
                                      o->job->spec->policy->name)));
    if (plan->recomputations == 0) return ST_OK;
    if (plan->live_peak >= o->store_all_live) {
        TRY(add_reason(o,
                       region_text(o->region,
                                   "this plan's live peak, %s, is not below the %s of storing everything: the "
                                   "recomputation costs time and saves nothing",
                                   bytes_text((double)plan->live_peak, a), bytes_text((double)o->store_all_live, b))));
    }
    if (peak_is_kept(plan))
        TRY(add_reason(o,
                       region_text(o->region,
                                   "the peak, at %s, comes before the first recomputation: what this policy keeps sets "
                                   "it, and recomputing more elsewhere does not lower it",
                                   plan_op_text(plan, plan->peak_op, op))));
    return ST_OK;
}

static enum status add_choice(struct plan_summary *o, struct choice_row row)
{
    struct bounds bounds;
    TRY(bounds_find(o->job->network, row.live_peak, &bounds));
    row.slowdown = bounds_slowdown(&bounds, row.time);
    row.gap = bounds_gap(&bounds, row.time);
    o->choice[o->choices++] = row;
    return ST_OK;
}

/* A policy that requires a setting, or does not fit the network, is left out. */
static enum status gather_choice(struct plan_summary *o, const struct policy *policy)
{
    struct policy_settings settings = {0};
    struct plan *plan;
    for (const struct setting *f = policy->keys; f && f->key; f++)
        if (!f->preset) return ST_OK;
    TRY(setting_defaults(policy->keys, &settings, o->region));
    enum status status = job_plan(o->job, policy, &settings, &plan);
    if (status == ST_SPEC) return ST_OK;
    TRY(status);
    const struct choice_row row = {
        .policy = policy, .live_peak = plan->live_peak, .peak = plan_peak(plan), .time = plan->time};
    plan_destroy(plan);
    if (policy == policy_find("store_all")) o->store_all_live = row.live_peak;
    return add_choice(o, row);
}

/* Points at equal distances in the front of `optimal`, its ends among them. */
static enum status gather_front(struct plan_summary *o, const struct policy *policy)
{
    TRY(optimum_solve(o->job->network, RNG_COUNTER, &o->optimum));
    const struct front *front = &o->optimum->front;
    const int rows = front->count < FRONT_ROWS ? front->count : FRONT_ROWS;
    for (int row = 0; row < rows; row++) {
        const struct point *p = &front->point[rows > 1 ? row * (front->count - 1) / (rows - 1) : 0];
        TRY(add_choice(o,
                       (struct choice_row){.policy = policy, .live_peak = p->peak, .peak = p->peak, .time = p->time}));
    }
    return ST_OK;
}

/* all: else only store_all, which every report measures itself by. */
static enum status gather_choices(struct plan_summary *o, bool all)
{
    size_t policies = 0;
    while (policy_table[policies]) policies++;
    NEW(o->region, o->choice, policies + FRONT_ROWS);
    if (!all) return gather_choice(o, policy_find("store_all"));
    for (size_t i = 0; i < policies; i++) {
        const bool front = !o->job->backend && policy_table[i] == policy_find("optimal");
        TRY((front ? gather_front : gather_choice)(o, policy_table[i]));
    }
    return ST_OK;
}

static enum status gather(struct plan_summary *o, bool choices)
{
    TRY(gather_stages(o));
    TRY(plan_tensors(o->job->plan, o->region, &o->tensor, &o->tensors));
    TRY(gather_slow(o));
    TRY(gather_choices(o, choices));
    TRY(gather_reasons(o));
    o->machine = o->job->backend ? memory_left(o->job->backend) : (struct machine_memory){UINT64_MAX, "nothing"};
    o->needed = plan_peak(o->job->plan);
    return ST_OK;
}

enum status plan_summary_create(const struct job *job, bool choices, struct plan_summary **overview)
{
    *overview = NULL;
    struct region *region = region_create();
    struct plan_summary *o = region ? region_array(region, 1, sizeof *o) : NULL;
    if (!o) {
        region_destroy(region);
        return fail(ST_FAILED, "out of memory for an overview");
    }
    o->region = region;
    o->job = job;
    enum status status = gather(o, choices);
    if (status == ST_OK)
        *overview = o;
    else
        plan_summary_destroy(o);
    return status;
}

void plan_summary_destroy(struct plan_summary *overview)
{
    if (!overview) return;
    optimum_destroy(overview->optimum);
    region_destroy(overview->region);
}

char *stage_action(const struct stage_row *stage, char *text)
{
    if (stage->recomputed == 0)
        strcpy(text, "kept");
    else if (stage->recomputed < stage->nodes)
        snprintf(text, 64, "%d of %d recomputed", stage->recomputed, stage->nodes);
    else
        strcpy(text, "recomputed");
    if (stage->recomputations > stage->recomputed)
        snprintf(text + strlen(text), 64 - strlen(text), ", %d times in all", stage->recomputations);
    return text;
}
