/* The batch in slices: on every network and backend, every schedule of slices has the bits of store_all; a gradient is
 * the sum of the gradients of its slices, computed alone, in ascending order; and plans are right. */
#include <criterion/criterion.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/device_mirror.h"
#include "tests/support/policy_text.h"
#include "tests/support/simulated.h"
#include "tests/support/sliced_schedules.h"
#include "tests/support/small_training.h"
#include "tests/support/thinning.h"
#include "tests/support/token_batches.h"

/* ---- bits ---- */

struct counts {
    int policies, random, whole, parts;
};

static void compare(const struct trial *t, struct plan *plan, const struct trace *baseline, const char *what)
{
    static struct trace variant;
    cr_assert(simulate_plan(plan) == ST_OK, "%s: %s: %s", what, status_message(), plan->schedule);
    run_plan(t, plan, &variant);
    const int step = first_difference(baseline, &variant, t->steps);
    cr_assert(step < 0, "%s: differs at step %d: %s", what, step, plan->schedule);
    plan_destroy(plan);
}

/* Policies of slices and of the whole batch, and random schedules. A stand-in is slow: it runs three of these. */
static void compare_all(const struct bench *bench, struct source *source, struct counts *counts, const char *what)
{
    static struct trace baseline;
    const struct slicing slicing = graph_slicing(bench->graph);
    const char *const policies[] = {"microbatch", "sliced", "segments", "every", "revolve", "optimal", "dtr"};
    struct trial t = {.bench = bench, .learner = &momentum, .drop_dead = true, .steps = 2};
    t.rng = (enum rng_mode)(draw_below(source, 2) ? RNG_STASH : draw_below(source, 2) ? RNG_MASK : RNG_COUNTER);
    t.policy = policy_find("store_all");
    run(&t, &baseline);
    t.memory = (enum memory_mode)draw_below(source, 3);
    const struct plan_options options = {.lower = {.drop_dead = true, .rng = t.rng}, .state_per_parameter = 1};
    for (size_t p = 0; p < sizeof policies / sizeof *policies && !bench->backend->kind->device; p++) {
        const char *settings = region_text(bench->graph->region, "segments=2 slots=2 groups=%s budget=%s",
                                           bench->graph->group[0].name, p == 5 ? "least" : "100%");
        struct plan *plan = policy_text_try(bench->network, policies[p], settings, &options);
        cr_assert(plan || strcmp(policies[p], "optimal") != 0, "%s: %s", what, status_message());
        if (!plan) continue; /* microbatch and sliced where nodes are whole */
        compare(&t, plan, &baseline, region_text(bench->graph->region, "%s, %s", what, policies[p]));
        counts->policies++;
    }
    for (int i = 0; i < (bench->backend->kind->device ? 3 : 8); i++) {
        struct schedule schedule = schedule_empty(bench->graph->region);
        sliced_schedule_draw(source, &slicing, &schedule);
        struct plan *plan = plan_build(bench->network, &schedule, &options);
        for (int b = 0; b < plan->lowered.buffers; b++) counts->parts += plan->lowered.buffer[b].slice != WHOLE_BATCH;
        compare(&t, plan, &baseline, what);
        counts->random++;
    }
    for (int n = 0; n < slicing.nodes; n++) counts->whole += slicing_whole(&slicing, n);
}

/* The least of a slice: one value of a channel has no variance. */
static int64_t samples_of_slice(const struct net *net) { return strcmp(net->name, "accumulated") ? 1 : 2; }

