#include "analysis/plan_summary.h"

#include <string.h>

#include "analysis/node_rows.h"
#include "base/units.h"
#include "console/work_line.h"
#include "model/chunked_loss.h"
#include "policies/rivals.h"
#include "search/limits.h"
#include "search/step_model.h"
#include "spec/graph_build.h"

enum { FRONT_ROWS = 12, SEARCHED_NODES_MAX = 400 };

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* ---- numbers of any plan ---- */

/* Of a loss that is computed in chunks of rows. */
static void add_chunks(const struct network *network, json_t *all)
{
    const int last = network->graph->nodes - 1;
    const struct graph *call = network_call(network, last);
    const struct node *node = &call->node[last];
    const int64_t rows = call->batch * graph_labels(call), each = chunk_rows(rows, node_integer(node, "chunks"));
    const int64_t chunks = ratio_up(rows, each);
    json_t *loss = json_object();
    PUT_ALL(loss, KEY("layer", node->name), KEY("chunks", chunks), KEY("rows", rows), KEY("chunk_rows", each));
    PUT(all, "chunked_loss", loss);
}

static void add_plan(const struct plan *plan, json_t *all)
{
    const struct network *network = plan->network;
    const struct slicing slicing = graph_slicing(network->graph);
    int forwards = 0;
    json_t *bits = json_array(), *after = json_array(), *pools = json_array(), *whole = json_array();
    int64_t parameters = 0;
    for (int i = 0; i < network->graph->parameters; i++) parameters += network->graph->parameter[i].elements;
    if (network->backend) PUT(all, "parameters", parameters); /* a graph file has bytes alone */
    for (int i = 0; i < network->graph->nodes; i++) {
        const struct footprint *f = &network->binding[i].footprint;
        forwards += network_has_forward(network, i);
        if (f->signs && f->saved) ADD(bits, network->graph->node[i].name);
        if (network->graph->node[i].relu_of_input) ADD(after, network->graph->node[i].name);
        if (network->graph->node[i].pool) ADD(pools, network->graph->node[i].name);
        if (slicing.slices > 1 && slicing_whole(&slicing, i)) ADD(whole, network->graph->node[i].name);
    }
    if (network->backend && network->graph->node[network->graph->nodes - 1].layer->in_backward)
        add_chunks(network, all);
    PUT_ALL(all, KEY("slices", slicing.slices), KEY("whole_layers", whole), KEY("static_bytes", plan_static(plan)),
            KEY("live_peak_bytes", plan->live_peak), KEY("arena_bytes", plan->arena_bytes),
            KEY("arena_bound_bytes", plan->arena_bound), KEY("peak_bytes", plan_peak(plan)),
            KEY("static", json_named(static_names, plan->static_bytes, STATICS)),
            KEY("live_peak", json_named(category_names, plan->peak_by_category, CATEGORIES)),
            KEY("recomputations", plan->recomputations), KEY("time", plan->time), KEY("slowdown", plan->slowdown),
            KEY("nodes", forwards), KEY("schedule", plan->schedule), KEY("relu_bits", bits),
            KEY("relus_after_pools", after), KEY("pools_in_convs", pools), KEY("hash", DIGEST_TEXT(plan->hash)));
}

static json_t *json_of_bounds(const struct bounds *bounds, const struct plan *plan)
{
    return OBJECT(KEY("live_bytes", bounds->budget), KEY("memory_floor_bytes", bounds->memory),
                  KEY("memory_floor_node", plan->network->graph->node[bounds->memory_node].name),
                  KEY("knapsack_slowdown", bounds_slowdown(bounds, bounds->knapsack)),
                  KEY("binomial_slowdown", bounds_slowdown(bounds, bounds->binomial)),
                  KEY("closure_slowdown", bounds_slowdown(bounds, bounds->closure)),
                  KEY("best_slowdown", bounds_slowdown(bounds, bounds->best)),
                  KEY("of_slice", json_boolean(bounds->of_slice)), KEY("gap_percent", bounds_gap(bounds, plan->time)));
}

static json_t *json_of_peak(const struct plan *plan)
{
    region_auto *region = region_create();
    char text[128];
    int *buffer;
    json_t *tensors = json_array();
    const int count = plan_peak_buffers(plan, region, &buffer);
    for (int i = 0; i < count; i++) {
        const struct buffer *b = &plan->lowered.buffer[buffer[i]];
        ADD(tensors, OBJECT(KEY("name", plan_buffer_text(plan, buffer[i], text)),
                            KEY("category", category_names[b->category]), KEY("bytes", b->bytes)));
    }
    return OBJECT(KEY("op", plan_op_text(plan, plan->peak_op, text)), KEY("number", plan->peak_op),
                  KEY("tensors", tensors));
}

