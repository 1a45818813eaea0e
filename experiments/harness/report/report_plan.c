#include "report/report_tree.h"

#include <string.h>

#include "analysis/node_rows.h"
#include "result/record_plan.h"

const char *const report_phases[] = {"forward", "recompute", "backward", NULL};

static int phase_of(const struct op *op)
{
    if (op->kind != OP_FORWARD) return PHASE_BACKWARD;
    return op->recompute ? PHASE_RECOMPUTE : PHASE_FORWARD;
}

/* ---- ops and buffers: an array a column ---- */

static void push(json_t *table, const char *column, json_t *value)
{
    json_t *values = json_object_get(table, column);
    if (!values) json_object_set_new(table, column, values = json_array());
    ADD(values, value);
}

/* The bytes of one category at each op, added to sum. */
static json_t *live_of(const struct plan_data *a, enum category category, struct buffer *own, size_t *live, size_t *sum)
{
    json_t *bytes = json_array();
    int count = 0;
    for (int i = 0; i < a->buffers; i++)
        if (a->buffer[i].category == category) own[count++] = a->buffer[i];
    buffers_live(own, count, a->ops, live);
    for (int i = 0; i < a->ops; i++) {
        ADD(bytes, live[i]);
        sum[i] += live[i];
    }
    return bytes;
}

/* Without fused updates there are no gradients of parameters in the arena, the last category. */
static int categories_of(const struct plan_data *a)
{
    for (int i = 0; i < a->nodes; i++)
        if (a->node[i].footprint.gradients) return CATEGORIES;
    return CATEGORY_PARAMETER_GRADIENT;
}

static enum status add_live(const struct plan_data *a, const char *path, struct region *region, json_t *ops)
{
    json_t *live = json_object();
    struct buffer *own;
    size_t *one, *sum;
    NEW(region, own, (size_t)a->buffers);
    NEW(region, one, (size_t)a->ops + 1);
    NEW(region, sum, (size_t)a->ops);
    PUT(ops, "live_bytes", live);
    for (int c = 0; c < categories_of(a); c++)
        PUT(live, category_names[c], live_of(a, (enum category)c, own, one, sum));
    for (int i = 0; i < a->ops; i++)
        if (sum[i] != a->live[i])
            return fail(ST_SPEC, "%s: op %d has %zu bytes live; expected %zu, the sum of its buffers", path, i,
                        a->live[i], sum[i]);
    return ST_OK;
}

static json_t *buffer_columns(const struct plan_data *a)
{
    json_t *buffers = json_object();
    for (int i = 0; i < a->buffers; i++) {
        const struct buffer *b = &a->buffer[i];
        char text[128];
        push(buffers, "text", json_string(buffer_text(b, a->node[b->node].name, text)));
        push(buffers, "category", json_integer((int)b->category));
        push(buffers, "bytes", json_of_unsigned(b->bytes));
        push(buffers, "birth", json_integer(b->birth));
        push(buffers, "death", json_integer(b->death));
    }
    return buffers;
}

static enum status add_plan(struct result *r, const struct plan_data *a, json_t *plan)
{
    const bool timed = !strcmp(h5_read_attribute_text(&r->h5, "/plan", "costs", "", r->region), GRAPH_COSTS);
    json_t *ops = json_object(), *categories = json_array();
    for (int c = 0; c < categories_of(a); c++) ADD(categories, category_names[c]);
    PUT_ALL(plan, KEY("hash", a->hash), KEY("schedule", a->schedule), KEY("categories", categories),
            KEY("static_bytes", json_named(static_names, a->memory, STATICS)), KEY("ops", ops));
    for (int i = 0; i < a->ops; i++) {
        char text[128];
        push(ops, "text", json_string(op_text(&a->op[i], plan_data_op_name(a, &a->op[i]), text)));
        push(ops, "phase", json_integer(phase_of(&a->op[i])));
    }
    const enum status status = add_live(a, r->h5.path, r->region, ops);
    PUT_ALL(plan, KEY("buffers", buffer_columns(a)), KEY("nodes", node_rows(a, timed, r->region)));
    return status;
}

enum status report_plan(struct result *r, json_t **plan)
{
    struct plan_data data;
    TRY(record_plan_read(&r->h5, r->region, &data));
    if (plan_data_check(&data) != ST_OK)
        return fail(ST_SPEC, "%s: its plan is wrong: %s", r->h5.path, region_text(r->region, "%s", status_message()));
    *plan = json_object();
    const enum status status = add_plan(r, &data, *plan);
    if (status != ST_OK) json_decref(*plan);
    return status;
}
