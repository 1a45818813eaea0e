/* The loop, and what is prepared before step 0: addresses of everything static, and one address a buffer. Modes differ
 * only in what happens where buffers begin and end. */
#include "train/executor.h"

#include <math.h>
#include <string.h>

#include "backend/batch_transfer.h"
#include "backend/update_memory.h"
#include "base/units.h"

enum { SIGNALLING_NAN = 0x7fa0dead };

/* The buffers in the order of an op each: op i's are buffer[from[i]..from[i + 1]). */
struct by_op {
    int *buffer, *from;
};

/* A plan bound to addresses. */
struct bound {
    const struct plan *plan;
    void **at;               /* buffer -> address */
    struct by_op begin, end; /* by the first and by the last op to use a buffer; MEMORY_PLANNED: not set */
    size_t *counted; /* DYNAMIC: bytes by the allocator, at each op of the last step that was queued, and after it */
    uint64_t *ns;    /* of each op of that step; NULL: a device, which runs them later */
    uint64_t drawn;  /* in that step, of the sequential stream (rng stash, unsafe) */
};

struct executor {
    struct region *region;
    const struct plan *plan;
    struct bound training, evaluation;
    struct bound *now; /* the running one */
    struct executor_options options;
    int fault_op; /* the op of the fault, -1: none */
    struct backend *backend;
    char *fixed, *arena; /* the static block and the arena */
    size_t fixed_bytes, arena_bytes;
    struct update_tensor *tensor; /* of each parameter */
    float **running;              /* of each tensor of running state */
    struct batch_transfer transfer;
    void *update_room;
    const struct update *update; /* of UPDATE ops, NULL: they do nothing */
    uint64_t position;           /* in the sequential stream (rng stash, unsafe), after the last step */
    uint64_t *place;           /* by node: of its numbers in a step's part of that stream, whatever the slices' order */
    struct digest *recomputed; /* node -> digest of its first forward's value, where recomputations are checked */
    bool looking;              /* stops at the first value that is not finite */
    int not_finite;            /* the node that wrote it */
};

/* Cuts the static block in the order of enum static_category. */
static enum status bind_static(struct executor *e)
{
    const struct plan *plan = e->plan;
    const struct graph *graph = plan->network->graph;
    NEW(e->region, e->tensor, (size_t)graph->parameters);
    NEW(e->region, e->running, (size_t)graph->states);
    TRY(e->backend->kind->reserve(e->backend, e->fixed_bytes, (void **)&e->fixed));
    char *running = e->fixed + update_cut(graph, network_fused(plan->network), plan->options.state_per_parameter,
                                          e->fixed, e->tensor);
    for (int i = 0; i < graph->states; i++) {
        e->running[i] = (float *)(void *)running;
        running += parameter_static_bytes(&graph->state[i]);
    }
    char *batch = running, *next = batch + batch_bytes(graph);
    e->update_room = next + batch_transfer_next_bytes(e->backend, graph);
    return batch_transfer_open(&e->transfer, e->backend, graph, batch, next);
}

static struct by_op sort_by_op(const struct lowered *l, bool last, struct region *region)
{
    struct by_op list;
    NEW(region, list.buffer, (size_t)l->buffers + 1);
    NEW(region, list.from, (size_t)l->ops + 2);
    for (int i = 0; i < l->buffers; i++) list.from[(last ? l->buffer[i].death : l->buffer[i].birth) + 2]++;
    for (int op = 0; op < l->ops; op++) list.from[op + 2] += list.from[op + 1];
    for (int i = 0; i < l->buffers; i++)
        list.buffer[list.from[(last ? l->buffer[i].death : l->buffer[i].birth) + 1]++] = i;
    return list;
}