json_t *json_of_ops(const struct plan *plan)
{
    const struct lowered *l = &plan->lowered;
    region_auto *region = region_create();
    json_t *ops = json_array(), **frees;
    char text[128];
    NEW(region, frees, (size_t)l->ops + 1);
    for (int i = 0; i < l->ops; i++) frees[i] = json_array();
    for (int i = 0; i < l->buffers; i++) ADD(frees[l->buffer[i].death], plan_buffer_text(plan, i, text));
    for (int i = 0; i < l->ops; i++)
        ADD(ops, OBJECT(KEY("number", i), KEY("op", plan_op_text(plan, i, text)), KEY("name", plan_op_name(plan, i)),
                        KEY("pass", l->op[i].kind == OP_FORWARD ? "forward" : "backward"),
                        KEY("recompute", json_boolean(l->op[i].recompute)), KEY("live_bytes", plan->live[i]),
                        KEY("saves", json_boolean(l->op[i].save)), KEY("sets_peak", json_boolean(i == plan->peak_op)),
                        KEY("frees", frees[i])));
    return ops;
}

/* ---- stages ---- */

struct stage_counts {
    size_t saved_bytes, scratch_bytes; /* saved: as the plan saves; scratch: the most of any op */
    double forward_flops, backward_flops;
    int nodes, recomputed, recomputations; /* nodes recomputed at least once; recomputations in all */
};

/* The forwards of a node in a plan. */
struct node_forwards {
    bool saves;         /* some forward saves the node */
    int recomputations; /* of the batch, or a part of it */
};

static struct node_forwards *count_forwards(const struct plan *plan, struct region *region)
{
    const struct slicing slicing = graph_slicing(plan->network->graph);
    struct node_forwards *all;
    NEW(region, all, (size_t)plan->network->graph->nodes);
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->kind != OP_FORWARD) continue;
        all[op->node].saves |= op->save;
        all[op->node].recomputations += op->recompute;
    }
    for (int i = 0; i < slicing.nodes; i++)
        all[i].recomputations = (int)ratio_up(all[i].recomputations, slicing_calls(&slicing, i));
    return all;
}

static void count_node(struct stage_counts *stage, const struct plan *plan, int node,
                       const struct node_forwards *forwards)
{
    const struct network *network = plan->network;
    const struct node *n = &network->graph->node[node];
    const struct footprint *f = &network->binding[node].footprint;
    const bool params = network_parts(network, node) & PART_PARAMS, input = network_parts(network, node) & PART_INPUT;
    const size_t backward =
        larger(params ? f->backward_scratch[PART_INDEX_PARAMS] : 0, input ? f->backward_scratch[PART_INDEX_INPUT] : 0);
    stage->scratch_bytes =
        larger(stage->scratch_bytes, network_buffer_bytes(network, larger(f->forward_scratch, backward)));
    stage->forward_flops += n->flops.forward;
    stage->backward_flops += (params ? n->flops.backward_params : 0) + (input ? n->flops.backward_input : 0);
    if (forwards->saves) stage->saved_bytes += network_round(network, f->saved);
    stage->nodes += network_has_forward(network, node);
    stage->recomputed += forwards->recomputations > 0;
    stage->recomputations += forwards->recomputations;
}

/* "kept", "recomputed", "3 of 5 recomputed", "recomputed, 14 times in all" */
static const char *action_text(const struct stage_counts *stage, struct region *region)
{
    const char *text = stage->recomputed ? "recomputed" : "kept", *times = "";
    if (stage->recomputed && stage->recomputed < stage->nodes)
        text = region_text(region, "%d of %d recomputed", stage->recomputed, stage->nodes);
    if (stage->recomputations > stage->recomputed)
        times = region_text(region, ", %d times in all", stage->recomputations);
    return region_text(region, "%s%s", text, times);
}

/* The outermost group that holds the whole range; NULL: none. */
static const char *group_of(const struct graph *graph, struct node_range range)
{
    for (int i = 0; i < graph->groups; i++)
        if (graph->group[i].from <= range.from && range.to <= graph->group[i].to) return graph->group[i].name;
    return NULL;
}

