/* With every policy, memory mode and source of randomness, every loss, gradient, parameter, momentum and running state
 * equals that of the run that stores everything in every bit. Over every row of the policy and backend tables. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/device_mirror.h"
#include "tests/support/small_training.h"
#include "tests/support/thinning.h"
#include "tests/support/token_batches.h"

enum { STEPS_MANY = 20, RUNS_MAX = 200 };

/* A plan that was run, in one memory mode. */
struct ran {
    struct digest plan;
    enum memory_mode memory;
    int steps;
};

/* Policies and settings often give the same plan: whether it was run for as many steps; if not, it is recorded. */
static bool was_run(struct ran *ran, int *count, const struct plan *plan, const struct trial *t)
{
    for (int i = 0; i < *count; i++)
        if (digest_equal(ran[i].plan, plan->hash) && ran[i].memory == t->memory && ran[i].steps >= t->steps)
            return true;
    cr_assert(*count < RUNS_MAX);
    ran[(*count)++] = (struct ran){plan->hash, t->memory, t->steps};
    return false;
}

struct comparison {
    const struct net *net;
    int steps;
    struct trace baseline[RNG_MASK + 1]; /* store_all with outputs kept */
    struct ran ran[RUNS_MAX];
    int runs, compared, recomputing;
};

/* One policy's plan under the index-th settings in every memory mode. */
static void compare_plan(struct comparison *c, struct trial *t, size_t index)
{
    static struct trace variant;
    struct plan *plan = plan_of(t);
    for (enum memory_mode memory = MEMORY_PLANNED; memory <= MEMORY_POISON; memory++) {
        if (t->rng != RNG_COUNTER && index > 0 && memory != MEMORY_PLANNED) continue;
        t->memory = memory;
        t->steps = memory == MEMORY_PLANNED && index == 0 ? c->steps : 2;
        if (was_run(c->ran, &c->runs, plan, t)) continue;
        run_plan(t, plan, &variant);
        int step = first_difference(&c->baseline[t->rng], &variant, t->steps);
        cr_assert(step < 0, "%s, %s, settings %zu, rng %d, memory %d: differs at step %d: %s", c->net->name,
                  t->policy->name, index, t->rng, memory, step, plan->schedule);
        c->compared++;
        c->recomputing += variant.recomputations > 0;
    }
    plan_destroy(plan);
}

/* Every policy, memory mode, rng mode and choice of what relus keep on one net: steps steps in PLANNED under each
 * policy's first settings, two elsewhere. On a device the scratch of nets as small as these leaves a budget no choice.
 */
static void compare_all(const struct net *net, const char *backend, int steps)
{
    static struct comparison c;
    c = (struct comparison){.net = net, .steps = steps};
    const bool slow = THINNING > 1 && !strcmp(backend, "cuda"); /* each policy once, and one rng mode */
    for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_BITS; relu++) {
        if (relu == RELU_BITS && !strcmp(backend, "cuda")) continue; /* AUTO has both: a stand-in is slow */
        struct bench bench = set_up(net, backend, relu);
        for (enum rng_mode rng = slow ? RNG_STASH : RNG_COUNTER; rng <= (slow ? RNG_STASH : RNG_MASK); rng++) {
            struct trial t = {.bench = &bench,
                              .learner = sentences_fit(&net->input) ? &adamw : &momentum,
                              .policy = policy_find("store_all"),
                              .drop_dead = true,
                              .rng = rng,
                              .steps = steps};
            const float *loss = c.baseline[rng].loss;
            if (relu == RELU_OUTPUT) run(&t, &c.baseline[rng]);
            cr_assert(loss[0] > 0 && loss[0] != loss[1], "a loss that moves");
            c.runs = 0;
            for (const struct policy *const *p = policy_table; *p; p++)
                for (size_t s = 0; s < (slow ? 1 : TRIED) && !(*p)->needs_slices; s++) {
                    t.policy = *p;
                    t.settings = tried_settings(&bench, s);
                    t.drop_dead = s != 2;
                    compare_plan(&c, &t, s);
                }
        }
        tear_down(&bench);
    }
    cr_assert(c.recomputing > c.compared / 2, "%d of %d plans recompute anything", c.recomputing, c.compared);
    printf("%s on %s: %d different plans and memory modes\n", net->name, backend, c.compared);
}

