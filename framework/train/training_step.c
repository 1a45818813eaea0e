#include "train/training_step.h"

#include "backend/update_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct train {
    struct region *region;
    const struct graph *graph;
    struct backend *backend;
    struct executor *exec;
    struct train_options options;
    struct update update;             /* of the parameters that are trained alone */
    struct digest *digest[DIGESTEDS]; /* one a parameter, after the last step; of what it does not have, 0 */
    bool fused;                       /* the update, in the executor's ops */
    struct digest *running;           /* one a tensor of running state, after the last step */
    double lr;                        /* of the step that began */
    enum status started;              /* its status */
    bool warm;                        /* a step was done before */
};

/* Initial values are made slice by slice in the host's memory, since the backend's may be a device's. */
static void initialise_tensor(const struct train *train, const struct parameter *p, int index, float *to)
{
    enum { SLICE = 1 << 18 };
    const struct parameter_definition *d = &p->definition;
    float *slice = allocate(SLICE, sizeof *slice);
    for (int64_t first = 0; first < p->elements; first += SLICE) {
        const int64_t count = p->elements - first < SLICE ? p->elements - first : SLICE;
        rng_init(d->init, train->options.seed, (uint32_t)index, d->fan_in, d->fan_out, first, count, slice);
        train->backend->kind->upload(train->backend, to + first, slice, (size_t)count * sizeof *slice);
    }
    free(slice);
}

static void initialise(const struct train *train)
{
    const struct backend_kind *kind = train->backend->kind;
    const struct graph *graph = train->graph;
    for (int i = 0; i < graph->states; i++)
        if (!train->options.given_state || !train->options.given_state[i])
            initialise_tensor(train, &graph->state[i], i, executor_running(train->exec, i));
    for (int i = 0; i < graph->parameters; i++) {
        const struct parameter *p = &graph->parameter[i];
        if (!train->options.given || !train->options.given[i])
            initialise_tensor(train, p, i, executor_parameter(train->exec, i));
        if (p->trained < 0) continue;
        if (!train->fused) kind->fill(train->backend, executor_gradient(train->exec, i), 0, parameter_bytes(p));
        if (train->update.states > 0)
            kind->fill(train->backend, executor_state(train->exec, i), 0,
                       (size_t)train->update.states * parameter_bytes(p));
    }
}

enum status train_create(const struct network *network, struct executor *exec, const struct train_options *options,
                         struct train **train)
{
    struct region *region = region_create();
    struct train *t = region_array(region, 1, sizeof *t);
    *train = NULL;
    *t = (struct train){
        .region = region, .graph = network->graph, .backend = network->backend, .exec = exec, .options = *options};
    t->update = (struct update){.optimizer = options->optimizer,
                                .settings = options->settings,
                                .states = optimizer_copies(options->optimizer, &options->settings),
                                .count = t->graph->trained,
                                .room = executor_update_room(exec)};
    NEW(region, t->update.tensor, (size_t)t->graph->trained);
    for (int i = 0; i < t->graph->parameters; i++) {
        const int trained = t->graph->parameter[i].trained;
        struct update_tensor *tensor = &executor_tensors(exec)[i];
        if (options->settings.ema > 0) tensor->average = tensor->state;
        if (trained >= 0) t->update.tensor[trained] = *tensor;
    }
    for (int what = 0; what < (t->update.states > 0 ? DIGESTEDS : DIGESTED_STATE); what++)
        NEW(region, t->digest[what], (size_t)t->graph->parameters);
    NEW(region, t->running, (size_t)t->graph->states);
    t->fused = network_fused(network);
    if (t->fused) executor_set_update(exec, &t->update);
    enum status status = update_open(&t->update, t->backend, region);
    if (status != ST_OK) {
        train_destroy(t);
        return status;
    }
    initialise(t);
    *train = t;
    return ST_OK;
}

void train_destroy(struct train *train)
{
    if (train) region_destroy(train->region);
}

static double rate_of(const struct train *train, uint32_t step)
{
    const struct train_options *o = &train->options;
    return o->settings.lr * o->learning_rate->factor(&o->learning_rate_settings, step, o->steps);
}

static enum status refuse_not_finite(struct train *train, uint32_t step, float value, struct train_result *result)
{
    const char *loss = isnan(value) ? "not a number" : "infinite"; /* a NaN's sign has no meaning */
    int node = executor_find_not_finite(train->exec);
    snprintf(result->not_finite, NOT_FINITE, "%s%s", node < 0 ? "loss" : "output of ",
             node < 0 ? "" : train->graph->node[node].name);
    if (node < 0)
        return fail(ST_FAILED, "step %u: the loss is %s, and repeating the forward finds every value finite", step,
                    loss);
    const struct node *n = &train->graph->node[node];
    for (int k = 0; k < node_parameters(n); k++) {
        const int i = node_parameter(n, k);
        const struct parameter *p = &train->graph->parameter[i];
        if (!isfinite(
                train->backend->kind->squares(train->backend, executor_parameter(train->exec, i), (size_t)p->elements)))
            return fail(ST_FAILED,
                        "step %u: the loss is %s; the first node whose output is not finite is %s (%s), and its "
                        "parameter %s is not finite either: the previous update overflowed (lr %g)",
                        step, loss, n->name, n->layer->name, p->name, rate_of(train, step > 0 ? step - 1 : 0));
    }
    return fail(ST_FAILED, "step %u: the loss is %s; the first node whose output is not finite is %s (%s)", step, loss,
                n->name, n->layer->name);
}

