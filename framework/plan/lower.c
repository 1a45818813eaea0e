/* Three sweeps. Backward over the schedule's events: which values are read later, hence which recomputations are dead
 * and which forwards save. Forward: ops, with a new buffer for every tensor that is written, so that a buffer is one
 * incarnation and lives from its first to its last use. Forward again: outputs take over the buffers of inputs that die
 * at the same op. */
#include "plan/lower.h"

#include <assert.h>

/* A step of the schedule at one node, a split backward being two. */
struct event {
    enum step_kind kind;
    int node;
    unsigned parts; /* BACKWARD; 0: only passes gradients on */
    bool first;     /* the node's first event of this kind */
    bool last;      /* BACKWARD: the node's last */
    int part;       /* BACKWARD: of the parameters' gradient, from 1; 0: all */
    bool updates;   /* no later event reads the node's parameters or adds to their gradients */
    bool dropped, save;
};

struct builder {
    const struct network *network;
    const struct graph *graph;
    const struct lower_options *options;
    struct region *region;
    struct lowered *out;
    struct event *event;
    size_t events;
    int *current;  /* value -> buffer of its newest incarnation */
    int *saved;    /* node -> buffer of its newest saved tensors */
    int *once;     /* node -> what its first forward writes once */
    int *gradient; /* value -> buffer of its gradient so far */
    int *due;   /* node -> the first op that wrote gradients of its parameters that wait for their update, -1: none */
    int *roles; /* buffer -> number of values whose gradient it is: several where add passed it to both arms */
    int *over;  /* buffer -> the buffer that it reuses, -1: none */
};

static const struct footprint *footprint_of(const struct builder *b, int node)
{
    return &b->network->binding[node].footprint;
}

/* Appends the event of the first half of a split backward; false: the node's is not split. */
static bool expand_half(struct builder *b, int node)
{
    const bool split = network_parts(b->network, node) == (PART_PARAMS | PART_INPUT) && footprint_of(b, node)->split;
    if (split)
        b->event[b->events++] =
            (struct event){.kind = STEP_BACKWARD, .node = node, .parts = PART_PARAMS, .first = true};
    return split;
}

/* One or two events for a node's backward; halved: there was one already. With an update in parts: INPUT, then PARAMS
 * part by part. */
static void expand_backward(struct builder *b, int node, bool halved)
{
    const bool first = !halved && !expand_half(b, node);
    const int updates = network_update_parts(b->network, node);
    unsigned parts = first ? network_parts(b->network, node) : PART_INPUT;
    if (updates) parts &= PART_INPUT;
    if (parts || !updates)
        b->event[b->events++] =
            (struct event){.kind = STEP_BACKWARD, .node = node, .parts = parts, .first = first, .last = !updates};
    for (int part = 1; part <= updates; part++)
        b->event[b->events++] = (struct event){.kind = STEP_BACKWARD,
                                               .node = node,
                                               .parts = PART_PARAMS,
                                               .first = part == 1 && !parts,
                                               .last = part == updates,
                                               .part = part};
}

static void expand(struct builder *b, const struct schedule *schedule)
{
    size_t room = 0;
    for (size_t i = 0; i < schedule->steps; i++)
        for (int n = schedule->step[i].from; n < schedule->step[i].to; n++)
            room += 2 + (size_t)network_update_parts(b->network, n);
    NEW(b->region, b->event, room);
    int forward = 0, halved = -1; /* nodes below have had their first forward; the last one halved */
    for (size_t i = 0; i < schedule->steps; i++) {
        const struct step *s = &schedule->step[i];
        for (int n = s->from; s->kind == STEP_FORWARD && n < s->to; n++) {
            b->event[b->events++] = (struct event){.kind = STEP_FORWARD, .node = n, .first = n >= forward};
            if (n >= forward) forward = n + 1;
        }
        if (s->kind == STEP_PARAMS && expand_half(b, s->from)) halved = s->from;
        for (int n = s->to - 1; s->kind == STEP_BACKWARD && n >= s->from; n--) expand_backward(b, n, n == halved);
    }
}

/* A backward in parts keeps all that it reads to the last. */
static unsigned event_reads(const struct builder *b, const struct event *e)
{
    const struct footprint *f = footprint_of(b, e->node);
    return f->part_elements ? network_reads(b->network, e->node) : footprint_reads(f->reads, e->parts);
}

