/* Fused updates, whole and in parts: every policy's plan passes the checker, updates each node's parameters at the
 * earliest place, and gives the loss, the norm, and the digests of every gradient, parameter and state of the separate
 * update, in every memory mode. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/bounds.h"
#include "search/optimum.h"
#include "tests/support/device_mirror.h"
#include "tests/support/layer_settings.h"
#include "tests/support/simulated.h"
#include "tests/support/small_training.h"
#include "tests/support/token_batches.h"

static int add(struct graph *graph, const char *name, struct settings settings, int x)
{
    int inputs[] = {x, -1}, y = -1;
    const struct layer *layer = layer_find(name);
    cr_assert(graph_add(graph, layer, settings_of(layer, &settings), NULL, inputs, &y) == ST_OK, "%s",
              status_message());
    return y;
}

static int linear(struct graph *graph, int64_t units, int activation, int x)
{
    return add(graph, "linear", (struct settings){.units = units, .activation = activation, .bias = units % 3 != 0}, x);
}

/* Of 256 inputs: rows are 1 KiB, and a part is a multiple of 64. The third has no bias, the last is one part. */
static int add_linears(struct graph *graph, int x)
{
    int y = linear(graph, 256, ACTIVATION_TANH, linear(graph, 256, ACTIVATION_RELU, x));
    y = linear(graph, 256, ACTIVATION_RELU, linear(graph, 255, ACTIVATION_NONE, y));
    return linear(graph, 5, ACTIVATION_NONE, y);
}

/* The first layer reads the batch. */
static int linears(struct graph *graph)
{
    int y = linear(graph, 256, ACTIVATION_NONE, linear(graph, 256, ACTIVATION_RELU, 0));
    return linear(graph, 5, ACTIVATION_NONE, linear(graph, 256, ACTIVATION_TANH, y));
}

static int classifier(struct graph *graph)
{
    cr_assert(graph_group_begin(graph, "images") == ST_OK);
    int y = add(graph, "conv", (struct settings){.channels = 4, .kernel = 3, .stride = 1, .padding = 1}, 0);
    y = add(graph, "max_pool", (struct settings){.kernel = 2, .stride = 2}, y);
    graph_group_end(graph);
    return add_linears(graph, add(graph, "dropout", (struct settings){.rate = 0.2},
                                  add(graph, "flatten", (struct settings){.rate = 0}, y)));
}

static const struct net small = {"linears", linears, {1, {256}}, 3, 5},
                        parted = {"classifier", classifier, {3, {16, 16, 1}}, 3, 5};

static const struct learner plain = {"sgd", "constant", {.lr = 0.05}},
                            moments = {
                                "adamw",
                                "linear",
                                {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01}};

static struct bench set_up_fused(const struct net *net, const char *backend, bool fused, uint64_t part)
{
    struct graph *graph = net_build(net, RELU_BITS);
    graph->fused_update = fused;
    graph->update_part = part;
    return set_up_graph(net, backend, graph);
}

/* ---- places, found from the ops alone ---- */

/* The last op that reads the node's parameters, or computes their gradient. */
static int last_reader(const struct plan *plan, int node)
{
    int last = -1;
    for (int i = 0; i < plan->lowered.ops; i++)
        if (plan->lowered.op[i].node == node && plan->lowered.op[i].kind <= OP_BACKWARD) last = i;
    return last;
}

/* The part that follows an op must be due: an update comes right after the op that completes its gradient, or after the
 * last that reads the parameters. Returns the updates. */
static int check_places(const struct plan *plan, int node, size_t bytes)
{
    const struct op *op = plan->lowered.op;
    const struct buffer *buffer = plan->lowered.buffer;
    int updates = 0;
    for (int i = 0; i < plan->lowered.ops; i++) {
        if (op[i].node != node || op[i].kind != OP_UPDATE) continue;
        const struct buffer *gradients = &buffer[op[i].gradients];
        const bool parts = op[i].part > 0;
        cr_assert(op[i].part == (parts ? ++updates : 0) && (parts || !updates++));
        cr_assert(gradients->death == i && gradients->category == CATEGORY_PARAMETER_GRADIENT);
        cr_assert(parts ? gradients->birth == i - 1 : last_reader(plan, node) == i - 1, "op %d", i);
        cr_assert(parts ? gradients->bytes < bytes : gradients->bytes == bytes);
    }
    return updates;
}