static struct counts compare_on(const char *backend, const struct net *from, int networks)
{
    struct source source = {.seed = 22};
    struct counts counts = {0};
    for (const struct net *small = from; small - from < networks && small->name; small++) {
        struct net net = *small;
        net.batch *= 2;
        const int64_t most = net.batch / samples_of_slice(small);
        for (int64_t slices = 2; slices <= most; slices++)
            for (uint32_t whole = 0; whole < (strcmp(backend, "cuda") ? 3 : 1) && net.batch % slices == 0; whole++) {
                char what[128];
                struct graph *graph = net_build(&net, (enum relu_save)(whole % 2));
                snprintf(what, sizeof what, "%s on %s, %d slices, whole 1 in %u", net.name, backend, (int)slices,
                         whole);
                sliced_graph(graph, slices, whole ? whole + 1 : 0, &source);
                graph->fused_update = draw_below(&source, 2) && small != &tied_net;
                graph->update_part = draw_below(&source, 2) ? 1 << 12 : 0;
                graph->pool_in_conv = draw_below(&source, 2);
                struct bench bench = set_up_graph(&net, backend, graph);
                compare_all(&bench, &source, &counts, what);
                tear_down(&bench);
            }
    }
    cr_assert(counts.parts > 100);
    printf("slices on %s: %d plans of policies and %d random schedules\n", backend, counts.policies, counts.random);
    return counts;
}

static void compare_all_on(const char *backend)
{
    const struct counts counts = compare_on(backend, nets, INT_MAX);
    cr_assert(counts.policies > 40 && counts.random > 100 && counts.whole > 10);
}

Test(slices, schedules_equal_store_all_ref, .timeout = 600) { compare_all_on("ref"); }
Test(slices, schedules_equal_store_all_cpu, .timeout = 600) { compare_all_on("cpu"); }
Test(slices, schedules_equal_store_all_losses, .timeout = 120)
{
    compare_on("ref", loss_nets, INT_MAX);
    compare_on("cpu", loss_nets, INT_MAX);
}
/* A loss in chunks of each slice, which adds to the gradients of the slices before by itself. */
Test(slices, schedules_equal_store_all_chunked, .timeout = 120)
{
    compare_on("ref", &chunked_net, 1);
    compare_on("cpu", &chunked_net, 1);
    compare_on("cpu", &tied_net, 1);
}
/* With statistics of each slice alone. */
Test(slices, schedules_equal_store_all_accumulated, .timeout = 120)
{
    compare_on("ref", &accumulated_net, 1);
    compare_on("cpu", &accumulated_net, 1);
}
/* Each loss is the sum of its slices', whatever order the losses of a schedule come in. */
Test(slices, schedules_equal_store_all_auxiliary, .timeout = 120)
{
    compare_on("ref", &headed_net, 1);
    compare_on("cpu", &headed_net, 1);
    compare_on("cpu", &early_net, 1);
    compare_on("cpu", &latent_net, 1);
}
Test(slices, schedules_equal_store_all_cuda, .timeout = 600)
{
    if (!backend_opens("cuda")) cr_skip_test("no device");
    compare_on("cuda", &nets[0], 2);
    compare_on("cuda", &accumulated_net, 1);
}

/* Every node that a plan recomputes, left out in turn. */
static int skip_nodes(struct trial *t, struct plan *plan, const struct trace *baseline)
{
    static struct trace variant;
    int planted = 0, op;
    for (int node = 0; node < t->bench->graph->nodes; node++) {
        t->fault = (struct fault){FAULT_SKIP_RECOMPUTE, 1, node};
        if (fault_find(plan, &t->fault, true, &op) != ST_OK) continue;
        run_plan(t, plan, &variant);
        cr_assert(first_difference(baseline, &variant, t->steps) == 1, "node %d: %s", node, plan->schedule);
        planted++;
    }
    t->fault = (struct fault){FAULT_NONE, 0, 0};
    return planted;
}

/* The running state moves once a slice, whatever is computed again: under every policy, memory mode and source of
 * randomness. Recomputations that move it, or that are left out, are found. */
