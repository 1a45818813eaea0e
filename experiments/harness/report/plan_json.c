/* A plan as one JSON object, for programs. Bytes and flops are numbers, never texts. */
#include "report/plan_json.h"

#include "search/optimum.h"

static json_t *integer(size_t value) { return json_integer((json_int_t)value); }

static json_t *stages_json(const struct plan_summary *o)
{
    const struct graph *graph = o->job->graph;
    json_t *stages = json_array();
    for (int s = 0; s < o->stages; s++) {
        const struct stage_row *row = &o->stage[s];
        char shape[96], action[64];
        json_t *one = json_object();
        json_object_set_new(one, "first", json_string(graph->node[row->range.from].name));
        json_object_set_new(one, "last", json_string(graph->node[row->range.to - 1].name));
        json_object_set_new(one, "group", row->group ? json_string(row->group) : json_null());
        json_object_set_new(one, "shape", json_string(shape_print(&graph->value[row->output].shape, shape)));
        json_object_set_new(one, "output_bytes", integer(row->output_bytes));
        json_object_set_new(one, "gradient_bytes", integer(graph->value[row->output].gradient_bytes));
        json_object_set_new(one, "saved_bytes", integer(row->saved_bytes));
        json_object_set_new(one, "scratch_bytes", integer(row->scratch_bytes));
        json_object_set_new(one, "forward_flops", json_real(row->forward_flops));
        json_object_set_new(one, "backward_flops", json_real(row->backward_flops));
        json_object_set_new(one, "nodes", json_integer(row->nodes));
        json_object_set_new(one, "recomputations", json_integer(row->recomputations));
        json_object_set_new(one, "action", json_string(stage_action(row, action)));
        json_array_append_new(stages, one);
    }
    return stages;
}

json_t *plan_peak_json(const struct plan *plan, const struct tensor_row *tensor, int count)
{
    char text[128];
    json_t *peak = json_object(), *tensors = json_array();
    for (int i = 0; i < count; i++) {
        const struct buffer *b = &plan->lowered.buffer[tensor[i].buffer];
        json_t *one = json_object();
        json_object_set_new(one, "name", json_string(plan_buffer_text(plan, tensor[i].buffer, text)));
        json_object_set_new(one, "category", json_string(category_names[b->category]));
        json_object_set_new(one, "bytes", integer(b->bytes));
        json_array_append_new(tensors, one);
    }
    json_object_set_new(peak, "op", json_string(plan_op_text(plan, plan->peak_op, text)));
    json_object_set_new(peak, "number", json_integer(plan->peak_op));
    json_object_set_new(peak, "tensors", tensors);
    return peak;
}

static json_t *categories_json(const size_t *bytes, const char *const *names, int count)
{
    json_t *all = json_object();
    for (int i = 0; i < count; i++) json_object_set_new(all, names[i], integer(bytes[i]));
    return all;
}

static json_t *choices_json(const struct plan_summary *o)
{
    json_t *choices = json_array();
    for (int i = 0; i < o->choices; i++) {
        const struct choice_row *c = &o->choice[i];
        json_t *one = json_object();
        json_object_set_new(one, "policy", json_string(c->policy->name));
        json_object_set_new(one, "live_peak_bytes", integer(c->live_peak));
        json_object_set_new(one, "peak_bytes", integer(c->peak));
        json_object_set_new(one, "time", json_real(c->time));
        json_object_set_new(one, "slowdown", json_real(c->slowdown));
        json_object_set_new(one, "gap_percent", json_real(c->gap));
        json_object_set_new(one, "fits", json_boolean(c->peak <= o->machine.bytes));
        json_array_append_new(choices, one);
    }
    return choices;
}

static json_t *front_json(const struct front *front)
{
    json_t *points = json_array();
    for (int i = 0; i < front->count; i++)
        json_array_append_new(points, json_pack("{s:I, s:f}", "peak_bytes", (json_int_t)front->point[i].peak, "time",
                                                front->point[i].time));
    return points;
}

/* Names of the nodes that take the relu of the layer before. */
static json_t *relus_after_json(const struct graph *graph)
{
    json_t *names = json_array();
    for (int i = 0; i < graph->nodes; i++)
        if (graph->node[i].relu_of_input) json_array_append_new(names, json_string(graph->node[i].name));
    return names;
}

/* Names of the nodes whose relu keeps bits. */
static json_t *relu_bits_json(const struct network *network)
{
    json_t *names = json_array();
    for (int i = 0; i < network->graph->nodes; i++) {
        const struct footprint *f = &network->binding[i].footprint;
        if (f->signs && f->saved) json_array_append_new(names, json_string(network->graph->node[i].name));
    }
    return names;
}

json_t *plan_bounds_json(const struct bounds *bounds, const struct plan *plan)
{
    json_t *all = json_object();
    json_object_set_new(all, "live_bytes", integer(bounds->budget));
    json_object_set_new(all, "memory_floor_bytes", integer(bounds->memory));
    json_object_set_new(all, "memory_floor_node", json_string(plan->network->graph->node[bounds->memory_node].name));
    json_object_set_new(all, "knapsack_slowdown", json_real(bounds_slowdown(bounds, bounds->knapsack)));
    json_object_set_new(all, "binomial_slowdown", json_real(bounds_slowdown(bounds, bounds->binomial)));
    json_object_set_new(all, "best_slowdown", json_real(bounds_slowdown(bounds, bounds->best)));
    json_object_set_new(all, "gap_percent", json_real(bounds_gap(bounds, plan->time)));
    return all;
}

