#include "plan/plan.h"

#include "backend/batch_transfer.h"
#include "base/units.h"
#include "plan/placement.h"
#include "plan/placement_search.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t plan_static(const struct plan *plan) { return plan_static_of(plan->network, &plan->options); }

size_t plan_peak(const struct plan *plan) { return plan_static(plan) + plan->arena_bytes; }

struct plan_numbers plan_numbers(const struct plan *plan)
{
    return (struct plan_numbers){plan_static(plan), plan->live_peak, plan->arena_bytes,
                                 plan_peak(plan),   plan->time,      plan->slowdown};
}

size_t plan_sampled_forward(const struct plan *plan)
{
    return plan_static(plan) - plan->static_bytes[STATIC_GRADIENTS] + plan->live_forward;
}

/* The node's name, or that of the operator of a traced step that is its backward. */
static const char *name_of(const struct plan *plan, int node, bool backward)
{
    const struct traced_backward *traced = plan->network->binding[node].traced;
    return backward && traced ? traced->name : plan->network->graph->node[node].name;
}

const char *plan_op_name(const struct plan *plan, int op)
{
    return name_of(plan, plan->lowered.op[op].node, plan->lowered.op[op].kind == OP_BACKWARD);
}

char *plan_op_text(const struct plan *plan, int op, char *text)
{
    return op_text(&plan->lowered.op[op], plan_op_name(plan, op), text);
}

char *plan_buffer_text(const struct plan *plan, int buffer, char *text)
{
    const struct buffer *b = &plan->lowered.buffer[buffer];
    const bool backward = b->category == CATEGORY_GRADIENT || b->category == CATEGORY_PARAMETER_GRADIENT;
    return buffer_text(b, name_of(plan, b->node, backward), text);
}

/* By bytes, the largest first; of equal ones the earlier. */
static int by_bytes(const void *left, const void *right, void *buffers)
{
    const struct buffer *all = buffers;
    const int a = *(const int *)left, b = *(const int *)right;
    if (all[a].bytes != all[b].bytes) return all[a].bytes > all[b].bytes ? -1 : 1;
    return a - b;
}

int plan_peak_buffers(const struct plan *plan, struct region *region, int **buffer)
{
    struct buffer *all = plan->lowered.buffer;
    int count = 0;
    NEW(region, *buffer, (size_t)plan->lowered.buffers);
    for (int i = 0; i < plan->lowered.buffers; i++)
        if (buffer_alive(&all[i], plan->peak_op)) (*buffer)[count++] = i;
    qsort_r(*buffer, (size_t)count, sizeof **buffer, by_bytes, all);
    return count;
}

const char *plan_peak_text(const struct plan *plan, struct region *region)
{
    enum { NAMED = 3 };
    const char *text = "";
    int *buffer;
    const int count = plan_peak_buffers(plan, region, &buffer);
    for (int i = 0; i < count && i < NAMED; i++) {
        char name[128], bytes[UNIT_TEXT];
        text = region_text(region, "%s%s%s (%s)", text, i ? ", " : "", plan_buffer_text(plan, buffer[i], name),
                           bytes_text((double)plan->lowered.buffer[buffer[i]].bytes, bytes));
    }
    return text;
}

size_t plan_device_bytes(const struct network *network, const struct plan_options *options)
{
    const struct graph *graph = network->graph;
    const size_t next = batch_transfer_next_bytes(network->backend, graph);
    return next ? next + round_up(network->backend->kind->update->bytes(graph, options->state_per_parameter)) : 0;
}

static void count_static(const struct network *network, const struct plan_options *options, size_t bytes[STATICS])
{
    const struct graph *graph = network->graph;
    bytes[STATIC_PARAMETERS] = graph_parameter_bytes(graph);
    for (int i = 0; i < graph->parameters; i++)
        if (graph->parameter[i].trained >= 0 && !network->binding[graph->parameter[i].node].footprint.gradients)
            bytes[STATIC_GRADIENTS] += parameter_static_bytes(&graph->parameter[i]);
    bytes[STATIC_OPTIMIZER] = graph_trained_bytes(graph) * (size_t)options->state_per_parameter;
    for (int i = 0; i < graph->states; i++) bytes[STATIC_STATE] += parameter_static_bytes(&graph->state[i]);
    bytes[STATIC_INPUTS] = batch_bytes(graph);
    bytes[STATIC_DEVICE] = plan_device_bytes(network, options);
}

