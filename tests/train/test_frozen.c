/* Layers with trainable: false. The same network with all layers trained is the judge: its first step has the same
 * gradients of what is trained, bit for bit, since parameters and batch are the same. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/small_training.h"

enum { FROZEN = 8, STEPS = 3, PARAMETERS_MAX = 64 };

/* Digests of some steps by parameter. */
struct digests {
    struct digest gradient[STEPS][PARAMETERS_MAX], parameter[STEPS][PARAMETERS_MAX], state[STEPS][PARAMETERS_MAX];
};

static struct graph *build(bool frozen, bool fused)
{
    struct graph *graph = net_build(&nets[FROZEN], RELU_OUTPUT);
    graph->fused_update = fused;
    if (frozen) return graph;
    for (int i = 0; i < graph->nodes; i++) graph->node[i].frozen = false;
    for (int v = 0; v < graph->values; v++) graph->value[v].consumers = 0;
    cr_assert(graph_finish(graph) == ST_OK, "%s", status_message());
    return graph;
}

static struct plan *plan_stored(const struct bench *bench)
{
    const struct trial t = {
        .bench = bench, .learner = &adamw, .policy = policy_find("store_all"), .drop_dead = true, .steps = STEPS};
    return plan_of(&t);
}

static void train_net(const char *backend, bool frozen, bool fused, struct digests *to)
{
    struct bench bench = set_up_graph(&nets[FROZEN], backend, build(frozen, fused));
    struct plan *plan = plan_stored(&bench);
    struct executor *exec;
    struct train *train;
    struct train_options how = {.optimizer = optimizer_find("adamw"),
                                .settings = adamw.settings,
                                .learning_rate = learning_rate_find("constant")};
    how.settings.clip = 0; /* by the norm of all gradients, which are fewer */
    cr_assert(executor_create(plan, &(struct executor_options){.memory = MEMORY_PLANNED}, &exec) == ST_OK);
    cr_assert(train_create(bench.network, exec, &how, &train) == ST_OK, "%s", status_message());
    const size_t count = (size_t)bench.graph->parameters;
    cr_assert(count <= PARAMETERS_MAX);
    for (uint32_t step = 0; step < STEPS; step++) {
        struct train_result result;
        float *x = executor_batch(exec);
        for (size_t i = 0; i < bench.graph->value[0].bytes / sizeof *x; i++)
            x[i] = rng_uniform(rng_words(3, RNG_DATA, (uint32_t)i, step, 0, 0).word[0]);
        memset(executor_labels(exec), 0, (size_t)bench.graph->batch * sizeof(int32_t));
        cr_assert(train_step(train, step, &result) == ST_OK, "%s", status_message());
        memcpy(to->gradient[step], result.gradient, count * sizeof(struct digest));
        memcpy(to->parameter[step], result.parameter, count * sizeof(struct digest));
        memcpy(to->state[step], result.parameter_state, count * sizeof(struct digest));
    }
    train_destroy(train);
    executor_destroy(exec);
    plan_destroy(plan);
    tear_down(&bench);
}

static void check_training(const char *backend, bool fused)
{
    static struct digests all, some;
    const struct digest none = {0};
    struct graph *graph = build(true, fused);
    train_net(backend, false, fused, &all);
    train_net(backend, true, fused, &some);
    for (int i = 0; i < graph->parameters; i++) {
        const bool trained = graph->parameter[i].trained >= 0;
        const char *name = graph->parameter[i].name;
        for (int s = 0; s < STEPS && !trained; s++) {
            cr_assert(digest_equal(some.gradient[s][i], none) && digest_equal(some.state[s][i], none), "%s", name);
            cr_assert(digest_equal(some.parameter[s][i], some.parameter[0][i]), "%s moves", name);
        }
        if (trained) cr_assert(digest_equal(some.gradient[0][i], all.gradient[0][i]), "%s: another gradient", name);
        cr_assert(digest_equal(some.parameter[0][i], all.parameter[0][i]) == trained, "%s: %s", name,
                  trained ? "another update" : "updated");
        cr_assert(!trained || !digest_equal(some.parameter[1][i], some.parameter[0][i]), "%s stays", name);
    }
    graph_destroy(graph);
}

Test(frozen, gradients_of_the_rest_are_the_same_ref) { check_training("ref", false), check_training("ref", true); }
Test(frozen, gradients_of_the_rest_are_the_same_cpu) { check_training("cpu", false), check_training("cpu", true); }
/* Bytes that are counted here, by the parameters' shapes. */
Test(frozen, static_memory_has_what_is_trained)
{
    struct bench bench = set_up_graph(&nets[FROZEN], "ref", build(true, false));
    struct plan *plan = plan_stored(&bench);
    size_t all = 0, trained = 0;
    for (int i = 0; i < bench.graph->parameters; i++) {
        const struct parameter *p = &bench.graph->parameter[i];
        const size_t bytes = ((size_t)p->elements * sizeof(float) + 255) / 256 * 256;
        all += bytes;
        if (!bench.graph->node[p->node].frozen) trained += bytes;
    }
    cr_assert(trained > 0 && trained < all);
    cr_assert(plan->static_bytes[STATIC_PARAMETERS] == all && plan->static_bytes[STATIC_GRADIENTS] == trained);
    cr_assert(plan->static_bytes[STATIC_OPTIMIZER] == 2 * trained, "adamw has two copies");
    plan_destroy(plan);
    tear_down(&bench);
}

/* None of a node before the first trained layer, and no gradients of what is not trained. */
Test(frozen, backwards_are_of_what_is_trained)
{
    struct bench bench = set_up_graph(&nets[FROZEN], "ref", build(true, false));
    struct plan *plan = plan_stored(&bench);
    int first = 0, between = 0;
    while (!node_trains(&bench.graph->node[first])) first++;
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->kind != OP_BACKWARD) continue;
        const bool frozen = bench.graph->node[op->node].frozen;
        cr_assert(op->node >= first, "a backward of %s", bench.graph->node[op->node].name);
        cr_assert(!frozen || op->parts == PART_INPUT, "%s: parts %u", bench.graph->node[op->node].name, op->parts);
        if (frozen && !strcmp(bench.graph->node[op->node].layer->name, "conv"))
            cr_assert(op->x[0] < 0, "%s reads its input", bench.graph->node[op->node].name);
        between += frozen;
    }
    cr_assert(first > 0 && between > 2);
    plan_destroy(plan);
    tear_down(&bench);
}

Test(frozen, something_must_be_trained)
{
    struct graph *graph = build(true, false);
    for (int i = 0; i < graph->nodes; i++) graph->node[i].frozen = true;
    cr_assert(graph_finish(graph) == ST_SPEC);
    cr_assert(strstr(status_message(), "trainable: false") && strstr(status_message(), "nothing to train"), "%s",
              status_message());
    graph_destroy(graph);
}