static json_t *placing_json(const struct job *job)
{
    json_t *all = json_object();
    json_object_set_new(all, "tries", json_integer(job->notes.tries));
    json_object_set_new(all, "loss_slowdown", json_real(bounds_slowdown(&job->bounds, job->notes.lost)));
    json_object_set_new(all, "promised_live_peak_bytes", integer(job->notes.live_peak));
    return all;
}

static json_t *notes_json(const struct plan_summary *o)
{
    json_t *notes = json_array();
    for (int i = 0; i < o->reasons; i++) json_array_append_new(notes, json_string(o->reason[i]));
    return notes;
}

static json_t *slow_json(const struct plan_summary *o)
{
    json_t *nodes = json_array();
    for (int i = 0; i < o->slow; i++)
        json_array_append_new(nodes, json_string(o->job->graph->node[o->slow_node[i]].name));
    return nodes;
}

json_t *plan_ops_json(const struct plan *plan)
{
    json_t *ops = json_array();
    for (int i = 0; i < plan->lowered.ops; i++) {
        char text[128];
        json_t *one = json_object();
        json_object_set_new(one, "op", json_string(plan_op_text(plan, i, text)));
        json_object_set_new(one, "live_bytes", integer(plan->live[i]));
        json_array_append_new(ops, one);
    }
    return ops;
}

void plan_figures_json(const struct plan *plan, json_t *all)
{
    char hash[33];
    json_object_set_new(all, "static_bytes", integer(plan_static(plan)));
    json_object_set_new(all, "live_peak_bytes", integer(plan->live_peak));
    json_object_set_new(all, "arena_bytes", integer(plan->arena_bytes));
    json_object_set_new(all, "peak_bytes", integer(plan_peak(plan)));
    json_object_set_new(all, "library_packing_bytes",
                        integer(plan->network->backend ? plan->network->backend->packing : 0));
    json_object_set_new(all, "static", categories_json(plan->static_bytes, static_names, STATICS));
    json_object_set_new(all, "live_peak", categories_json(plan->peak_by_category, category_names, CATEGORIES));
    json_object_set_new(all, "recomputations", json_integer(plan->recomputations));
    json_object_set_new(all, "time", json_real(plan->time));
    json_object_set_new(all, "slowdown", json_real(plan->slowdown));
    json_object_set_new(all, "nodes", json_integer(plan->network->graph->nodes));
    json_object_set_new(all, "schedule", json_string(plan->schedule));
    json_object_set_new(all, "relu_bits", relu_bits_json(plan->network));
    json_object_set_new(all, "relus_after_pools", relus_after_json(plan->network->graph));
    json_object_set_new(all, "hash", json_string(digest_print(plan->hash, hash)));
}

static void add_figures(json_t *all, const struct plan_summary *o)
{
    const struct plan *plan = o->job->plan;
    plan_figures_json(plan, all);
    json_object_set_new(all, "store_all_live_peak_bytes", integer(o->store_all_live));
    json_object_set_new(all, "sampled_after_forward_bytes", integer(plan_sampled_forward(plan)));
    json_object_set_new(all, "sampled_after_gradients_bytes", integer(plan_sampled_gradients(plan)));
    json_object_set_new(all, "forward_flops", json_real(plan->forward_flops));
    json_object_set_new(all, "backward_flops", json_real(plan->backward_flops));
    json_object_set_new(all, "recompute_flops", json_real(plan->recompute_flops));
    json_object_set_new(all, "costs", json_string(costs_names[o->job->spec->costs]));
    if (o->job->costs) json_object_set_new(all, "predicted_step_ns", json_real(costs_predict(o->job->costs, plan)));
    json_object_set_new(all, "stages", json_integer(o->stages));
    json_object_set_new(all, "planning_ms", json_real((double)o->job->planning_ns * 1e-6));
    json_object_set_new(all, "preparing_ms", json_real((double)o->job->preparing_ns * 1e-6));
}

void plan_summary_json(const struct plan_summary *overview, bool ops, FILE *out)
{
    const struct job *job = overview->job;
    const struct spec *spec = job->spec;
    json_t *all = json_object();
    json_object_set_new(all, "name", json_string(spec->name));
    json_object_set_new(all, "policy", json_string(spec->policy->name));
    json_object_set_new(all, "backend", spec->backend ? json_string(spec->backend) : json_null());
    json_object_set_new(all, "batch", json_integer(spec->batch));
    add_figures(all, overview);
    json_object_set_new(all, "peak", plan_peak_json(overview->job->plan, overview->tensor, overview->tensors));
    json_object_set_new(all, "bounds", plan_bounds_json(&job->bounds, job->plan));
    json_object_set_new(all, "budget_bounds",
                        job->budget_bounds.budget ? plan_bounds_json(&job->budget_bounds, job->plan) : json_null());
    json_object_set_new(all, "placing", job->notes.tries ? placing_json(job) : json_null());
    json_object_set_new(all, "policy_found", *job->notes.found ? json_string(job->notes.found) : json_null());
    json_object_set_new(all, "table", stages_json(overview));
    json_object_set_new(all, "machine_bytes",
                        overview->machine.bytes > INT64_MAX ? json_null() : integer(overview->machine.bytes));
    json_object_set_new(all, "machine_limit", json_string(overview->machine.limit));
    json_object_set_new(all, "fits", json_boolean(overview->needed <= overview->machine.bytes));
    json_object_set_new(all, "choices", choices_json(overview));
    if (overview->optimum) json_object_set_new(all, "front", front_json(&overview->optimum->front));
    json_object_set_new(all, "notes", notes_json(overview));
    json_object_set_new(all, "slow_nodes", slow_json(overview));
    if (ops) json_object_set_new(all, "ops", plan_ops_json(overview->job->plan));
    json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    fputc('\n', out);
    json_decref(all);
}