/* A kernel may hide a NaN from the loss, as cuDNN's max pool does, but not from every gradient. */
static enum status check_finite(struct train *train, const struct step_outcome *outcome, uint32_t step,
                                struct train_result *result)
{
    if (!isfinite(outcome->loss[0])) return refuse_not_finite(train, step, outcome->loss[0], result);
    if (outcome->not_finite < 0) return ST_OK;
    int parameter = 0;
    while (train->graph->parameter[parameter].trained != outcome->not_finite) parameter++;
    const char *name = train->graph->parameter[parameter].name;
    snprintf(result->not_finite, NOT_FINITE, "gradient of %s", name);
    return fail(ST_FAILED, "step %u: the loss is finite, but the gradient of %s is not", step, name);
}

static enum status body(void *self)
{
    struct train *train = self;
    struct backend *b = train->backend;
    if (train->fused) b->kind->fill(b, &b->outcome_now->not_finite, UINT32_MAX, sizeof b->outcome_now->not_finite);
    TRY(executor_queue(train->exec));
    (train->fused ? b->kind->update->finish : b->kind->update->run)(b, &train->update);
    return ST_OK;
}

enum status train_begin(struct train *train, uint32_t step)
{
    const struct train_options *o = &train->options;
    struct backend *b = train->backend;
    train->lr = rate_of(train, step);
    executor_begin(train->exec, step);
    for (int i = 0; i < 2; i++) /* of vectors, and of what has more dimensions */
        b->moment.numbers[i] = optimizer_numbers(o->optimizer, &o->settings, train->lr, 1, step, 1 + i);
    return train->started = b->kind->step(b, train->warm && executor_repeatable(train->exec), body, train);
}

static struct digest digest_of(const struct digest *digest, int count)
{
    return digest_bytes(digest, (size_t)count * sizeof *digest);
}

/* From the update's digests to those of all parameters. What is not trained does not move: one digest does. */
static void spread_digests(struct train *train)
{
    struct backend *b = train->backend;
    for (int i = 0; i < train->graph->parameters; i++) {
        const struct parameter *p = &train->graph->parameter[i];
        for (int what = 0; what < DIGESTEDS && p->trained >= 0; what++)
            if (train->digest[what]) train->digest[what][i] = train->update.digest[what][p->trained];
        if (p->trained < 0 && !train->warm)
            train->digest[DIGESTED_PARAMETER][i] =
                b->kind->digest(b, executor_parameter(train->exec, i), parameter_bytes(p));
    }
}

enum status train_end(struct train *train, struct train_result *result)
{
    struct backend *b = train->backend;
    const struct update *u = &train->update;
    enum status status = train->started == ST_OK ? b->kind->wait(b) : train->started;
    executor_end(train->exec);
    *result->not_finite = 0;
    TRY(status);
    const struct step_outcome outcome = b->outcome;
    TRY(check_finite(train, &outcome, b->moment.step, result));
    if (b->kind->update->collect) TRY(b->kind->update->collect(b, u));
    spread_digests(train);
    train->warm = true;
    for (int i = 0; i < train->graph->states; i++)
        train->running[i] =
            b->kind->digest(b, executor_running(train->exec, i), parameter_bytes(&train->graph->state[i]));
    const int parameters = train->graph->parameters;
    *result = (struct train_result){.loss = outcome.loss[0],
                                    .correct = outcome.loss[1],
                                    .counted = b->moment.counted,
                                    .lr = train->lr,
                                    .gradient_norm = sqrt(outcome.squares),
                                    .gradients = digest_of(train->digest[DIGESTED_GRADIENT], parameters),
                                    .parameters = digest_of(train->digest[DIGESTED_PARAMETER], parameters),
                                    .gradient = train->digest[DIGESTED_GRADIENT],
                                    .parameter = train->digest[DIGESTED_PARAMETER],
                                    .parameter_state = train->digest[DIGESTED_STATE],
                                    .running_state = train->running};
    memcpy(result->phase_ns, b->phase_ns, sizeof result->phase_ns);
    if (u->states > 0) result->state = digest_of(train->digest[DIGESTED_STATE], parameters);
    if (train->graph->states > 0) result->running = digest_of(train->running, train->graph->states);
    return ST_OK;
}

enum status train_step(struct train *train, uint32_t step, struct train_result *result)
{
    (void)train_begin(train, step); /* train_end() returns the same status */
    return train_end(train, result);
}
