/* Values and gradients are followed slice by slice; an op of the whole batch reads and writes all of them. A value, or
 * a gradient, that an op of the whole batch reads is one buffer, which ops of slices write parts of; else each slice
 * has a buffer.
 *
 * Two sweeps over the schedule's events (events.h). Forward: ops, with a new buffer for every tensor that is written,
 * so that a buffer is one incarnation and lives from its first to its last use. Forward again: outputs take over the
 * buffers of inputs that die at the same op.
 */
#include "plan/lower.h"

#include "plan/events.h"

#include <assert.h>

struct builder {
    const struct network *network;
    const struct graph *graph;
    const struct lower_options *options;
    struct region *region;
    struct lowered *out;
    struct slicing slicing;
    int slices;
    struct events list;
    /* By value or node, and slice. */
    int *current;  /* buffer of a value's newest incarnation */
    int *saved;    /* buffer of a node's newest saved tensors */
    int *once;     /* what a node's first forward writes once */
    int *gradient; /* buffer of a value's gradient so far */
    int *roles;    /* by buffer and slice: number of values whose gradient it is, several where add passed it to both
                      arms */
    int *joint;    /* value -> the buffer of the whole batch that slices write to */
    int *joint_dx, *joint_sum; /* node and input -> the same for what it contributes to a gradient, and for the sum */
    int *gradients;            /* node -> buffer of its parameters' gradients, or of the newest part */
    int *due;    /* node -> the first op that wrote gradients of its parameters that wait for their update, -1: none */
    int *tensor; /* of a traced step: by what backwards write, its buffer */
    int *over;   /* buffer -> the buffer that it reuses, -1: none */
};

/* Bytes of a slice, or of the whole batch. */
static size_t share(const struct builder *b, size_t bytes, int slice)
{
    return slice == WHOLE_BATCH ? bytes : bytes / (size_t)b->slices;
}

static const struct footprint *footprint_of(const struct builder *b, int node)
{
    return &b->network->binding[node].footprint;
}

/* A buffer born at the current op. */
static int make(struct builder *b, enum category category, int node, int slice, size_t bytes)
{
    if (!bytes) return BUFFER_NONE;
    int id = b->out->buffers++;
    b->out->buffer[id] = (struct buffer){.category = category,
                                         .node = node,
                                         .slice = slice,
                                         .bytes = network_buffer_bytes(b->network, bytes),
                                         .birth = b->out->ops,
                                         .death = b->out->ops};
    b->over[id] = -1;
    return id;
}

static int use(struct builder *b, int buffer)
{
    if (buffer >= 0) b->out->buffer[buffer].death = b->out->ops;
    return buffer;
}

static struct op *begin(struct builder *b, enum op_kind kind, int node, int slice)
{
    struct op *op = &b->out->op[b->out->ops];
    *op = (struct op){.kind = kind, .node = node, .slice = slice};
    for (int k = 0; k < OP_OPERANDS; k++) op->buffer[k] = BUFFER_NONE;
    return op;
}

/* out reuses in's buffer if in dies here. Lifetimes are final by now. */
static bool overlay(struct builder *b, int op, int out, int in)
{
    if (out < 0 || in < 0) return false;
    struct buffer *buffer = b->out->buffer;
    while (b->over[in] >= 0) in = b->over[in];
    if (b->over[out] >= 0 || in == out || buffer[in].death != op || buffer[out].birth != op) return false;
    if (buffer[in].bytes != buffer[out].bytes || buffer[in].slice != buffer[out].slice) return false;
    b->over[out] = in;
    buffer[in].death = buffer[out].death;
    return true;
}

/* A random node's mask or place in the stream; of another node, what its kernel writes once. */
static size_t once_bytes(const struct builder *b, const struct node *node, int slice)
{
    if (b->options->evaluate) return 0;
    if (!node->draws) return share(b, footprint_of(b, node->index)->once, slice);
    if (b->options->rng == RNG_COUNTER) return 0;
    return b->options->rng == RNG_MASK ? share(b, rng_mask_bytes(node->draws, b->graph->batch), slice)
                                       : sizeof(uint64_t);
}

