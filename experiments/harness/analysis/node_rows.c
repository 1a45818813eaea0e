#include "analysis/node_rows.h"

#include <string.h>

static bool is_first(const struct op *op) { return op->kind == OP_FORWARD && !op->recompute; }

/* Of a node: what of its memory is live when the forward ends, and which nodes read its output later. */
struct node_use {
    size_t kept, recomputations;
    int reads; /* of a traced step: the first row of what it reads */
    struct readers {
        const char *names;
        int last;            /* node; -1: none */
    } backwards, recomputed; /* whose backward reads its output or saved tensors; whose recomputation */
};

static void add_reader(struct readers *readers, int reader, const char *name, struct region *region)
{
    enum { LONG = 60 };
    const char *names = readers->names;
    if (readers->last == reader) return;
    readers->last = reader;
    if (strlen(names) <= LONG)
        readers->names = region_text(region, "%s%s%s", names, *names ? ", " : "", name);
    else if (!strstr(names, ", ..."))
        readers->names = region_text(region, "%s, ...", names);
}

/* The same of a traced step, whose backwards go by the names of operators. */
static void add_operand_reads(struct node_use *use, const struct op *op, const struct plan_data *a,
                              struct region *region)
{
    const bool backward = op->kind == OP_BACKWARD;
    use[op->node].recomputations += op->recompute;
    for (int i = use[op->node].reads; i < a->reads && a->read[i].node == op->node; i++) {
        const struct plan_data_read *r = &a->read[i];
        if (r->backward == backward)
            add_reader(backward ? &use[r->of].backwards : &use[r->of].recomputed, op->node, plan_data_op_name(a, op),
                       region);
    }
}

/* The nodes whose values an op reads. */
static void add_reads(struct node_use *use, const struct op *op, const struct plan_data *a, struct region *region)
{
    const bool backward = op->kind == OP_BACKWARD;
    const char *name = a->node[op->node].name;
    if (is_first(op) || op->kind == OP_COPY || op->kind == OP_ACCUMULATE) return;
    if (a->operators) {
        add_operand_reads(use, op, a, region);
        return;
    }
    for (int k = 0; k < NODE_INPUTS_MAX; k++) {
        const int writer = a->node[op->node].inputs[k] - 1;
        if (op->x[k] < 0 || writer < 0) continue;
        add_reader(backward ? &use[writer].backwards : &use[writer].recomputed, op->node, name, region);
    }
    if (backward && (op->y >= 0 || op->saved >= 0)) add_reader(&use[op->node].backwards, op->node, name, region);
    use[op->node].recomputations += op->recompute;
}

/* A buffer belongs to the last node that wrote into it before the forward ended. */
static void add_kept(struct node_use *use, const struct plan_data *a, struct region *region)
{
    int *writer, end = -1;
    NEW(region, writer, (size_t)a->buffers);
    for (int i = 0; i < a->ops; i++)
        if (is_first(&a->op[i])) end = i;
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

/* What becomes of a node's tensors after its forward. */
static const char *action(const struct node_use *use)
{
    return use->recomputations ? "recompute" : use->kept ? "store" : "drop";
}

json_t *node_rows(const struct plan_data *a, bool timed, struct region *region)
{
    json_t *rows = json_array();
    struct node_use *use;
    NEW(region, use, (size_t)a->nodes);
    for (int i = 0; i < a->nodes; i++) use[i] = (struct node_use){.backwards = {"", -1}, .recomputed = {"", -1}};
    for (int i = a->reads - 1; i >= 0; i--) use[a->read[i].node].reads = i;
    add_kept(use, a, region);
    for (int i = 0; i < a->ops; i++) add_reads(use, &a->op[i], a, region);
    for (int i = 0; i < a->nodes; i++) {
        const struct plan_data_node *n = &a->node[i];
        if (a->operators && !a->traced[i].forward) continue;
        const double work = timed ? n->forward_time : n->forward_flops;
        ADD(rows,
            OBJECT(KEY("name", n->name), KEY("layer", n->layer), KEY("shape", n->shape), KEY("action", action(&use[i])),
                   KEY("bytes", use[i].kept), KEY("output_bytes", n->output_bytes),
                   KEY("gradient_bytes", n->gradient_bytes), KEY("recomputations", use[i].recomputations),
                   KEY(timed ? "recompute_time" : "recompute_flops", (double)use[i].recomputations * work),
                   KEY("why", why(&use[i], region))));
    }
    return rows;
}
