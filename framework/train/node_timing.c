#include "train/node_timing.h"

#include "backend/update_memory.h"
#include "base/work.h"
#include "train/run_op.h"

#include <math.h>
#include <stdlib.h>

enum { PATTERN_BYTES = 1 << 20 };

/* Whether a step that stores everything writes node's y over its x, which no later op reads. */
static bool in_place(const struct network *network, int node)
{
    const struct graph *graph = network->graph;
    const struct node *n = &graph->node[node];
    const struct value *x = &graph->value[n->inputs[0]];
    const int writer = n->inputs[0] - 1; /* -1: the batch, which stays */
    return network->binding[node].footprint.y_over_x && writer >= 0 && x->consumers == 1 &&
           x->bytes == graph->value[n->output].bytes && !(network_reads(network, writer) & READS_Y) &&
           !network_read_by_another(network, writer);
}

char *measure_key(const struct network *network, int node, struct region *region)
{
    const struct footprint *f = &network->binding[node].footprint;
    const struct graph *graph = network_call(network, node);
    const char *key = graph_node_key(graph, node, region);
    key = region_text(region, "%s; parts %u; saved %zu; scratch %zu, %zu, %zu; %s%s", key, network_parts(network, node),
                      f->saved, f->forward_scratch, f->backward_scratch[0], f->backward_scratch[1], f->implementation,
                      in_place(network, node) ? ", in place" : "");
    return graph == network->graph ? (char *)(uintptr_t)key
                                   : region_text(region, "%s; %lld calls", key, (long long)network->graph->slices);
}

/* ---- memory ---- */

struct bench {
    const struct network *network;
    struct backend *backend;
    char *block, *distance; /* cut by each node anew; bytes that are read and written elsewhere in a step */
    size_t block_bytes, distance_bytes;
    float *pattern;
    int32_t *labels;
    bool again; /* what is timed now was done before */
};

/* A node's operands in the block. */
struct operands {
    struct kernel_args args;
    size_t bytes; /* of all of them */
    size_t x_bytes[NODE_INPUTS_MAX], dy_bytes, once_bytes, parameter_bytes[NODE_PARAMETERS_MAX];
};

static void *take(char *block, size_t *used, size_t bytes)
{
    char *at = block ? block + *used : NULL; /* without a block only the bytes are counted */
    *used += round_up(bytes);
    return bytes ? at : NULL;
}

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

/* Gradients of inputs, over the operands that they may overwrite. */
static void cut_gradients(const struct bench *b, const struct node *node, struct operands *cut)
{
    const struct footprint *f = &b->network->binding[node->index].footprint;
    const unsigned parts = network_parts(b->network, node->index);
    const bool split = f->split || !(parts & PART_PARAMS);
    if (!(parts & PART_INPUT)) return;
    for (int k = 0; k < node->layer->inputs; k++) {
        const struct value *x = &network_call(b->network, node->index)->value[node->inputs[k]];
        if (!x->wants_gradient) continue;
        if (f->dx_over_dy && k == 0 && x->gradient_bytes == cut->dy_bytes)
            cut->args.dx[k] = cut->args.dy;
        else if (split && k >= inputs_read(f->reads[PART_INDEX_INPUT], node->layer->inputs)) /* x is dead by then */
            cut->args.dx[k] = (void *)(uintptr_t)cut->args.x[k];
        else
            cut->args.dx[k] = take(b->block, &cut->bytes, x->gradient_bytes);
    }
}