/* A node's name without that of its group, which precedes it. */
static const char *within(const char *group, const char *name)
{
    const size_t length = group ? strlen(group) : 0;
    return length && strncmp(name, group, length) == 0 && name[length] == '.' ? name + length + 1 : name;
}

/* model: of a traced step, which says what gradients wait between stages. */
static json_t *json_of_stage(const struct plan_summary *s, const struct step_model *model, struct node_range range,
                             const struct node_forwards *forwards)
{
    const struct network *network = s->job->plan->network;
    const struct graph *graph = network->graph;
    int from = range.from; /* the first that has a forward */
    while (!network_has_forward(network, from)) from++;
    const char *first = graph->node[from].name, *last = graph->node[range.to - 1].name;
    const char *group = group_of(graph, range);
    const bool timed = !network->backend; /* times of a file stand for flops */
    const struct value *output = &graph->value[graph->node[range.to - 1].output];
    const size_t gradient = network->traced ? step_gradients(model, range.to - 1) : output->gradient_bytes;
    struct stage_counts stage = {.nodes = 0};
    char shape[96];
    for (int i = range.from; i < range.to; i++) count_node(&stage, s->job->plan, i, &forwards[i]);
    return OBJECT(
        KEY("stage", region_text(s->region, "%s%s%s%s%s", group ? group : "", group ? ": " : "", within(group, first),
                                 stage.nodes > 1 ? " .. " : "", stage.nodes > 1 ? within(group, last) : "")),
        KEY("first", first), KEY("last", last), KEY("group", group), KEY("shape", shape_print(&output->shape, shape)),
        KEY("output_bytes", network_round(network, output->bytes)), KEY("gradient_bytes", gradient),
        KEY("saved_bytes", stage.saved_bytes), KEY("scratch_bytes", stage.scratch_bytes),
        KEY(timed ? "forward_time" : "forward_flops", stage.forward_flops),
        KEY(timed ? "backward_time" : "backward_flops", stage.backward_flops), KEY("nodes", stage.nodes),
        KEY("recomputations", stage.recomputations), KEY("action", action_text(&stage, s->region)));
}

/* ---- the whole ---- */

bool plan_summary_fits(const struct plan_summary *summary)
{
    return plan_peak(summary->job->plan) <= summary->machine.bytes;
}

/* A library names its slow fallback "ref..."; a kernel that uses several calls names them all. Where backend ref was
 * chosen, its speed is no surprise. */
static void add_slow(struct plan_summary *s)
{
    const struct network *network = s->job->plan->network;
    const bool chosen = !network->backend || !strcmp(network->backend->kind->name, "ref");
    json_t *names = json_array();
    for (int i = 0; i < network->graph->nodes && !chosen; i++) {
        const char *implementation = network->binding[i].footprint.implementation;
        if (!strncmp(implementation, "ref", 3) || strstr(implementation, " ref"))
            ADD(names, network->graph->node[i].name);
    }
    PUT(s->json, "slow_nodes", names);
}

/* Why checkpointing does not help. */
static void add_reasons(struct plan_summary *s)
{
    static const double mostly = 0.8;
    const struct plan *plan = s->job->plan;
    json_t *notes = json_array();
    char op[128];
    const size_t fixed = plan_static(plan), stored = fixed + s->store_all_live;
    bool kept = plan->recomputations > 0; /* the peak, before the first recomputation, is of what it keeps */
    for (int i = 0; i <= plan->peak_op; i++) kept &= !plan->lowered.op[i].recompute;
    PUT(s->json, "notes", notes);
    const int stages = (int)json_number_at(s->json, "stages");
    if (!s->job->backend && json_array_size(json_object_get(s->json, "choices")) > 1 && stages > CHAIN_FRONT_STAGES)
        json_note(notes, "without the front of optimal, which is found for up to %d stages; this network has %d",
                  CHAIN_FRONT_STAGES, stages);
    if ((double)fixed >= mostly * (double)stored)
        json_note(notes,
                  "parameters, gradients, optimizer and running state and the batch are %s, %.0f %% of what storing "
                  "everything needs; no "
                  "checkpointing touches them",
                  BYTES_TEXT(fixed), 100 * (double)fixed / (double)stored);
    if (plan->recomputations == 0 && plan->live_peak >= s->store_all_live &&
        s->job->spec->policy != policy_find("store_all"))
        json_note(notes, "policy %s recomputes nothing on this network: it stores everything",
                  s->job->spec->policy->name);
    if (plan->recomputations && plan->live_peak >= s->store_all_live)
        json_note(notes,
                  "this plan's live peak, %s, is not below the %s of storing everything: the recomputation costs "
                  "time and saves nothing",
                  BYTES_TEXT(plan->live_peak), BYTES_TEXT(s->store_all_live));
    if (kept)
        json_note(notes,
                  "the peak, at %s, comes before the first recomputation: what this policy keeps sets it, and "
                  "recomputing more elsewhere does not lower it",
                  plan_op_text(plan, plan->peak_op, op));
}

