/* The proof must detect errors: every kind of fault, at every node where a plan allows it, under every policy and in
 * every memory mode, makes a difference from the baseline at the fault's step. */
#include "train/fault.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/device_mirror.h"
#include "tests/support/sliced_schedules.h"
#include "tests/support/small_training.h"
#include "tests/support/thinning.h"
#include "tests/support/token_batches.h"

enum { STEP = 1, STEPS = 2, PLANS_MAX = 64, MODES = MEMORY_POISON + 1 };

struct matrix {
    struct trace baseline;
    struct digest seen[PLANS_MAX]; /* policies and settings often come to the same plan */
    int plans, tried, planted[FAULT_STALE_READ + 1];
};

static bool was_seen(struct matrix *m, const struct plan *plan)
{
    for (int i = 0; i < m->plans; i++)
        if (digest_equal(m->seen[i], plan->hash)) return true;
    cr_assert(m->plans < PLANS_MAX);
    m->seen[m->plans++] = plan->hash;
    return false;
}

/* A step that fails names the tensor; one that differs is found by its digests. */
static void expect_caught(const struct matrix *m, const struct trial *t, const struct plan *plan,
                          const struct trace *variant)
{
    const int step = first_difference(&m->baseline, variant, STEPS);
    cr_expect(step == STEP, "%s, %s, rng %d, memory %d: fault %d at %s is found at step %d: %s", t->bench->net->name,
              t->policy->name, t->rng, t->memory, t->fault.kind, t->bench->graph->node[t->fault.node].name, step,
              plan->schedule);
    cr_expect(variant->steps == STEPS || strstr(variant->failure, "step 1: the loss is "), "%s", variant->failure);
}

/* Each fault in the next memory mode, or in all of them. The source of masks affects only faults of masks. */
static void plant_all(struct matrix *m, struct trial *t, bool all_modes)
{
    static struct trace variant;
    struct plan *plan = plan_of(t);
    const int nodes = was_seen(m, plan) ? 0 : t->bench->graph->nodes;
    for (int i = 0; i < nodes * FAULT_STALE_READ * MODES; i++) {
        t->fault =
            (struct fault){(enum fault_kind)(1 + i / MODES % FAULT_STALE_READ), STEP, i / MODES / FAULT_STALE_READ};
        t->memory = (enum memory_mode)(i % MODES);
        int op;
        const int turn = m->tried++ / MODES; /* another mode for each kind at each node */
        if (!all_modes && i % MODES != (turn + turn / FAULT_STALE_READ) % MODES) continue;
        if (t->rng != RNG_COUNTER && t->fault.kind != FAULT_MASK_BIT) continue;
        if (fault_find(plan, &t->fault, t->memory != MEMORY_DYNAMIC, &op) != ST_OK) continue;
        run_plan(t, plan, &variant);
        expect_caught(m, t, plan, &variant);
        m->planted[t->fault.kind]++;
    }
    plan_destroy(plan);
}

static void all_faults_are_caught(const struct net *net, const char *backend, bool all_modes)
{
    static struct matrix m;
    if (!backend_opens(backend)) cr_skip_test("no device");
    m = (struct matrix){.plans = 0};
    for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_BITS; relu++)
        for (enum rng_mode rng = RNG_COUNTER; rng <= RNG_MASK; rng++) {
            if (rng != RNG_COUNTER && relu == RELU_OUTPUT) continue;
            struct bench bench = set_up(net, backend, relu);
            struct trial t = {.bench = &bench,
                              .learner = &momentum,
                              .policy = policy_find("store_all"),
                              .drop_dead = true,
                              .rng = rng,
                              .steps = STEPS};
            run(&t, &m.baseline);
            m.plans = 0;
            for (const struct policy *const *p = policy_table; *p; p++) {
                if ((*p)->needs_slices || (rng != RNG_COUNTER && strcmp((*p)->name, "every") != 0)) continue;
                for (size_t s = 0; s < (all_modes && rng == RNG_COUNTER && THINNING == 1 ? TRIED : 1); s++) {
                    t.policy = *p;
                    t.settings = tried_settings(&bench, s);
                    t.drop_dead = s != 2;
                    plant_all(&m, &t, all_modes);
                }
            }
            tear_down(&bench);
        }
    for (int kind = FAULT_MASK_BIT; kind <= FAULT_STALE_READ; kind++) cr_expect(m.planted[kind] > 20);
    printf("%s on %s: %d faults\n", net->name, backend,
           m.planted[FAULT_MASK_BIT] + m.planted[FAULT_SKIP_RECOMPUTE] + m.planted[FAULT_STALE_READ]);
}

