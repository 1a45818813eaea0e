/* A head with a loss of its own. The judges are the two networks of one loss each: losses and gradients are theirs, one
 * of them multiplied by its weight; an evaluation is that of the last head alone. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/layer_settings.h"
#include "tests/support/policy_text.h"
#include "tests/support/simulated.h"
#include "tests/support/small_training.h"

enum { WIDTH = 6, TRUNK = 8, CLASSES = 4, BATCH = 6, TOKENS = 3, NUMBERS = WIDTH * TRUNK + TRUNK };
static const struct net shape = {.name = "heads", .input = {2, {TOKENS, WIDTH}}, .batch = BATCH, .classes = CLASSES};

static int add(struct graph *graph, const char *layer, const char *name, struct settings settings, int value)
{
    const struct layer *of = layer_find(layer);
    cr_assert(graph_add(graph, of, settings_of(of, &settings), name, &value, &value) == ST_OK, "%s", status_message());
    return value;
}

enum heads { HEAD_EARLY = 1, HEAD_LAST = 2 };

/* A loss, the units that it reads, its label smoothing in the early head, and its classes. */
static const struct loss {
    const char *name;
    int64_t units;
    double smoothing;
    int64_t classes;
} losses[] = {{"cross_entropy", CLASSES, 0.1, CLASSES}, {"bce", 1, 0, 2}};

/* A trunk of one layer, a head that reads it, and a head behind one more layer. */
static struct graph *build(const struct loss *loss, unsigned heads, double weight, int64_t units)
{
    struct graph *graph;
    cr_assert(graph_create(&shape.input, BATCH, &graph) == ST_OK);
    const int trunk = add(graph, "linear", "trunk",
                          (struct settings){.units = TRUNK, .bias = true, .activation = ACTIVATION_TANH}, 0);
    if (heads & HEAD_EARLY) {
        const int value = add(graph, "linear", "early", (struct settings){.units = units, .bias = true}, trunk);
        add(graph, loss->name, NULL, (struct settings){.label_smoothing = loss->smoothing}, value);
        graph->node[graph->nodes - 1].weight = weight;
    }
    if (heads & HEAD_LAST) {
        const int value =
            add(graph, "linear", "body", (struct settings){.units = 7, .activation = ACTIVATION_TANH}, trunk);
        add(graph, loss->name, "loss", (struct settings){0},
            add(graph, "linear", "last", (struct settings){.units = loss->units, .bias = true}, value));
    }
    return graph;
}

static void fill(float *to, int64_t count, uint32_t which)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = rng_uniform(rng_words(7, RNG_DATA, (uint32_t)i, which, 0, 0).word[0]) - 0.5f;
}

struct result {
    float loss[2], evaluated[2], gradient[NUMBERS]; /* of the trunk */
};

/* A step with everything stored; parameters are a function of their names, so that networks agree. */
static struct result result_of(const char *backend, const struct loss *loss, unsigned heads, double weight,
                               int64_t slices)
{
    struct graph *graph = build(loss, heads, weight, loss->units);
    struct executor *exec;
    struct result r;
    cr_assert(graph_finish(graph) == ST_OK, "%s", status_message());
    cr_assert(graph->auxiliary == (heads == (HEAD_EARLY | HEAD_LAST)));
    cr_assert(graph_slice(graph, slices, false, &(int){0}) == ST_OK);
    struct bench b = set_up_graph(&shape, backend, graph);
    struct plan_options options = {.lower = {.drop_dead = true}, .state_per_parameter = 1};
    plan_auto *plan = policy_text_plan(b.network, "store_all", "", &options);
    options.lower.evaluate = true;
    struct schedule forward = schedule_empty(graph->region);
    schedule_append(&forward, STEP_FORWARD, 0, graph->nodes);
    plan_auto *evaluation = plan_build(b.network, &forward, &options);
    cr_assert(simulate_plan(plan) == ST_OK && simulate_plan(evaluation) == ST_OK, "%s", status_message());
    cr_assert(executor_create(plan, &(struct executor_options){.seed = 3}, &exec) == ST_OK, "%s", status_message());
    for (int p = 0; p < graph->parameters; p++) {
        const struct parameter *of = &graph->parameter[p];
        fill(executor_parameter(exec, p), of->elements, (uint32_t)of->name[0] + (uint32_t)strlen(of->name));
    }
    fill(executor_batch(exec), BATCH * TOKENS * WIDTH, 9);
    net_labels(graph, 0, 0, loss->classes, executor_labels(exec));
    cr_assert(executor_run_plan(exec, evaluation, 0, r.evaluated) == ST_OK, "%s", status_message());
    cr_assert(executor_step(exec, 0, r.loss) == ST_OK, "%s", status_message());
    memcpy(r.gradient, executor_gradient(exec, 0), WIDTH * TRUNK * sizeof(float));
    memcpy(r.gradient + WIDTH * TRUNK, executor_gradient(exec, 1), TRUNK * sizeof(float));
    executor_destroy(exec);
    tear_down(&b);
    return r;
}

