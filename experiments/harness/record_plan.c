/* The plan as columns: one table each for nodes, parameters, ops and buffers. Contract: every number as the plan has
 * it; bytes are bytes. */
#include "record_plan.h"

#include <stdlib.h>

#include "table.h"

#define OP(member)        offsetof(struct op, member)
#define BUFFER(member)    offsetof(struct buffer, member)
#define NODE(member)      offsetof(struct node_row, member)
#define PARAMETER(member) offsetof(struct parameter, member)

static const struct column op_columns[] = {
    {"kind", NUMBER_U32, 1, OP(kind), NULL, "0 forward, 1 backward, 2 copy, 3 accumulate"},
    {"node", NUMBER_I32, 1, OP(node), NULL, "row of /plan/nodes"},
    {"parts", NUMBER_U32, 1, OP(parts), NULL, "of a backward: 1 parameters, 2 input, 3 both"},
    {"replay", NUMBER_U8, 1, OP(replay), NULL, "1: a forward that is not the node's first"},
    {"save", NUMBER_U8, 1, OP(save), NULL, "1: a forward that writes its saved set"},
    {"x", NUMBER_I32, NODE_INPUTS_MAX, OP(x), NULL, "rows of /plan/buffers; -1 none, -2 the batch"},
    {"y", NUMBER_I32, 1, OP(y), NULL, "row of /plan/buffers; -1 none"},
    {"dx", NUMBER_I32, NODE_INPUTS_MAX, OP(dx), NULL, "rows of /plan/buffers; -1 none"},
    {"dy", NUMBER_I32, 1, OP(dy), NULL, "row of /plan/buffers; -1 none"},
    {"saved", NUMBER_I32, 1, OP(saved), NULL, "row of /plan/buffers; -1 none"},
    {"scratch", NUMBER_I32, 1, OP(scratch), NULL, "row of /plan/buffers; -1 none"},
    {"once", NUMBER_I32, 1, OP(once), NULL, "buffer written at the first forward only: a stash or a mask; -1 none"},
    {"bytes", NUMBER_U64, 1, OP(bytes), "byte", "of a copy or an accumulate"},
    {0},
};

static const struct column live_columns[] = {
    {"live", NUMBER_U64, 1, 0, "byte", "predicted live bytes of the arena while the op runs"}, {0}};

static const struct column buffer_columns[] = {
    {"category", NUMBER_U32, 1, BUFFER(category), NULL, "0 activation, 1 saved, 2 gradient, 3 scratch"},
    {"node", NUMBER_I32, 1, BUFFER(node), NULL, "row of /plan/nodes whose op made it"},
    {"bytes", NUMBER_U64, 1, BUFFER(bytes), "byte", "rounded up to 256"},
    {"birth", NUMBER_I32, 1, BUFFER(birth), NULL, "first op that uses it"},
    {"death", NUMBER_I32, 1, BUFFER(death), NULL, "last op that uses it"},
    {"offset", NUMBER_U64, 1, BUFFER(offset), "byte", "place in the arena"},
    {0},
};

/* What is told of a node, gathered from graph and binding. */
struct node_row {
    uint64_t output, saved, forward_scratch, backward_scratch[2];
    double forward, backward_params, backward_input;
    struct cost cost;
};

static const struct column node_columns[] = {
    {"output_bytes", NUMBER_U64, 1, NODE(output), "byte", "of the value it writes, in its layout"},
    {"saved_bytes", NUMBER_U64, 1, NODE(saved), "byte", "of its saved set"},
    {"forward_scratch_bytes", NUMBER_U64, 1, NODE(forward_scratch), "byte", NULL},
    {"backward_scratch_bytes", NUMBER_U64, 2, NODE(backward_scratch), "byte", "for parameters, for the input"},
    {"forward_flops", NUMBER_F64, 1, NODE(forward), "flop", "of the batch; a multiply-add counts as two"},
    {"backward_params_flops", NUMBER_F64, 1, NODE(backward_params), "flop", NULL},
    {"backward_input_flops", NUMBER_F64, 1, NODE(backward_input), "flop", NULL},
    {"forward_cost", NUMBER_F64, 1, NODE(cost.forward), NULL,
     "time in planning: flop, or ns where /plan@costs is measured"},
    {"backward_cost", NUMBER_F64, 2, NODE(cost.backward), NULL, "for parameters, for the input; likewise"},
    {0},
};

static const struct column parameter_columns[] = {
    {"node", NUMBER_I32, 1, PARAMETER(node), NULL, "row of /plan/nodes"},
    {"elements", NUMBER_U64, 1, PARAMETER(elements), NULL, "of 4 bytes each"},
    {0},
};