Test(equality, small_cnn_ref) { compare_all(&nets[0], "ref", 2); }
Test(equality, residual_ref) { compare_all(&nets[1], "ref", 2); }
Test(equality, small_cnn_cpu) { compare_all(&nets[0], "cpu", STEPS_MANY); }
Test(equality, residual_cpu) { compare_all(&nets[1], "cpu", STEPS_MANY); }
Test(equality, transformer_ref) { compare_all(&nets[3], "ref", 2); }
Test(equality, transformer_cpu) { compare_all(&nets[3], "cpu", STEPS_MANY); }
Test(equality, skips_ref) { compare_all(&nets[4], "ref", 2); }
Test(equality, skips_cpu) { compare_all(&nets[4], "cpu", STEPS_MANY); }
Test(equality, normalised_ref) { compare_all(&nets[5], "ref", 2); }
Test(equality, normalised_cpu) { compare_all(&nets[5], "cpu", STEPS_MANY); }
Test(equality, vgg_cpu) { compare_all(&nets[2], "cpu", STEPS_MANY); }
Test(equality, mobile_cpu) { compare_all(&nets[6], "cpu", STEPS_MANY); }
Test(equality, decoder_ref) { compare_all(&nets[7], "ref", 2); }
Test(equality, decoder_cpu) { compare_all(&nets[7], "cpu", STEPS_MANY); }
Test(equality, rotary_ref) { compare_all(&rotary_net, "ref", 2); }
Test(equality, rotary_cpu) { compare_all(&rotary_net, "cpu", STEPS_MANY); }
Test(equality, frozen_ref) { compare_all(&nets[8], "ref", 2); }
Test(equality, frozen_cpu) { compare_all(&nets[8], "cpu", STEPS_MANY); }
Test(equality, chunked_ref) { compare_all(&chunked_net, "ref", 2); }
Test(equality, chunked_cpu) { compare_all(&chunked_net, "cpu", STEPS_MANY); }
Test(equality, tied_ref) { compare_all(&tied_net, "ref", 2); }
Test(equality, tied_cpu) { compare_all(&tied_net, "cpu", STEPS_MANY); }
Test(equality, gated_ref) { compare_all(&gated_net, "ref", 2); }
Test(equality, gated_cpu) { compare_all(&gated_net, "cpu", STEPS_MANY); }
Test(equality, latent_ref) { compare_all(&latent_net, "ref", 2); }
Test(equality, latent_cpu) { compare_all(&latent_net, "cpu", STEPS_MANY); }
Test(equality, headed_ref) { compare_all(&headed_net, "ref", 2); }
Test(equality, headed_cpu) { compare_all(&headed_net, "cpu", STEPS_MANY); }
Test(equality, early_ref) { compare_all(&early_net, "ref", 2); }
Test(equality, early_cpu) { compare_all(&early_net, "cpu", STEPS_MANY); }
Test(equality, vision_ref) { compare_all(&vision_net, "ref", 2); }
Test(equality, vision_cpu) { compare_all(&vision_net, "cpu", STEPS_MANY); }

Test(equality, losses_ref)
{
    for (const struct net *net = loss_nets; net->name; net++) compare_all(net, "ref", 2);
}
Test(equality, losses_cpu)
{
    for (const struct net *net = loss_nets; net->name; net++) compare_all(net, "cpu", STEPS_MANY);
}

static void compare_on_device(const struct net *net)
{
    if (!backend_opens("cuda")) cr_skip_test("no device");
    compare_all(net, "cuda", 4);
}

Test(equality, small_cnn_cuda) { compare_on_device(&nets[0]); }
Test(equality, residual_cuda) { compare_on_device(&nets[1]); }
Test(equality, skips_cuda) { compare_on_device(&nets[4]); }
Test(equality, transformer_cuda) { compare_on_device(&nets[3]); }
Test(equality, normalised_cuda) { compare_on_device(&nets[5]); }
Test(equality, mobile_cuda) { compare_on_device(&nets[6]); }
Test(equality, decoder_cuda) { compare_on_device(&nets[7]); }
Test(equality, frozen_cuda) { compare_on_device(&nets[8]); }

/* What a graph has done before it is prepared. */
enum joined { RELUS_AFTER_POOLS = 1, POOLS_IN_CONVS = 2 };

