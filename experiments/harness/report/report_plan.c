#include "report/report_tree.h"

#include <string.h>

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
        push(buffers, "bytes", figure_unsigned(b->bytes));
        push(buffers, "birth", json_integer(b->birth));
        push(buffers, "death", json_integer(b->death));
    }
    return buffers;
}

/* ---- nodes ---- */

/* Of a node: what of its memory is live when the forward ends, and which nodes read its output later. */
struct node_use {
    size_t kept, recomputations;
    struct readers {
        const char *names;
        int last;            /* node; -1: none */
    } backwards, recomputed; /* whose backward reads its output or saved tensors; whose recomputation */
};

static void add_reader(struct readers *readers, int reader, const struct plan_data *a, struct region *region)
{
    enum { LONG = 60 };
    const char *names = readers->names;
    if (readers->last == reader) return;
    readers->last = reader;
    if (strlen(names) <= LONG)
        readers->names = region_text(region, "%s%s%s", names, *names ? ", " : "", a->node[reader].name);
    else if (!strstr(names, ", ..."))
        readers->names = region_text(region, "%s, ...", names);
}

/* The nodes whose values an op reads. */
static void add_reads(struct node_use *use, const struct op *op, const struct plan_data *a, struct region *region)
{
    const bool backward = op->kind == OP_BACKWARD;
    if (phase_of(op) == PHASE_FORWARD || op->kind == OP_COPY || op->kind == OP_ACCUMULATE) return;
    for (int k = 0; k < NODE_INPUTS_MAX; k++) {
        const int writer = a->node[op->node].inputs[k] - 1;
        if (op->x[k] < 0 || writer < 0) continue;
        add_reader(backward ? &use[writer].backwards : &use[writer].recomputed, op->node, a, region);
    }
    if (backward && (op->y >= 0 || op->saved >= 0)) add_reader(&use[op->node].backwards, op->node, a, region);
    use[op->node].recomputations += op->recompute;
}

/* A buffer belongs to the last node that wrote into it before the forward ended. */
static void add_kept(struct node_use *use, const struct plan_data *a, struct region *region)
{
    int *writer, end = -1;
    NEW(region, writer, (size_t)a->buffers);
    for (int i = 0; i < a->ops; i++)
        if (phase_of(&a->op[i]) == PHASE_FORWARD) end = i;
    for (int i = 0; i < a->buffers; i++) writer[i] = a->buffer[i].node;
    for (int i = 0; i <= end; i++) {
        const int written[] = {a->op[i].y, a->op[i].saved, a->op[i].once};
        for (int k = 0; k < 3; k++)
            if (written[k] >= 0) writer[written[k]] = a->op[i].node;
    }
    for (int i = 0; i < a->buffers; i++)
        if (a->buffer[i].birth <= end && a->buffer[i].death > end) use[writer[i]].kept += a->buffer[i].bytes;
}

static const char *why(const struct node_use *use, struct region *region)
{
    const char *text = "", *dropped = use->recomputations ? "dropped; " : "";
    const char *backwards = use->backwards.names, *recomputed = use->recomputed.names;
    if (*backwards) text = region_text(region, "%sread by the backward of %s", dropped, backwards);
    if (*recomputed)
        text = region_text(region, "%s%srecomputing %s %s it", text, *text ? "; " : dropped, recomputed,
                           use->recomputations ? "reads" : "starts from");
    return *text ? text : "no backward and no recomputation reads it";
}

static json_t *node_rows(const struct plan_data *a, struct region *region)
{
    json_t *rows = json_array();
    struct node_use *use;
    NEW(region, use, (size_t)a->nodes);
    for (int i = 0; i < a->nodes; i++) use[i] = (struct node_use){.backwards = {"", -1}, .recomputed = {"", -1}};
    add_kept(use, a, region);
    for (int i = 0; i < a->ops; i++) add_reads(use, &a->op[i], a, region);
    for (int i = 0; i < a->nodes; i++) {
        const struct plan_data_node *n = &a->node[i];
        ADD(rows, FIGURES(KEY("node", n->name), KEY("layer", n->layer), KEY("shape", n->shape),
                          KEY("output_bytes", n->output_bytes), KEY("kept_bytes", use[i].kept),
                          KEY("recomputations", use[i].recomputations),
                          KEY("recompute_flops", (double)use[i].recomputations * n->forward_flops),
                          KEY("why", why(&use[i], region))));
    }
    return rows;
}

static enum status add_plan(struct result *r, const struct plan_data *a, json_t *plan)
{
    json_t *ops = json_object(), *categories = json_array();
    for (int c = 0; c < categories_of(a); c++) ADD(categories, category_names[c]);
    PUT_ALL(plan, KEY("hash", a->hash), KEY("schedule", a->schedule), KEY("categories", categories),
            KEY("static_bytes", figures_named(static_names, a->memory, STATICS)), KEY("ops", ops));
    for (int i = 0; i < a->ops; i++) {
        char text[128];
        push(ops, "text", json_string(op_text(&a->op[i], a->node[a->op[i].node].name, text)));
        push(ops, "phase", json_integer(phase_of(&a->op[i])));
    }
    TRY(add_live(a, r->h5.path, r->region, ops));
    PUT_ALL(plan, KEY("buffers", buffer_columns(a)), KEY("nodes", node_rows(a, r->region)));
    return ST_OK;
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
