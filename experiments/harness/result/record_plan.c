/* The plan as tables of nodes, parameters, ops and buffers. Contract: reading returns exactly what was written, or
 * fails.
 */
#include "result/record_plan.h"
#include "result/h5_write.h"

#include <string.h>

#define OP(member)        offsetof(struct op, member)
#define BUFFER(member)    offsetof(struct buffer, member)
#define NODE(member)      offsetof(struct plan_data_node, member)
#define PARAMETER(member) offsetof(struct plan_data_parameter, member)
#define ACCOUNT(member)   offsetof(struct plan_data, member)

const struct column record_op_columns[] = {
    {"kind", NUMBER_U32, 1, OP(kind), NULL, "0 forward, 1 backward, 2 copy, 3 accumulate"},
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
    {"once", NUMBER_I32, 1, OP(once), NULL, "buffer written at the first forward only: a stash or a mask; -1 none"},
    {"bytes", NUMBER_U64, 1, OP(bytes), "byte", "of a copy or an accumulate"},
    {0},
};

static const struct column live_columns[] = {
    {"live", NUMBER_U64, 1, 0, "byte", "predicted live bytes of the arena while the op runs"}, {0}};

const struct column record_buffer_columns[] = {
    {"category", NUMBER_U32, 1, BUFFER(category), NULL, "0 activation, 1 saved, 2 gradient, 3 scratch"},
    {"node", NUMBER_I32, 1, BUFFER(node), NULL,
     "row of /plan/nodes that it belongs to; of a gradient: that writes its value"},
    {"bytes", NUMBER_U64, 1, BUFFER(bytes), "byte", "rounded up to 256"},
    {"birth", NUMBER_I32, 1, BUFFER(birth), NULL, "first op that uses it"},
    {"death", NUMBER_I32, 1, BUFFER(death), NULL, "last op that uses it"},
    {"offset", NUMBER_U64, 1, BUFFER(offset), "byte", "place in the arena"},
    {0},
};

const struct column record_model_columns[] = {
    {"inputs", NUMBER_I32, NODE_INPUTS_MAX, NODE(inputs), NULL,
     "values: 0 the batch, i + 1 what node i writes; -1 none"},
    {"elements", NUMBER_U64, 1, NODE(elements), NULL, "of the value it writes, a sample"},
    {"draws", NUMBER_U64, 1, NODE(draws), NULL, "random numbers that its forward draws for a sample"},
    {"wants_gradient", NUMBER_U8, 1, NODE(wants_gradient), NULL, "1: the value it writes needs a gradient"},
    {"forward_flops", NUMBER_F64, 1, NODE(forward_flops), "flop", "of the batch; a multiply-add counts as two"},
    {"backward_params_flops", NUMBER_F64, 1, NODE(backward_flops[PART_INDEX_PARAMS]), "flop", NULL},
    {"backward_input_flops", NUMBER_F64, 1, NODE(backward_flops[PART_INDEX_INPUT]), "flop", NULL},
    {0},
};

const struct column record_node_columns[] = {
    {"output_bytes", NUMBER_U64, 1, NODE(output_bytes), "byte", "of the value it writes, in its layout"},
    {"gradient_bytes", NUMBER_U64, 1, NODE(gradient_bytes), "byte", "of that value's gradient; 0: it has none"},
    {"saved_bytes", NUMBER_U64, 1, NODE(saved), "byte", "of its saved tensors"},
    {"forward_scratch_bytes", NUMBER_U64, 1, NODE(forward_scratch), "byte", NULL},
    {"backward_scratch_bytes", NUMBER_U64, 2, NODE(backward_scratch), "byte", "for parameters, for the input"},
    {"reads", NUMBER_U32, 2, NODE(reads), NULL,
     "by its backward for parameters, for the input: 1 x, 2 y, 4 saved tensors"},
    {"split", NUMBER_U8, 1, NODE(split), NULL, "1: its backward may be two ops, parameters first"},
    {"y_over_x", NUMBER_U8, 1, NODE(y_over_x), NULL, "1: y may be written over x"},
    {"dx_over_dy", NUMBER_U8, 1, NODE(dx_over_dy), NULL, "1: dx may be written over dy"},
    {"writes_dy", NUMBER_U8, 1, NODE(writes_dy), NULL, "1: the first part of its backward writes in place on dy"},
    {"passes_gradient", NUMBER_U8, 1, NODE(passes_gradient), NULL, "1: dx is dy, there is no op for the input"},
    {0},
};