/* block NULL: only cut.bytes is valid. */
static struct operands cut_node(const struct bench *b, int index)
{
    const struct graph *graph = network_call(b->network, index);
    const size_t calls = (size_t)(b->network->graph->batch / graph->batch);
    const struct node *node = &graph->node[index];
    const struct footprint *f = &b->network->binding[index].footprint;
    const struct value *y = &graph->value[node->output];
    struct operands cut = {.args = {.labels = b->labels, .draw = {.mode = RNG_COUNTER, .node = (uint32_t)index}},
                           .dy_bytes = y->gradient_bytes};
    for (int k = 0; k < node->parameters; k++) {
        cut.parameter_bytes[k] = parameter_bytes(&graph->parameter[node->first_parameter + k]);
        cut.args.parameters[k] = take(b->block, &cut.bytes, cut.parameter_bytes[k]);
        cut.args.gradients[k] = take(b->block, &cut.bytes, cut.parameter_bytes[k]);
    }
    for (int k = 0; k < node->layer->inputs; k++) {
        cut.x_bytes[k] = graph->value[node->inputs[k]].bytes;
        cut.args.x[k] = take(b->block, &cut.bytes, cut.x_bytes[k]);
    }
    cut.args.y = in_place(b->network, index) ? (void *)(uintptr_t)cut.args.x[0] : take(b->block, &cut.bytes, y->bytes);
    cut.args.dy = take(b->block, &cut.bytes, cut.dy_bytes);
    cut.args.saved = take(b->block, &cut.bytes, f->saved / calls);
    cut.args.once = take(b->block, &cut.bytes, cut.once_bytes = f->once / calls);
    for (int k = 0; k < node->states; k++)
        cut.args.states[k] = take(b->block, &cut.bytes, parameter_bytes(&graph->state[node->first_state + k]));
    cut.args.scratch =
        take(b->block, &cut.bytes, most(f->forward_scratch, most(f->backward_scratch[0], f->backward_scratch[1])));
    cut_gradients(b, node, &cut);
    return cut;
}

/* Bytes of values and parameters, which a step accesses at least. */
static size_t step_bytes(const struct graph *graph)
{
    size_t bytes = 0;
    for (int v = 0; v < graph->values && bytes < DISTANCE_MAX; v++) bytes += graph->value[v].bytes;
    for (int p = 0; p < graph->parameters && bytes < DISTANCE_MAX; p++)
        bytes += (size_t)graph->parameter[p].elements * sizeof(float);
    return bytes < DISTANCE_MAX ? round_up(bytes) : DISTANCE_MAX;
}

static void close_bench(struct bench *b)
{
    const struct backend_kind *kind = b->backend->kind;
    if (b->block) kind->unreserve(b->backend, b->block, b->block_bytes);
    if (b->distance) kind->unreserve(b->backend, b->distance, b->distance_bytes);
    if (b->labels) kind->unreserve(b->backend, b->labels, (size_t)b->network->graph->batch * sizeof *b->labels);
    free(b->pattern);
}

/* A bench over network with a block of bytes bytes; closed by close_bench also where this fails. */
static enum status open_bench(const struct network *network, size_t bytes, struct bench *b)
{
    struct backend *backend = network->backend;
    *b = (struct bench){.network = network,
                        .backend = backend,
                        .block_bytes = bytes,
                        .distance_bytes = step_bytes(network->graph),
                        .pattern = allocate(PATTERN_BYTES, 1)};
    /* fans of 3 and 3: uniform in [-1, 1) */
    rng_init(INIT_GLOROT_UNIFORM, 1, 0, 3, 3, 0, PATTERN_BYTES / (int64_t)sizeof(float), b->pattern);
    TRY(backend->kind->reserve(backend, (size_t)network->graph->batch * sizeof *b->labels, (void **)&b->labels));
    TRY(backend->kind->reserve(backend, b->distance_bytes, (void **)&b->distance));
    return backend->kind->reserve(backend, bytes, (void **)&b->block);
}

/* Fills with the pattern by copying the written part behind itself, since uploads to a device are slow. */
static void write_operand(const struct bench *b, const void *operand, size_t bytes)
{
    const struct backend_kind *kind = b->backend->kind;
    char *to = (char *)(uintptr_t)operand;
    size_t there = bytes < PATTERN_BYTES ? bytes : PATTERN_BYTES;
    if (bytes == 0) return;
    kind->upload(b->backend, to, b->pattern, there);
    for (; there < bytes; there *= 2)
        kind->copy(b->backend, to + there, to, bytes - there < there ? bytes - there : there);
}

