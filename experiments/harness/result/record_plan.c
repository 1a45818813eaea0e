/* The plan as tables of nodes, parameters, ops and buffers. Contract: reading returns exactly what was written, or
 * fails.
 */
#include "result/record_plan.h"
#include "result/h5_write.h"

#include <stdio.h>
#include <string.h>

#define OP(member)        offsetof(struct op, member)
#define BUFFER(member)    offsetof(struct buffer, member)
#define NODE(member)      offsetof(struct plan_data_node, member)
#define FOOTPRINT(member) NODE(footprint.member)
#define PARAMETER(member) offsetof(struct plan_data_parameter, member)
#define DATA(member)      offsetof(struct plan_data, member)
#define BOUND(member)     offsetof(struct record_bounds, member)

const struct field record_op_columns[] = {
    {"kind", NUMBER_U32, 1, OP(kind), NULL, "0 forward, 1 backward, 2 copy, 3 accumulate, 4 update"},
    {"node", NUMBER_I32, 1, OP(node), NULL, "row of /plan/nodes"},
    {"parts", NUMBER_U32, 1, OP(parts), NULL, "of a backward: 1 parameters, 2 input, 3 both"},
    {"recompute", NUMBER_U8, 1, OP(recompute), NULL, "1: a forward that is not the node's first"},
    {"save", NUMBER_U8, 1, OP(save), NULL, "1: a forward that writes its saved tensors"},
    {"x", NUMBER_I32, NODE_INPUTS_MAX, OP(x), NULL, "rows of /plan/buffers; -1 none, -2 the batch"},
    {"y", NUMBER_I32, 1, OP(y), NULL, "row of /plan/buffers; -1 none"},
    {"dx", NUMBER_I32, NODE_INPUTS_MAX, OP(dx), NULL, "rows of /plan/buffers; -1 none"},
    {"dy", NUMBER_I32, 1, OP(dy), NULL, "row of /plan/buffers; -1 none"},
    {"saved", NUMBER_I32, 1, OP(saved), NULL, "row of /plan/buffers; -1 none"},
    {"scratch", NUMBER_I32, 1, OP(scratch), NULL, "row of /plan/buffers; -1 none"},
    {"once", NUMBER_I32, 1, OP(once), NULL,
     "buffer written at the first forward only: a stash, a mask or statistics; -1 none"},
    {"bytes", NUMBER_U64, 1, OP(bytes), "byte", "of a copy or an accumulate"},
    {"gradients", NUMBER_I32, 1, OP(gradients), NULL,
     "of a fused update: buffer of the node's parameters' gradients; -1 none", true},
    {"part", NUMBER_I32, 1, OP(part), NULL, "of those gradients, from 1; 0 all", true},
    {"slice", NUMBER_I32, 1, OP(slice), NULL, "of the batch, from 0; -1 the whole batch", true},
    {0},
};

static const struct field live_columns[] = {
    {"live", NUMBER_U64, 1, 0, "byte", "predicted live bytes of the arena while the op runs"}, {0}};

const struct field record_buffer_columns[] = {
    {"category", NUMBER_U32, 1, BUFFER(category), NULL,
     "0 activation, 1 saved, 2 gradient, 3 scratch, 4 gradients of parameters"},
    {"node", NUMBER_I32, 1, BUFFER(node), NULL,
     "row of /plan/nodes that it belongs to; of a gradient: that writes its value"},
    {"bytes", NUMBER_U64, 1, BUFFER(bytes), "byte", "rounded up to 256"},
    {"birth", NUMBER_I32, 1, BUFFER(birth), NULL, "first op that uses it"},
    {"death", NUMBER_I32, 1, BUFFER(death), NULL, "last op that uses it"},
    {"offset", NUMBER_U64, 1, BUFFER(offset), "byte", "place in the arena"},
    {"slice", NUMBER_I32, 1, BUFFER(slice), NULL, "of the batch, that it holds; -1 the whole batch", true},
    {0},
};