/* Where a forward writes its value. */
static int make_value(struct builder *b, const struct event *e)
{
    const int value = e->node + 1;
    const size_t bytes = b->graph->value[value].bytes;
    if (!e->joint) return make(b, CATEGORY_ACTIVATION, e->node, e->slice, share(b, bytes, e->slice));
    if (e->opens) b->joint[value] = make(b, CATEGORY_ACTIVATION, e->node, WHOLE_BATCH, bytes);
    return use(b, b->joint[value]);
}

/* Updates the node's parameters by all gradients that wait. */
static void emit_updates(struct builder *b, int node)
{
    const int end = b->out->ops;
    for (int i = b->due[node]; i >= 0 && i < end; i++) {
        const struct op *from = &b->out->op[i];
        if (from->node != node || from->gradients < 0 || from->slice > 0) continue; /* slices share them */
        struct op *op = begin(b, OP_UPDATE, node, WHOLE_BATCH);
        op->gradients = use(b, from->gradients);
        op->part = from->part;
        b->out->ops++;
    }
    b->due[node] = -1;
}

static void list_operands(struct builder *b, struct op *op, int reads, int writes)
{
    op->reads = reads;
    op->writes = writes;
    NEW(b->region, op->operand, (size_t)(reads + writes) + 1);
}

static void emit_forward(struct builder *b, const struct event *e)
{
    const struct node *node = &b->graph->node[e->node];
    const struct footprint *f = footprint_of(b, e->node);
    struct op *op = begin(b, OP_FORWARD, e->node, e->slice);
    const int here = slice_place(b->slices, e->node, e->slice), value = slice_place(b->slices, node->output, e->slice);
    op->recompute = !e->first;
    op->save = e->save;
    if (b->network->traced) list_operands(b, op, node->layer->inputs, 0);
    int *const x = b->network->traced ? op->operand : op->x;
    for (int k = 0; k < node->layer->inputs; k++)
        x[k] = use(b, b->current[slice_place(b->slices, node->inputs[k], e->slice)]);
    op->y = make_value(b, e);
    for (int k = 0; k < slice_places(b->slices, e->slice); k++) b->current[value + k] = op->y;
    if (e->save) op->saved = b->saved[here] = make(b, CATEGORY_SAVED, e->node, e->slice, share(b, f->saved, e->slice));
    if (e->first) b->once[here] = make(b, CATEGORY_SAVED, e->node, e->slice, once_bytes(b, node, e->slice));
    if (e->first || !b->network->traced) op->once = use(b, b->once[here]);
    const size_t unsaved = e->save ? 0 : network_unsaved(b->network, e->node);
    op->scratch = make(b, CATEGORY_SCRATCH, e->node, e->slice, f->forward_scratch + unsaved);
    b->out->ops++;
    if (e->updates) emit_updates(b, e->node);
}

/* A buffer for the gradient of a value, or for a contribution to it, counted as that value's. */
static int make_gradient(struct builder *b, int value, int slice)
{
    return make(b, CATEGORY_GRADIENT, value - 1, slice, share(b, b->graph->value[value].gradient_bytes, slice));
}

/* The same where an op of slice writes: one buffer, made by the first slice, if the value's node reads all at once. */
static int make_part(struct builder *b, int value, int slice, int *joint)
{
    if (slice == WHOLE_BATCH || !slicing_whole(&b->slicing, value - 1)) return make_gradient(b, value, slice);
    if (slice == 0) *joint = make_gradient(b, value, WHOLE_BATCH);
    return use(b, *joint);
}

/* Adds (or subtracts) a role of a buffer, or of the slice's part of it. */
static void add_role(struct builder *b, int buffer, int slice, int count)
{
    for (int k = 0; k < slice_places(b->slices, slice); k++)
        b->roles[slice_place(b->slices, buffer, slice) + k] += count;
}