Test(fault, all_are_caught_small_cnn_ref) { all_faults_are_caught(&nets[0], "ref", true); }
Test(fault, all_are_caught_small_cnn_cpu) { all_faults_are_caught(&nets[0], "cpu", false); }
Test(fault, all_are_caught_residual_cpu) { all_faults_are_caught(&nets[1], "cpu", false); }
Test(fault, all_are_caught_vgg_cpu) { all_faults_are_caught(&nets[2], "cpu", false); }
Test(fault, all_are_caught_transformer_cpu) { all_faults_are_caught(&nets[3], "cpu", false); }
Test(fault, all_are_caught_skips_cpu) { all_faults_are_caught(&nets[4], "cpu", false); }
Test(fault, all_are_caught_normalised_cpu) { all_faults_are_caught(&nets[5], "cpu", false); }
Test(fault, all_are_caught_small_cnn_cuda) { all_faults_are_caught(&nets[0], "cuda", false); }

Test(fault, unsafe_randomness_is_caught)
{
    for (int n = 0; n < 4; n += 3) {
        static struct trace baseline, variant;
        struct bench bench = set_up(&nets[n], "ref", RELU_OUTPUT);
        struct trial t = {.bench = &bench,
                          .learner = &momentum,
                          .policy = policy_find("store_all"),
                          .drop_dead = true,
                          .rng = RNG_STASH,
                          .steps = 4};
        run(&t, &baseline);
        t.policy = policy_find("every");
        t.rng = RNG_UNSAFE;
        run(&t, &variant);
        tear_down(&bench);
        cr_expect(first_difference(&baseline, &variant, t.steps) == 0);
    }
}

/* Recomputations that move the running state change nothing else in the step: no loss, no gradient. */
Test(fault, running_state_that_moves_twice_is_caught)
{
    static struct trace baseline, variant;
    struct bench bench = set_up(&nets[5], "ref", RELU_OUTPUT);
    struct trial t = {.bench = &bench,
                      .learner = &momentum,
                      .policy = policy_find("every"),
                      .drop_dead = true,
                      .rng = RNG_STASH,
                      .steps = 2};
    run(&t, &baseline);
    t.commit_every = true;
    run(&t, &variant);
    tear_down(&bench);
    cr_expect(first_difference(&baseline, &variant, t.steps) == 0);
    for (int step = 0; step < t.steps; step++) {
        cr_expect(digest_equal(baseline.parameters[step], variant.parameters[step]));
        cr_expect(!digest_equal(baseline.running[step], variant.running[step]));
    }
}

/* A step in which node is computed again before its own backward, which may read its saved tensors, but not its output.
 */
static struct schedule recompute_last(const struct graph *graph, int node)
{
    struct schedule schedule = schedule_empty(graph->region);
    schedule_append(&schedule, STEP_FORWARD, 0, graph->nodes);
    schedule_append(&schedule, STEP_BACKWARD, node + 1, graph->nodes);
    schedule_append(&schedule, STEP_FORWARD, node, node + 1);
    schedule_append(&schedule, STEP_BACKWARD, 0, node + 1);
    return schedule;
}

/* At every node for which a plan has an op. Returns their number. */
static int alter_masks(struct trial *t, const struct plan *plan, const struct trace *baseline)
{
    static struct trace variant;
    const struct graph *graph = t->bench->graph;
    int op, planted = 0;
    for (int node = 0; node < graph->nodes; node++) {
        t->fault = (struct fault){FAULT_MASK_BIT, STEP, node};
        if (fault_find(plan, &t->fault, true, &op) != ST_OK) continue;
        run_plan(t, (struct plan *)(uintptr_t)plan, &variant);
        const int step = first_difference(baseline, &variant, STEPS);
        cr_assert(step == STEP, "%s, node %s, op %d: %s", t->bench->net->name, graph->node[node].name, op,
                  plan->schedule);
        planted++;
    }
    return planted;
}

/* Also of a recomputation that is read for its saved tensors alone: a mask is altered where it is read. */
Test(fault, masks_are_altered_where_they_are_read, .timeout = 120)
{
    static struct trace baseline;
    int planted = 0;
    for (int c = 0; c < 8; c++) {
        struct net net = nets[c & 1 ? 3 : 0];
        net.batch = 6;
        struct graph *graph = net_build(&net, RELU_BITS);
        sliced_graph(graph, c & 2 ? 3 : 1, 0, &(struct source){.seed = 4});
        struct bench bench = set_up_graph(&net, c & 4 ? "cpu" : "ref", graph);
        struct trial t = {.bench = &bench,
                          .learner = &momentum,
                          .policy = policy_find("store_all"),
                          .drop_dead = true,
                          .steps = STEPS};
        run(&t, &baseline);
        for (int node = 0; node < graph->nodes; node++) {
            const struct schedule schedule = recompute_last(graph, node);
            plan_auto *plan = plan_build(bench.network, &schedule,
                                         &(struct plan_options){.lower = {node % 2}, .state_per_parameter = 1});
            planted += graph->node[node].draws ? alter_masks(&t, plan, &baseline) : 0;
        }
        tear_down(&bench);
    }
    cr_assert(planted > 50, "%d faults", planted);
}
