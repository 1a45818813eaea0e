/* The framework without the harness: a small network is built, planned under two policies and trained under both.
 * Exits with 0 where losses and digests of every step are equal in every bit. */
#include "rematch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, INPUTS = 8, CLASSES = 4, STEPS = 3 };

struct trace {
    float loss[STEPS];
    struct digest gradients[STEPS], parameters[STEPS];
};

static void must(enum status status)
{
    if (status == ST_OK) return;
    fprintf(stderr, "library: %s\n", status_message());
    exit(status);
}

/* Appends a layer with one setting (NULL: none) and returns its value. */
static int add(struct graph *graph, int input, const char *name, const char *key, const char *text)
{
    const struct layer *layer = layer_find(name);
    void *settings = region_array(graph->region, 1, layer->settings_size);
    must(setting_defaults(layer->keys, settings, graph->region));
    if (key) must(setting_set(setting_find(layer->keys, key), settings, text, graph->region));
    must(graph_add(graph, layer, settings, NULL, &input, &input));
    return input;
}

static struct trace train(const struct network *network, const char *policy)
{
    struct policy_settings settings = {0};
    const struct policy_input input = {network, &settings, NULL, NULL};
    const struct train_options options = {.optimizer = optimizer_find("sgd"), .settings = {.lr = 0.1}, .seed = 1,
                                          .learning_rate = learning_rate_find("constant"), .steps = STEPS};
    struct trace trace = {0};
    struct train_result result;
    struct plan *plan;
    struct executor *executor;
    struct train *training;
    must(setting_defaults(policy_find(policy)->keys, &settings, network->graph->region));
    must(policy_plan(policy_find(policy), &input, &plan));
    must(executor_create(plan, &(struct executor_options){.rng = RNG_COUNTER, .seed = 1}, &executor));
    must(train_create(network, executor, &options, &training));
    for (uint32_t step = 0; step < STEPS; step++) {
        for (int i = 0; i < BATCH * INPUTS; i++) ((float *)executor_batch(executor))[i] = (float)((i + (int)step) % 7) - 3;
        for (int i = 0; i < BATCH; i++) executor_labels(executor)[i] = i % CLASSES;
        must(train_step(training, step, &result));
        trace.loss[step] = result.loss;
        trace.gradients[step] = result.gradients;
        trace.parameters[step] = result.parameters;
    }
    printf("%-10s live peak %5zu bytes, %d recomputations, last loss %g\n", policy, plan->live_peak,
           plan->recomputations, (double)trace.loss[STEPS - 1]);
    train_destroy(training);
    executor_destroy(executor);
    plan_destroy(plan);
    return trace;
}

int main(void)
{
    const struct backend_options one_thread = {.threads = 1, .scratch_limit = 1 << 20};
    struct graph *graph;
    struct backend *backend;
    struct network *network;
    must(graph_create(&(struct shape){1, {INPUTS}}, BATCH, &graph));
    int value = add(graph, 0, "linear", "units", "32");
    value = add(graph, value, "gelu", NULL, NULL);
    value = add(graph, value, "dropout", "rate", "0.1");
    value = add(graph, value, "linear", "units", "4");
    add(graph, value, "cross_entropy", NULL, NULL);
    must(graph_finish(graph));
    must(backend_open("ref", &one_thread, &backend));
    must(network_prepare(graph, backend, &network));
    const struct trace stored = train(network, "store_all"), recomputed = train(network, "every");
    const bool equal = !memcmp(&stored, &recomputed, sizeof stored);
    puts(equal ? "equal in every bit" : "different");
    network_destroy(network);
    backend_close(backend);
    graph_destroy(graph);
    return equal ? ST_OK : ST_DIFFERS;
}