static void write_nodes(struct h5 *h5, const struct network *network, struct region *region)
{
    const struct graph *graph = network->graph;
    size_t count = (size_t)graph->nodes;
    struct node_row *rows;
    const char **name, **layer, **group, **implementation;
    if (NEW(region, rows, count) != ST_OK || NEW(region, name, count) != ST_OK || NEW(region, layer, count) != ST_OK ||
        NEW(region, group, count) != ST_OK || NEW(region, implementation, count) != ST_OK) {
        h5_check(h5, false, "find memory for", "/plan/nodes");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct node *node = &graph->node[i];
        const struct footprint *needs = &network->binding[i].footprint;
        rows[i] = (struct node_row){graph->value[node->output].bytes,
                                    needs->saved,
                                    needs->forward_scratch,
                                    {needs->backward_scratch[0], needs->backward_scratch[1]},
                                    node->flops.forward,
                                    node->flops.backward_params,
                                    node->flops.backward_input,
                                    network->cost[i]};
        name[i] = node->name;
        layer[i] = node->layer->name;
        group[i] = node->group >= 0 ? graph->group[node->group].name : "";
        implementation[i] = needs->implementation ? needs->implementation : "";
    }
    table_write(h5, "/plan/nodes", "node", node_columns, count, rows, sizeof *rows);
    h5_texts(h5, "/plan/nodes/name", count, name);
    h5_texts(h5, "/plan/nodes/layer", count, layer);
    h5_texts(h5, "/plan/nodes/group", count, group);
    h5_texts(h5, "/plan/nodes/implementation", count, implementation);
}

static void write_parameters(struct h5 *h5, const struct graph *graph, struct region *region)
{
    size_t count = (size_t)graph->parameters;
    const char **name, **shape;
    char text[96];
    if (NEW(region, name, count) != ST_OK || NEW(region, shape, count) != ST_OK) {
        h5_check(h5, false, "find memory for", "/plan/parameters");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        name[i] = graph->parameter[i].name;
        shape[i] = region_text(region, "%s", shape_print(&graph->parameter[i].definition.shape, text));
    }
    table_write(h5, "/plan/parameters", "parameter", parameter_columns, count, graph->parameter,
                sizeof *graph->parameter);
    h5_texts(h5, "/plan/parameters/name", count, name);
    h5_texts(h5, "/plan/parameters/shape", count, shape);
}

/* What plan_op_text() or plan_buffer_text() says of every row. */
static void write_plan_texts(struct h5 *h5, const char *path, const struct plan *plan, int count,
                             char *print(const struct plan *, int, char *), struct region *region)
{
    const char **texts;
    char text[128];
    bool ok = NEW(region, texts, (size_t)count) == ST_OK;
    for (int i = 0; ok && i < count; i++) ok = (texts[i] = region_text(region, "%s", print(plan, i, text)));
    if (h5_check(h5, ok, "find memory for", path)) h5_texts(h5, path, (size_t)count, texts);
}

/* The buffers that are live at the op that sets the peak, largest first as the plan lists them. */
static void write_peak(struct h5 *h5, const struct plan *plan, struct region *region)
{
    const struct lowered *lowered = &plan->lowered;
    const char **texts;
    size_t count = 0;
    char text[128];
    bool ok = NEW(region, texts, (size_t)lowered->buffers) == ST_OK;
    for (int i = 0; ok && i < lowered->buffers; i++) {
        const struct buffer *b = &lowered->buffer[i];
        if (b->birth > plan->peak_op || plan->peak_op > b->death) continue;
        ok = (texts[count++] = region_text(region, "%s", plan_buffer_text(plan, i, text)));
    }
    if (!h5_check(h5, ok, "find memory for", "/plan/peak_tensors")) return;
    h5_texts(h5, "/plan/peak_tensors", count, texts);
    h5_attribute_text(h5, "/plan", "peak_op", lowered->ops ? plan_op_text(plan, plan->peak_op, text) : "");
}

static void write_costs(struct h5 *h5, const struct job *job)
{
    const struct costs *costs = job->costs;
    char digest[33];
    h5_attribute_text(h5, "/plan", "costs", costs_names[job->spec->costs]);
    if (!costs) return;
    h5_attribute_text(h5, "/plan", "costs_file", costs->path);
    h5_attribute_text(h5, "/plan", "costs_digest_xxh3", digest_print(costs->digest, digest));
    h5_attribute_f64(h5, "/plan", "predicted_step_ns", costs_predict(costs, job->plan));
    h5_text(h5, "/plan/costs", costs->text);
}

