/* A last layer whose weight is the embedding's, and one that is computed in chunks with the loss. The same network with
 * two weights of equal values, and with whole logits, is the judge: the gradient of the shared weight is the sum of
 * theirs, and it is counted once. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/layer_settings.h"
#include "tests/support/policy_text.h"
#include "tests/support/simulated.h"
#include "tests/support/small_training.h"
#include "tests/support/token_batches.h"

enum { DECODER = 7, WORD = 0, MOST = 1 << 14 };

static const struct plan_options stored = {.lower = {.drop_dead = true}, .state_per_parameter = 1};

static bool is_last_weight(const struct graph *graph, int parameter)
{
    const struct parameter *p = &graph->parameter[parameter];
    return p->definition.shape.rank == 2 && p->definition.shape.dim[0] == 20 && p->node > 0;
}

/* Values of the parameters by their place in a tied network; the last weight has those of the table. */
static void fill(const struct graph *graph, struct executor *exec)
{
    for (int p = 0, seed = 0; p < graph->parameters; p++) {
        const struct parameter *of = &graph->parameter[p];
        const bool copy = is_last_weight(graph, p);
        float *to = executor_parameter(exec, p);
        for (int64_t i = 0; i < of->elements && !copy; i++) to[i] = (float)((i * 37 + seed * 11) % 101 - 50) / 100;
        if (copy) memcpy(to, executor_parameter(exec, WORD), parameter_bytes(of));
        seed += !copy;
    }
}

/* All gradients of a step; what the last layer's weight has is added to the table's, which it shares in a tied network,
 * so that both kinds have the same. Returns how many there are. */
static size_t gradients_of(const struct net *net, const char *backend, int64_t slices, bool tied, float *to,
                           float loss[2])
{
    struct graph *graph = net_build(net, RELU_OUTPUT);
    struct bench b;
    struct executor *exec;
    size_t count = 0;
    int mixing;
    cr_assert(graph_slice(graph, slices, false, &mixing) == ST_OK, "%s", status_message());
    b = set_up_graph(net, backend, graph);
    struct plan *plan = policy_text_plan(b.network, "store_all", "", &stored);
    cr_assert(executor_create(plan, &(struct executor_options){.seed = 3}, &exec) == ST_OK, "%s", status_message());
    fill(graph, exec);
    sentences_make(executor_batch(exec), net->batch, net->input.dim[1], 20, 5);
    net_labels(graph, 0, 0, net->classes, executor_labels(exec));
    cr_assert(executor_step(exec, 0, loss) == ST_OK, "%s", status_message());
    for (int p = 0; p < graph->parameters; p++) {
        const int64_t elements = graph->parameter[p].elements;
        float *at = tied && is_last_weight(graph, p) ? to : to + count;
        for (int64_t i = 0; i < elements; i++) at[i] = (at == to && p ? at[i] : 0) + executor_gradient(exec, p)[i];
        if (at != to || !p) count += (size_t)elements;
    }
    cr_assert(count <= MOST);
    executor_destroy(exec);
    plan_destroy(plan);
    tear_down(&b);
    return count;
}

/* Equal gradients and losses up to a share of the largest. */
static void check(const struct net *net, const char *backend, int64_t slices, double near)
{
    static float one[MOST], two[MOST];
    float loss[2][2];
    double most = 0;
    struct net judge = nets[DECODER], judged = *net;
    const bool tied = net == &tied_net;
    judge.batch = judged.batch = 6;
    const size_t count = gradients_of(&judged, backend, slices, tied, one, loss[0]);
    cr_assert(gradients_of(&judge, backend, 1, tied, two, loss[1]) == count);
    cr_assert(fabs((double)loss[0][0] - (double)loss[1][0]) <= 1e-6 * (double)loss[1][0] && loss[0][1] == loss[1][1],
              "%g is not %g", (double)loss[0][0], (double)loss[1][0]);
    for (size_t i = 0; i < count; i++) most = fmax(most, fabs((double)two[i]));
    for (size_t i = 0; i < count; i++)
        cr_assert(fabs((double)one[i] - (double)two[i]) <= near * most, "%s on %s: %.9g at %zu, not %.9g", net->name,
                  backend, (double)one[i], i, (double)two[i]);
}