Test(slices, statistics_of_a_slice_are_taken_once_under_every_policy, .timeout = 120)
{
    static struct trace baseline, variant;
    int plans = 0, caught = 0, skipped = 0;
    for (enum rng_mode rng = RNG_COUNTER; rng <= RNG_MASK; rng++) {
        struct graph *graph = net_build(&accumulated_net, RELU_BITS);
        sliced_graph(graph, 2, 0, &(struct source){.seed = 1});
        struct bench bench = set_up_graph(&accumulated_net, "cpu", graph);
        struct trial t = {.bench = &bench, .learner = &momentum, .drop_dead = true, .rng = rng, .steps = 3};
        t.policy = policy_find("store_all");
        run(&t, &baseline);
        for (const struct policy *const *p = policy_table; *p; p++) {
            t.policy = *p;
            t.settings = region_text(graph->region, "%s budget=100%%", tried_settings(&bench, 0));
            struct plan *plan = plan_of(&t);
            for (t.memory = MEMORY_PLANNED; t.memory <= MEMORY_POISON; t.memory++, plans++) {
                run_plan(&t, plan, &variant);
                const int step = first_difference(&baseline, &variant, t.steps);
                cr_assert(step < 0, "%s, rng %d, memory %d: differs at step %d: %s", (*p)->name, (int)rng,
                          (int)t.memory, step, plan->schedule);
            }
            t.memory = MEMORY_PLANNED;
            t.commit_every = true;
            run_plan(&t, plan, &variant);
            const bool same = digest_equal(baseline.running[0], variant.running[0]);
            cr_assert(same || plan->recomputations > 0, "%s: %s", (*p)->name, plan->schedule);
            caught += !same;
            t.commit_every = false;
            skipped += skip_nodes(&t, plan, &baseline);
            plan_destroy(plan);
        }
        tear_down(&bench);
    }
    cr_assert(plans >= 3 * 3 * 9 && caught >= 3 * 3 && skipped > 20, "%d plans, %d and %d faults", plans, caught,
              skipped);
}

/* ---- many steps ---- */

/* Convolutions behind a batch norm, which is whole, with dropout, under every policy of slices, with separate and with
 * fused updates, whole and in parts, against store_all with separate ones. */
static void compare_long(const char *backend, int64_t slices, uint32_t whole, const struct learner *learner)
{
    static const char *const policies[][2] = {
        {"microbatch", ""}, {"sliced", ""}, {"segments", "segments=2"}, {"optimal", "budget=least"}};
    static struct trace baseline;
    for (int fused = 0, compared = 0; fused < 2; fused++) {
        struct source source = {.seed = 6};
        struct graph *graph = net_build(&fronted_net, RELU_BITS);
        sliced_graph(graph, slices, whole, &source);
        graph->fused_update = fused;
        graph->update_part = 1 << 12;
        struct bench bench = set_up_graph(&fronted_net, backend, graph);
        struct trial t = {.bench = &bench,
                          .learner = learner,
                          .policy = policy_find("store_all"),
                          .drop_dead = true,
                          .steps = THINNING > 1 ? STEPS_MAX / 10 : STEPS_MAX};
        const struct plan_options options = {.lower = {.drop_dead = true},
                                             .state_per_parameter =
                                                 optimizer_copies(optimizer_find(learner->name), &learner->settings)};
        if (!fused) run(&t, &baseline);
        for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
            const char *settings = region_text(graph->region, "%s groups=%s", policies[p][1], graph->group[0].name);
            struct plan *plan = policy_text_try(bench.network, policies[p][0], settings, &options);
            cr_assert(plan || p < 2, "%s", status_message()); /* those refuse whole nodes */
            if (!plan) continue;
            compare(&t, plan, &baseline,
                    region_text(graph->region, "%s, %s, fused %d", fronted_net.name, policies[p][0], fused));
            compared++;
        }
        cr_assert(isfinite(baseline.loss[t.steps - 1]) && baseline.loss[t.steps - 1] != baseline.loss[0]);
        cr_assert(!fused || compared >= 5, "%s: %d plans", fronted_net.name, compared);
        tear_down(&bench);
    }
}

Test(slices, a_hundred_steps_equal_store_all, .timeout = 120)
{
    static const struct learner adam = {
        "adamw", "linear", {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01}};
    compare_long("ref", 3, 0, &momentum);
    compare_long("ref", 2, 4, &momentum); /* some nodes whole */
    compare_long("cpu", 6, 0, &adam);
    compare_long("cpu", 3, 0, &averaged);
}

