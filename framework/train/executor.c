/* The loop, and what is prepared before step 0: addresses of everything static, and one address a buffer. Modes differ
 * only in what happens where buffers begin and end. */
#include "train/executor.h"

#include <math.h>
#include <string.h>

#include "backend/update_memory.h"
#include "base/units.h"
#include "train/run_op.h"

enum { SIGNALLING_NAN = 0x7fa0dead };

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
    if (e->options.memory != MEMORY_PLANNED) {
        bound->begin = sort_by_op(l, false, e->region);
        bound->end = sort_by_op(l, true, e->region);
    }
    NEW(e->region, bound->ns, (size_t)l->ops + 1);
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
const uint64_t *executor_op_ns(const struct executor *exec) { return exec->training.ns; }

/* The bytes that the allocator counts while op runs, or after all ops, must be those of the plan. */
static enum status count(struct executor *e, int op)
{
    const struct plan *plan = e->now->plan;
    const size_t counted = e->backend->allocated.bytes, planned = op < plan->lowered.ops ? plan->live[op] : 0;
    char a[UNIT_TEXT], b[UNIT_TEXT], name[128] = "the end";
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
    enum status status = op_run(e, op);
    *x = right;
    return status;
}

/* Runs the fault instead of op. */
static enum status run_faulty(struct executor *e, const struct op *op)
{
    const struct buffer *buffer = e->plan->lowered.buffer;
    if (e->options.fault.kind ==
        FAULT_SKIP_RECOMPUTE) { /* NaN: a relu's input would still have the signs of its output */
        if (op->y >= 0) e->backend->kind->fill(e->backend, op_address(e, op->y), SIGNALLING_NAN, buffer[op->y].bytes);
        return ST_OK;
    }
    if (e->options.fault.kind == FAULT_STALE_READ) return read_stale(e, op);
    if (op->kind == OP_BACKWARD) {
        const int kept = op->saved >= 0 ? op->saved : op->once;
        fault_flip_bytes(e->backend, op_address(e, kept), buffer[kept].bytes);
        return op_run(e, op);
    }
    TRY(op_run(e, op)); /* a mask that is drawn, not kept: what its recomputation wrote */
    fault_flip_floats(e->backend, op_address(e, op->y), buffer[op->y].bytes);
    return ST_OK;
}

/* Bytes of an op's value; a loss writes two numbers, whatever the batch. */
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
            kind->fill(e->backend, op_part(e, op, target[i], all), SIGNALLING_NAN, written_bytes(e, op));
    }
    if (!kind->device) kind->phase(e->backend, phase_of(op));
    return clock_now_ns() - start;
}

static enum status check_recompute(struct executor *e, const struct op *op)
{
    const struct node *node = &e->plan->network->graph->node[op->node];
    const struct graph *graph = e->plan->network->graph;
    const void *y = op_part(e, op, op->y, graph->value[node->output].bytes);
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

/* Whether op writes its node's value: a forward, or the backward in which a training step computes its loss. */
static bool writes_value(const struct executor *e, const struct op *op)
{
    const bool in_backward = e->plan->network->graph->node[op->node].layer->in_backward;
    return op->kind == (in_backward && e->now == &e->training ? OP_BACKWARD : OP_FORWARD);
}

/* Copies a loss, whose slices come in ascending order. After the last node's, an evaluation has that alone, and
 * training adds the auxiliary ones, in the order of their nodes. */
static void take_loss(struct executor *e, const struct op *op, const float *y)
{
    const struct backend_kind *kind = e->backend->kind;
    const struct graph *graph = e->plan->network->graph;
    struct step_outcome *outcome = e->backend->outcome_now;
    const int number = graph->node[op->node].auxiliary;
    float *loss = number ? outcome->auxiliary[number - 1] : outcome->loss;
    if (op->slice > 0)
        kind->add(e->backend, loss, loss, y, sizeof outcome->loss / sizeof *loss);
    else
        kind->copy(e->backend, loss, y, sizeof outcome->loss);
    if (number || e->now == &e->evaluation || (op->slice != WHOLE_BATCH && op->slice + 1 < graph->slices)) return;
    for (int i = 0; i < graph->auxiliary; i++) kind->add(e->backend, loss, loss, outcome->auxiliary[i], 1);
}

/* After it, before its buffers may end: takes a loss and checks the value. */
static enum status after_value(struct executor *e, const struct op *op)
{
    const struct graph *graph = e->plan->network->graph;
    const struct backend_kind *kind = e->backend->kind;
    const float *y = op_part(e, op, op->y, graph->value[op->node + 1].bytes);
    if (graph->node[op->node].layer->loss && !op->recompute) take_loss(e, op, y);
    if (e->looking) {
        if (isfinite(kind->squares(e->backend, y, written_bytes(e, op) / sizeof(float)))) return ST_OK;
        e->not_finite = op->node;
        return ST_FAILED;
    }
    return e->recomputed && e->now == &e->training && op->kind == OP_FORWARD ? check_recompute(e, op) : ST_OK;
}

enum status executor_queue(struct executor *e)
{
    const struct lowered *l = &e->now->plan->lowered;
    const struct fault *fault = &e->options.fault;
    const bool faulty_step = fault->step == e->backend->moment.step && e->now == &e->training;
    const bool dynamic = e->options.memory == MEMORY_DYNAMIC;
    const int faulty = faulty_step ? e->fault_op : -1;
    const bool device = e->backend->kind->device;
    e->now->drawn = 0;
    e->backend->op_ns = e->now->ns;
    for (int i = 0; i < l->ops; i++) {
        const struct op *op = &l->op[i];
        uint64_t start = clock_now_ns();
        e->backend->op = i;
        e->backend->kind->phase(e->backend, phase_of(op));
        if (dynamic) TRY(begin_buffers(e, i));
        if (op->recompute) start += undefine(e, op);
        TRY(i == faulty ? run_faulty(e, op) : op_run(e, op));
        if (writes_value(e, op)) TRY(after_value(e, op));
        if (e->options.memory != MEMORY_PLANNED) end_buffers(e, i);
        if (!device) e->now->ns[i] = clock_now_ns() - start;
    }
    e->backend->op = -1;
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
    exec->backend->moment.counted = batch_transfer_counted(&exec->transfer);
    exec->backend->moment.divisor = batch_transfer_divisor(&exec->transfer);
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