/* Sweeps the events from the last to the first and marks dead recomputations and forwards that save. */
static void mark(struct builder *b)
{
    bool *needed, *needed_saved; /* is the incarnation that is newest here read later? */
    bool *later;                 /* node -> a later event reads its parameters or adds to their gradients */
    NEW(b->region, needed, (size_t)b->graph->values);
    NEW(b->region, needed_saved, (size_t)b->graph->nodes);
    NEW(b->region, later, (size_t)b->graph->nodes);
    for (size_t i = b->events; i-- > 0;) {
        struct event *e = &b->event[i];
        const struct node *node = &b->graph->node[e->node];
        int inputs = node->layer->inputs; /* that are read */
        if (e->kind == STEP_FORWARD) {
            bool dead = !needed[node->output] && !needed_saved[e->node];
            e->dropped = !e->first && dead && b->options->drop_dead;
            if (e->dropped) {
                b->out->dropped++;
                continue;
            }
            e->save = needed_saved[e->node];
            needed[node->output] = needed_saved[e->node] = false;
        } else {
            unsigned reads = event_reads(b, e);
            inputs = inputs_read(reads, inputs);
            if (reads & READS_Y) needed[node->output] = true;
            if (reads & READS_SAVED && footprint_of(b, e->node)->saved) needed_saved[e->node] = true;
        }
        for (int k = 0; k < inputs; k++) needed[node->inputs[k]] = true;
        e->updates = !later[e->node];
        if (!e->part) later[e->node] = true;
    }
}