static struct bench set_up_joined(const struct net *net, const char *backend, enum relu_save relu, int joined)
{
    struct graph *graph = net_build(net, relu);
    int moved = 0, fused = 0;
    if (joined & RELUS_AFTER_POOLS) graph_select_first(graph);
    for (int i = 0; i < graph->nodes; i++) moved += graph->node[i].relu_of_input;
    graph->pool_in_conv = joined & POOLS_IN_CONVS;
    struct bench bench = set_up_conv(net, backend, graph, CONV_WINOGRAD);
    for (int i = 0; i < graph->nodes; i++) fused += graph->node[i].pool != NULL;
    cr_assert((moved > 0) == ((joined & RELUS_AFTER_POOLS) != 0), "%s: %d relus moved", net->name, moved);
    cr_assert((fused > 0) == (joined & POOLS_IN_CONVS && strcmp(backend, "cuda")), "%s: %d pools fused", net->name,
              fused);
    return bench;
}

/* Relus taken after their pools and pools within their convolutions, whatever relus keep, against every layer as
 * written: each policy once. */
static void compare_joined(const struct net *net, const char *backend, int joined)
{
    static struct comparison c;
    c = (struct comparison){.net = net, .steps = 3};
    struct trial t = {.learner = &momentum, .drop_dead = true, .steps = c.steps, .rng = RNG_COUNTER};
    struct bench bench = set_up_joined(net, backend, RELU_OUTPUT, 0);
    t.bench = &bench;
    t.policy = policy_find("store_all");
    run(&t, &c.baseline[t.rng]);
    tear_down(&bench);
    for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_BITS; relu++) {
        bench = set_up_joined(net, backend, relu, joined);
        c.runs = 0;
        for (const struct policy *const *p = policy_table; *p; p++) {
            if ((*p)->needs_slices) continue;
            t.policy = *p;
            t.settings = region_text(bench.graph->region, "%s budget=100%%", tried_settings(&bench, 0));
            compare_plan(&c, &t, 0);
        }
        tear_down(&bench);
    }
    printf("%s on %s, joined %d: %d different plans and memory modes\n", net->name, backend, joined, c.compared);
}

/* The frozen net's relus stay where they are. */
static void compare_all_joined(const char *backend, int joined)
{
    const struct net *const all[] = {&nets[2], &pooled_net, &nets[8]};
    const size_t count = sizeof all / sizeof *all - (joined & RELUS_AFTER_POOLS ? 1 : 0);
    for (size_t i = 0; i < count; i++) compare_joined(all[i], backend, joined);
}

static void compare_joined_on_device(int joined)
{
    if (!backend_opens("cuda")) cr_skip_test("no device");
    compare_joined(&pooled_net, "cuda", joined);
}

Test(equality, relus_after_pools_ref) { compare_all_joined("ref", RELUS_AFTER_POOLS); }
Test(equality, relus_after_pools_cpu) { compare_all_joined("cpu", RELUS_AFTER_POOLS); }
Test(equality, relus_after_pools_cuda) { compare_joined_on_device(RELUS_AFTER_POOLS); }
Test(equality, pools_in_convs_ref) { compare_all_joined("ref", POOLS_IN_CONVS); }
Test(equality, pools_in_convs_cpu) { compare_all_joined("cpu", POOLS_IN_CONVS); }
Test(equality, pools_in_convs_cuda) { compare_joined_on_device(POOLS_IN_CONVS); }
Test(equality, pools_in_convs_and_relus_after_pools_cpu)
{
    compare_all_joined("cpu", POOLS_IN_CONVS | RELUS_AFTER_POOLS);
}

/* Two copies of state a parameter, over many steps. */
static void compare_learner(const struct net *net, const char *backend, const struct learner *learner)
{
    static struct trace baseline, variant;
    struct bench bench = set_up(net, backend, RELU_BITS);
    struct trial t = {.bench = &bench,
                      .learner = learner,
                      .policy = policy_find("store_all"),
                      .drop_dead = true,
                      .steps = STEPS_MAX / THINNING};
    run(&t, &baseline);
    t.policy = policy_find("every");
    run(&t, &variant);
    tear_down(&bench);
    cr_assert(variant.recomputations > 0 && !digest_equal(variant.state[0], variant.state[1]));
    int step = first_difference(&baseline, &variant, t.steps);
    cr_assert(step < 0, "differs at step %d", step);
}

Test(equality, adamw_cpu)
{
    compare_learner(&nets[0], "cpu", &adamw);
    compare_learner(&nets[3], "cpu", &adamw);
}
Test(equality, averages_cpu) { compare_learner(&nets[0], "cpu", &averaged); }
Test(equality, adamw_cuda)
{
    if (!backend_opens("cuda")) cr_skip_test("no device");
    compare_learner(&nets[0], "cuda", &adamw);
}