/* Not compared between networks: the times may be measured. */
static const struct column cost_columns[] = {
    {"forward_cost", NUMBER_F64, 1, NODE(forward_time), NULL,
     "time in planning: flop, or ns where /plan@costs is measured"},
    {"backward_cost", NUMBER_F64, 2, NODE(backward_time), NULL, "for parameters, for the input; likewise"},
    {0},
};

const struct text_column record_node_texts[] = {{"name", NODE(name)},
                                                {"layer", NODE(layer)},
                                                {"group", NODE(group)},
                                                {"shape", NODE(shape)},
                                                {"implementation", NODE(implementation)},
                                                {.name = NULL}};

static const struct column parameter_columns[] = {
    {"node", NUMBER_I32, 1, PARAMETER(node), NULL, "row of /plan/nodes"},
    {"elements", NUMBER_U64, 1, PARAMETER(elements), NULL, "of 4 bytes each"},
    {0},
};

static const struct text_column parameter_texts[] = {
    {"name", PARAMETER(name)}, {"shape", PARAMETER(shape)}, {.name = NULL}};

const struct column record_settings[] = {
    {"batch", NUMBER_U64, 1, ACCOUNT(batch), NULL, NULL},
    {"granularity", NUMBER_U64, 1, ACCOUNT(granularity), NULL, NULL},
    {"rng", NUMBER_U64, 1, ACCOUNT(rng), NULL, NULL},
    {"drop_dead", NUMBER_U64, 1, ACCOUNT(drop_dead), NULL, NULL},
    {0},
};

const struct column record_static_settings[] = {
    {"batch_bytes", NUMBER_U64, 1, ACCOUNT(batch_bytes), NULL, NULL},
    {"device_bytes", NUMBER_U64, 1, ACCOUNT(device_bytes), NULL, NULL},
    {"optimizer_copies", NUMBER_U64, 1, ACCOUNT(optimizer_copies), NULL, NULL},
    {0},
};

static const struct column evaluation_settings[] = {
    {"evaluation_arena_bytes", NUMBER_U64, 1, ACCOUNT(evaluation_arena), NULL, NULL},
    {0},
};

static const struct column *const settings[] = {record_settings, record_static_settings, evaluation_settings};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* ---- writing ---- */

/* A readable name of every op, or of every buffer. */
static void write_names(struct h5 *h5, const struct plan_data *a, bool ops, struct region *region)
{
    const char **texts;
    const int count = ops ? a->ops : a->buffers;
    char text[128];
    NEW(region, texts, (size_t)count);
    for (int i = 0; i < count; i++) {
        const char *node = a->node[ops ? a->op[i].node : a->buffer[i].node].name;
        texts[i] =
            region_text(region, "%s", ops ? op_text(&a->op[i], node, text) : buffer_text(&a->buffer[i], node, text));
    }
    h5_texts(h5, ops ? "/plan/ops/text" : "/plan/buffers/text", (size_t)count, texts);
}