/* A buffer born at the current op. */
static int make(struct builder *b, enum category category, int node, size_t bytes)
{
    if (!bytes) return BUFFER_NONE;
    int id = b->out->buffers++;
    b->out->buffer[id] = (struct buffer){.category = category,
                                         .node = node,
                                         .bytes = network_round(b->network, bytes),
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

static struct op *begin(struct builder *b, enum op_kind kind, int node)
{
    struct op *op = &b->out->op[b->out->ops];
    *op = (struct op){
        .kind = kind, .node = node, .y = -1, .dy = -1, .saved = -1, .scratch = -1, .once = -1, .gradients = -1};
    for (int k = 0; k < NODE_INPUTS_MAX; k++) op->x[k] = op->dx[k] = BUFFER_NONE;
    return op;
}

/* out reuses in's buffer if in dies here. Lifetimes are final by now. */
static bool overlay(struct builder *b, int op, int out, int in)
{
    if (out < 0 || in < 0) return false;
    struct buffer *buffer = b->out->buffer;
    while (b->over[in] >= 0) in = b->over[in];
    if (b->over[out] >= 0 || in == out || buffer[in].death != op || buffer[in].bytes != buffer[out].bytes) return false;
    b->over[out] = in;
    buffer[in].death = buffer[out].death;
    return true;
}

/* A random node's mask or place in the stream; of another node, what its kernel writes once. */
static size_t once_bytes(const struct builder *b, const struct node *node)
{
    if (b->options->evaluate) return 0;
    if (!node->draws) return footprint_of(b, node->index)->once;
    if (b->options->rng == RNG_COUNTER) return 0;
    return b->options->rng == RNG_MASK ? rng_mask_bytes(node->draws, b->graph->batch) : sizeof(uint64_t);
}

/* Updates the node's parameters by all gradients that wait. */
static void emit_updates(struct builder *b, int node)
{
    const int end = b->out->ops;
    for (int i = b->due[node]; i >= 0 && i < end; i++) {
        const struct op *from = &b->out->op[i];
        if (from->node != node || from->gradients < 0) continue;
        struct op *op = begin(b, OP_UPDATE, node);
        op->gradients = use(b, from->gradients);
        op->part = from->part;
        b->out->ops++;
    }
    b->due[node] = -1;
}

static void emit_forward(struct builder *b, const struct event *e)
{
    const struct node *node = &b->graph->node[e->node];
    const struct footprint *f = footprint_of(b, e->node);
    struct op *op = begin(b, OP_FORWARD, e->node);
    op->recompute = !e->first;
    op->save = e->save;
    for (int k = 0; k < node->layer->inputs; k++) op->x[k] = use(b, b->current[node->inputs[k]]);
    op->y = b->current[node->output] = make(b, CATEGORY_ACTIVATION, e->node, b->graph->value[node->output].bytes);
    if (e->save) op->saved = b->saved[e->node] = make(b, CATEGORY_SAVED, e->node, f->saved);
    if (e->first) b->once[e->node] = make(b, CATEGORY_SAVED, e->node, once_bytes(b, node));
    op->once = use(b, b->once[e->node]);
    op->scratch = make(b, CATEGORY_SCRATCH, e->node, f->forward_scratch);
    b->out->ops++;
    if (e->updates) emit_updates(b, e->node);
}

/* A buffer for the gradient of a value, or for a contribution to it, counted as that value's. */
static int make_gradient(struct builder *b, int value)
{
    return make(b, CATEGORY_GRADIENT, value - 1, b->graph->value[value].gradient_bytes);
}

/* A copy or a sum of gradients; returns the new buffer. */
static int emit_gradient(struct builder *b, enum op_kind kind, int node, int x0, int x1, int value)
{
    struct op *op = begin(b, kind, node);
    op->bytes = b->graph->value[value].gradient_bytes;
    op->x[0] = use(b, x0);
    op->x[1] = kind == OP_ACCUMULATE ? use(b, x1) : BUFFER_NONE;
    op->y = make_gradient(b, value);
    b->out->ops++;
    return op->y;
}

/* Adds buffer to the gradient of value. */
static void contribute(struct builder *b, int node, int value, int buffer)
{
    int sum = b->gradient[value];
    if (sum >= 0) {
        b->roles[sum]--;
        buffer = emit_gradient(b, OP_ACCUMULATE, node, sum, buffer, value);
    }
    b->gradient[value] = buffer;
    b->roles[buffer]++;
}

static void emit_backward(struct builder *b, const struct event *e)
{
    const struct node *node = &b->graph->node[e->node];
    const struct footprint *f = footprint_of(b, e->node);
    int *dy = &b->gradient[node->output];
    if (e->first && e->node + 1 == b->graph->nodes) { /* no op writes it: it is born here, if it has bytes */
        *dy = make_gradient(b, node->output);
        if (*dy >= 0) b->roles[*dy]++;
    }
    if (e->first && e->parts && f->writes_dy && *dy >= 0 && b->roles[*dy] > 1) { /* another op reads it later */
        b->roles[*dy]--;
        *dy = emit_gradient(b, OP_COPY, e->node, *dy, BUFFER_NONE, node->output);
        b->roles[*dy]++;
    }
    int dx[NODE_INPUTS_MAX];
    assert(node->layer->inputs <= NODE_INPUTS_MAX);
    for (int k = 0; k < NODE_INPUTS_MAX; k++) dx[k] = f->passes_gradient ? *dy : BUFFER_NONE;
    if (e->parts) {
        struct op *op = begin(b, OP_BACKWARD, e->node);
        unsigned reads = event_reads(b, e);
        op->parts = e->parts;
        op->part = e->part;
        op->dy = use(b, *dy);
        for (int k = 0; k < node->layer->inputs; k++) {
            const bool wanted = e->parts & PART_INPUT && b->graph->value[node->inputs[k]].wants_gradient;
            if (k < inputs_read(reads, node->layer->inputs)) op->x[k] = use(b, b->current[node->inputs[k]]);
            if (wanted) op->dx[k] = dx[k] = make_gradient(b, node->inputs[k]);
        }
        if (reads & READS_Y) op->y = use(b, b->current[node->output]);
        if (reads & READS_SAVED && f->saved) op->saved = use(b, b->saved[e->node]);
        if (e->parts & PART_INPUT || f->once) op->once = use(b, b->once[e->node]);
        op->scratch = make(b, CATEGORY_SCRATCH, e->node, footprint_scratch(f->backward_scratch, e->parts));
        if (e->parts & PART_PARAMS) op->gradients = make(b, CATEGORY_PARAMETER_GRADIENT, e->node, f->gradients);
        if (op->gradients >= 0 && b->due[e->node] < 0) b->due[e->node] = b->out->ops;
        b->out->ops++;
        if (e->updates) emit_updates(b, e->node);
    }
    for (int k = 0; k < node->layer->inputs && (e->last || e->parts & PART_INPUT); k++)
        if (b->graph->value[node->inputs[k]].wants_gradient && dx[k] >= 0)
            contribute(b, e->node, node->inputs[k], dx[k]);
    if (e->last && *dy >= 0) b->roles[*dy]--;
}

static void reserve(struct builder *b)
{
    /* an event has at most one op of its own, its update, a copy, and an accumulation an input; an op has at most six
     * buffers */
    size_t ops = b->events * (3 + NODE_INPUTS_MAX), buffers = b->events * (7 + 2 * NODE_INPUTS_MAX);
    NEW(b->region, b->out->op, ops);
    NEW(b->region, b->out->buffer, buffers);
    NEW(b->region, b->roles, buffers);
    NEW(b->region, b->over, buffers);
    NEW(b->region, b->current, (size_t)b->graph->values);
    NEW(b->region, b->gradient, (size_t)b->graph->values);
    NEW(b->region, b->saved, (size_t)b->graph->nodes);
    NEW(b->region, b->once, (size_t)b->graph->nodes);
    NEW(b->region, b->due, (size_t)b->graph->nodes);
    b->current[0] = BUFFER_BATCH;
    for (int v = 0; v < b->graph->values; v++) b->gradient[v] = BUFFER_NONE;
    for (int n = 0; n < b->graph->nodes; n++) b->saved[n] = b->once[n] = b->due[n] = BUFFER_NONE;
}

static void overlay_all(struct builder *b)
{
    for (int i = 0; i < b->out->ops; i++) {
        const struct op *op = &b->out->op[i];
        const struct footprint *f = footprint_of(b, op->node);
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
        int *operands[] = {&op->x[0], &op->x[1],  &op->y,       &op->dx[0], &op->dx[1],
                           &op->dy,   &op->saved, &op->scratch, &op->once,  &op->gradients};
        _Static_assert(NODE_INPUTS_MAX == 2, "list every input");
        for (size_t k = 0; k < sizeof operands / sizeof *operands; k++) *operands[k] = resolve(b, number, *operands[k]);
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
    expand(&b, schedule);
    mark(&b);
    reserve(&b);
    for (size_t i = 0; i < b.events; i++) {
        if (b.event[i].dropped) continue;
        if (b.event[i].kind == STEP_FORWARD) {
            emit_forward(&b, &b.event[i]);
        } else {
            emit_backward(&b, &b.event[i]);
        }
    }
    overlay_all(&b);
    compact(&b);
    return lowered;
}