const struct field record_model_columns[] = {
    {"inputs", NUMBER_I32, NODE_INPUTS_MAX, NODE(inputs), NULL,
     "values: 0 the batch, i + 1 what node i writes; -1 none"},
    {"elements", NUMBER_U64, 1, NODE(elements), NULL, "of the value it writes, a sample"},
    {"draws", NUMBER_U64, 1, NODE(draws), NULL, "random numbers that its forward draws for a sample"},
    {"wants_gradient", NUMBER_U8, 1, NODE(wants_gradient), NULL, "1: the value it writes needs a gradient"},
    {"forward_flops", NUMBER_F64, 1, NODE(forward_flops), "flop", "of the batch; a multiply-add counts as two"},
    {"once_flops", NUMBER_F64, 1, NODE(once_flops), "flop", "of its first forward besides: statistics of the batch"},
    {"backward_params_flops", NUMBER_F64, 1, NODE(backward_flops[PART_INDEX_PARAMS]), "flop", NULL},
    {"backward_input_flops", NUMBER_F64, 1, NODE(backward_flops[PART_INDEX_INPUT]), "flop", NULL},
    {"parameter_gradient_bytes", NUMBER_U64, 1, FOOTPRINT(gradients), "byte",
     "of a fused update: of its parameters' gradients, or the largest part; 0: they are static", true},
    {"part_elements", NUMBER_U64, 1, FOOTPRINT(part_elements), NULL,
     "of its first parameter, in a part of a fused update; 0: all", true},
    {"adds", NUMBER_U32, 1, FOOTPRINT(adds), NULL,
     "bits of parameters to whose gradients a slice's backward adds without scratch", true},
    {"tied", NUMBER_I32, 1, NODE(tied), NULL, "1 + the row of /plan/parameters that it shares; 0: none", true},
    {"whole", NUMBER_U8, 1, NODE(whole), NULL, "1: it computes the whole batch at once, 0: a slice at a time", true},
    {0},
};

const struct field record_node_columns[] = {
    {"output_bytes", NUMBER_U64, 1, NODE(output_bytes), "byte", "of the value it writes, in its layout"},
    {"gradient_bytes", NUMBER_U64, 1, NODE(gradient_bytes), "byte", "of that value's gradient; 0: it has none"},
    {"saved_bytes", NUMBER_U64, 1, FOOTPRINT(saved), "byte", "of its saved tensors"},
    {"once_bytes", NUMBER_U64, 1, FOOTPRINT(once), "byte", "that its first forward writes: statistics of the batch"},
    {"forward_scratch_bytes", NUMBER_U64, 1, FOOTPRINT(forward_scratch), "byte", NULL},
    {"backward_scratch_bytes", NUMBER_U64, 2, FOOTPRINT(backward_scratch), "byte", "for parameters, for the input"},
    {"reads", NUMBER_U32, 2, FOOTPRINT(reads), NULL,
     "by its backward for parameters, for the input: 1 x, 2 y, 4 saved tensors, 8 its first input alone"},
    {"split", NUMBER_U8, 1, FOOTPRINT(split), NULL, "1: its backward may be two ops, parameters first"},
    {"y_over_x", NUMBER_U8, 1, FOOTPRINT(y_over_x), NULL, "1: y may be written over x"},
    {"dx_over_dy", NUMBER_U8, 1, FOOTPRINT(dx_over_dy), NULL, "1: dx may be written over dy"},
    {"writes_dy", NUMBER_U8, 1, FOOTPRINT(writes_dy), NULL, "1: the first part of its backward writes in place on dy"},
    {"passes_gradient", NUMBER_U8, 1, FOOTPRINT(passes_gradient), NULL, "1: dx is dy, there is no op for the input"},
    {0},
};

/* Not compared between networks: the times may be measured. */
static const struct field cost_columns[] = {
    {"forward_cost", NUMBER_F64, 1, NODE(forward_time), NULL,
     "time in planning: flop; ns where /plan@costs is measured; in the graph file's unit where it is file"},
    {"once_cost", NUMBER_F64, 1, NODE(once_time), NULL, "of its first forward besides; likewise"},
    {"backward_cost", NUMBER_F64, 2, NODE(backward_time), NULL, "for parameters, for the input; likewise"},
    {0},
};

const struct field record_name_columns[] = {
    {"name", NUMBER_TEXT, 1, NODE(name)},
    {"layer", NUMBER_TEXT, 1, NODE(layer)},
    {"shape", NUMBER_TEXT, 1, NODE(shape)},
    {0},
};

/* Not compared, either. */
static const struct field remark_columns[] = {
    {"group", NUMBER_TEXT, 1, NODE(group)},
    {"implementation", NUMBER_TEXT, 1, FOOTPRINT(implementation)},
    {0},
};

