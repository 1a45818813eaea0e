#include "plan.h"

#include "place.h"

#include <stdio.h>
#include <string.h>

const char *const static_names[STATICS] = {"parameters", "gradients", "optimizer", "state", "inputs"};

size_t plan_static(const struct plan *plan)
{
    size_t sum = 0;
    for (int i = 0; i < STATICS; i++) sum += plan->static_bytes[i];
    return sum;
}

size_t plan_peak(const struct plan *plan) { return plan_static(plan) + plan->arena_bytes; }

size_t plan_sampled_forward(const struct plan *plan)
{
    return plan_static(plan) - plan->static_bytes[STATIC_GRADIENTS] + plan->live_forward;
}

size_t plan_sampled_gradients(const struct plan *plan) { return plan_static(plan); }

char *plan_op_text(const struct plan *plan, int op, char *text)
{
    static const char *const kinds[] = {"F", "B", "copy", "accumulate"};
    static const char *const parts[] = {"", " params", " input", ""};
    const struct op *o = &plan->lowered.op[op];
    snprintf(text, 128, "%s %s%s%s", kinds[o->kind], plan->network->graph->node[o->node].name,
             o->kind == OP_BACKWARD ? parts[o->parts & 3] : "", o->replay ? " replay" : "");
    return text;
}

char *plan_buffer_text(const struct plan *plan, int buffer, char *text)
{
    static const char *const suffix[CATEGORIES] = {"y", "saved", "gradient", "scratch"};
    const struct buffer *b = &plan->lowered.buffer[buffer];
    snprintf(text, 128, "%s.%s", plan->network->graph->node[b->node].name, suffix[b->category]);
    return text;
}

static void count_static(struct plan *plan, const struct plan_options *options)
{
    const struct graph *graph = plan->network->graph;
    size_t parameters = 0;
    for (int i = 0; i < graph->parameters; i++)
        parameters += round_up((size_t)graph->parameter[i].elements * sizeof(float));
    plan->static_bytes[STATIC_PARAMETERS] = parameters;
    plan->static_bytes[STATIC_GRADIENTS] = parameters;
    plan->static_bytes[STATIC_OPTIMIZER] = parameters * (size_t)options->state_per_parameter;
    plan->static_bytes[STATIC_INPUTS] =
        round_up(graph->value[0].bytes) + round_up((size_t)graph->batch * sizeof(int32_t));
}

static void count_time(struct plan *plan)
{
    const struct graph *graph = plan->network->graph;
    double least = 0;
    for (int i = 0; i < graph->nodes; i++) {
        unsigned parts = network_parts(plan->network, i);
        least += plan->network->cost[i].forward + network_backward_time(plan->network, i);
        plan->forward_flops += graph->node[i].flops.forward;
        plan->backward_flops += (parts & PART_PARAMS ? graph->node[i].flops.backward_params : 0) +
                                (parts & PART_INPUT ? graph->node[i].flops.backward_input : 0);
    }
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->kind != OP_FORWARD || !op->replay) continue;
        plan->replay_flops += graph->node[op->node].flops.forward;
        plan->time += plan->network->cost[op->node].forward;
        plan->replays++;
    }
    plan->time += least;
    plan->time_factor = least > 0 ? plan->time / least : 1;
}

/* Live bytes at every op, the peak and what it is made of; and what samplers at two points of a step would see. */
static enum status count_live(struct plan *plan)
{
    const struct lowered *l = &plan->lowered;
    TRY(NEW(plan->region, plan->live, (size_t)l->ops + 1));
    int forward_end = 0;
    while (forward_end < l->ops && l->op[forward_end].kind == OP_FORWARD && !l->op[forward_end].replay) forward_end++;
    for (int i = 0; i < l->buffers; i++) {
        const struct buffer *b = &l->buffer[i];
        for (int op = b->birth; op <= b->death; op++) plan->live[op] += b->bytes;
        if (b->birth < forward_end && b->death >= forward_end) plan->live_forward += b->bytes;
    }
    for (int op = 0; op < l->ops; op++)
        if (plan->live[op] > plan->live_peak) plan->live_peak = plan->live[plan->peak_op = op];
    for (int i = 0; i < l->buffers; i++) {
        const struct buffer *b = &l->buffer[i];
        if (b->birth <= plan->peak_op && plan->peak_op <= b->death) plan->peak_by_category[b->category] += b->bytes;
    }
    return ST_OK;
}