static int check_plan(const struct plan *plan, uint64_t part)
{
    const struct graph *graph = plan->network->graph;
    int updates = 0, parts = 0;
    cr_assert(simulate_plan(plan) == ST_OK, "%s: %s", status_message(), plan->schedule);
    cr_assert(plan->static_bytes[STATIC_GRADIENTS] == 0);
    for (int n = 0; n < graph->nodes; n++) {
        const struct node *node = &graph->node[n];
        size_t bytes = 0, weight = 0;
        for (int p = node->first_parameter; p < node->first_parameter + node->parameters; p++)
            bytes += parameter_static_bytes(&graph->parameter[p]);
        if (node->parameters) weight = parameter_bytes(&graph->parameter[node->first_parameter]);
        const int here = check_places(plan, n, bytes);
        const bool divided = part && !strcmp(node->layer->name, "linear") && weight > part &&
                             graph->parameter[node->first_parameter].definition.shape.dim[1] == 256;
        const uint64_t each = part / 65536 * 65536;
        cr_assert(here == (divided ? (int)((weight + each - 1) / each) : node_trains(node)), "%s: %d", node->name,
                  here);
        updates += here;
        parts += here > 1;
    }
    cr_assert(updates > 0 && (parts > 0) == (part > 0));
    return updates;
}

/* ---- planning ---- */

/* Lower bounds hold, and a solver's points have the bytes and the time of their lowered schedules. */
static void check_bounds(const struct plan *plan)
{
    const struct bounds bounds = bounds_find(plan->network, plan->live_peak);
    cr_assert(bounds.memory <= plan->live_peak && bounds.best <= plan->time * (1 + 1e-9), "%zu, %g: %zu, %g: %s",
              bounds.memory, bounds.best, plan->live_peak, plan->time, plan->schedule);
}

static void check_fronts(const struct net *net, uint64_t part)
{
    struct bench fused = set_up_fused(net, "ref", true, part);
    const struct lower_options options = {.drop_dead = true};
    struct optimum *optimum = optimum_solve(fused.network, RNG_COUNTER);
    cr_assert(optimum->front.count > 1);
    for (int i = 0; i < optimum->front.count; i++) {
        const struct point *point = &optimum->front.point[i];
        struct schedule schedule = schedule_empty(fused.graph->region);
        optimum_schedule(optimum, i, &schedule);
        const struct plan_cost cost = plan_cost(fused.network, &schedule, &options);
        cr_assert(cost.live_peak == point->peak && fabs(cost.time - point->time) <= 1e-9 * cost.time,
                  "%s: point %d has %zu bytes, not %zu", net->name, i, cost.live_peak, point->peak);
        struct plan *plan = plan_build(fused.network, &schedule, &(struct plan_options){.lower = options});
        check_bounds(plan);
        plan_destroy(plan);
    }
    printf("%s: %d points\n", net->name, optimum->front.count);
    optimum_destroy(optimum);
    tear_down(&fused);
}

Test(fused, planners_see_the_gradients_of_parameters)
{
    for (const struct net *net = nets; net->name; net++) check_fronts(net, 0);
    for (uint64_t part = 65536; part < 300000; part *= 2) check_fronts(&parted, part);
    check_fronts(&small, 65536);
}

/* ---- runs ---- */

static int compared;

static void compare(const struct trial *baseline, struct trial *t, struct plan *plan, uint64_t part,
                    const struct trace *expected)
{
    static struct trace trace;
    check_plan(plan, part);
    check_bounds(plan);
    for (t->memory = MEMORY_PLANNED; t->memory <= MEMORY_POISON; t->memory++) {
        run_plan(t, plan, &trace);
        const int step = first_difference(expected, &trace, baseline->steps);
        cr_assert(step < 0, "%s, %s, memory %d: differs at step %d: %s", t->bench->net->name, t->policy->name,
                  t->memory, step, plan->schedule);
        compared++;
    }
    plan_destroy(plan);
}

/* Parts of products may be rounded differently: to that the separate update gives the same. */
static void check_near(const struct trial *baseline, const struct trace *expected)
{
    static struct trace whole;
    struct bench separate = set_up_fused(baseline->bench->net, baseline->bench->backend->kind->name, false, 0);
    struct trial t = *baseline;
    t.bench = &separate;
    run(&t, &whole);
    for (int i = 0; i < baseline->steps; i++)
        cr_assert(fabs(whole.norm[i] - expected->norm[i]) <= 1e-4 * whole.norm[i] &&
                      fabsf(whole.loss[i] - expected->loss[i]) <= 1e-4f * whole.loss[i],
                  "step %d: norm %g, not %g; loss %g, not %g", i, expected->norm[i], whole.norm[i],
                  (double)expected->loss[i], (double)whole.loss[i]);
    tear_down(&separate);
}