const struct field record_parameter_columns[] = {
    {"node", NUMBER_I32, 1, PARAMETER(node), NULL, "row of /plan/nodes"},
    {"elements", NUMBER_U64, 1, PARAMETER(elements), NULL, "of 4 bytes each"},
    {"name", NUMBER_TEXT, 1, PARAMETER(name)},
    {"shape", NUMBER_TEXT, 1, PARAMETER(shape)},
    {"frozen", NUMBER_U8, 1, PARAMETER(frozen), NULL, "1: it is not trained", .later = true},
    {0},
};

const struct field record_settings[] = {
    {"batch", NUMBER_U64, 1, DATA(batch)},
    {"granularity", NUMBER_U64, 1, DATA(granularity)},
    {"rng", NUMBER_U64, 1, DATA(rng)},
    {"drop_dead", NUMBER_U64, 1, DATA(drop_dead)},
    {"slices", NUMBER_U64, 1, DATA(slices), NULL, NULL, true},
    {0},
};

const struct field record_static_settings[] = {
    {"batch_bytes", NUMBER_U64, 1, DATA(batch_bytes)},
    {"device_bytes", NUMBER_U64, 1, DATA(device_bytes)},
    {"optimizer_copies", NUMBER_U64, 1, DATA(optimizer_copies)},
    {0},
};

static const struct field other_settings[] = {
    {"evaluation_arena_bytes", NUMBER_U64, 1, DATA(evaluation_arena)},
    {"peak_op", NUMBER_TEXT, 1, DATA(peak_op)},
    {"hash", NUMBER_TEXT, 1, DATA(hash)},
    {0},
};

static const struct field *const settings[] = {record_settings, record_static_settings, other_settings};
enum { SETTINGS = sizeof settings / sizeof *settings };

const struct field record_bound_columns[] = {
    {"memory_floor_bytes", NUMBER_U64, 1, BOUND(floor)},
    {"knapsack_slowdown", NUMBER_F64, 1, BOUND(knapsack)},
    {"binomial_slowdown", NUMBER_F64, 1, BOUND(binomial)},
    {"closure_slowdown", NUMBER_F64, 1, BOUND(closure)},
    {"gap_percent", NUMBER_F64, 1, BOUND(gap)},
    {0},
};

const struct field record_budget_columns[] = {
    {"budget_arena_bytes", NUMBER_U64, 1, BOUND(budget)},
    {"budget_bound_slowdown", NUMBER_F64, 1, BOUND(budget_bound)},
    {"budget_gap_percent", NUMBER_F64, 1, BOUND(budget_gap)},
    {0},
};

/* Of a traced step alone. */
#define ROW(type, member) offsetof(struct plan_data_##type, member)

static const struct field operator_columns[] = {
    {"backward", NUMBER_TEXT, 1, ROW(operator, backward)},
    {"forward", NUMBER_U8, 1, ROW(operator, forward), NULL, "1: the node has a forward"},
    {"has_backward", NUMBER_U8, 1, ROW(operator, has_backward), NULL, "1: the operator `backward` is its backward"},
    {"runs_once", NUMBER_U8, 1, ROW(operator, runs_once), NULL, "1: its forward is not recomputed"},
    {"in_place", NUMBER_U8, 1, ROW(operator, in_place), NULL,
     "1: the backward's first output may take the place of a dead input"},
    {0},
};
static const struct field read_columns[] = {
    {"node", NUMBER_I32, 1, ROW(read, node), NULL, "row of /plan/nodes, whose pass reads"},
    {"of", NUMBER_I32, 1, ROW(read, of), NULL, "row of /plan/nodes, whose forward wrote it"},
    {"what", NUMBER_U32, 1, ROW(read, what), NULL, "0 the value, 1 the saved tensors, 2 what is written once"},
    {"backward", NUMBER_U8, 1, ROW(read, backward), NULL, "1: the backward reads, 0: the forward"},
    {0},
};
static const struct field tensor_columns[] = {
    {"name", NUMBER_TEXT, 1, ROW(tensor, name)},
    {"bytes", NUMBER_U64, 1, ROW(tensor, bytes), "byte", "written by a backward"},
    {"stays", NUMBER_U8, 1, ROW(tensor, stays), NULL, "1: live to the end of the step"},
    {0},
};
static const struct field use_columns[] = {
    {"node", NUMBER_I32, 1, ROW(use, node), NULL, "row of /plan/nodes, whose backward uses the tensor"},
    {"tensor", NUMBER_I32, 1, ROW(use, tensor), NULL, "row of /plan/tensors"},
    {"writes", NUMBER_U8, 1, ROW(use, writes), NULL, "1: writes it, 0: reads it"},
    {0},
};
static const struct field operand_columns[] = {
    {"op", NUMBER_I32, 1, ROW(operand, op), NULL, "row of /plan/ops"},
    {"buffer", NUMBER_I32, 1, ROW(operand, buffer), NULL, "row of /plan/buffers; -1 none"},
    {"writes", NUMBER_U8, 1, ROW(operand, writes), NULL, "1: the op writes it, 0: reads it"},
    {0},
};

