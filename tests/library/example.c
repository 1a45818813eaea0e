/* The framework without the harness: a small network is built, planned and trained under two policies, and compared.
 * Exits with 0 where losses, gradients and parameters are equal in every bit at every step. */
#include "rematch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, INPUTS = 8, CLASSES = 4, STEPS = 3 };

struct trace {
    struct digest gradients[STEPS], parameters[STEPS];
    float loss[STEPS];
};

static void must(enum status status)
{
    if (status == ST_OK) return;
    fprintf(stderr, "%s\n", status_message());
    exit(status);
}

/* Sets the defaults of a layer or policy, and one of its settings (key NULL: none). */
static void *configure(const struct setting *keys, void *settings, const char *key, const char *text,
                       struct region *region)
{
    if (keys) must(setting_defaults(keys, settings, region));
    if (key) must(setting_set(setting_find(keys, key), settings, text, region));
    return settings;
}

/* Appends a layer that reads value; returns the value that it writes. */
static int add(struct graph *graph, int value, const char *name, const char *key, const char *text)
{
    const struct layer *layer = layer_find(name);
    void *settings = region_array(graph->region, 1, layer->settings_size);
    configure(layer->keys, settings, key, text, graph->region);
    must(graph_add(graph, layer, settings, NULL, &value, &value));
    return value;
}

static struct trace train(const struct network *network, const char *name, const char *key, const char *text)
{
    const struct policy *policy = policy_find(name);
    struct policy_settings settings = {0};
    const struct train_options options = {.optimizer = optimizer_find("sgd"),
                                          .settings = {.lr = 0.1},
                                          .learning_rate = learning_rate_find("constant"),
                                          .steps = STEPS};
    struct trace trace = {0};
    struct plan *plan;
    struct executor *executor;
    struct train *training;
    configure(policy->keys, &settings, key, text, network->graph->region);
    must(policy_plan(policy, &(struct policy_input){.network = network, .settings = &settings}, &plan));
    must(executor_create(plan, &(struct executor_options){.rng = RNG_COUNTER}, &executor));
    must(train_create(network, executor, &options, &training));
    for (uint32_t step = 0; step < STEPS; step++) {
        struct train_result result;
        float *batch = executor_batch(executor);
        for (uint32_t i = 0; i < BATCH * INPUTS; i++) batch[i] = (float)((i + step) % 7) - 3;
        for (int i = 0; i < BATCH; i++) executor_labels(executor)[i] = i % CLASSES;
        must(train_step(training, step, &result));
        trace.gradients[step] = result.gradients;
        trace.parameters[step] = result.parameters;
        trace.loss[step] = result.loss;
    }
    printf("%-9s  live peak %zu bytes, recomputations: %d\n", name, plan->live_peak, plan->recomputations);
    train_destroy(training);
    executor_destroy(executor);
    plan_destroy(plan);
    return trace;
}

int main(void)
{
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
    must(backend_open("ref", &(struct backend_options){.threads = 1}, &backend));
    must(network_prepare(graph, backend, &network));
    const struct trace stored = train(network, "store_all", NULL, NULL);
    const struct trace recomputed = train(network, "segments", "segments", "2");
    const bool equal = !memcmp(&stored, &recomputed, sizeof stored);
    puts(equal ? "equal in every bit" : "different");
    network_destroy(network);
    backend_close(backend);
    graph_destroy(graph);
    return equal ? ST_OK : ST_DIFFERS;
}