/* The buffers that are live at the op that sets the peak. */
static void write_peak(struct h5 *h5, const struct plan *plan, struct region *region)
{
    const struct lowered *lowered = &plan->lowered;
    const char **texts;
    size_t count = 0;
    char text[128];
    NEW(region, texts, (size_t)lowered->buffers);
    for (int i = 0; i < lowered->buffers; i++) {
        const struct buffer *b = &lowered->buffer[i];
        if (b->birth <= plan->peak_op && plan->peak_op <= b->death)
            texts[count++] = region_text(region, "%s", plan_buffer_text(plan, i, text));
    }
    h5_texts(h5, "/plan/peak_tensors", count, texts);
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

static void write_figures(struct h5 *h5, const struct job *job, const struct plan_data *a)
{
    for (int i = 0; i < COUNTS; i++) h5_attribute_u64(h5, "/plan", plan_data_count_names[i], a->count[i]);
    for (int i = 0; i < REALS; i++) h5_attribute_f64(h5, "/plan", plan_data_real_names[i], a->real[i]);
    for (int i = 0; i < SETTINGS; i++)
        for (const struct column *c = settings[i]; c->name; c++)
            h5_attribute(h5, "/plan", c->name, c->number, (const char *)a + c->offset);
    write_costs(h5, job);
    h5_attribute_u64(h5, "/plan", "preparing_ns", job->preparing_ns);
    h5_attribute_u64(h5, "/plan", "planning_ns", job->planning_ns);
    h5_attribute_text(h5, "/plan", "policy", job->spec->policy->name);
    h5_attribute_text(h5, "/plan", "source", job->spec->plan);
    h5_attribute_text(h5, "/plan", "peak_op", a->peak_op);
    h5_attribute_text(h5, "/plan", "hash", a->hash);
}

static void write_tables(struct h5 *h5, const struct plan_data *a, struct region *region)
{
    const size_t nodes = (size_t)a->nodes, parameters = (size_t)a->parameters, ops = (size_t)a->ops;
    table_write(h5, "/plan/nodes", "node", record_model_columns, nodes, a->node, sizeof *a->node);
    table_add(h5, "/plan/nodes", "node", record_node_columns, nodes, a->node, sizeof *a->node);
    table_add(h5, "/plan/nodes", "node", cost_columns, nodes, a->node, sizeof *a->node);
    table_write_texts(h5, "/plan/nodes", record_node_texts, nodes, a->node, sizeof *a->node);
    table_write(h5, "/plan/parameters", "parameter", parameter_columns, parameters, a->parameter, sizeof *a->parameter);
    table_write_texts(h5, "/plan/parameters", parameter_texts, parameters, a->parameter, sizeof *a->parameter);
    table_write(h5, "/plan/ops", "op", record_op_columns, ops, a->op, sizeof *a->op);
    table_add(h5, "/plan/ops", "op", live_columns, ops, a->live, sizeof *a->live);
    write_names(h5, a, true, region);
    table_write(h5, "/plan/buffers", "buffer", record_buffer_columns, (size_t)a->buffers, a->buffer, sizeof *a->buffer);
    write_names(h5, a, false, region);
}

int record_bounds(const struct bounds *own, const struct bounds *budget, double time,
                  struct record_bound row[RECORD_BOUNDS])
{
    const struct record_bound all[RECORD_BOUNDS] = {
        {"memory_floor_bytes", true, (double)own->memory},
        {"knapsack_slowdown", false, bounds_slowdown(own, own->knapsack)},
        {"binomial_slowdown", false, bounds_slowdown(own, own->binomial)},
        {"gap_percent", false, bounds_gap(own, time)},
        {"budget_arena_bytes", true, (double)budget->budget},
        {"budget_bound_slowdown", false, bounds_slowdown(budget, budget->best)},
        {"budget_gap_percent", false, bounds_gap(budget, time)},
    };
    memcpy(row, all, sizeof all);
    return budget->budget ? RECORD_BOUNDS : 4;
}

/* The lower bounds, and what the policy reports about its plan. */
static void write_bounds(struct h5 *h5, const struct job *job)
{
    struct record_bound row[RECORD_BOUNDS];
    const int rows = record_bounds(&job->bounds, &job->budget_bounds, job->plan->time, row);
    for (int i = 0; i < rows; i++) {
        if (row[i].bytes)
            h5_attribute_u64(h5, "/plan", row[i].name, (uint64_t)row[i].value);
        else
            h5_attribute_f64(h5, "/plan", row[i].name, row[i].value);
    }
    if (*job->notes.found) h5_attribute_text(h5, "/plan", "policy_found", job->notes.found);
    if (job->notes.tries) {
        h5_attribute_u64(h5, "/plan", "promised_live_peak_bytes", job->notes.live_peak);
        h5_attribute_u64(h5, "/plan", "placing_tries", (uint64_t)job->notes.tries);
        h5_attribute_f64(h5, "/plan", "placing_loss_slowdown", bounds_slowdown(&job->bounds, job->notes.lost));
    }
}

void record_plan(struct h5 *h5, const struct job *job)
{
    struct plan_data data = {0};
    struct region *region = region_create();
    h5_group(h5, "/plan");
    plan_to_data(job->plan, region, &data);
    data.evaluation_arena = job->evaluation ? job->evaluation->arena_bytes : 0;
    write_figures(h5, job, &data);
    write_bounds(h5, job);
    h5_text(h5, "/plan/schedule", data.schedule);
    write_tables(h5, &data, region);
    write_peak(h5, job->plan, region);
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

/* ---- reading ---- */

static int rows_of(struct h5 *h5, const char *path)
{
    enum { ROWS_MAX = 1 << 26 };
    uint64_t rows = h5_rows(h5, path);
    if (rows > ROWS_MAX) h5_refuse(h5, path, "has more rows than a plan can have");
    return h5->broken ? 0 : (int)rows;
}

static void read_figures(struct h5 *h5, struct plan_data *a, struct region *region)
{
    for (int i = 0; i < COUNTS; i++) h5_read_attribute(h5, "/plan", plan_data_count_names[i], NUMBER_U64, &a->count[i]);
    for (int i = 0; i < REALS; i++) h5_read_attribute(h5, "/plan", plan_data_real_names[i], NUMBER_F64, &a->real[i]);
    for (int i = 0; i < SETTINGS; i++)
        for (const struct column *c = settings[i]; c->name; c++)
            h5_read_attribute(h5, "/plan", c->name, c->number, (char *)a + c->offset);
    a->peak_op = h5_read_attribute_text(h5, "/plan", "peak_op", NULL, region);
    a->hash = h5_read_attribute_text(h5, "/plan", "hash", NULL, region);
    a->schedule = h5_read_text(h5, "/plan/schedule", region);
    if (!h5->broken && h5_rows(h5, "/memory/predicted") != MEMORY_CATEGORIES)
        h5_refuse(h5, "/memory/predicted", "has a different number of rows than there are categories");
    h5_read_rows(h5, "/memory/predicted", NUMBER_U64, 1, 0, MEMORY_CATEGORIES, a->memory);
}

static void read_tables(struct h5 *h5, struct plan_data *a, struct region *region)
{
    const size_t nodes = (size_t)a->nodes, parameters = (size_t)a->parameters, ops = (size_t)a->ops;
    table_read(h5, "/plan/nodes", record_model_columns, nodes, a->node, sizeof *a->node);
    table_read(h5, "/plan/nodes", record_node_columns, nodes, a->node, sizeof *a->node);
    table_read(h5, "/plan/nodes", cost_columns, nodes, a->node, sizeof *a->node);
    table_read_texts(h5, "/plan/nodes", record_node_texts, nodes, a->node, sizeof *a->node, region);
    table_read(h5, "/plan/parameters", parameter_columns, parameters, a->parameter, sizeof *a->parameter);
    table_read_texts(h5, "/plan/parameters", parameter_texts, parameters, a->parameter, sizeof *a->parameter, region);
    table_read(h5, "/plan/ops", record_op_columns, ops, a->op, sizeof *a->op);
    table_read(h5, "/plan/ops", live_columns, ops, a->live, sizeof *a->live);
    table_read(h5, "/plan/buffers", record_buffer_columns, (size_t)a->buffers, a->buffer, sizeof *a->buffer);
}

enum status record_plan_read(struct h5 *h5, struct region *region, struct plan_data *data)
{
    struct plan_data *a = data;
    *a = (struct plan_data){.nodes = rows_of(h5, "/plan/nodes/node"),
                            .parameters = rows_of(h5, "/plan/parameters/parameter"),
                            .ops = rows_of(h5, "/plan/ops/op"),
                            .buffers = rows_of(h5, "/plan/buffers/buffer")};
    TRY(h5_status(h5));
    NEW(region, a->node, (size_t)a->nodes);
    NEW(region, a->parameter, (size_t)a->parameters);
    NEW(region, a->op, (size_t)a->ops);
    NEW(region, a->live, (size_t)a->ops);
    NEW(region, a->buffer, (size_t)a->buffers);
    read_figures(h5, a, region);
    read_tables(h5, a, region);
    return h5_status(h5);
}