/* The tables of struct plan_data. count, rows: its members. */
static const struct plan_table {
    const char *group, *scale;
    const struct field *columns;
    size_t count, rows, stride;
    bool traced; /* only in files of traced steps */
} tables[] = {
    {"/plan/nodes", "node", record_model_columns, DATA(nodes), DATA(node), sizeof(struct plan_data_node)},
    {"/plan/nodes", "node", record_node_columns, DATA(nodes), DATA(node), sizeof(struct plan_data_node)},
    {"/plan/nodes", "node", cost_columns, DATA(nodes), DATA(node), sizeof(struct plan_data_node)},
    {"/plan/nodes", "node", record_name_columns, DATA(nodes), DATA(node), sizeof(struct plan_data_node)},
    {"/plan/nodes", "node", remark_columns, DATA(nodes), DATA(node), sizeof(struct plan_data_node)},
    {"/plan/parameters", "parameter", record_parameter_columns, DATA(parameters), DATA(parameter),
     sizeof(struct plan_data_parameter)},
    {"/plan/running_states", "running_state", record_parameter_columns, DATA(states), DATA(state),
     sizeof(struct plan_data_parameter)},
    {"/plan/ops", "op", record_op_columns, DATA(ops), DATA(op), sizeof(struct op)},
    {"/plan/ops", "op", live_columns, DATA(ops), DATA(live), sizeof(size_t)},
    {"/plan/buffers", "buffer", record_buffer_columns, DATA(buffers), DATA(buffer), sizeof(struct buffer)},
    {"/plan/operators", "operator", operator_columns, DATA(operators), DATA(traced), sizeof(struct plan_data_operator),
     true},
    {"/plan/reads", "read", read_columns, DATA(reads), DATA(read), sizeof(struct plan_data_read), true},
    {"/plan/tensors", "tensor", tensor_columns, DATA(tensors), DATA(tensor), sizeof(struct plan_data_tensor), true},
    {"/plan/uses", "use", use_columns, DATA(uses), DATA(use), sizeof(struct plan_data_use), true},
    {"/plan/operands", "operand", operand_columns, DATA(operands), DATA(operand), sizeof(struct plan_data_operand),
     true},
};
enum { TABLES = sizeof tables / sizeof *tables };

/* ---- writing ---- */

void record_plan_names(const struct plan_data *data, struct region *region, struct record_plan_names *names)
{
    const struct plan_data *a = data;
    int peak_op = 0;
    char text[128];
    NEW(region, names->op, (size_t)a->ops);
    NEW(region, names->buffer, (size_t)a->buffers);
    NEW(region, names->peak, (size_t)a->buffers);
    names->peaks = 0;
    for (int i = 0; i < a->ops; i++) {
        names->op[i] = region_text(region, "%s", op_text(&a->op[i], plan_data_op_name(a, &a->op[i]), text));
        if (a->live[i] > a->live[peak_op]) peak_op = i;
    }
    for (int i = 0; i < a->buffers; i++) {
        const struct buffer *b = &a->buffer[i];
        names->buffer[i] = region_text(region, "%s", buffer_text(b, plan_data_buffer_name(a, b), text));
        if (b->birth <= peak_op && peak_op <= b->death) names->peak[names->peaks++] = names->buffer[i];
    }
}

static void write_costs(struct h5 *h5, const struct job *job)
{
    const struct costs *costs = job->costs;
    h5_attribute_text(h5, "/plan", "costs", job_costs(job));
    if (!costs) return;
    h5_attribute_text(h5, "/plan", "costs_file", costs->path);
    h5_attribute_text(h5, "/plan", "costs_run_id", costs->run_id);
    h5_attribute_text(h5, "/plan", "costs_digest_xxh3", DIGEST_TEXT(costs->digest));
    h5_attribute_f64(h5, "/plan", "costs_rest_ns", costs->rest);
    h5_attribute_f64(h5, "/plan", "costs_add_ns_per_byte", costs->add);
    h5_attribute_f64(h5, "/plan", "costs_copy_ns_per_byte", costs->copy);
    h5_attribute_f64(h5, "/plan", "predicted_step_ns", costs_predict(costs, job->plan));
}

