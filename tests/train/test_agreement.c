/* Backends on whole nets: equal initial parameters and masks, losses and gradients that differ by rounding only. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "tests/support/device_mirror.h"
#include "tests/support/policy_text.h"
#include "tests/support/small_networks.h"
#include "tests/support/token_batches.h"
#include "train/training_step.h"

enum { STEPS = 3, LOSSES = STEPS };

/* The results of a backend on a net. */
struct course {
    float loss[LOSSES];
    double norm[LOSSES];
    struct digest *initial; /* one a parameter */
    int parameters;
};

static void check(enum status status) { cr_assert(status == ST_OK, "%s", status_message()); }

static void write_batch(const struct net *net, const struct graph *graph, struct executor *exec, uint32_t step)
{
    float *x = executor_batch(exec);
    const int64_t elements = net->batch * shape_elements(&net->input);
    if (sentences_fit(&net->input))
        sentences_make(x, net->batch, net->input.dim[1], 20, step);
    else
        for (int64_t i = 0; i < elements; i++) x[i] = (float)((i * 7 + step) % 23) / 11 - 1;
    net_labels(graph, 0, step, net->classes, executor_labels(exec));
}

/* store_all with dropout, adamw and clipping. false: the backend cannot be opened here. */
static bool follow(const char *name, const struct net *net, enum rng_mode rng, struct course *course)
{
    const struct backend_options options = {.threads = 2, .scratch_limit = 1 << 20, .graph = true};
    const struct train_options train_options = {
        .optimizer = optimizer_find("adamw"),
        .settings = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01, .clip = 1},
        .learning_rate = learning_rate_find("constant"),
        .steps = STEPS,
        .seed = 11};
    struct backend *backend;
    struct network *network;
    struct plan *plan;
    struct executor *exec;
    struct train *train;
    if (!backend_is_here(backend_open(name, &options, &backend))) return false;
    struct graph *graph = net_build(net, RELU_OUTPUT);
    check(network_prepare(graph, backend, &network));
    const struct plan_options plan_options = {.lower = {.drop_dead = true, .rng = rng}, .state_per_parameter = 2};
    plan = policy_text_plan(network, "store_all", "", &plan_options);
    check(executor_create(plan, &(struct executor_options){.rng = rng, .seed = 11}, &exec));
    check(train_create(network, exec, &train_options, &train));
    course->parameters = graph->parameters;
    course->initial = calloc((size_t)graph->parameters, sizeof *course->initial);
    for (int i = 0; i < graph->parameters; i++)
        course->initial[i] = backend->kind->digest(backend, executor_parameter(exec, i),
                                                   (size_t)graph->parameter[i].elements * sizeof(float));
    for (uint32_t step = 0; step < STEPS; step++) {
        struct train_result result;
        write_batch(net, graph, exec, step);
        check(train_step(train, step, &result));
        course->loss[step] = result.loss;
        course->norm[step] = result.gradient_norm;
    }
    train_destroy(train);
    executor_destroy(exec);
    plan_destroy(plan);
    network_destroy(network);
    graph_destroy(graph);
    backend_close(backend);
    return true;
}

static void compare(const struct net *net, enum rng_mode rng)
{
    const float tolerance = device_is_real() ? 1e-4f : 2e-5f; /* cuDNN's transforms round more than sums do */
    struct course ref, other;
    cr_assert(follow("ref", net, rng, &ref));
    for (const struct backend_kind *const *kind = backend_table; *kind; kind++) {
        if (!follow((*kind)->name, net, rng, &other)) continue;
        for (int i = 0; i < ref.parameters; i++)
            cr_assert(digest_equal(ref.initial[i], other.initial[i]), "%s on %s: parameter %d starts otherwise",
                      net->name, (*kind)->name, i);
        for (int s = 0; s < STEPS; s++) {
            cr_assert(fabsf(ref.loss[s] - other.loss[s]) <= tolerance * fabsf(ref.loss[s]),
                      "%s on %s, rng %d, step %d: loss %.8g, not %.8g", net->name, (*kind)->name, rng, s,
                      (double)other.loss[s], (double)ref.loss[s]);
            cr_assert(fabs(ref.norm[s] - other.norm[s]) <= 1e-3 * ref.norm[s],
                      "%s on %s, rng %d, step %d: norm %.8g, not %.8g", net->name, (*kind)->name, rng, s, other.norm[s],
                      ref.norm[s]);
        }
        free(other.initial);
    }
    free(ref.initial);
}

/* Wherever a step's numbers come from: on a device the second step is recorded, and the third is that again. */
Test(agreement, every_backend_agrees_with_the_reference)
{
    for (const struct net *net = nets; net->name; net++)
        for (enum rng_mode rng = RNG_COUNTER; rng <= RNG_MASK; rng++) compare(net, rng);
}