/* Prepares what a plan's ops need before they run. */
static void bind_plan(struct executor *e, const struct plan *plan, struct bound *bound)
{
    const struct lowered *l = &plan->lowered;
    bound->plan = plan;
    NEW(e->region, bound->at, (size_t)l->buffers + 1);
    if (e->options.memory == MEMORY_DYNAMIC) NEW(e->region, bound->counted, (size_t)l->ops + 1);
    if (e->options.memory != MEMORY_PLANNED) {
        bound->begin = sort_by_op(l, false, e->region);
        bound->end = sort_by_op(l, true, e->region);
    }
    if (!e->backend->kind->device) NEW(e->region, bound->ns, (size_t)l->ops + 1);
    for (int i = 0; e->arena && i < l->buffers; i++) bound->at[i] = e->arena + l->buffer[i].offset;
}

static enum status create(struct executor *e)
{
    const struct plan *plan = e->plan;
    e->fixed_bytes = plan_static(plan);
    e->arena_bytes = e->options.memory == MEMORY_DYNAMIC ? 0 : plan->arena_bytes;
    TRY(fault_find(plan, &e->options.fault, e->options.memory != MEMORY_DYNAMIC, &e->fault_op));
    TRY(bind_static(e));
    if (e->arena_bytes) TRY(e->backend->kind->reserve(e->backend, e->arena_bytes, (void **)&e->arena));
    if (e->options.memory == MEMORY_POISON)
        e->backend->kind->fill(e->backend, e->arena, SIGNALLING_NAN, e->arena_bytes);
    const struct graph *graph = plan->network->graph;
    if (e->options.check_recompute) NEW(e->region, e->recomputed, (size_t)(graph->nodes * graph->slices));
    NEW(e->region, e->place, (size_t)graph->nodes + 1);
    for (int i = 0; i < graph->nodes; i++)
        e->place[i + 1] = e->place[i] + (uint64_t)graph->node[i].draws * (uint64_t)graph->batch;
    e->now = &e->training;
    bind_plan(e, plan, &e->training);
    return ST_OK;
}

enum status executor_create(const struct plan *plan, const struct executor_options *options, struct executor **exec)
{
    struct region *region = region_create();
    struct executor *e = region_array(region, 1, sizeof *e);
    *exec = NULL;
    e->region = region;
    e->plan = plan;
    e->options = *options;
    e->backend = plan->network->backend;
    enum status status = create(e);
    if (status != ST_OK) {
        executor_destroy(e);
        return status;
    }
    *exec = e;
    return ST_OK;
}

void executor_destroy(struct executor *exec)
{
    if (!exec) return;
    const struct backend_kind *kind = exec->backend->kind;
    batch_transfer_close(&exec->transfer);
    if (exec->fixed) kind->unreserve(exec->backend, exec->fixed, exec->fixed_bytes);
    if (exec->arena) kind->unreserve(exec->backend, exec->arena, exec->arena_bytes);
    region_destroy(exec->region);
}

float *executor_parameter(struct executor *exec, int parameter) { return exec->tensor[parameter].parameter; }
float *executor_gradient(struct executor *exec, int parameter) { return exec->tensor[parameter].gradient; }
float *executor_state(struct executor *exec, int parameter) { return exec->tensor[parameter].state; }
struct update_tensor *executor_tensors(struct executor *exec) { return exec->tensor; }
float *executor_running(struct executor *exec, int state) { return exec->running[state]; }
void *executor_update_room(struct executor *exec) { return exec->update_room; }
void executor_set_update(struct executor *exec, const struct update *update) { exec->update = update; }
uint64_t *executor_position(struct executor *exec) { return &exec->position; }
void *executor_batch(struct executor *exec) { return batch_transfer_batch(&exec->transfer); }
int32_t *executor_labels(struct executor *exec) { return batch_transfer_labels(&exec->transfer); }
bool executor_ahead(const struct executor *exec) { return exec->transfer.staged != NULL; }
void executor_send(struct executor *exec) { batch_transfer_send(&exec->transfer); }
const size_t *executor_counted(const struct executor *exec) { return exec->training.counted; }
const uint64_t *executor_op_ns(const struct executor *exec) { return exec->training.ns; }