static void pass_time_elsewhere(const struct bench *b)
{
    b->backend->kind->fill(b->backend, b->distance, 0, b->distance_bytes);
}

/* Runs body once as a step. From its second run a device records it, as it does training steps, so that times do not
 * depend on how fast the host queues. One self has one body, whose work is always the same. */
static enum status do_step(const struct bench *b, enum status (*body)(void *self), void *self)
{
    TRY(b->backend->kind->step(b->backend, b->again, body, self));
    return b->backend->kind->wait(b->backend);
}

/* The time of a step; *least: the least so far. */
static enum status time_step(const struct bench *b, enum status (*body)(void *self), void *self, double *least)
{
    double took = 0;
    TRY(do_step(b, body, self));
    for (int phase = 0; phase < PHASES; phase++) took += (double)b->backend->phase_ns[phase];
    *least = fmin(*least, took);
    return ST_OK;
}

/* ---- nodes ---- */

/* A pass of a node; args.parts 0: the forward. adds: of a slice after the first, whose gradients are added. */
struct timed_pass {
    const struct network *network;
    int node;
    bool adds;
    struct kernel_args args;
};

/* All of a node. */
struct timed_node {
    struct timed_pass forward, saving, backward[2], adding; /* as struct measured has their times */
    double adding_ns;                                       /* of the gradients of the parameters */
};

static enum status run_pass(void *self)
{
    const struct timed_pass *pass = self;
    const struct binding *binding = &pass->network->binding[pass->node];
    struct kernel_args args = pass->args;
    if (!args.parts) return binding->kernel->forward(binding->state, &args);
    if (network_call(pass->network, pass->node) == pass->network->graph)
        return binding->kernel->backward(binding->state, &args);
    return slice_backward_run(pass->network, pass->node, pass->adds, &args);
}

/* Which of a node's inputs was written last. */
static int newest_input(const struct node *node)
{
    int newest = 0;
    for (int k = 1; k < node->layer->inputs; k++)
        if (node->inputs[k] > node->inputs[newest]) newest = k;
    return newest;
}

/* Times a pass with the args that cut has now. */
static enum status time_pass(const struct bench *b, int node, const struct operands *cut, bool adds,
                             struct timed_pass *pass, double *time)
{
    *pass = (struct timed_pass){b->network, node, adds, cut->args};
    return time_step(b, run_pass, pass, time);
}

/* first: one that writes the saved tensors, and what a first forward writes once. */
static enum status time_forward(const struct bench *b, int node, struct operands *cut, bool first,
                                struct timed_pass *pass, double *time)
{
    const int newest = newest_input(&b->network->graph->node[node]);
    cut->args.save = first && b->network->binding[node].footprint.saved;
    cut->args.first = cut->args.commit = first && b->network->binding[node].footprint.once;
    for (int k = 0; k < NODE_INPUTS_MAX; k++)
        if (k != newest) write_operand(b, cut->args.x[k], cut->x_bytes[k]);
    pass_time_elsewhere(b);
    write_operand(b, cut->args.x[newest], cut->x_bytes[newest]);
    return time_pass(b, node, cut, false, pass, time);
}

/* Leaves dy as the op before would have. */
static void arrive(const struct bench *b, const struct operands *cut)
{
    pass_time_elsewhere(b);
    write_operand(b, cut->args.dy, cut->dy_bytes);
}