/* ---- the sum of slices ---- */

static void fill(float *to, int64_t count, uint32_t seed)
{
    struct source source = {.seed = seed};
    for (int64_t i = 0; i < count; i++) to[i] = (float)draw_below(&source, 2001) / 1000.0F - 1;
}

static enum status queue(void *exec) { return executor_queue(exec); }

/* The last of some steps of a plan on samples from first on, of a batch that seed stands for; the gradients follow each
 * other. divisor: what the loss is divided by, 0: that of these samples. running: the running state before and after,
 * tensor after tensor; NULL: zeros. */
static void gradients_of(const struct bench *b, const struct plan *plan, enum rng_mode rng, int64_t first,
                         double divisor, uint32_t steps, float *gradients, float loss[2], float *running)
{
    const int64_t elements = shape_elements(&b->net->input);
    struct executor *exec;
    float *batch = calloc((size_t)(b->net->batch * elements), sizeof *batch);
    cr_assert(executor_create(plan, &(struct executor_options){.rng = rng, .seed = 3}, &exec) == ST_OK, "%s",
              status_message());
    fill(batch, b->net->batch * elements, 5);
    if (sentences_fit(&b->net->input)) sentences_make(batch, b->net->batch, b->net->input.dim[1], 20, 5);
    for (int p = 0; p < b->graph->parameters; p++)
        fill(executor_parameter(exec, p), b->graph->parameter[p].elements, 100 + (uint32_t)p);
    float *state = running;
    for (int i = 0; running && i < b->graph->states; state += b->graph->state[i++].elements)
        memcpy(executor_running(exec, i), state, parameter_bytes(&b->graph->state[i]));
    for (uint32_t step = 0; step < steps; step++) {
        memcpy(executor_batch(exec), batch + first * elements, (size_t)(b->graph->batch * elements) * sizeof *batch);
        net_labels(b->graph, first, 0, b->net->classes, executor_labels(exec));
        executor_begin(exec, step);
        if (divisor > 0) b->backend->moment.divisor = divisor;
        cr_assert(b->backend->kind->step(b->backend, false, queue, exec) == ST_OK, "%s", status_message());
        cr_assert(b->backend->kind->wait(b->backend) == ST_OK, "%s", status_message());
        executor_end(exec);
        memcpy(loss, b->backend->outcome.loss, 2 * sizeof *loss);
    }
    for (int p = 0; p < b->graph->parameters; p++) {
        if (b->graph->parameter[p].trained >= 0)
            memcpy(gradients, executor_gradient(exec, p), parameter_bytes(&b->graph->parameter[p]));
        gradients += b->graph->parameter[p].elements;
    }
    state = running;
    for (int i = 0; running && i < b->graph->states; state += b->graph->state[i++].elements)
        memcpy(state, executor_running(exec, i), parameter_bytes(&b->graph->state[i]));
    free(batch);
    executor_destroy(exec);
}

/* Of one step that stores everything. */
static void stored_gradients(const struct bench *b, int64_t first, double divisor, float *gradients, float loss[2],
                             float *running)
{
    plan_auto *plan =
        policy_text_plan(b->network, "store_all", "", &(struct plan_options){.lower = {.drop_dead = true}});
    gradients_of(b, plan, RNG_COUNTER, first, divisor, 1, gradients, loss, running);
}

static size_t parameter_elements(const struct graph *graph)
{
    size_t count = 0;
    for (int p = 0; p < graph->parameters; p++) count += (size_t)graph->parameter[p].elements;
    return count;
}

static size_t running_elements(const struct graph *graph)
{
    size_t count = 0;
    for (int i = 0; i < graph->states; i++) count += (size_t)graph->state[i].elements;
    return count;
}