static void add_choice(struct plan_summary *s, const struct policy *policy, const struct plan_numbers *plan,
                       bool recomputes)
{
    const struct bounds bounds = bounds_find(s->job->network, plan->live_peak);
    ADD(json_object_get(s->json, "choices"),
        OBJECT(KEY("policy", policy->name), KEY("live_peak_bytes", plan->live_peak), KEY("peak_bytes", plan->peak),
               KEY("time", plan->time), KEY("slowdown", bounds_slowdown(&bounds, plan->time)),
               KEY("gap_percent", bounds_gap(&bounds, plan->time)),
               KEY("fits", json_boolean(plan->peak <= s->machine.bytes)),
               KEY("remark", recomputes ? NULL : "recomputes nothing")));
}

/* The plan of a policy with its presets, not placed: the peak is that of its live bytes. One that requires a setting,
 * or does not fit the network, is left out; so is one that searches for a budget, in a large network. */
static enum status add_policy(struct plan_summary *s, const struct policy *policy)
{
    struct plan_options options = job_plan_options(s->job);
    plan_auto *plan = NULL;
    for (const struct setting *f = policy->keys; f && f->key; f++)
        if (!f->preset) return ST_OK;
    if (s->job->graph->nodes > SEARCHED_NODES_MAX && policy->fills) return ST_OK;
    const struct policy_settings settings = policy_defaults(policy, s->region);
    options.unplaced = true;
    enum status status = policy_plan(policy, &(struct policy_input){s->job->network, &settings, &options}, &plan);
    if (status == ST_SPEC) return ST_OK;
    TRY(status);
    const struct plan_numbers json = plan_numbers(plan);
    if (policy == policy_find("store_all")) s->store_all_live = json.live_peak;
    add_choice(s, policy, &json, plan->recomputations > 0);
    return ST_OK;
}

/* The front of `optimal`, with points at equal distances as choices, its ends among them. */
static enum status add_front(struct plan_summary *s, const struct policy *policy)
{
    const struct graph *graph = s->job->graph;
    const struct plan_options options = {.lower = {.drop_dead = true, .rng = RNG_COUNTER}};
    const int stages = stages_find(graph, s->region).count;
    if (stages > CHAIN_FRONT_STAGES) return ST_OK;
    struct pool *pool;
    if (stages == graph->nodes) { /* other engines take longer than the front of a chain, and add next to nothing */
        pool = pool_create(s->job->network, &options, NULL);
        optimum_within(pool->chain, SIZE_MAX);
        pool_add_chain(pool);
    } else {
        pool = rivals_front(s->job->network, &options);
    }
    const struct member *const *origin;
    const struct front front = pool_front(pool, s->region, &origin);
    const int rows = front.count < FRONT_ROWS ? front.count : FRONT_ROWS;
    const double noise = 1e-12; /* sums of the same times in another order */
    json_t *points = json_array();
    for (int i = 0; i < front.count; i++)
        ADD(points, json_pack("{s:o, s:o}", "peak_bytes", json_of_unsigned(front.point[i].peak), "time",
                              json_of_real(front.point[i].time)));
    PUT_ALL(s->json, KEY("front", points), KEY("front_approximation", pool_approximation(pool)));
    for (int row = 0; row < rows; row++) {
        const struct point *p = &front.point[rows > 1 ? row * (front.count - 1) / (rows - 1) : 0];
        add_choice(s, policy, &(struct plan_numbers){.live_peak = p->peak, .peak = p->peak, .time = p->time},
                   p->time > s->job->bounds.floor * (1 + noise));
    }
    pool_destroy(pool);
    return ST_OK;
}