/* The bytes that the allocator counts while op runs, or after all ops, must be those of the plan. */
static enum status count(struct executor *e, int op)
{
    const struct plan *plan = e->now->plan;
    const size_t counted = e->backend->allocated.bytes, planned = op < plan->lowered.ops ? plan->live[op] : 0;
    char a[UNIT_TEXT], b[UNIT_TEXT], name[128] = "the end";
    e->now->counted[op] = counted;
    if (counted == planned) return ST_OK;
    if (op < plan->lowered.ops) plan_op_text(plan, op, name);
    return fail(ST_FAILED, "memory: at step %u, op %d (%s), the allocator counts %s, the plan predicted %s",
                e->backend->moment.step, op, name, exact_bytes_text(counted, a), exact_bytes_text(planned, b));
}

/* DYNAMIC: allocates the buffers that op is the first to use. */
static enum status begin_buffers(struct executor *e, int op)
{
    const struct by_op *begin = &e->now->begin;
    char text[UNIT_TEXT];
    for (int k = begin->from[op]; k < begin->from[op + 1]; k++) {
        const int i = begin->buffer[k];
        const size_t bytes = e->now->plan->lowered.buffer[i].bytes;
        if (!(e->now->at[i] = e->backend->kind->allocate(e->backend, bytes)))
            return fail(ST_FAILED, "out of memory: %s for a buffer", exact_bytes_text(bytes, text));
    }
    return count(e, op);
}

/* Releases, or fills with NaN, the buffers that op was the last to use. */
static void end_buffers(struct executor *e, int op)
{
    const struct by_op *end = &e->now->end;
    for (int k = end->from[op]; k < end->from[op + 1]; k++) {
        const int i = end->buffer[k];
        if (e->options.memory == MEMORY_POISON)
            e->backend->kind->fill(e->backend, e->now->at[i], SIGNALLING_NAN, e->now->plan->lowered.buffer[i].bytes);
        if (e->options.memory == MEMORY_DYNAMIC) {
            e->backend->kind->release(e->backend, e->now->at[i]);
            e->now->at[i] = NULL;
        }
    }
}

static void *address(const struct executor *e, int buffer)
{
    return buffer >= 0 ? e->now->at[buffer] : buffer == BUFFER_BATCH ? e->transfer.batch : NULL;
}

/* Of the op's operand, with so many bytes for the whole batch: the slice's part, where the buffer holds all of it. */
static void *part(const struct executor *e, const struct op *op, int buffer, size_t bytes)
{
    char *whole = address(e, buffer);
    if (op->slice == WHOLE_BATCH || !whole) return whole;
    if (buffer >= 0 && e->now->plan->lowered.buffer[buffer].slice != WHOLE_BATCH) return whole;
    return whole + (size_t)op->slice * (bytes / (size_t)e->plan->network->graph->slices);
}

/* The samples of an op, and the place of the first one. */
static int64_t samples_of(const struct executor *e, const struct op *op)
{
    const struct graph *graph = e->plan->network->graph;
    return op->slice == WHOLE_BATCH ? graph->batch : graph->batch / graph->slices;
}
static int64_t first_sample(const struct executor *e, const struct op *op)
{
    return op->slice == WHOLE_BATCH ? 0 : op->slice * samples_of(e, op);
}

/* The source of a random node's numbers at this op; a first forward stores its position in the stream, or its mask, in
 * the buffer once. */
