#include "small_training.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "policy_text.h"
#include "token_batches.h"

const struct learner momentum = {"sgd", "constant", {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4}};
const struct learner averaged = {
    "sgd", "cosine", {.lr = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-4, .ema = 0.9}};
const struct learner adamw = {
    "adamw", "linear", {.lr = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01, .clip = 0.5}};

/* A batch that depends on the step alone. */
static void make_batch(const struct bench *bench, uint32_t step, float *x, int32_t *labels)
{
    const struct net *net = bench->net;
    int64_t elements = shape_elements(&net->input);
    if (sentences_fit(&net->input)) sentences_make(x, net->batch, net->input.dim[1], 20, step);
    net_labels(bench->graph, 0, step, net->classes, labels);
    for (int64_t s = 0; s < net->batch; s++)
        for (int64_t i = 0; i < elements && !sentences_fit(&net->input); i++) {
            struct philox words = rng_words(7, RNG_DATA, (uint32_t)i, (uint32_t)s, 0, step);
            x[s * elements + i] = rng_uniform(words.word[0]) - 0.5F;
        }
}

struct bench set_up_conv(const struct net *net, const char *backend, struct graph *graph, enum conv_algorithm algorithm)
{
    struct backend_options options = {.threads = 2, .conv_algorithm = (int)algorithm, .scratch_limit = 1 << 20};
    struct bench b = {.net = net, .graph = graph};
    cr_assert(backend_open(backend, &options, &b.backend) == ST_OK, "%s", status_message());
    cr_assert(network_prepare(b.graph, b.backend, &b.network) == ST_OK, "%s", status_message());
    return b;
}

struct bench set_up_graph(const struct net *net, const char *backend, struct graph *graph)
{
    return set_up_conv(net, backend, graph, CONV_AUTO);
}

struct bench set_up(const struct net *net, const char *backend, enum relu_save relu)
{
    return set_up_graph(net, backend, net_build(net, relu));
}

void tear_down(struct bench *b)
{
    network_destroy(b->network);
    graph_destroy(b->graph);
    backend_close(b->backend);
}

struct plan *plan_of(const struct trial *t)
{
    struct network *network = t->bench->network;
    const struct policy_settings settings =
        policy_text_settings(t->policy, t->settings ? t->settings : "", t->bench->graph->region);
    struct plan *plan;
    struct plan_options options = {.lower = {.drop_dead = t->drop_dead, .rng = t->rng},
                                   .state_per_parameter =
                                       optimizer_copies(optimizer_find(t->learner->name), &t->learner->settings)};
    const struct policy_input input = {network, &settings, &options, NULL};
    cr_assert(policy_plan(t->policy, &input, &plan) == ST_OK, "%s", status_message());
    return plan;
}

/* A step allocates only dynamic buffers; a device has its own allocator, and its first two steps are recorded. */
static void check_allocations(const struct trial *t, int step, size_t made)
{
    const bool device = t->bench->backend->kind->device;
    if (device && step < 2) return;
    cr_assert((made > 0) == (t->memory == MEMORY_DYNAMIC && !device), "%zu allocations within step %d", made, step);
}

void run_plan(const struct trial *t, struct plan *plan, struct trace *trace)
{
    struct network *network = t->bench->network;
    struct executor *exec;
    struct train *train;
    struct executor_options executor_options = {.memory = t->memory,
                                                .rng = t->rng,
                                                .commit_every = t->commit_every,
                                                .seed = 3,
                                                .check_recompute = t->rng != RNG_UNSAFE && !t->fault.kind,
                                                .fault = t->fault};
    cr_assert(executor_create(plan, &executor_options, &exec) == ST_OK, "%s", status_message());
    struct train_options train_options = {.optimizer = optimizer_find(t->learner->name),
                                          .settings = t->learner->settings,
                                          .learning_rate = learning_rate_find(t->learner->rate),
                                          .learning_rate_settings = {.warmup = 0.1},
                                          .steps = STEPS_MAX, /* of the rate, however many are run */
                                          .seed = 3};
    cr_assert(train_create(network, exec, &train_options, &train) == ST_OK, "%s", status_message());
    trace->recomputations = plan->recomputations;
    trace->steps = 0;
    *trace->failure = 0;
    for (int step = 0; step < t->steps; step++) {
        make_batch(t->bench, (uint32_t)step, executor_batch(exec), executor_labels(exec));
        struct train_result result;
        size_t before = allocations();
        if (train_step(train, (uint32_t)step, &result) != ST_OK) {
            cr_assert(t->fault.kind, "%s", status_message());
            snprintf(trace->failure, sizeof trace->failure, "%s", status_message());
            break;
        }
        trace->steps++;
        check_allocations(t, step, allocations() - before);
        trace->loss[step] = result.loss;
        trace->norm[step] = result.gradient_norm;
        trace->gradients[step] = result.gradients;
        trace->parameters[step] = result.parameters;
        trace->state[step] = result.state;
        trace->running[step] = result.running;
    }
    train_destroy(train);
    executor_destroy(exec);
}

void run(const struct trial *t, struct trace *trace)
{
    struct plan *plan = plan_of(t);
    run_plan(t, plan, trace);
    plan_destroy(plan);
}

int first_difference(const struct trace *a, const struct trace *b, int steps)
{
    for (int i = 0; i < steps; i++)
        if (i >= a->steps || i >= b->steps || memcmp(&a->loss[i], &b->loss[i], sizeof(float)) ||
            memcmp(&a->norm[i], &b->norm[i], sizeof(double)) || !digest_equal(a->gradients[i], b->gradients[i]) ||
            !digest_equal(a->parameters[i], b->parameters[i]) || !digest_equal(a->state[i], b->state[i]) ||
            !digest_equal(a->running[i], b->running[i]))
            return i;
    return -1;
}

/* Whether the scratch of one kernel may set the peak, which then no schedule lowers: on a device, and in three nets on
 * cpu, where a product packs blocks of its operands, which take more than the nets' tensors. */
static bool scratch_sets_peak(const struct bench *bench)
{
    static const char *const packed[] = {"small_cnn", "normalised", "frozen"};
    if (bench->backend->kind->device) return true;
    for (size_t i = 0; i < sizeof packed / sizeof *packed && !strcmp(bench->backend->kind->name, "cpu"); i++)
        if (!strcmp(bench->net->name, packed[i])) return true;
    return false;
}

const char *tried_settings(const struct bench *bench, size_t index)
{
    static const char *const tried[TRIED] = {
        "segments=1 keep_last=false", "segments=2 slots=2 budget=97%",
        "segments=3 slots=3 keep_last=false keep_saved=false unit=stage segment_budget=8KiB"};
    static const char *const kinds[][TRIED] = {{"weightless", "conv,linear", "pool,conv"},
                                               {"weightless", "attention", "linear,gelu,norm"}};
    const struct graph *graph = bench->graph;
    const char *text = region_text(graph->region, "%s kinds=%s groups=", tried[index],
                                   kinds[sentences_fit(&bench->net->input)][index]);
    for (int g = 0; g < graph->groups; g++)
        text = region_text(graph->region, "%s%s%s", text, g ? "," : "", graph->group[g].name);
    const bool bounded = scratch_sets_peak(bench) && strstr(tried[index], " budget=");
    return bounded ? region_text(graph->region, "%s budget=100%%", text) : text;
}