/* The members are hashed one by one: padding between them has no value. */
static enum status hash_plan(struct plan *plan)
{
    enum { OP_WORDS = 6 + 2 * NODE_INPUTS_MAX + 4, BUFFER_WORDS = 6 };
    const struct lowered *l = &plan->lowered;
    int64_t *words, *w;
    size_t count = (size_t)l->ops * OP_WORDS + (size_t)l->buffers * BUFFER_WORDS;
    TRY(NEW(plan->region, words, count + 1));
    w = words;
    for (int i = 0; i < l->ops; i++) {
        const struct op *o = &l->op[i];
        const int64_t row[] = {o->kind, o->node,  o->parts, o->replay, o->save,  o->y,    o->x[0],
                               o->x[1], o->dx[0], o->dx[1], o->dy,     o->saved, o->once, o->scratch};
        _Static_assert(sizeof row / sizeof *row == OP_WORDS, "a row an op");
        memcpy(w, row, sizeof row);
        w += OP_WORDS;
    }
    for (int i = 0; i < l->buffers; i++) {
        const struct buffer *b = &l->buffer[i];
        const int64_t row[] = {b->category, b->node, (int64_t)b->bytes, b->birth, b->death, (int64_t)b->offset};
        memcpy(w, row, sizeof row);
        w += BUFFER_WORDS;
    }
    plan->hash = digest_bytes(words, (size_t)(w - words) * sizeof *words);
    return ST_OK;
}

/* The network with what the word says of relus. */
static enum status view(const struct network *network, const struct word *word, struct region *region,
                        const struct network **seen)
{
    struct network *copy;
    TRY(NEW(region, copy, 1));
    *copy = *network;
    TRY(NEW(region, copy->binding, (size_t)network->graph->nodes));
    memcpy(copy->binding, network->binding, (size_t)network->graph->nodes * sizeof *copy->binding);
    for (size_t i = 0; i < word->steps; i++)
        for (int n = word->step[i].from; n < word->step[i].to && word->step[i].relu != RELU_AUTO; n++)
            footprint_keep_signs(&copy->binding[n].footprint, word->step[i].relu == RELU_BITS);
    *seen = copy;
    return ST_OK;
}

static enum status build(struct plan *plan, const struct word *word, const struct plan_options *options)
{
    TRY(word_check(word, plan->network->graph->nodes, options->forward_only));
    TRY(view(plan->network, word, plan->region, &plan->network));
    if (!(plan->word = word_print(word, plan->region))) return ST_FAILED;
    TRY(lower(plan->network, word, &options->lower, plan->region, &plan->lowered));
    TRY(count_live(plan));
    plan->arena_bytes = plan->live_peak;
    if (!options->unplaced) TRY(place(plan->lowered.buffer, plan->lowered.buffers, &plan->arena_bytes));
    count_static(plan, options);
    count_time(plan);
    return hash_plan(plan);
}

enum status plan_build(const struct network *network, const struct word *word, const struct plan_options *options,
                       struct plan **plan)
{
    *plan = NULL;
    struct region *region = region_create();
    struct plan *p = region ? region_array(region, 1, sizeof *p) : NULL;
    if (!p) {
        region_destroy(region);
        return fail(ST_FAILED, "out of memory for a plan");
    }
    p->region = region;
    p->network = network;
    enum status status = build(p, word, options);
    if (status != ST_OK) {
        region_destroy(region);
        return status;
    }
    *plan = p;
    return ST_OK;
}

void plan_destroy(struct plan *plan)
{
    if (plan) region_destroy(plan->region);
}
