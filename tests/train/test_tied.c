/* A weight that two layers share. The same network with two weights of equal values is the judge: the gradient of the
 * shared one is the sum of theirs; and it is counted, and moves, once. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/policy_text.h"
#include "tests/support/small_training.h"
#include "tests/support/token_batches.h"

enum { DECODER = 7, WORD = 0 };

static const struct plan_options stored = {.lower = {.drop_dead = true}, .state_per_parameter = 1};

/* Values of the parameters by their place in a tied network; the last weight has those of the table. */
static void fill(const struct graph *graph, struct executor *exec)
{
    for (int p = 0, seed = 0; p < graph->parameters; p++) {
        const struct parameter *of = &graph->parameter[p];
        const bool copy = graph->node[of->node].index == graph->nodes - 2 && of->definition.shape.rank == 2;
        float *to = executor_parameter(exec, p);
        for (int64_t i = 0; i < of->elements && !copy; i++) to[i] = (float)((i * 37 + seed * 11) % 101 - 50) / 100;
        if (copy) memcpy(to, executor_parameter(exec, WORD), parameter_bytes(of));
        seed += !copy;
    }
}

/* A step's gradients of the parameter, which are added to sum. */
static void add_gradient(struct executor *exec, const struct graph *graph, int parameter, float *sum)
{
    for (int64_t i = 0; i < graph->parameter[parameter].elements; i++) sum[i] += executor_gradient(exec, parameter)[i];
}

/* The sum of the gradients of table and last weight, and the loss. */
static void gradients_of(const struct net *net, const char *backend, float *sum, float loss[2])
{
    struct bench b = set_up(net, backend, RELU_OUTPUT);
    struct plan *plan = policy_text_plan(b.network, "store_all", "", &stored);
    struct executor *exec;
    cr_assert(executor_create(plan, &(struct executor_options){.seed = 3}, &exec) == ST_OK, "%s", status_message());
    fill(b.graph, exec);
    sentences_make(executor_batch(exec), net->batch, net->input.dim[1], 20, 5);
    net_labels(b.graph, 0, 0, net->classes, executor_labels(exec));
    cr_assert(executor_step(exec, 0, loss) == ST_OK, "%s", status_message());
    for (int p = 0; p < b.graph->parameters; p++) {
        const struct parameter *of = &b.graph->parameter[p];
        const bool last = of->node == b.graph->nodes - 2 && of->definition.shape.rank == 2;
        if (p == WORD || last) add_gradient(exec, b.graph, p, sum);
    }
    executor_destroy(exec);
    plan_destroy(plan);
    tear_down(&b);
}

static void check(const char *backend)
{
    float one[20 * 12] = {0}, two[20 * 12] = {0}, loss[2][2];
    double most = 0;
    gradients_of(&tied_net, backend, one, loss[0]);
    gradients_of(&nets[DECODER], backend, two, loss[1]);
    cr_assert(!memcmp(loss[0], loss[1], sizeof loss[0]), "%g is not %g", (double)loss[0][0], (double)loss[1][0]);
    for (int i = 0; i < 20 * 12; i++) most = fmax(most, fabs((double)two[i]));
    for (int i = 0; i < 20 * 12; i++)
        cr_assert(fabs((double)one[i] - (double)two[i]) <= (strcmp(backend, "ref") ? 3e-7 * most : 0),
                  "%s: %.9g at %d, not %.9g", backend, (double)one[i], i, (double)two[i]);
}

/* ref rounds the embedding's sum before it adds it; cpu adds token after token. */
Test(tied, gradient_is_the_sum_of_both_layers) { check("ref"), check("cpu"); }

Test(tied, weight_is_counted_once)
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

Test(tied, a_fused_update_is_refused)
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
Test(tied, the_earlier_layer_is_whole)
{
    struct net net = tied_net;
    net.batch = 6;
    struct graph *graph = net_build(&net, RELU_OUTPUT);
    int mixing;
    cr_assert(graph_slice(graph, 3, false, &mixing) == ST_OK);
    for (int i = 0; i < graph->nodes; i++) cr_assert(graph->whole[i] == (i == 0), "%s", graph->node[i].name);
    graph_destroy(graph);
}