static struct draw draw_for(struct executor *e, const struct op *op)
{
    const struct node *node = &e->plan->network->graph->node[op->node];
    const struct backend *b = e->backend;
    struct draw draw = {.mode = e->options.rng,
                        .seed = e->options.seed,
                        .node = (uint32_t)op->node,
                        .step = b->moment.step,
                        .sample = first_sample(e, op)};
    if (b->kind->device) draw.step_there = &b->now->step;
    if (!node->draws || e->now == &e->evaluation || draw.mode == RNG_COUNTER) return draw;
    bool first = op->kind == OP_FORWARD && !op->recompute;
    bool draws = first || (op->kind == OP_FORWARD && draw.mode == RNG_UNSAFE);
    void *state = address(e, op->once);
    if (draw.mode == RNG_MASK) {
        draw.mask = state;
        if (first) b->kind->mask(e->backend, &draw, node_real(node, "rate"), node->draws, samples_of(e, op));
        return draw;
    }
    if (draws) {
        const uint64_t place = (uint64_t)node->draws * (uint64_t)first_sample(e, op);
        b->kind->position(e->backend, state, draw.mode == RNG_STASH ? e->place[op->node] + place : e->now->drawn);
        e->now->drawn += (uint64_t)node->draws * (uint64_t)samples_of(e, op);
    }
    if (state && b->kind->device) draw.position_there = state;
    if (state && !b->kind->device) draw.position = *(const uint64_t *)state;
    return draw;
}

/* Of a fused update. y and saved are those of a backward's first op, which multiplies dy in place. */
static void set_gradients(const struct executor *e, const struct op *op, struct kernel_args *args)
{
    const struct network *network = e->plan->network;
    const struct node *node = &network->graph->node[op->node];
    const struct parameter *p = &network->graph->parameter[node->first_parameter];
    float *gradients = address(e, op->gradients);
    const struct update_part part = update_part_of(network, op->node, op->part, gradients, 0);
    for (int k = 0; k < node->parameters; k++)
        args->gradients[k] = update_part_of(network, op->node, op->part, gradients, k).gradient;
    if (!op->part) return;
    args->row = part.first / (p->elements / p->definition.shape.dim[0]);
    args->rows = part.count / (p->elements / p->definition.shape.dim[0]);
    if (op->part > 1 || network_parts(network, op->node) & PART_INPUT) args->y = args->saved = NULL;
}

static struct kernel_args args_for(struct executor *e, const struct op *op)
{
    const struct node *node = &e->plan->network->graph->node[op->node];
    const bool evaluate = e->now == &e->evaluation, forward = op->kind == OP_FORWARD;
    const bool first = forward && !evaluate && !op->recompute;
    const struct value *value = e->plan->network->graph->value;
    struct kernel_args args = {.y = part(e, op, op->y, value[node->output].bytes),
                               .dy = part(e, op, op->dy, value[node->output].gradient_bytes),
                               .saved = address(e, op->saved),
                               .once = address(e, op->once),
                               .scratch = address(e, op->scratch),
                               .labels = e->transfer.labels + first_sample(e, op),
                               .draw = draw_for(e, op),
                               .parts = op->parts,
                               .evaluate = evaluate,
                               .first = first,
                               .commit = !e->looking && (first || (e->options.commit_every && forward && !evaluate)),
                               .save = op->save};
    for (int k = 0; k < NODE_INPUTS_MAX; k++) {
        args.x[k] = part(e, op, op->x[k], value[node->inputs[k]].bytes);
        args.dx[k] = part(e, op, op->dx[k], value[node->inputs[k]].gradient_bytes);
    }
    for (int k = 0; k < node->parameters; k++) {
        args.parameters[k] = e->tensor[node->first_parameter + k].parameter;
        args.gradients[k] = e->tensor[node->first_parameter + k].gradient;
    }
    for (int k = 0; k < node->states; k++) args.states[k] = e->running[node->first_state + k];
    if (op->gradients >= 0) set_gradients(e, op, &args);
    return args;
}

/* A backward of slices: the first assigns the gradients of the parameters; the kernel writes those of a later one to
 * the start of the scratch, and they are added. */