static void near(double got, double right, const char *what)
{
    cr_assert(fabs(got - right) <= 2e-6 * fmax(1, fabs(right)), "%s: %.9g, not %.9g", what, got, right);
}

static void check(const char *backend, const struct loss *loss, double weight, int64_t slices)
{
    const struct result both = result_of(backend, loss, HEAD_EARLY | HEAD_LAST, weight, slices);
    const struct result early = result_of(backend, loss, HEAD_EARLY, 1, 1),
                        last = result_of(backend, loss, HEAD_LAST, 1, slices);
    near((double)both.loss[0], (double)last.loss[0] + weight * (double)early.loss[0], "loss");
    cr_assert(both.loss[1] == last.loss[1] && (loss != losses || early.loss[1] != last.loss[1]),
              "predictions are those of the last head");
    cr_assert(!memcmp(both.evaluated, last.evaluated, sizeof last.evaluated), "evaluated: %.9g, not %.9g",
              (double)both.evaluated[0], (double)last.evaluated[0]);
    for (int i = 0; i < NUMBERS; i++)
        near((double)both.gradient[i], (double)last.gradient[i] + weight * (double)early.gradient[i], "gradient");
}

Test(auxiliary, losses_and_gradients_are_weighted_sums)
{
    static const char *const backends[] = {"ref", "cpu"};
    for (int b = 0; b < 2; b++)
        for (int64_t slices = 1; slices <= 3; slices++) {
            for (size_t k = 0; k < sizeof losses / sizeof *losses; k++) check(backends[b], &losses[k], 0.3, slices);
            check(backends[b], &losses[0], 1, slices);
        }
}

/* The error of a graph that cannot be finished. */
static void refuse(struct graph *graph, const char *says)
{
    cr_assert(graph_finish(graph) == ST_SPEC);
    cr_assert(strstr(status_message(), says), "%s", status_message());
    graph_destroy(graph);
}

Test(auxiliary, losses_that_do_not_fit_are_refused)
{
    refuse(
        build(losses, HEAD_EARLY | HEAD_LAST, 0.3, CLASSES + 1),
        "layer 'cross_entropy1': its input is 3x5; expected as many classes and labels as the last loss has, 4 and 3");
    struct graph *graph = build(losses, HEAD_EARLY, 0.3, CLASSES);
    add(graph, "sum", NULL, (struct settings){0}, 1);
    refuse(graph, "expected losses that read labels, as cross_entropy; they are cross_entropy and sum");
    graph = build(losses, HEAD_EARLY, 0.3, CLASSES);
    add(graph, "cross_entropy", "loss", (struct settings){0},
        add(graph, "linear", NULL, (struct settings){.units = CLASSES}, graph->values - 1));
    refuse(graph, "layer 'cross_entropy1': a loss is read by no layer");
    graph = build(losses, HEAD_EARLY, 0.3, CLASSES);
    for (int i = 0; i < AUXILIARY_MAX; i++) add(graph, "cross_entropy", NULL, (struct settings){0}, 2);
    add(graph, "cross_entropy", "loss", (struct settings){0}, 2);
    refuse(graph, "more than 16 auxiliary losses");
}