/* The passes of a node once; the backward reads what the forward before it wrote. */
static enum status time_node(const struct bench *b, int node, struct timed_node *passes, struct measured *times)
{
    const struct footprint *f = &b->network->binding[node].footprint;
    const unsigned parts = network_parts(b->network, node);
    struct operands cut = cut_node(b, node);
    for (int k = 0; k < NODE_PARAMETERS_MAX; k++) write_operand(b, cut.args.parameters[k], cut.parameter_bytes[k]);
    write_operand(b, cut.args.once, cut.once_bytes);
    TRY(time_forward(b, node, &cut, false, &passes->forward, &times->forward));
    if (f->saved || f->once) TRY(time_forward(b, node, &cut, true, &passes->saving, &times->saving));
    if (!parts) return ST_OK;
    arrive(b, &cut);
    const bool one = !f->split && parts & PART_PARAMS; /* one op, under PARAMS */
    const struct kernel_args all = cut.args;
    const unsigned op[] = {one ? parts : parts & PART_PARAMS, one ? 0 : parts & PART_INPUT};
    for (int part = 0; part < 2; part++) {
        const unsigned reads = footprint_reads(f->reads, op[part]);
        cut.args.parts = op[part];
        cut.args.y = reads & READS_Y ? all.y : NULL;
        cut.args.saved = reads & READS_SAVED ? all.saved : NULL;
        if (op[part]) TRY(time_pass(b, node, &cut, false, &passes->backward[part], &times->backward[part]));
        if (!(op[part] & PART_PARAMS) || !network_partial_bytes(b->network, node)) continue;
        arrive(b, &cut);
        TRY(time_pass(b, node, &cut, true, &passes->adding, &passes->adding_ns));
    }
    return ST_OK;
}

/* A pass that was never timed takes no time; a forward without saved tensors takes no more than one with them. The
 * batch takes so many calls, of which all but the first may add gradients. */