/* A copy or a sum of gradients in the buffer y. */
static void emit_gradient(struct builder *b, enum op_kind kind, int node, int slice, int x0, int x1, int value, int y)
{
    struct op *op = begin(b, kind, node, slice);
    op->bytes = share(b, b->graph->value[value].gradient_bytes, slice);
    op->x[0] = use(b, x0);
    op->x[1] = kind == OP_ACCUMULATE ? use(b, x1) : BUFFER_NONE;
    op->y = y;
    b->out->ops++;
}

/* Adds buffer to the gradient of value: its k-th input's, of node. */
static void contribute(struct builder *b, int node, int k, int slice, int buffer)
{
    const int value = b->graph->node[node].inputs[k], first = slice_place(b->slices, value, slice);
    int *sum = &b->gradient[first];
    if (*sum >= 0 && slice == WHOLE_BATCH && b->out->buffer[*sum].slice != WHOLE_BATCH) {
        for (int i = 0; i < b->slices; i++) contribute(b, node, k, i, buffer);
        return;
    }
    if (*sum >= 0) {
        add_role(b, *sum, slice, -1);
        const int y = make_part(b, value, slice, &b->joint_sum[node * NODE_INPUTS_MAX + k]);
        emit_gradient(b, OP_ACCUMULATE, node, slice, *sum, buffer, value, y);
        buffer = y;
    }
    for (int i = 0; i < slice_places(b->slices, slice); i++) sum[i] = buffer;
    add_role(b, buffer, slice, 1);
}

/* Where a backward writes the gradients of its node's parameters, or adds those of a later slice, if its update is
 * fused. */
static int parameter_gradients(struct builder *b, const struct event *e)
{
    const size_t bytes = footprint_of(b, e->node)->gradients;
    if (e->slice <= 0) b->gradients[e->node] = make(b, CATEGORY_PARAMETER_GRADIENT, e->node, WHOLE_BATCH, bytes);
    if (bytes && b->due[e->node] < 0) b->due[e->node] = b->out->ops;
    return use(b, b->gradients[e->node]);
}

static void emit_backward(struct builder *b, const struct event *e)
{
    const struct node *node = &b->graph->node[e->node];
    const struct footprint *f = footprint_of(b, e->node);
    const int here = slice_place(b->slices, e->node, e->slice), output = slice_place(b->slices, node->output, e->slice);
    int dy = b->gradient[output];
    if (e->first && e->node + 1 == b->graph->nodes) { /* no op writes it: it is born here, if it has bytes */
        dy = make_gradient(b, node->output, e->slice);
        if (dy >= 0) add_role(b, dy, e->slice, 1);
    }
    if (e->first && e->parts && f->writes_dy && dy >= 0 &&
        b->roles[slice_place(b->slices, dy, e->slice)] > 1) { /* is read later */
        add_role(b, dy, e->slice, -1);
        const int copy = make_gradient(b, node->output, e->slice);
        emit_gradient(b, OP_COPY, e->node, e->slice, dy, BUFFER_NONE, node->output, copy);
        add_role(b, dy = copy, e->slice, 1);
    }
    for (int k = 0; k < slice_places(b->slices, e->slice); k++) b->gradient[output + k] = dy;
    int dx[NODE_INPUTS_MAX];
    assert(node->layer->inputs <= NODE_INPUTS_MAX);
    for (int k = 0; k < NODE_INPUTS_MAX; k++) dx[k] = f->passes_gradient ? dy : BUFFER_NONE;
    if (e->parts) {
        struct op *op = begin(b, OP_BACKWARD, e->node, e->slice);
        unsigned reads = event_reads(b->network, e);
        op->parts = e->parts;
        op->part = e->part;
        op->dy = use(b, dy);
        for (int k = 0; k < node->layer->inputs; k++) {
            const int x = node->inputs[k];
            const bool wanted = e->parts & PART_INPUT && b->graph->value[x].wants_gradient;
            if (k < inputs_read(reads, node->layer->inputs))
                op->x[k] = use(b, b->current[slice_place(b->slices, x, e->slice)]);
            if (wanted) op->dx[k] = dx[k] = make_part(b, x, e->slice, &b->joint_dx[e->node * NODE_INPUTS_MAX + k]);
        }
        if (reads & READS_Y) op->y = use(b, b->current[output]);
        if (reads & READS_SAVED && f->saved) op->saved = use(b, b->saved[here]);
        if (e->parts & PART_INPUT || f->once) op->once = use(b, b->once[here]);
        op->scratch = make(b, CATEGORY_SCRATCH, e->node, e->slice, footprint_scratch(f->backward_scratch, e->parts));
        if (e->parts & PART_PARAMS) op->gradients = parameter_gradients(b, e);
        b->out->ops++;
        if (e->updates) emit_updates(b, e->node);
    }
    for (int k = 0; k < node->layer->inputs && (e->last || e->parts & PART_INPUT); k++)
        if (b->graph->value[node->inputs[k]].wants_gradient && dx[k] >= 0) contribute(b, e->node, k, e->slice, dx[k]);
    if (e->last && dy >= 0) add_role(b, dy, e->slice, -1);
}

