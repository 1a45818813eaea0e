/* A layer for which the cpu backend has no kernel runs there by its reference kernel, named as such. */
#include <criterion/criterion.h>
#include <string.h>

#include "policies/policy.h"
#include "tests/support/layer_settings.h"
#include "tests/support/policy_text.h"
#include "tests/support/small_networks.h"
#include "train/training_step.h"

enum { STEPS = 3 };

/* A row that no backend knows, with arithmetic that one has under another name. */
static struct layer own;
static const struct layer *relu; /* which of both the net has */

static int add(struct graph *graph, const struct layer *layer, struct settings settings, int x)
{
    const int inputs[] = {x, -1};
    int y = -1;
    cr_assert(graph_add(graph, layer, settings_of(layer, &settings), NULL, inputs, &y) == ST_OK, "%s",
              status_message());
    return y;
}

static int build(struct graph *graph)
{
    const struct settings conv = {.channels = 8, .kernel = 3, .stride = 1, .padding = 1, .bias = true};
    int v = add(graph, layer_find("conv"), conv, 0);
    v = add(graph, relu, (struct settings){.rate = 0}, v);
    v = add(graph, layer_find("conv"), conv, v);
    v = add(graph, relu, (struct settings){.rate = 0}, v);
    v = add(graph, layer_find("global_avg_pool"), (struct settings){.rate = 0}, v);
    return add(graph, layer_find("linear"), (struct settings){.units = 5, .bias = true}, v);
}

static const struct net net = {"own", build, {3, {6, 7, 3}}, 2, 5};

static struct bound_net bind(const struct layer *layer, const char *backend, int layout)
{
    const struct backend_options options = {.threads = 2, .scratch_limit = 1 << 20, .layout = layout};
    own = *layer_find("relu");
    own.name = "own";
    relu = layer;
    return net_bind_to(backend, &options, &net, RELU_OUTPUT);
}

/* Losses and digests of some steps of the policy's plan. */
struct trace {
    int recomputations;
    float loss[STEPS];
    struct digest gradients[STEPS], parameters[STEPS];
};

static struct trace train_net(const struct bound_net *bound, const char *policy)
{
    struct trace trace;
    const struct plan_options options = {.lower = {.drop_dead = true}};
    const struct train_options how = {.optimizer = optimizer_find("sgd"),
                                      .settings = {.lr = 0.05},
                                      .learning_rate = learning_rate_find("constant"),
                                      .steps = STEPS};
    struct plan *plan = policy_text_plan(bound->network, policy, "segments=2 unit=stage keep_last=false", &options);
    struct executor *exec;
    struct train *train;
    memset(&trace, 0, sizeof trace);
    trace.recomputations = plan->recomputations;
    cr_assert(executor_create(plan, &(struct executor_options){.check_recompute = true}, &exec) == ST_OK, "%s",
              status_message());
    cr_assert(train_create(bound->network, exec, &how, &train) == ST_OK, "%s", status_message());
    for (uint32_t step = 0; step < STEPS; step++) {
        struct train_result result;
        for (int i = 0; i < 2 * 6 * 7 * 3; i++)
            ((float *)executor_batch(exec))[i] =
                rng_uniform(rng_words(7, RNG_DATA, (uint32_t)i, 0, 0, step).word[0]) - 0.5F;
        for (int i = 0; i < 2; i++) executor_labels(exec)[i] = (int32_t)(step + (uint32_t)i) % 5;
        cr_assert(train_step(train, step, &result) == ST_OK, "%s", status_message());
        trace.loss[step] = result.loss;
        trace.gradients[step] = result.gradients;
        trace.parameters[step] = result.parameters;
    }
    train_destroy(train);
    executor_destroy(exec);
    plan_destroy(plan);
    return trace;
}

static bool same(const struct trace *a, const struct trace *b)
{
    return !memcmp(a->loss, b->loss, sizeof a->loss) && !memcmp(a->gradients, b->gradients, sizeof a->gradients) &&
           !memcmp(a->parameters, b->parameters, sizeof a->parameters);
}

/* The bits of the backend's own kernel for the same arithmetic, in logical order too; recomputed as well. */
Test(fallback, a_layer_without_a_row_runs_by_its_reference_kernel)
{
    struct bound_net known = bind(layer_find("relu"), "cpu", LAYOUT_CHANNELS_LAST), unknown = bind(&own, "cpu", 0);
    for (int i = 0; i < unknown.graph->nodes; i++) {
        const struct node *node = &unknown.graph->node[i];
        const bool expected = node->layer == &own;
        cr_expect(expected == !strcmp(unknown.network->binding[i].footprint.implementation, "ref"), "%s", node->name);
        cr_expect(strcmp(known.network->binding[i].footprint.implementation, "ref"), "%s", node->name);
    }
    const struct trace a = train_net(&known, "store_all"), b = train_net(&unknown, "store_all"),
                       c = train_net(&unknown, "segments");
    cr_expect(a.loss[0] > 0 && a.loss[1] != a.loss[0] && same(&a, &b), "%g, %g", (double)a.loss[2], (double)b.loss[2]);
    cr_expect(c.recomputations > 0 && same(&b, &c));
    net_release(&known);
    net_release(&unknown);
}