static enum status run_slice_backward(struct executor *e, const struct op *op, struct kernel_args *args)
{
    const struct binding *binding = &e->plan->network->binding[op->node];
    const struct node *node = &e->plan->network->graph->node[op->node];
    float *sum[NODE_PARAMETERS_MAX];
    const bool adds = op->parts & PART_PARAMS && op->slice > 0;
    char *partial = args->scratch;
    if (op->parts & PART_PARAMS) args->scratch = partial + network_partial_bytes(e->plan->network, op->node);
    for (int k = 0; adds && k < node->parameters; k++) {
        sum[k] = args->gradients[k];
        args->gradients[k] = (float *)(void *)partial;
        partial += parameter_static_bytes(&e->plan->network->graph->parameter[node->first_parameter + k]);
    }
    TRY(binding->kernel->backward(binding->state, args));
    for (int k = 0; adds && k < node->parameters; k++)
        e->backend->kind->add(e->backend, sum[k], sum[k], args->gradients[k],
                              (size_t)e->plan->network->graph->parameter[node->first_parameter + k].elements);
    return ST_OK;
}

/* The update of a node's parameters, or of a part of them, from the last to the first. */
static enum status run_update(struct executor *e, const struct op *op)
{
    const struct network *network = e->plan->network;
    for (int k = network->graph->node[op->node].parameters - 1; k >= 0 && e->update && !e->looking; k--) {
        const struct update_part part = update_part_of(network, op->node, op->part, address(e, op->gradients), k);
        if (part.count) e->backend->kind->update->part(e->backend, e->update, &part);
    }
    return ST_OK;
}

static enum status run_op(struct executor *e, const struct op *op)
{
    const struct binding *binding = &e->plan->network->binding[op->node];
    const size_t all = op->bytes * (size_t)e->plan->network->graph->slices;
    if (op->kind == OP_COPY) {
        e->backend->kind->copy(e->backend, part(e, op, op->y, all), part(e, op, op->x[0], all), op->bytes);
        return ST_OK;
    }
    if (op->kind == OP_ACCUMULATE) {
        e->backend->kind->add(e->backend, part(e, op, op->y, all), part(e, op, op->x[0], all),
                              part(e, op, op->x[1], all), op->bytes / sizeof(float));
        return ST_OK;
    }
    if (op->kind == OP_UPDATE) return run_update(e, op);
    struct kernel_args args = args_for(e, op);
    if (op->kind == OP_BACKWARD && op->slice != WHOLE_BATCH) return run_slice_backward(e, op, &args);
    return (op->kind == OP_FORWARD ? binding->kernel->forward : binding->kernel->backward)(binding->state, &args);
}

static enum phase phase_of(const struct op *op)
{
    return op->kind != OP_FORWARD ? PHASE_BACKWARD : op->recompute ? PHASE_RECOMPUTE : PHASE_FORWARD;
}

/* Reads another place of the arena instead of x; an output over its input stays where it is. */
static enum status read_stale(struct executor *e, const struct op *op)
{
    const size_t bytes = e->plan->lowered.buffer[op->x[0]].bytes;
    void **x = &e->now->at[op->x[0]], *right = *x;
    void *stale = fault_stale(e->backend, e->arena, e->arena_bytes, right, bytes);
    if (op->y == op->x[0])
        fault_copy(e->backend, right, stale, bytes);
    else
        *x = stale;
    enum status status = run_op(e, op);
    *x = right;
    return status;
}

/* Runs the fault instead of op. */
static enum status run_faulty(struct executor *e, const struct op *op)
{
    const struct buffer *buffer = e->plan->lowered.buffer;
    if (e->options.fault.kind ==
        FAULT_SKIP_RECOMPUTE) { /* NaN: a relu's input would still have the signs of its output */
        if (op->y >= 0) e->backend->kind->fill(e->backend, address(e, op->y), SIGNALLING_NAN, buffer[op->y].bytes);
        return ST_OK;
    }
    if (e->options.fault.kind == FAULT_STALE_READ) return read_stale(e, op);
    if (op->kind == OP_BACKWARD) {
        const int kept = op->saved >= 0 ? op->saved : op->once;
        fault_flip_bytes(e->backend, address(e, kept), buffer[kept].bytes);
        return run_op(e, op);
    }
    TRY(run_op(e, op)); /* a mask that is drawn, not kept: what its recomputation wrote */
    fault_flip_floats(e->backend, address(e, op->y), buffer[op->y].bytes);
    return ST_OK;
}