static void write_figures(struct h5 *h5, const struct job *job)
{
    const struct plan *plan = job->plan;
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {
        {"static_bytes", plan_static(plan)},
        {"arena_bytes", plan->arena_bytes},
        {"peak_bytes", plan_peak(plan)},
        {"live_peak_bytes", plan->live_peak},
        {"sampled_forward_bytes", plan_sampled_forward(plan)},
        {"sampled_gradients_bytes", plan_sampled_gradients(plan)},
        {"replays", (uint64_t)plan->replays},
        {"dropped_replays", (uint64_t)plan->lowered.dropped},
        {"preparing_ns", job->preparing_ns},
        {"planning_ns", job->planning_ns},
    };
    char hash[33];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        h5_attribute_u64(h5, "/plan", counts[i].name, counts[i].value);
    h5_attribute_f64(h5, "/plan", "forward_flops", plan->forward_flops);
    h5_attribute_f64(h5, "/plan", "backward_flops", plan->backward_flops);
    h5_attribute_f64(h5, "/plan", "replay_flops", plan->replay_flops);
    h5_attribute_f64(h5, "/plan", "time", plan->time);
    h5_attribute_f64(h5, "/plan", "time_factor", plan->time_factor);
    write_costs(h5, job);
    h5_attribute_text(h5, "/plan", "policy", job->spec->policy->name);
    h5_attribute_text(h5, "/plan", "hash", digest_print(plan->hash, hash));
}

/* Lower bounds, with times as factors of the floor, as time_factor is; and what the policy says of its plan. */
static void write_bounds(struct h5 *h5, const struct job *job)
{
    const struct bounds *own = &job->bounds, *budget = &job->budget_bounds;
    h5_attribute_u64(h5, "/plan", "memory_floor_bytes", own->memory);
    h5_attribute_f64(h5, "/plan", "knapsack_factor", bounds_factor(own, own->knapsack));
    h5_attribute_f64(h5, "/plan", "binomial_factor", bounds_factor(own, own->binomial));
    h5_attribute_f64(h5, "/plan", "gap_percent", bounds_gap(own, job->plan->time));
    if (budget->budget) {
        h5_attribute_u64(h5, "/plan", "budget_arena_bytes", budget->budget);
        h5_attribute_f64(h5, "/plan", "budget_bound_factor", bounds_factor(budget, budget->best));
        h5_attribute_f64(h5, "/plan", "budget_gap_percent", bounds_gap(budget, job->plan->time));
    }
    if (job->notes.tries) {
        h5_attribute_u64(h5, "/plan", "promised_live_peak_bytes", job->notes.live_peak);
        h5_attribute_u64(h5, "/plan", "placing_tries", (uint64_t)job->notes.tries);
        h5_attribute_f64(h5, "/plan", "placing_loss_factor", bounds_factor(own, job->notes.lost));
    }
}

void record_plan(struct h5 *h5, const struct job *job)
{
    const struct plan *plan = job->plan;
    const struct lowered *lowered = &plan->lowered;
    struct region *region = region_create();
    h5_group(h5, "/plan");
    if (!h5_check(h5, region, "find memory for", "/plan")) return;
    write_figures(h5, job);
    write_bounds(h5, job);
    h5_text(h5, "/plan/word", plan->word);
    write_nodes(h5, plan->network, region);
    write_parameters(h5, plan->network->graph, region);
    table_write(h5, "/plan/ops", "op", op_columns, (size_t)lowered->ops, lowered->op, sizeof *lowered->op);
    table_add(h5, "/plan/ops", "op", live_columns, (size_t)lowered->ops, plan->live, sizeof *plan->live);
    write_plan_texts(h5, "/plan/ops/text", plan, lowered->ops, plan_op_text, region);
    table_write(h5, "/plan/buffers", "buffer", buffer_columns, (size_t)lowered->buffers, lowered->buffer,
                sizeof *lowered->buffer);
    write_plan_texts(h5, "/plan/buffers/text", plan, lowered->buffers, plan_buffer_text, region);
    write_peak(h5, plan, region);
    region_destroy(region);
}

void record_memory(struct h5 *h5, const struct plan *plan)
{
    const char *names[MEMORY_CATEGORIES];
    uint64_t bytes[MEMORY_CATEGORIES];
    const hsize_t extent = MEMORY_CATEGORIES;
    for (int i = 0; i < (int)STATICS; i++) {
        names[i] = static_names[i];
        bytes[i] = plan->static_bytes[i];
    }
    for (int i = 0; i < (int)CATEGORIES; i++) {
        names[(int)STATICS + i] = category_names[i];
        bytes[(int)STATICS + i] = plan->peak_by_category[i];
    }
    h5_group(h5, "/memory");
    h5_texts(h5, "/memory/category", MEMORY_CATEGORIES, names);
    h5_scale(h5, "/memory/category", "category");
    h5_array(h5, "/memory/predicted", NUMBER_U64, 1, &extent, bytes);
    h5_attribute_text(h5, "/memory/predicted", "units", "byte");
    h5_attribute_text(h5, "/memory/predicted", "long_name", "live while the op runs that sets the peak");
    h5_attach(h5, "/memory/predicted", 0, "/memory/category");
}