/* The network with dropout at rate 0: a slice alone would draw the numbers of other samples. */
static struct graph *build_undropped(const struct net *net)
{
    struct graph *graph = net_build(net, RELU_OUTPUT);
    for (int i = 0; i < graph->nodes; i++) {
        const struct setting *rate = setting_find(graph->node[i].layer->keys, "rate");
        if (rate && graph->node[i].draws)
            memset((char *)(uintptr_t)graph->node[i].settings + rate->offset, 0, sizeof(double));
        graph->node[i].draws = 0;
    }
    return graph;
}

static void check_sum(const struct net *net, const char *backend, int64_t slices)
{
    struct graph *graph = build_undropped(net);
    struct source source = {.seed = 1};
    const size_t count = parameter_elements(graph);
    float *whole = calloc(count, sizeof *whole), *sum = calloc(count, sizeof *sum), *one = calloc(count, sizeof *one);
    float loss[2], part[2], total[2] = {0};
    const size_t states = running_elements(graph) + 1;
    float *running = calloc(states, sizeof *running), *moved = calloc(states, sizeof *moved);
    sliced_graph(graph, slices, 0, &source);
    struct bench bench = set_up_graph(net, backend, graph);
    stored_gradients(&bench, 0, 0, whole, loss, running);
    const double divisor = bench.backend->moment.divisor;
    tear_down(&bench);
    for (int64_t k = 0; k < slices; k++) {
        struct net small = *net;
        small.batch /= slices;
        struct graph *alone = build_undropped(&small);
        bench = set_up_graph(net, backend, alone);
        stored_gradients(&bench, k * small.batch, divisor, one, part, moved);
        tear_down(&bench);
        for (size_t i = 0; i < count; i++) sum[i] = k ? sum[i] + one[i] : one[i];
        for (int i = 0; i < 2; i++) total[i] = k ? total[i] + part[i] : part[i];
    }
    cr_assert(!memcmp(whole, sum, count * sizeof *sum), "%s on %s, %d slices", net->name, backend, (int)slices);
    cr_assert(!memcmp(running, moved, states * sizeof *moved), "%s on %s, %d slices", net->name, backend, (int)slices);
    free(running);
    free(moved);
    const bool alone =
        net->build != headed_net.build; /* several losses are summed over the slices one by one, then added */
    cr_assert(!memcmp(loss + !alone, total + !alone, (1 + alone) * sizeof *loss), "%g is not %g", loss[0], total[0]);
    cr_assert(fabsf(loss[0] - total[0]) <= 1e-6f * loss[0], "%g is not %g", loss[0], total[0]);
    free(whole);
    free(sum);
    free(one);
}

Test(slices, gradients_are_the_sum_of_slices_alone)
{
    const struct net *const all[] = {&nets[0],      &nets[1],         &nets[4],      &nets[7],
                                     &nets[8],      &gated_net,       &vision_net,   &deep_net,
                                     &divided_net,  &loss_nets[0],    &loss_nets[1], &loss_nets[2],
                                     &loss_nets[3], &accumulated_net, &latent_net,   &headed_net};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct net net = *all[i];
        net.batch = 6;
        for (int64_t slices = 2; slices <= 6 / samples_of_slice(all[i]); slices++) {
            if (net.batch % slices) continue;
            check_sum(&net, "ref", slices);
            check_sum(&net, "cpu", slices);
        }
    }
}

/* ---- what cannot be sliced ---- */