/* ref rounds the embedding's sum before it adds it; cpu adds token after token. */
Test(last_layer, tied_gradient_is_the_sum_of_both_layers)
{
    check(&tied_net, "ref", 1, 0);
    check(&tied_net, "cpu", 1, 1e-6);
    check(&tied_net, "cpu", 3, 1e-6);
}

Test(last_layer, chunks_change_nothing_but_rounding)
{
    for (int64_t slices = 1; slices <= 3; slices++) {
        check(&chunked_net, "ref", slices, 1e-6);
        check(&chunked_net, "cpu", slices, 1e-6);
    }
}

Test(last_layer, tied_weight_is_counted_once)
{
    struct bench tied = set_up(&tied_net, "ref", RELU_OUTPUT), two = set_up(&nets[DECODER], "ref", RELU_OUTPUT);
    struct plan *one = policy_text_plan(tied.network, "store_all", "", &stored),
                *both = policy_text_plan(two.network, "store_all", "", &stored);
    const size_t weight = (20 * 12 * sizeof(float) + 255) / 256 * 256;
    const int counted[] = {STATIC_PARAMETERS, STATIC_GRADIENTS, STATIC_OPTIMIZER};
    for (int i = 0; i < 3; i++)
        cr_assert(one->static_bytes[counted[i]] + weight == both->static_bytes[counted[i]], "%s", static_names[i]);
    cr_assert(one->live_peak == both->live_peak);
    plan_destroy(one), plan_destroy(both);
    tear_down(&tied), tear_down(&two);
}

static void add(struct graph *graph, const char *name, struct settings settings, int *value)
{
    const struct layer *layer = layer_find(name);
    cr_assert(graph_add(graph, layer, settings_of(layer, &settings), NULL, value, value) == ST_OK, "%s",
              status_message());
}

/* Without a bias, the shared weight alone makes its backward compute gradients of parameters; and the checker expects
 * that. */
Test(last_layer, tied_without_a_bias_is_trained)
{
    struct bound_net b;
    int value = 0;
    cr_assert(graph_create(&(struct shape){2, {3, 7}}, 2, &b.graph) == ST_OK);
    add(b.graph, "embedding", (struct settings){.units = 6, .vocabulary = 9, .positions = 7, .segments = 1}, &value);
    add(b.graph, "linear", (struct settings){.units = 9}, &value);
    cr_assert(graph_tie(b.graph, 0) == ST_OK, "%s", status_message());
    add(b.graph, "cross_entropy", (struct settings){0}, &value);
    cr_assert(graph_finish(b.graph) == ST_OK && b.graph->parameters == 3, "%s", status_message());
    cr_assert(backend_open("cpu", &(struct backend_options){.threads = 1}, &b.backend) == ST_OK);
    cr_assert(network_prepare(b.graph, b.backend, &b.network) == ST_OK, "%s", status_message());
    cr_assert(network_parts(b.network, 1) == (PART_PARAMS | PART_INPUT));
    struct plan *plan = policy_text_plan(b.network, "store_all", "", &stored);
    cr_assert(simulate_plan(plan) == ST_OK, "%s", status_message());
    plan_destroy(plan);
    net_release(&b);
}

Test(last_layer, tied_with_a_fused_update_is_refused)
{
    struct graph *graph = net_build(&tied_net, RELU_OUTPUT);
    struct backend *backend;
    struct network *network;
    graph->fused_update = true;
    cr_assert(backend_open("ref", &(struct backend_options){.threads = 1}, &backend) == ST_OK);
    cr_assert(network_prepare(graph, backend, &network) == ST_SPEC && strstr(status_message(), "update: fused"), "%s",
              status_message());
    graph_destroy(graph);
    backend_close(backend);
}

/* In slices the layer that adds to the gradient computes the batch at once, so that no schedule changes the order. */
Test(last_layer, tied_to_a_whole_layer)
{
    struct net net = tied_net;
    net.batch = 6;
    struct graph *graph = net_build(&net, RELU_OUTPUT);
    int mixing;
    cr_assert(graph_slice(graph, 3, false, &mixing) == ST_OK);
    for (int i = 0; i < graph->nodes; i++) cr_assert(graph->whole[i] == (i == 0), "%s", graph->node[i].name);
    graph_destroy(graph);
}