/* all: else only store_all, to which every plan is compared. */
static enum status add_choices(struct plan_summary *s, bool all)
{
    PUT_ALL(s->json, KEY("choices", json_array()), KEY("choices_nodes_max", SEARCHED_NODES_MAX));
    if (!all) return add_policy(s, policy_find("store_all"));
    for (const struct policy *const *policy = policy_table; *policy; policy++) {
        const bool front = !s->job->backend && *policy == policy_find("optimal");
        TRY((front ? add_front : add_policy)(s, *policy));
    }
    return ST_OK;
}

static enum status gather(struct plan_summary *s, bool choices)
{
    const struct job *job = s->job;
    const struct plan *plan = job->plan;
    const struct node_ranges stages = stages_find(plan->network->graph, s->region);
    const struct node_forwards *forwards = count_forwards(plan, s->region);
    struct step_model model = {.network = plan->network};
    json_t *all = s->json, *placing = json_null(), *rows = json_array();
    const bool budget = job->budget_bounds.budget > 0, timed = !job->backend;
    if (job->notes.tries)
        placing =
            OBJECT(KEY("tries", job->notes.tries), KEY("loss_slowdown", bounds_slowdown(&job->bounds, job->notes.lost)),
                   KEY("promised_live_peak_bytes", job->notes.live_peak));
    PUT_ALL(all, KEY("name", job->spec->name), KEY("policy", job->spec->policy->name),
            KEY("backend", job->spec->backend), KEY("batch", job->spec->batch));
    if (job->spec->graph) PUT(all, "mapping", job->spec->graph->mapping);
    add_plan(plan, all);
    PUT_ALL(all, KEY("sampled_after_forward_bytes", plan_sampled_forward(plan)),
            KEY("sampled_after_gradients_bytes", plan_static(plan)),
            KEY(timed ? "forward_time" : "forward_flops", plan->forward_flops),
            KEY(timed ? "backward_time" : "backward_flops", plan->backward_flops),
            KEY(timed ? "recompute_time" : "recompute_flops", plan->recompute_flops), KEY("costs", job_costs(job)));
    if (job->costs) PUT(all, "predicted_step_ns", costs_predict(job->costs, plan));
    PUT_ALL(all, KEY("planning_ms", (double)job->planning_ns * 1e-6),
            KEY("preparing_ms", (double)job->preparing_ns * 1e-6), KEY("checking_ms", (double)job->checking_ns * 1e-6),
            KEY("peak", json_of_peak(plan)), KEY("bounds", json_of_bounds(&job->bounds, plan)),
            KEY("budget_bounds", budget ? json_of_bounds(&job->budget_bounds, plan) : json_null()),
            KEY("placing", placing), KEY("policy_found", *job->notes.found ? job->notes.found : NULL),
            KEY("machine_bytes", s->machine.bytes), KEY("machine_limit", s->machine.limit),
            KEY("fits", json_boolean(plan_summary_fits(s))));
    if (plan->network->traced) model = step_model_create(plan->network, &plan->options.lower, s->region);
    for (int i = 0; i < stages.count; i++) ADD(rows, json_of_stage(s, &model, stages.range[i], forwards));
    PUT_ALL(all, KEY("stages", stages.count), KEY("table", rows));
    TRY(add_choices(s, choices));
    PUT(all, "store_all_live_peak_bytes", s->store_all_live);
    add_reasons(s);
    add_slow(s);
    return ST_OK;
}

enum status plan_summary_create(const struct job *job, bool choices, struct plan_summary **summary)
{
    struct region *region = region_create();
    struct plan_summary *s = region_array(region, 1, sizeof *s);
    *s = (struct plan_summary){.region = region, .job = job, .json = json_object(), .machine = {UINT64_MAX, "nothing"}};
    if (job->backend) s->machine = memory_left(job->backend);
    work_line_begin();
    const enum status status = gather(s, choices);
    work_line_end();
    *summary = status == ST_OK ? s : NULL;
    if (status != ST_OK) plan_summary_destroy(s);
    return status;
}

void plan_summary_destroy(struct plan_summary *summary)
{
    if (!summary) return;
    json_decref(summary->json);
    region_destroy(summary->region);
}

void plan_summary_json(const struct plan_summary *summary, bool ops, FILE *out)
{
    struct plan_data data;
    plan_to_data(summary->job->plan, summary->region, &data);
    PUT(summary->json, "node_table", node_rows(&data, !summary->job->backend, summary->region));
    if (ops)
        PUT_ALL(summary->json, KEY("ops", json_of_ops(summary->job->plan)),
                KEY("step", json_of_step(summary->job->plan)));
    json_answer(json_incref(summary->json), "plan", out);
}
