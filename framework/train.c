#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct train {
    struct region *region;
    const struct graph *graph;
    struct backend *backend;
    struct exec *exec;
    struct train_options options;
    int states; /* copies of a parameter that the optimiser keeps */
    struct digest *gradient, *parameter, *state;
};

static size_t parameter_bytes(const struct parameter *parameter) { return (size_t)parameter->elements * sizeof(float); }

/* Written in place: the memory of every backend whose optimiser runs here is the host's. */
static void initialise(const struct train *train)
{
    for (int i = 0; i < train->graph->parameters; i++) {
        const struct parameter *p = &train->graph->parameter[i];
        const struct parameter_definition *d = &p->definition;
        if (!train->options.given || !train->options.given[i])
            rng_init(d->init, train->options.seed, (uint32_t)i, d->fan_in, d->fan_out, p->elements,
                     exec_parameter(train->exec, i));
        train->backend->kind->fill(train->backend, exec_gradient(train->exec, i), 0, parameter_bytes(p));
        if (train->states > 0)
            train->backend->kind->fill(train->backend, exec_state(train->exec, i), 0,
                                       (size_t)train->states * parameter_bytes(p));
    }
}

static enum status reserve_digests(struct train *train)
{
    size_t count = (size_t)train->graph->parameters;
    TRY(NEW(train->region, train->gradient, count));
    TRY(NEW(train->region, train->parameter, count));
    return train->states > 0 ? NEW(train->region, train->state, count) : ST_OK;
}

enum status train_create(const struct network *network, struct exec *exec, const struct train_options *options,
                         struct train **train)
{
    *train = NULL;
    struct train *t = calloc(1, sizeof *t);
    struct region *region = region_create();
    if (!t || !region) {
        free(t);
        region_destroy(region);
        return fail(ST_FAILED, "out of memory for the training loop");
    }
    *t = (struct train){.region = region,
                        .graph = network->graph,
                        .backend = network->backend,
                        .exec = exec,
                        .options = *options,
                        .states = options->optimizer->state(&options->settings)};
    enum status status = reserve_digests(t);
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
    if (!train) return;
    region_destroy(train->region);
    free(train);
}

static double rate_of(const struct train *train, uint32_t step)
{
    const struct train_options *o = &train->options;
    return o->settings.lr * o->learning_rate->factor(&o->learning_rate_settings, step, o->steps);
}

static enum status refuse_not_finite(struct train *train, uint32_t step, float value)
{
    const char *loss = isnan(value) ? "not a number" : "infinite"; /* a NaN's sign means nothing */
    int node = exec_find_not_finite(train->exec, step);
    if (node < 0)
        return fail(ST_FAILED, "step %u: the loss is %s, and repeating the forward finds every value finite", step,
                    loss);
    const struct node *n = &train->graph->node[node];
    for (int i = n->first_parameter; i < n->first_parameter + n->parameters; i++) {
        const struct parameter *p = &train->graph->parameter[i];
        if (!isfinite(
                train->backend->kind->squares(train->backend, exec_parameter(train->exec, i), (size_t)p->elements)))
            return fail(ST_FAILED,
                        "step %u: the loss is %s; the first node whose output is not finite is %s (%s), and its "
                        "parameter %s is not finite either: the previous update overflowed (lr %g)",
                        step, loss, n->name, n->layer->name, p->name, rate_of(train, step > 0 ? step - 1 : 0));
    }
    return fail(ST_FAILED, "step %u: the loss is %s; the first node whose output is not finite is %s (%s)", step, loss,
                n->name, n->layer->name);
}

/* The L2 norm of all gradients. Kernels may hide a NaN on its way to the loss (oneDNN's relu and max pool do), not on
 * its way to every gradient. */
static enum status measure_gradients(const struct train *train, uint32_t step, double *norm)
{
    double sum = 0;
    for (int i = train->graph->parameters - 1; i >= 0; i--) {
        const struct parameter *p = &train->graph->parameter[i];
        const double squares =
            train->backend->kind->squares(train->backend, exec_gradient(train->exec, i), (size_t)p->elements);
        if (!isfinite(squares))
            return fail(ST_FAILED, "step %u: the loss is finite, but the gradient of %s is not", step, p->name);
        sum += squares;
    }
    *norm = sqrt(sum);
    return ST_OK;
}

static struct digest digest_of(const struct digest *digest, int count)
{
    return digest_bytes(digest, (size_t)count * sizeof *digest);
}

static void update(struct train *train, uint32_t step, double lr, double norm)
{
    const struct train_options *o = &train->options;
    struct optim_numbers numbers[2]; /* of vectors, and of what has more dimensions */
    for (int i = 0; i < 2; i++)
        numbers[i] = optim_numbers(o->optimizer, &o->settings, lr, optim_scale(&o->settings, norm), step, 1 + i);
    for (int i = 0; i < train->graph->parameters; i++) {
        const struct parameter *p = &train->graph->parameter[i];
        o->optimizer->update(&numbers[p->definition.shape.rank > 1], p->elements, exec_parameter(train->exec, i),
                             exec_gradient(train->exec, i), train->states > 0 ? exec_state(train->exec, i) : NULL,
                             (int)train->backend->options.threads);
    }
}

static void digest_gradients(struct train *train)
{
    struct backend *b = train->backend;
    for (int i = 0; i < train->graph->parameters; i++)
        train->gradient[i] =
            b->kind->digest(b, exec_gradient(train->exec, i), parameter_bytes(&train->graph->parameter[i]));
}

static void digest_parameters(struct train *train)
{
    struct backend *b = train->backend;
    for (int i = 0; i < train->graph->parameters; i++) {
        size_t bytes = parameter_bytes(&train->graph->parameter[i]);
        train->parameter[i] = b->kind->digest(b, exec_parameter(train->exec, i), bytes);
        if (train->states > 0)
            train->state[i] = b->kind->digest(b, exec_state(train->exec, i), (size_t)train->states * bytes);
    }
}

enum status train_step(struct train *train, uint32_t step, struct train_result *result)
{
    const double lr = rate_of(train, step);
    float loss[2] = {0};
    double norm = 0;
    TRY(exec_step(train->exec, step, loss));
    if (!isfinite(loss[0])) return refuse_not_finite(train, step, loss[0]);
    uint64_t start = clock_now_ns();
    TRY(measure_gradients(train, step, &norm));
    digest_gradients(train);
    uint64_t digested = clock_now_ns();
    update(train, step, lr, norm);
    uint64_t updated = clock_now_ns();
    digest_parameters(train);
    uint64_t end = clock_now_ns();
    int count = train->graph->parameters;
    *result = (struct train_result){.loss = loss[0],
                                    .correct = loss[1],
                                    .lr = lr,
                                    .gradient_norm = norm,
                                    .times = *exec_times(train->exec),
                                    .optimizer_ns = updated - digested,
                                    .digest_ns = (digested - start) + (end - updated),
                                    .gradients = digest_of(train->gradient, count),
                                    .parameters = digest_of(train->parameter, count),
                                    .gradient = train->gradient,
                                    .parameter = train->parameter,
                                    .parameter_state = train->state};
    if (train->states > 0) result->state = digest_of(train->state, count);
    return ST_OK;
}