struct record_bounds record_bounds(const struct bounds *own, const struct bounds *budget, double time)
{
    return (struct record_bounds){.floor = own->memory,
                                  .knapsack = bounds_slowdown(own, own->knapsack),
                                  .binomial = bounds_slowdown(own, own->binomial),
                                  .closure = bounds_slowdown(own, own->closure),
                                  .gap = bounds_gap(own, time),
                                  .budget = budget->budget,
                                  .budget_bound = bounds_slowdown(budget, budget->best),
                                  .budget_gap = bounds_gap(budget, time)};
}

/* The lower bounds, and what the policy reports about its plan. */
static void write_bounds(struct h5 *h5, const struct job *job)
{
    const struct record_bounds bounds = record_bounds(&job->bounds, &job->budget_bounds, job->plan->time);
    table_write_attributes(h5, "/plan", record_bound_columns, &bounds);
    if (bounds.budget) table_write_attributes(h5, "/plan", record_budget_columns, &bounds);
    if (*job->notes.found) h5_attribute_text(h5, "/plan", "policy_found", job->notes.found);
    if (job->notes.tries) {
        h5_attribute_u64(h5, "/plan", "promised_live_peak_bytes", job->notes.live_peak);
        h5_attribute_u64(h5, "/plan", "placing_tries", (uint64_t)job->notes.tries);
        h5_attribute_f64(h5, "/plan", "placing_loss_slowdown", bounds_slowdown(&job->bounds, job->notes.lost));
    }
}

static void write_numbers(struct h5 *h5, const struct job *job, const struct plan_data *a)
{
    for (int i = 0; i < COUNTS; i++) h5_attribute_u64(h5, "/plan", plan_data_count_names[i], a->count[i]);
    for (int i = 0; i < REALS; i++) h5_attribute_f64(h5, "/plan", plan_data_real_names[i], a->real[i]);
    for (int i = 0; i < SETTINGS; i++) table_write_attributes(h5, "/plan", settings[i], a);
    h5_attribute_u64(h5, "/plan", "labels", a->labels);
    h5_attribute_u64(h5, "/plan", "preparing_ns", job->preparing_ns);
    h5_attribute_u64(h5, "/plan", "planning_ns", job->planning_ns);
    h5_attribute_u64(h5, "/plan", "checking_ns", job->checking_ns);
    h5_attribute_text(h5, "/plan", "policy", job->spec->policy->name);
    h5_attribute_text(h5, "/plan", "source", job->spec->plan);
    write_costs(h5, job);
    write_bounds(h5, job);
}

static void write_memory(struct h5 *h5, const struct plan_data *a)
{
    const char *names[MEMORY_CATEGORIES];
    const hsize_t extent = MEMORY_CATEGORIES;
    for (int i = 0; i < MEMORY_CATEGORIES; i++)
        names[i] = i < (int)STATICS ? static_names[i] : category_names[i - (int)STATICS];
    h5_group(h5, "/memory");
    h5_texts(h5, "/memory/category", MEMORY_CATEGORIES, names);
    h5_scale(h5, "/memory/category", "category");
    h5_array(h5, "/memory/predicted", NUMBER_U64, 1, &extent, a->memory);
    h5_describe(h5, "/memory/predicted", "byte", "live while the op runs that sets the peak");
    h5_attach(h5, "/memory/predicted", 0, "/memory/category");
}

static int *count_of(const struct plan_table *table, struct plan_data *a)
{
    return (int *)(void *)((char *)a + table->count);
}

void record_plan(struct h5 *h5, const struct job *job)
{
    struct plan_data data = {0};
    struct record_plan_names names;
    region_auto *region = region_create();
    plan_to_data(job->plan, region, &data);
    data.evaluation_arena = job->evaluation ? job->evaluation->arena_bytes : 0;
    record_plan_names(&data, region, &names);
    h5_group(h5, "/plan");
    write_numbers(h5, job, &data);
    h5_text(h5, "/plan/schedule", data.schedule);
    for (const struct plan_table *t = tables; t < tables + TABLES; t++) {
        const void *rows;
        if (t->traced && !data.operators) continue;
        memcpy(&rows, (char *)&data + t->rows, sizeof rows);
        table_write(h5, t->group, t->scale, t->columns, (size_t)*count_of(t, &data), rows, t->stride);
    }
    h5_texts(h5, "/plan/ops/text", (size_t)data.ops, names.op);
    h5_texts(h5, "/plan/buffers/text", (size_t)data.buffers, names.buffer);
    h5_texts(h5, "/plan/peak_tensors", names.peaks, names.peak);
    write_memory(h5, &data);
}