/* Bytes that a forward writes; a loss writes two numbers, whatever the batch. */
static size_t written_bytes(const struct executor *e, const struct op *op)
{
    const struct graph *graph = e->plan->network->graph;
    const size_t bytes = graph->value[op->node + 1].bytes;
    if (graph->node[op->node].layer->loss) return sizeof e->backend->outcome.loss;
    return op->slice == WHOLE_BATCH ? bytes : bytes / (size_t)graph->slices;
}

/* Overwrites all bytes that a recomputation is about to write, so that bytes of the first forward cannot hide one that
 * writes too little or is left out. An output over its own input keeps that input. Returns its duration, which on a
 * host is not part of the op's time. */
static uint64_t undefine(struct executor *e, const struct op *op)
{
    const struct backend_kind *kind = e->backend->kind;
    const int target[] = {op->y == op->x[0] || op->y == op->x[1] ? BUFFER_NONE : op->y,
                          op->save ? op->saved : BUFFER_NONE};
    const uint64_t start = clock_now_ns();
    if (!kind->device) kind->phase(e->backend, PHASE_UNDEFINE);
    for (size_t i = 0; i < sizeof target / sizeof *target; i++) {
        const struct buffer *buffer = &e->plan->lowered.buffer[target[i] >= 0 ? target[i] : 0];
        const size_t all = e->plan->network->graph->value[op->node + 1].bytes; /* of y, which may be a part */
        if (target[i] >= 0 && buffer->slice == op->slice)
            kind->fill(e->backend, e->now->at[target[i]], SIGNALLING_NAN, buffer->bytes);
        else if (target[i] >= 0)
            kind->fill(e->backend, part(e, op, target[i], all), SIGNALLING_NAN, written_bytes(e, op));
    }
    if (!kind->device) kind->phase(e->backend, phase_of(op));
    return clock_now_ns() - start;
}

static enum status check_recompute(struct executor *e, const struct op *op)
{
    const struct node *node = &e->plan->network->graph->node[op->node];
    const struct graph *graph = e->plan->network->graph;
    const void *y = part(e, op, op->y, graph->value[node->output].bytes);
    struct digest digest = e->backend->kind->digest(e->backend, y, written_bytes(e, op));
    struct digest *first = &e->recomputed[op->node * graph->slices + (op->slice > 0 ? op->slice : 0)];
    if (!op->recompute) {
        *first = digest;
    } else if (!digest_equal(*first, digest)) {
        return fail(ST_DIFFERS,
                    "check: at step %u the recomputation of node '%s' wrote another value than its first forward",
                    e->backend->moment.step, node->name);
    }
    return ST_OK;
}

/* After a forward, before its buffers may end: copies the loss and checks the value. */
static enum status after_forward(struct executor *e, const struct op *op)
{
    const struct graph *graph = e->plan->network->graph;
    const struct backend_kind *kind = e->backend->kind;
    float *y = part(e, op, op->y, graph->value[op->node + 1].bytes), *loss = e->backend->outcome_now->loss;
    if (op->node == graph->nodes - 1 && !op->recompute) { /* the slices come in ascending order */
        if (op->slice > 0)
            kind->add(e->backend, loss, loss, y, sizeof e->backend->outcome.loss / sizeof *loss);
        else
            kind->copy(e->backend, loss, y, sizeof e->backend->outcome.loss);
    }
    if (e->looking) {
        if (isfinite(kind->squares(e->backend, y, written_bytes(e, op) / sizeof(float)))) return ST_OK;
        e->not_finite = op->node;
        return ST_FAILED;
    }
    return e->recomputed && e->now == &e->training ? check_recompute(e, op) : ST_OK;
}