Test(slices, refusals_name_the_number_or_the_layer)
{
    static const struct {
        const struct net *net;
        int slices;
        bool whole;
        const char *says;
        const char *layer;
    } cases[] = {
        {&nets[0], 2, false, "slices: 2 do not divide the batch of 3 samples", NULL},
        {&nets[5], 2, false, "(batch_norm) takes statistics over all of its samples; expected slices: 1", "batch_norm"},
        {&accumulated_net, 2, true, "expected statistics: batch, or no slices: 1 of this layer", "batch_norm"},
        {&accumulated_net, 4, false, "expected slices of more than one sample", "batch_norm"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct graph *graph = net_build(cases[i].net, RELU_OUTPUT);
        int mixing;
        for (int k = 0; k < graph->nodes; k++) graph->node[k].keep_whole = cases[i].whole;
        cr_expect(graph_slice(graph, cases[i].slices, true, &mixing) == ST_SPEC &&
                      strstr(status_message(), cases[i].says),
                  "%s", status_message());
        cr_expect(cases[i].layer ? !strcmp(graph->node[mixing].layer->name, cases[i].layer) : mixing == -1);
        graph_destroy(graph);
    }
}

/* A product with many weights and few rows is kept whole, also of the batch itself, unless none is. */
Test(slices, products_of_few_rows_are_kept_whole)
{
    static const struct {
        const struct net *net;
        int node;
    } cases[] = {{&divided_net, 1}, {&deep_net, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct graph *graph = net_build(cases[c].net, RELU_OUTPUT);
        graph->parameter[graph->node[cases[c].node].first_parameter].elements = SLICING_WEIGHT_BYTES / 4 + 1;
        for (int64_t slices = 2; slices <= 4; slices *= 2)
            for (int keep = 0; keep < 2; keep++) {
                const bool few = keep && cases[c].net->batch / slices < SLICING_FEW_ROWS;
                cr_assert(graph_slice(graph, slices, keep, &(int){0}) == ST_OK, "%s", status_message());
                for (int i = 0; i < graph->nodes; i++)
                    cr_expect(graph->whole[i] == (few && i == cases[c].node), "%s: node %d of %d slices",
                              cases[c].net->name, i, (int)slices);
            }
        graph_destroy(graph);
    }
}

/* ---- random numbers ---- */

/* Masks do not know of slices: the loss of the first step is that of the whole batch but for rounding. */
Test(slices, dropout_draws_the_numbers_of_the_whole_batch)
{
    static struct trace trace;
    struct net net = nets[0];
    net.batch = 6;
    for (enum rng_mode rng = RNG_COUNTER; rng <= RNG_MASK; rng++) {
        float whole = 0;
        for (int64_t slices = 1; slices <= 6; slices++) {
            if (net.batch % slices) continue;
            struct graph *graph = net_build(&net, RELU_OUTPUT);
            cr_assert(graph_slice(graph, slices, false, &(int){0}) == ST_OK, "%s", status_message());
            struct bench bench = set_up_graph(&net, "ref", graph);
            run(&(struct trial){.bench = &bench,
                                .learner = &momentum,
                                .policy = policy_find("store_all"),
                                .drop_dead = true,
                                .rng = rng,
                                .steps = 1},
                &trace);
            if (slices == 1) whole = trace.loss[0];
            cr_expect(fabsf(trace.loss[0] - whole) < 1e-5F, "rng %d, %d slices: %g is not %g", rng, (int)slices,
                      trace.loss[0], whole);
            tear_down(&bench);
        }
    }
}

/* The gradients of every parameter are those of the undivided batch but for rounding. */
static void expect_near(const struct graph *graph, const float *expected, const float *found, const char *what)
{
    for (int p = 0; p < graph->parameters; p++) {
        const int64_t count = graph->parameter[p].elements;
        float most = 1e-3F, off = 0;
        for (int64_t i = 0; i < count; i++) {
            most = fmaxf(most, fabsf(expected[i]));
            off = fmaxf(off, fabsf(expected[i] - found[i]));
        }
        cr_assert(off < 1e-3F * most, "%s: the gradient of %s is off by %g of %g", what, graph->parameter[p].name,
                  (double)off, (double)most);
        expected += count;
        found += count;
    }
}

/* Under every policy that the network has, against store_all on the undivided batch, which is written to expected where
 * there is one slice. Returns the number of plans. */
static int compare_draws(const struct net *net, const char *backend, enum rng_mode rng, int64_t slices, float *expected)
{
    static const char *const policies[] = {"store_all", "every", "microbatch", "sliced"};
    enum { STEPS = 2 }; /* the second continues the stream */
    const struct plan_options options = {.lower = {.drop_dead = true, .rng = rng}};
    struct graph *graph = net_build(net, RELU_OUTPUT);
    float loss[2], *found = calloc(parameter_elements(graph), sizeof *found);
    int plans = 0;
    sliced_graph(graph, slices, 0, &(struct source){.seed = 1});
    struct bench bench = set_up_graph(net, backend, graph);
    for (size_t p = 0; p < (slices > 1 ? sizeof policies / sizeof *policies : 1); p++) {
        const char *settings = region_text(graph->region, "groups=%s", graph->groups ? graph->group[0].name : "none");
        plan_auto *plan = policy_text_try(bench.network, policies[p], settings, &options);
        if (!plan) continue; /* microbatch where nodes are whole */
        gradients_of(&bench, plan, rng, 0, 0, STEPS, slices > 1 ? found : expected, loss, NULL);
        expect_near(graph, expected, slices > 1 ? found : expected,
                    region_text(graph->region, "%s on %s, rng %d, %d slices, %s", net->name, backend, (int)rng,
                                (int)slices, policies[p]));
        plans++;
    }
    tear_down(&bench);
    free(found);
    return plans;
}

/* A backward drops the elements that its own slice's forward dropped, which are those of the undivided batch. */
Test(slices, gradients_of_dropout_are_those_of_the_undivided_batch, .timeout = 120)
{
    static const struct net *const all[] = {&nets[0], &nets[1], &nets[3], &fronted_net};
    static const char *const backends[] = {"ref", "cpu"};
    int plans = 0;
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
        for (int b = 0; b < 2; b++)
            for (enum rng_mode rng = RNG_COUNTER; rng <= RNG_MASK; rng++) {
                struct net net = *all[n];
                net.batch = 6;
                struct graph *graph = net_build(&net, RELU_OUTPUT);
                float *expected = calloc(parameter_elements(graph), sizeof *expected);
                graph_destroy(graph);
                for (int64_t slices = 1; slices <= 6; slices++)
                    if (net.batch % slices == 0) plans += compare_draws(&net, backends[b], rng, slices, expected);
                free(expected);
            }
    cr_assert(plans > 150, "%d plans", plans);
}

/* ---- checked recomputations ---- */

/* Of one slice alone: the same numbers as in its first forward are right, others are found. */
Test(slices, the_recomputation_of_any_slice_is_checked)
{
    enum { SLICES = 3 };
    struct net net = nets[0];
    net.batch = 6;
    for (int slice = 0; slice < SLICES; slice++)
        for (int wrong = 0; wrong < 2; wrong++) {
            struct graph *graph = net_build(&net, RELU_OUTPUT);
            const enum rng_mode rng = wrong ? RNG_UNSAFE : RNG_STASH;
            struct executor *exec;
            float loss[2];
            sliced_graph(graph, SLICES, 0, &(struct source){.seed = 1});
            struct bench bench = set_up_graph(&net, "ref", graph);
            struct schedule schedule = schedule_empty(graph->region);
            schedule_append(&schedule, STEP_FORWARD, 0, graph->nodes);
            schedule_append_step(&schedule, (struct step){STEP_FORWARD, 0, graph->nodes - 1, slice});
            schedule_append(&schedule, STEP_BACKWARD, 0, graph->nodes);
            plan_auto *plan =
                plan_build(bench.network, &schedule, &(struct plan_options){.lower = {.drop_dead = true, .rng = rng}});
            const struct executor_options options = {.rng = rng, .seed = 3, .check_recompute = true};
            cr_assert(executor_create(plan, &options, &exec) == ST_OK, "%s", status_message());
            fill(executor_batch(exec), net.batch * shape_elements(&net.input), 5);
            for (int p = 0; p < graph->parameters; p++)
                fill(executor_parameter(exec, p), graph->parameter[p].elements, 100 + (uint32_t)p);
            cr_assert(executor_step(exec, 0, loss) == (wrong ? ST_DIFFERS : ST_OK), "slice %d: %s", slice,
                      status_message());
            executor_destroy(exec);
            tear_down(&bench);
        }
}