/* A backward of a traced step, if the node has one. */
static void emit_traced(struct builder *b, const struct event *e)
{
    const struct traced_backward *t = b->network->binding[e->node].traced;
    if (!t) return;
    struct op *op = begin(b, OP_BACKWARD, e->node, WHOLE_BATCH);
    op->parts = e->parts;
    list_operands(b, op, t->reads + t->inputs, t->outputs);
    int *operand = op->operand;
    for (int k = 0; k < t->reads; k++) {
        const struct traced_read *o = &t->read[k];
        *operand++ = use(b, o->what == HELD_VALUE   ? b->current[o->node + 1]
                            : o->what == HELD_SAVED ? b->saved[o->node]
                                                    : b->once[o->node]);
    }
    for (int k = 0; k < t->inputs; k++) *operand++ = use(b, b->tensor[t->input[k]]);
    for (int k = 0; k < t->outputs; k++) {
        const struct traced_tensor *out = &b->network->traced->tensor[t->output[k]];
        const enum category category = out->stays ? CATEGORY_PARAMETER_GRADIENT : CATEGORY_GRADIENT;
        *operand++ = b->tensor[t->output[k]] = make(b, category, e->node, WHOLE_BATCH, (size_t)out->bytes);
    }
    op->scratch =
        make(b, CATEGORY_SCRATCH, e->node, WHOLE_BATCH, footprint_of(b, e->node)->backward_scratch[PART_INDEX_INPUT]);
    b->out->ops++;
}

/* What stays of a traced step lives to its end. */
static void prolong(struct builder *b)
{
    const struct traced_step *step = b->network->traced;
    for (int i = 0; step && i < step->tensors; i++)
        if (step->tensor[i].stays && b->tensor[i] >= 0) b->out->buffer[b->tensor[i]].death = b->out->ops - 1;
}

/* An array of so many numbers, BUFFER_NONE each. */
static int *none(struct builder *b, int count)
{
    int *list;
    NEW(b->region, list, (size_t)count);
    for (int i = 0; i < count; i++) list[i] = BUFFER_NONE;
    return list;
}

static void reserve(struct builder *b)
{
    /* an event has at most one op of its own, its update, a copy, and an accumulation an input and slice; an op has at
     * most six buffers */
    const int nodes = b->graph->nodes, values = b->graph->values;
    size_t ops = 0, buffers = 0;
    for (size_t i = 0; i < b->list.count; i++) {
        const size_t sums = NODE_INPUTS_MAX * (size_t)slice_places(b->slices, b->list.event[i].slice);
        ops += 3 + sums;
        buffers += 7 + NODE_INPUTS_MAX + sums;
    }
    if (b->network->traced) {
        buffers += (size_t)b->network->traced->tensors;
        b->tensor = none(b, b->network->traced->tensors);
    }
    NEW(b->region, b->out->op, ops);
    NEW(b->region, b->out->buffer, buffers);
    NEW(b->region, b->roles, buffers * (size_t)b->slices);
    NEW(b->region, b->over, buffers);
    b->current = none(b, values * b->slices);
    b->gradient = none(b, values * b->slices);
    b->saved = none(b, nodes * b->slices);
    b->once = none(b, nodes * b->slices);
    b->joint = none(b, values);
    b->joint_dx = none(b, nodes * NODE_INPUTS_MAX);
    b->joint_sum = none(b, nodes * NODE_INPUTS_MAX);
    b->gradients = none(b, nodes);
    b->due = none(b, nodes);
    for (int k = 0; k < b->slices; k++) b->current[k] = BUFFER_BATCH;
}