enum status executor_queue(struct executor *e)
{
    const struct lowered *l = &e->now->plan->lowered;
    const struct fault *fault = &e->options.fault;
    const bool faulty_step = fault->step == e->backend->moment.step && e->now == &e->training;
    const bool dynamic = e->options.memory == MEMORY_DYNAMIC;
    const int faulty = faulty_step ? e->fault_op : -1;
    e->now->drawn = 0;
    for (int i = 0; i < l->ops; i++) {
        const struct op *op = &l->op[i];
        uint64_t start = clock_now_ns();
        e->backend->kind->phase(e->backend, phase_of(op));
        if (dynamic) TRY(begin_buffers(e, i));
        if (op->recompute) start += undefine(e, op);
        TRY(i == faulty ? run_faulty(e, op) : run_op(e, op));
        if (op->kind == OP_FORWARD) TRY(after_forward(e, op));
        if (e->options.memory != MEMORY_PLANNED) end_buffers(e, i);
        if (e->now->ns) e->now->ns[i] = clock_now_ns() - start;
    }
    return dynamic ? count(e, l->ops) : ST_OK;
}

bool executor_repeatable(const struct executor *exec)
{
    const struct executor_options *o = &exec->options;
    return o->memory != MEMORY_DYNAMIC && o->fault.kind == FAULT_NONE && !o->check_recompute;
}

void executor_begin(struct executor *exec, uint32_t step)
{
    exec->backend->moment.step = step;
    exec->backend->moment.position = exec->position;
    batch_transfer_take(&exec->transfer);
}

/* Releases what a failed step leaves allocated. */
void executor_end(struct executor *exec)
{
    const struct bound *now = exec->now;
    if (now == &exec->training) exec->position = exec->backend->moment.position + now->drawn;
    for (int i = 0; exec->options.memory == MEMORY_DYNAMIC && i < now->plan->lowered.buffers; i++) {
        if (now->at[i]) exec->backend->kind->release(exec->backend, now->at[i]);
        now->at[i] = NULL;
    }
}

static enum status queue_bound(void *exec) { return executor_queue(exec); }

/* Runs all ops of the bound plan. */
static enum status run_bound(struct executor *e, float loss[2])
{
    const struct backend_kind *kind = e->backend->kind;
    enum status status = kind->step(e->backend, false, queue_bound, e);
    if (status == ST_OK) status = kind->wait(e->backend);
    executor_end(e);
    memcpy(loss, e->backend->outcome.loss, sizeof e->backend->outcome.loss);
    return status;
}

enum status executor_step(struct executor *exec, uint32_t step, float loss[2])
{
    executor_begin(exec, step);
    return run_bound(exec, loss);
}

enum status executor_run_plan(struct executor *exec, const struct plan *plan, uint32_t step, float loss[2])
{
    char needs[UNIT_TEXT], has[UNIT_TEXT];
    if (plan->arena_bytes > exec->arena_bytes && exec->options.memory != MEMORY_DYNAMIC)
        return fail(ST_FAILED, "an evaluation needs an arena of %s, training has %s",
                    exact_bytes_text(plan->arena_bytes, needs), exact_bytes_text(exec->arena_bytes, has));
    if (exec->evaluation.plan != plan) bind_plan(exec, plan, &exec->evaluation);
    exec->now = &exec->evaluation;
    executor_begin(exec, step);
    enum status status = run_bound(exec, loss);
    exec->now = &exec->training;
    return status;
}

/* The backend's moment is still that of the step. */
int executor_find_not_finite(struct executor *exec)
{
    float loss[2];
    exec->looking = true;
    exec->not_finite = -1;
    if (run_bound(exec, loss) == ST_OK) exec->not_finite = -1;
    exec->looking = false;
    return exec->not_finite;
}