/* same: a part of a gradient has the bits of the whole, so that the baseline is the separate update. */
static void compare_all(const struct net *net, const char *backend, const struct learner *learner, uint64_t part,
                        bool same)
{
    static struct trace expected;
    if (!backend_opens(backend)) cr_skip_test("no device");
    struct bench separate = set_up_fused(net, backend, !same, part), fused = set_up_fused(net, backend, true, part);
    struct trial baseline = {.bench = &separate,
                             .learner = learner,
                             .policy = policy_find("store_all"),
                             .drop_dead = true,
                             .steps = 4},
                 t = baseline;
    run(&baseline, &expected);
    cr_assert(expected.loss[0] != expected.loss[1] && expected.norm[0] > 0);
    if (!same) check_near(&baseline, &expected);
    t.bench = &fused;
    for (const struct policy *const *p = policy_table; *p; p++)
        for (size_t s = 0; s < TRIED && !(*p)->needs_slices; s++) {
            t.policy = *p;
            t.settings =
                region_text(fused.graph->region, "%s%s", tried_settings(&fused, s), part ? " budget=100%" : "");
            t.drop_dead = s != 2;
            compare(&baseline, &t, plan_of(&t), part, &expected);
        }
    printf("%s on %s: %d\n", net->name, backend, compared);
    tear_down(&separate);
    tear_down(&fused);
}

Test(fused, small_cnn_ref) { compare_all(&nets[0], "ref", &momentum, 0, true); }
Test(fused, residual_ref) { compare_all(&nets[1], "ref", &plain, 0, true); }
Test(fused, normalised_ref) { compare_all(&nets[5], "ref", &moments, 0, true); }
Test(fused, parts_ref) { compare_all(&parted, "ref", &moments, 65536, true); }
Test(fused, larger_parts_ref) { compare_all(&parted, "ref", &plain, 200000, true); }
Test(fused, transformer_cpu) { compare_all(&nets[3], "cpu", &moments, 0, true); }
Test(fused, vgg_cpu) { compare_all(&nets[2], "cpu", &momentum, 0, true); }
Test(fused, mobile_cpu) { compare_all(&nets[6], "cpu", &plain, 0, true); }
Test(fused, frozen_cpu) { compare_all(&nets[8], "cpu", &moments, 0, true); }
Test(fused, parts_cpu) { compare_all(&parted, "cpu", &momentum, 65536, false); }
Test(fused, small_cnn_cuda) { compare_all(&nets[0], "cuda", &moments, 0, true); }
Test(fused, parts_cuda) { compare_all(&parted, "cuda", &moments, 65536, false); }

/* ---- a node that runs forward again after its backward ---- */

Test(fused, an_update_waits_for_a_late_recomputation)
{
    static const uint64_t parts[] = {0, 65536};
    static struct trace expected;
    for (int i = 0; i < 2; i++) {
        struct bench separate = set_up_fused(&small, "ref", false, 0),
                     fused = set_up_fused(&small, "ref", true, parts[i]);
        struct trial baseline = {.bench = &separate, .learner = &plain, .policy = policy_find("store_all"), .steps = 3},
                     t = baseline;
        struct schedule schedule;
        const struct plan_options options = {.lower = {.drop_dead = false}};
        struct plan *plan;
        t.bench = &fused;
        run(&baseline, &expected);
        cr_assert(schedule_parse("F[0,5) B[1,5) F[0,3) B[0,1)", fused.graph->region, &schedule) == ST_OK);
        plan = plan_build(fused.network, &schedule, &options);
        cr_assert(simulate_plan(plan) == ST_OK, "%s", status_message());
        int forward = -1, updates = 0;
        for (int k = 0; k < plan->lowered.ops; k++) {
            const struct op *op = &plan->lowered.op[k];
            if (op->node == 2 && op->kind == OP_FORWARD) forward = k;
            updates += op->node == 2 && op->kind == OP_UPDATE;
            if (op->node == 2 && op->kind == OP_UPDATE) cr_assert(op->part == (i ? updates : 0));
        }
        const int first = last_reader(plan, 2) + 1;
        cr_assert(forward == first - 1 && updates == (i ? 4 : 1) && plan->lowered.op[first].kind == OP_UPDATE);
        static struct trace trace;
        t.memory = MEMORY_POISON;
        run_plan(&t, plan, &trace);
        cr_assert(first_difference(&expected, &trace, 3) < 0);
        plan_destroy(plan);
        tear_down(&separate);
        tear_down(&fused);
    }
}
