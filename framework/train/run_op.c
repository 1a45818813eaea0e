#include "train/run_op.h"

#include "backend/update_memory.h"

void *op_address(const struct executor *e, int buffer)
{
    return buffer >= 0 ? e->now->at[buffer] : buffer == BUFFER_BATCH ? e->transfer.batch : NULL;
}

void *op_part(const struct executor *e, const struct op *op, int buffer, size_t bytes)
{
    char *whole = op_address(e, buffer);
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
    void *state = op_address(e, op->once);
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
    float *gradients = op_address(e, op->gradients);
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
    struct kernel_args args = {.y = op_part(e, op, op->y, value[node->output].bytes),
                               .dy = op_part(e, op, op->dy, value[node->output].gradient_bytes),
                               .saved = op_address(e, op->saved),
                               .once = op_address(e, op->once),
                               .scratch = op_address(e, op->scratch),
                               .labels =
                                   e->transfer.labels + first_sample(e, op) * graph_labels(e->plan->network->graph),
                               .divisor = &e->backend->now->divisor,
                               .draw = draw_for(e, op),
                               .parts = op->parts,
                               .adds = node->shared,
                               .evaluate = evaluate,
                               .first = first,
                               .commit = !e->looking && (first || (e->options.commit_every && forward && !evaluate)),
                               .save = op->save};
    for (int k = 0; k < NODE_INPUTS_MAX; k++) {
        args.x[k] = op_part(e, op, op->x[k], value[node->inputs[k]].bytes);
        args.dx[k] = op_part(e, op, op->dx[k], value[node->inputs[k]].gradient_bytes);
    }
    for (int k = 0; k < node_parameters(node); k++) {
        const struct update_tensor *tensor = &e->tensor[node_parameter(node, k)];
        args.parameters[k] = evaluate && tensor->average ? tensor->average : tensor->parameter;
        args.gradients[k] = tensor->gradient;
    }
    for (int k = 0; k < node->states; k++) args.states[k] = e->running[node->first_state + k];
    if (op->gradients >= 0) set_gradients(e, op, &args);
    return args;
}

/* A backward of a slice. adds: the kernel writes the gradients of the parameters to the start of the scratch, and they
 * are added to args->gradients; else it assigns them. Errors: those of the kernel. */
static enum status run_slice_backward(const struct network *network, int node, bool adds, struct kernel_args *args)
{
    const struct binding *binding = &network->binding[node];
    const struct node *n = &network->graph->node[node];
    const struct parameter *parameter = network->graph->parameter;
    const int parameters = adds && !binding->footprint.adds ? node_parameters(n) : 0;
    float *sum[NODE_PARAMETERS_MAX];
    char *partial = args->scratch;
    if (adds) args->adds = binding->footprint.adds;
    if (args->parts & PART_PARAMS) args->scratch = partial + network_partial_bytes(network, node);
    for (int k = 0; k < parameters; k++) {
        sum[k] = args->gradients[k];
        args->gradients[k] = (float *)(void *)partial;
        partial += parameter_static_bytes(&parameter[node_parameter(n, k)]);
    }
    TRY(binding->kernel->backward(binding->state, args));
    for (int k = 0; k < parameters; k++)
        network->backend->kind->add(network->backend, sum[k], sum[k], args->gradients[k],
                                    (size_t)parameter[node_parameter(n, k)].elements);
    return ST_OK;
}

/* The update of a node's parameters, or of a part of them, from the last to the first. */
static enum status run_update(struct executor *e, const struct op *op)
{
    const struct network *network = e->plan->network;
    for (int k = network->graph->node[op->node].parameters - 1; k >= 0 && e->update && !e->looking; k--) {
        const struct update_part part = update_part_of(network, op->node, op->part, op_address(e, op->gradients), k);
        if (part.count) e->backend->kind->update->part(e->backend, e->update, &part);
    }
    return ST_OK;
}

enum status op_run(struct executor *e, const struct op *op)
{
    const struct binding *binding = &e->plan->network->binding[op->node];
    const size_t all = op->bytes * (size_t)e->plan->network->graph->slices;
    if (op->kind == OP_COPY) {
        e->backend->kind->copy(e->backend, op_part(e, op, op->y, all), op_part(e, op, op->x[0], all), op->bytes);
        return ST_OK;
    }
    if (op->kind == OP_ACCUMULATE) {
        e->backend->kind->add(e->backend, op_part(e, op, op->y, all), op_part(e, op, op->x[0], all),
                              op_part(e, op, op->x[1], all), op->bytes / sizeof(float));
        return ST_OK;
    }
    if (op->kind == OP_UPDATE) return run_update(e, op);
    struct kernel_args args = args_for(e, op);
    if (op->kind == OP_BACKWARD && op->slice != WHOLE_BATCH)
        return run_slice_backward(e->plan->network, op->node, op->parts & PART_PARAMS && op->slice > 0, &args);
    return (op->kind == OP_FORWARD ? binding->kernel->forward : binding->kernel->backward)(binding->state, &args);
}