static void settle(struct measured *times, double adding, double calls)
{
    double *all[] = {&times->forward, &times->saving, &times->backward[0], &times->backward[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (isinf(*all[i])) *all[i] = i == 1 ? times->forward : 0;
    if (times->saving < times->forward) times->saving = times->forward;
    const double more = isinf(adding) ? 0 : fmax(adding - times->backward[PART_INDEX_PARAMS], 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i] *= calls;
    times->backward[PART_INDEX_PARAMS] += more * (calls - 1);
}

static const struct measured never = {INFINITY, INFINITY, {INFINITY, INFINITY}};

size_t measure_bytes(const struct network *network, const int *nodes, int count)
{
    const struct bench b = {.network = network, .backend = network->backend};
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes = most(bytes, cut_node(&b, nodes[i]).bytes);
    return bytes + step_bytes(network->graph);
}

enum status measure_nodes(const struct network *network, const int *nodes, int count,
                          const struct measure_options *options, struct measured *times, int *rounds)
{
    struct bench b;
    struct timed_node *passes = allocate((size_t)count, sizeof *passes);
    for (int i = 0; i < count; i++) {
        times[i] = never;
        passes[i].adding_ns = INFINITY;
    }
    enum status status = open_bench(network, measure_bytes(network, nodes, count) - step_bytes(network->graph), &b);
    uint64_t end = clock_now_ns() + options->budget_ns;
    for (*rounds = 0; status == ST_OK && *rounds < ROUNDS_MOST; ++*rounds) {
        if (*rounds >= options->rounds_least && clock_now_ns() >= end) break;
        b.again = *rounds > 0;
        for (int i = 0; i < count && status == ST_OK; i++) status = time_node(&b, nodes[i], &passes[i], &times[i]);
        const double took = (double)(clock_now_ns() + options->budget_ns - end);
        work_report("timing passes",
                    fmin(took / (double)options->budget_ns, (*rounds + 1.0) / (double)options->rounds_least), 1);
    }
    close_bench(&b);
    for (int i = 0; i < count; i++)
        settle(&times[i], passes[i].adding_ns,
               (double)network->graph->batch / (double)network_call(network, nodes[i])->batch);
    free(passes);
    return status;
}

/* ---- the rest of a step ---- */

/* The largest gradient that several readers' gradients are added to. */
static size_t shared_gradient(const struct graph *graph)
{
    size_t bytes = 0;
    for (int v = 0; v < graph->values; v++)
        if (graph->value[v].consumers > 1) bytes = most(bytes, graph->value[v].gradient_bytes);
    return bytes;
}

/* An addition or a copy of bytes bytes. */
struct shared {
    const struct bench *bench;
    size_t bytes;
    bool add;
};

static enum status run_shared(void *self)
{
    const struct shared *s = self;
    const struct bench *b = s->bench;
    float *from = (float *)(void *)b->block, *to = (float *)(void *)(b->block + round_up(s->bytes));
    if (s->add)
        b->backend->kind->add(b->backend, to, to, from, s->bytes / sizeof(float));
    else
        b->backend->kind->copy(b->backend, to, from, s->bytes);
    return ST_OK;
}

static enum status time_shared(struct shared *shared, double *time)
{
    const struct bench *b = shared->bench;
    pass_time_elsewhere(b);
    write_operand(b, b->block, shared->bytes);
    return time_step(b, run_shared, shared, time);
}

struct timed_update {
    const struct bench *bench;
    const struct update *update;
};

static enum status run_update(void *self)
{
    const struct timed_update *u = self;
    u->bench->backend->kind->update->run(u->bench->backend, u->update);
    return ST_OK;
}

/* Runs the update once, as in a step, with a finite loss. */
static enum status time_update(struct timed_update *u, struct measured_rest *rest)
{
    static const float loss[2] = {0};
    const struct backend *backend = u->bench->backend;
    backend->kind->upload(u->bench->backend, backend->outcome_now->loss, loss, sizeof loss);
    TRY(do_step(u->bench, run_update, u));
    rest->digest = fmin(rest->digest, (double)backend->phase_ns[PHASE_DIGEST]);
    rest->optimizer = fmin(rest->optimizer, (double)backend->phase_ns[PHASE_OPTIMIZER]);
    return ST_OK;
}

/* u->tensor and room are cut from the block. */
static enum status time_rest(struct bench *b, struct update *u, size_t shared, int rounds, struct region *region,
                             struct measured_rest *rest)
{
    struct timed_update update = {b, u};
    struct shared added = {b, shared, true}, copied = {b, shared, false};
    NEW(region, u->tensor, (size_t)u->count);
    u->room = b->block + update_cut(b->network->graph, false, u->states, b->block, u->tensor);
    write_operand(b, b->block, b->block_bytes);
    TRY(update_open(u, b->backend, region));
    for (int i = 0; i < rounds; i++) {
        b->again = i > 0;
        TRY(time_update(&update, rest));
    }
    /* after the update, whose tables it overwrites */
    for (int i = 0; shared && i < rounds; i++) {
        b->again = i > 0;
        TRY(time_shared(&added, &rest->add));
        TRY(time_shared(&copied, &rest->copy));
    }
    return ST_OK;
}

enum status measure_rest(const struct network *network, const struct optimizer *optimizer,
                         const struct optimizer_settings *settings, const struct measure_options *options,
                         struct measured_rest *rest)
{
    const struct graph *graph = network->graph;
    struct backend *backend = network->backend;
    const size_t shared = shared_gradient(graph);
    const double mib = shared ? (double)shared / (1 << 20) : 1;
    const int states = optimizer->state(settings);
    const size_t room = backend->kind->update->bytes ? backend->kind->update->bytes(graph, states) : 0;
    const size_t bytes = (2 + (size_t)states) * graph_parameter_bytes(graph) + room;
    struct update u = {.optimizer = optimizer, .settings = *settings, .states = states, .count = graph->parameters};
    struct region *region = region_create();
    struct bench b;
    enum status status = open_bench(network, most(bytes, 2 * round_up(shared)), &b);
    *rest = (struct measured_rest){INFINITY, INFINITY, shared ? INFINITY : 0, shared ? INFINITY : 0};
    for (int i = 0; i < 2; i++)
        backend->moment.numbers[i] = optimizer_numbers(optimizer, settings, settings->lr, 1, 0, 1 + i);
    if (status == ST_OK) status = time_rest(&b, &u, shared, options->rounds_least, region, rest);
    close_bench(&b);
    region_destroy(region);
    rest->add /= mib;
    rest->copy /= mib;
    return status;
}