static void overlay_traced(struct builder *b, int i)
{
    const struct op *op = &b->out->op[i];
    const struct traced_backward *t = b->network->binding[op->node].traced;
    if (op->kind == OP_FORWARD && op->reads && footprint_of(b, op->node)->y_over_x)
        overlay(b, i, op->y, op->operand[0]);
    if (op->kind != OP_BACKWARD || !t->in_place || !t->outputs) return;
    for (int k = t->reads; k < op->reads; k++)
        if (overlay(b, i, op->operand[op->reads], op->operand[k])) return;
}

static void overlay_all(struct builder *b)
{
    for (int i = 0; i < b->out->ops; i++) {
        const struct op *op = &b->out->op[i];
        const struct footprint *f = footprint_of(b, op->node);
        if (b->network->traced) overlay_traced(b, i);
        if (op->kind == OP_FORWARD && f->y_over_x) overlay(b, i, op->y, op->x[0]);
        if (op->kind == OP_BACKWARD && f->dx_over_dy) overlay(b, i, op->dx[0], op->dy);
        if (op->kind == OP_ACCUMULATE && !overlay(b, i, op->y, op->x[0])) overlay(b, i, op->y, op->x[1]);
    }
}

static int resolve(const struct builder *b, const int *number, int buffer)
{
    if (buffer < 0) return buffer;
    while (b->over[buffer] >= 0) buffer = b->over[buffer];
    return number[buffer];
}

/* Removes buffers that reuse another and renumbers the ops' operands. */
static void compact(struct builder *b)
{
    int *number, buffers = 0;
    NEW(b->region, number, (size_t)b->out->buffers + 1);
    for (int i = 0; i < b->out->buffers; i++)
        if (b->over[i] < 0) number[i] = buffers++;
    for (int i = 0; i < b->out->ops; i++) {
        struct op *op = &b->out->op[i];
        for (int k = 0; k < OP_OPERANDS; k++) op->buffer[k] = resolve(b, number, op->buffer[k]);
        for (int k = 0; k < op->reads + op->writes; k++) op->operand[k] = resolve(b, number, op->operand[k]);
    }
    for (int i = 0; i < b->out->buffers; i++)
        if (b->over[i] < 0) b->out->buffer[number[i]] = b->out->buffer[i];
    b->out->buffers = buffers;
}

struct lowered lower(const struct network *network, const struct schedule *schedule,
                     const struct lower_options *options, struct region *region)
{
    struct lowered lowered = {.ops = 0};
    struct builder b = {
        .network = network, .graph = network->graph, .options = options, .region = region, .out = &lowered};
    b.slicing = graph_slicing(network->graph);
    b.slices = b.slicing.slices;
    b.list = events_list(network, schedule, options->drop_dead, region);
    lowered.dropped = b.list.dropped;
    reserve(&b);
    for (size_t i = 0; i < b.list.count; i++) {
        if (b.list.event[i].dropped) continue;
        if (b.list.event[i].kind == STEP_FORWARD) {
            emit_forward(&b, &b.list.event[i]);
        } else {
            (network->traced ? emit_traced : emit_backward)(&b, &b.list.event[i]);
        }
    }
    prolong(&b);
    overlay_all(&b);
    compact(&b);
    return lowered;
}