/* ---- reading ---- */

static int rows_of(struct h5 *h5, const struct plan_table *table)
{
    enum { ROWS_MAX = 1 << 26 };
    char path[256];
    snprintf(path, sizeof path, "%s/%s", table->group, table->scale);
    if (table->traced && !h5_exists(h5, path)) return 0;
    uint64_t rows = h5_rows(h5, path);
    if (rows > ROWS_MAX) h5_refuse(h5, path, "has more rows than a plan can have");
    return h5->broken ? 0 : (int)rows;
}

static void read_numbers(struct h5 *h5, struct plan_data *a, bool added, struct region *region)
{
    for (int i = 0; i < COUNTS; i++)
        h5_read_value(h5, "/plan", plan_data_count_names[i], NUMBER_U64, false, &a->count[i], NULL);
    for (int i = 0; i < REALS; i++)
        h5_read_value(h5, "/plan", plan_data_real_names[i], NUMBER_F64, false, &a->real[i], NULL);
    a->slices = 1;
    a->labels = h5_read_attribute_u64(h5, "/plan", "labels", 1);
    for (int i = 0; i < SETTINGS; i++) table_read_attributes(h5, "/plan", settings[i], a, added, region);
    a->schedule = h5_read_text(h5, "/plan/schedule", region);
    const int categories = MEMORY_CATEGORIES - !added;
    if (!h5->broken && h5_rows(h5, "/memory/predicted") != (uint64_t)categories)
        h5_refuse(h5, "/memory/predicted", "has a different number of rows than there are categories");
    h5_read_rows(h5, "/memory/predicted", NUMBER_U64, 1, 0, (uint64_t)categories, a->memory);
}

/* Gives the ops their operands; rows that do not ascend are left for the check. */
static void take_operands(struct plan_data *data, struct region *region)
{
    for (int i = 0, to; i < data->operands; i = to) {
        const int at = data->operand[i].op;
        for (to = i + 1; to < data->operands && data->operand[to].op == at; to++) continue;
        if (at < 0 || at >= data->ops) continue;
        struct op *op = &data->op[at];
        op->reads = op->writes = 0;
        NEW(region, op->operand, (size_t)(to - i));
        for (int k = i; k < to; k++) {
            op->operand[k - i] = data->operand[k].buffer;
            *(data->operand[k].writes ? &op->writes : &op->reads) += 1;
        }
    }
}

const char *record_plan_claimed_by(struct h5 *h5, struct region *region)
{
    return h5_read_attribute_text(h5, "/plan", "claimed_by", "", region);
}

enum status record_plan_read(struct h5 *h5, struct region *region, struct plan_data *data)
{
    *data = (struct plan_data){0};
    for (const struct plan_table *t = tables; t < tables + TABLES; t++) *count_of(t, data) = rows_of(h5, t);
    TRY(h5_status(h5));
    const bool added = h5_exists(h5, "/plan/ops/gradients"); /* the columns and category of fused updates and slices */
    read_numbers(h5, data, added, region);
    for (const struct plan_table *t = tables; t < tables + TABLES; t++) {
        const size_t count = (size_t)*count_of(t, data);
        void *rows;
        if (t->traced && !count) continue;
        memcpy(&rows, (char *)data + t->rows, sizeof rows);
        if (!rows) rows = region_array(region, count, t->stride);
        memcpy((char *)data + t->rows, &rows, sizeof rows);
        table_read(h5, t->group, t->columns, count, rows, t->stride, added, region);
    }
    if (!h5->broken) take_operands(data, region);
    if (added) return h5_status(h5);
    for (int i = 0; i < data->nodes; i++) data->node[i].whole = true;
    for (int i = 0; i < data->ops; i++) data->op[i].gradients = data->op[i].slice = WHOLE_BATCH;
    for (int i = 0; i < data->buffers; i++) data->buffer[i].slice = WHOLE_BATCH;
    return h5_status(h5);
}

void record_plan_costs(const struct plan_data *data, struct cost *cost)
{
    for (int i = 0; i < data->nodes; i++) {
        const struct plan_data_node *n = &data->node[i];
        cost[i] = (struct cost){n->forward_time, n->once_time, {n->backward_time[0], n->backward_time[1]}};
    }
}