size_t plan_static_of(const struct network *network, const struct plan_options *options)
{
    size_t bytes[STATICS] = {0}, sum = 0;
    count_static(network, options, bytes);
    for (int i = 0; i < STATICS; i++) sum += bytes[i];
    return sum;
}

static void count_time(struct plan *plan)
{
    const struct graph *graph = plan->network->graph;
    const struct slicing slicing = graph_slicing(graph);
    double least = 0;
    for (int i = 0; i < graph->nodes; i++) {
        unsigned parts = plan->options.lower.evaluate ? 0 : network_parts(plan->network, i);
        least += network_first_time(plan->network, i) + (parts ? network_backward_time(plan->network, i) : 0);
        plan->forward_flops += graph->node[i].flops.forward + graph->node[i].flops.once;
        plan->backward_flops += (parts & PART_PARAMS ? graph->node[i].flops.backward_params : 0) +
                                (parts & PART_INPUT ? graph->node[i].flops.backward_input : 0);
    }
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->kind != OP_FORWARD || !op->recompute) continue;
        const double calls = slicing_calls(&slicing, op->node);
        plan->recompute_flops += graph->node[op->node].flops.forward / calls;
        plan->time += plan->network->cost[op->node].forward / calls;
        plan->recomputations++;
    }
    plan->time += least;
    plan->slowdown = least > 0 ? plan->time / least : 1;
}

/* Live bytes at every op, the peak by category, and what a sampler would see after the forward. */
static void count_live(struct plan *plan)
{
    const struct lowered *l = &plan->lowered;
    NEW(plan->region, plan->live, (size_t)l->ops + 1);
    int forward_end = 0;
    while (forward_end < l->ops && l->op[forward_end].kind == OP_FORWARD && !l->op[forward_end].recompute)
        forward_end++;
    plan->live_peak = buffers_live(l->buffer, l->buffers, l->ops, plan->live);
    while (plan->live[plan->peak_op] < plan->live_peak) plan->peak_op++;
    for (int i = 0; i < l->buffers; i++) {
        const struct buffer *b = &l->buffer[i];
        if (buffer_alive(b, plan->peak_op)) plan->peak_by_category[b->category] += b->bytes;
        if (b->birth < forward_end && buffer_alive(b, forward_end)) plan->live_forward += b->bytes;
    }
}

static void hash_plan(struct plan *plan)
{
    const struct lowered *l = &plan->lowered;
    plan->hash = ops_digest(l->op, l->ops, l->buffer, l->buffers);
}

void plan_search_placement(struct plan *plan)
{
    const struct lowered *l = &plan->lowered;
    plan->arena_bytes = placement_search(l->buffer, l->buffers, plan->arena_bytes, &plan->arena_bound);
    hash_plan(plan);
}

void plan_move(struct plan *plan, const struct buffer *placed)
{
    plan->arena_bytes = 0;
    for (int i = 0; i < plan->lowered.buffers; i++) {
        struct buffer *b = &plan->lowered.buffer[i];
        b->offset = placed[i].offset;
        if (b->offset + b->bytes > plan->arena_bytes) plan->arena_bytes = b->offset + b->bytes;
    }
    hash_plan(plan);
}

struct plan *plan_build(const struct network *network, const struct schedule *schedule,
                        const struct plan_options *options)
{
    const struct slicing slicing = graph_slicing(network->graph);
    assert(schedule_check(schedule, &slicing, options->lower.evaluate) == ST_OK);
    struct region *region = region_create();
    struct plan *p = region_array(region, 1, sizeof *p);
    p->region = region;
    p->network = network;
    p->options = *options;
    p->schedule = schedule_print(schedule, region);
    p->lowered = lower(p->network, schedule, &options->lower, region);
    count_live(p);
    p->arena_bytes = options->unplaced ? p->live_peak : placement_assign(p->lowered.buffer, p->lowered.buffers);
    p->arena_bound = p->live_peak;
    count_static(network, options, p->static_bytes);
    count_time(p);
    hash_plan(p);
    return p;
}

struct plan_cost plan_cost(const struct network *network, const struct schedule *schedule,
                           const struct lower_options *options)
{
    struct plan *plan = plan_build(network, schedule, &(struct plan_options){.lower = *options, .unplaced = true});
    const struct plan_cost cost = {plan->live_peak, plan->time};
    plan_destroy(plan);
    return cost;
}

void plan_destroy(struct plan *plan)
{
    if (plan) region_destroy(plan->region);
}
