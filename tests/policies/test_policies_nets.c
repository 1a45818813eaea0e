/* On real networks: what published schemes recompute is recomputed, selective drops the chosen kinds and nothing else.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/plan.h"
#include "policies/rivals.h"
#include "tests/support/cli.h"
#include "tests/support/policy_text.h"
#include "tests/support/simulated.h"
#include "tests/support/sliced_schedules.h"
#include "tests/support/small_training.h"

static const struct plan_options usual = {.lower = {.drop_dead = true, .rng = RNG_COUNTER}};

/* checkpoint_sequential with use_reentrant: floor(n / k) units a segment, every node of all segments but the last runs
 * twice. Without it a recomputation stops when the last value that is needed is there. */
Test(policies_nets, segments_recompute_what_torch_recomputes)
{
    for (const struct net *net = nets; net->name; net++) {
        struct bound_net b = net_bind(net, RELU_OUTPUT);
        struct node_ranges units;
        units = stages_find(b.graph, b.graph->region);
        for (int segments = 1; segments <= units.count; segments++) {
            char settings[64];
            struct plan_options options = usual;
            snprintf(settings, sizeof settings, "segments=%d unit=stage keep_saved=false", segments);
            struct plan *early = policy_text_plan(b.network, "segments", settings, &options);
            options.lower.drop_dead = false;
            struct plan *whole = policy_text_plan(b.network, "segments", settings, &options);
            const int kept = units.count / segments * (segments - 1);
            cr_assert(whole->recomputations == (kept < units.count ? units.range[kept].from : b.graph->nodes),
                      "%s, %d segments: %d recomputations", net->name, segments, whole->recomputations);
            cr_assert(whole->lowered.dropped == 0 &&
                      early->recomputations + early->lowered.dropped == whole->recomputations);
            cr_assert(segments == 1 || early->recomputations < whole->recomputations || early->lowered.dropped == 0);
            plan_destroy(early);
            plan_destroy(whole);
        }
        net_release(&b);
    }
}

static bool is_chosen(const struct layer *layer, const char *kind)
{
    static const struct {
        const char *kind, *layers;
    } families[] = {{"pool", " max_pool avg_pool global_avg_pool "},
                    {"norm", " layernorm rms_norm group_norm batch_norm batch_norm_add "},
                    {"weightless",
                     " max_pool avg_pool global_avg_pool upsample pad flatten tokens pixels attention cross_attention "
                     "gelu silu hardswish sigmoid tanh select relu "
                     "relu6 leaky_relu scale dropout add multiply concat "}};
    char name[64];
    snprintf(name, sizeof name, " %s ", layer->name);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (!strcmp(families[i].kind, kind)) return strstr(families[i].layers, name) != NULL;
    return !strcmp(layer->name, kind);
}

/* No backward reads a chosen node's output as its first forward wrote it, and nothing else is recomputed, or twice. */
static void check_selected(const struct plan *plan, const char *kind)
{
    const struct graph *graph = plan->network->graph;
    int *recomputations = calloc((size_t)graph->nodes, sizeof *recomputations);
    bool *first = calloc((size_t)plan->lowered.buffers, sizeof *first);
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->kind == OP_FORWARD) {
            if (op->y >= 0) first[op->y] = !op->recompute && is_chosen(graph->node[op->node].layer, kind);
            recomputations[op->node] += op->recompute;
        }
        if (op->kind != OP_BACKWARD) continue;
        const int read[] = {op->x[0], op->x[1], op->y};
        for (int k = 0; k < 3; k++)
            cr_assert(read[k] < 0 || !first[read[k]], "%s: op %d reads what was to be dropped", kind, i);
    }
    for (int i = 0; i < graph->nodes; i++)
        cr_assert(recomputations[i] <= is_chosen(graph->node[i].layer, kind), "%s: node %d, %d recomputations", kind, i,
                  recomputations[i]);
    free(first);
    free(recomputations);
}

Test(policies_nets, selective_drops_the_kinds_and_nothing_else)
{
    static const char *const kinds[] = {"conv",      "max_pool", "pool",   "weightless", "dropout",
                                        "add",       "relu",     "linear", "flatten",    "global_avg_pool",
                                        "attention", "norm",     "relu6",  "upsample"};
    int plans = 0;
    for (const struct net *net = nets; net->name; net++)
        for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_BITS; relu++) {
            struct bound_net b = net_bind(net, relu);
            for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
                char settings[64];
                struct schedule schedule = schedule_empty(b.graph->region);
                bool any = false;
                snprintf(settings, sizeof settings, "kinds=%s", kinds[k]);
                for (int i = 0; i < b.graph->nodes; i++) any |= is_chosen(b.graph->node[i].layer, kinds[k]);
                enum status status = policy_text_emit(b.network, "selective", settings, &schedule);
                cr_assert(status == (any ? ST_OK : ST_SPEC), "%s, %s", net->name, kinds[k]);
                cr_assert(any || strstr(status_message(), "the model has no layer of kind"), "%s", status_message());
                if (!any) continue;
                struct plan *plan = policy_text_plan(b.network, "selective", settings, NULL);
                check_selected(plan, kinds[k]);
                plans += plan->recomputations > 0;
                plan_destroy(plan);
            }
            net_release(&b);
        }
    cr_assert(plans > 20, "%d plans recompute anything", plans);
}

/* Counts the budgets at which optimal's placed plan is slower than dtr's, or is missing. */
static int count_behind(const struct net *net, enum relu_save relu, int *compared)
{
    struct bound_net b = net_bind(net, relu);
    int behind = 0;
    for (int percent = 20; percent <= 100; percent += 4) {
        char budget[32];
        snprintf(budget, sizeof budget, "budget=%d%%", percent);
        struct plan *dtr = policy_text_try(b.network, "dtr", budget, &usual);
        struct plan *optimal = policy_text_try(b.network, "optimal", budget, &usual);
        *compared += dtr != NULL;
        behind += dtr && (!optimal || optimal->time > dtr->time * (1 + 1e-12));
        plan_destroy(dtr);
        plan_destroy(optimal);
    }
    net_release(&b);
    return behind;
}

Test(policies_nets, optimal_is_never_behind_dtr, .timeout = 600)
{
    int compared = 0;
    for (const struct net *net = nets; net->name; net++) {
        cr_expect(count_behind(net, RELU_OUTPUT, &compared) == 0, "%s", net->name);
        cr_expect(count_behind(net, RELU_BITS, &compared) == 0, "%s, sign bits", net->name);
    }
    cr_expect(count_behind(&deep_net, RELU_OUTPUT, &compared) == 0, "%s", deep_net.name);
    cr_assert(compared > 100, "%d budgets", compared);
}

Test(policies_nets, selective_refuses_unknown_kinds)
{
    static const struct {
        const char *kind, *says;
    } wrong[] = {{"swish", "'swish' is not known; expected some of conv|conv_transpose|max_pool|"},
                 {"swish", "|pool|norm|weightless"},
                 {"avg", "'avg' is not known"},
                 {"cross_entropy", "'cross_entropy' is not known"}};
    struct bound_net b = net_bind(&nets[0], RELU_OUTPUT);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct schedule schedule = schedule_empty(b.graph->region);
        char settings[64];
        snprintf(settings, sizeof settings, "kinds=%s", wrong[i].kind);
        cr_assert(policy_text_emit(b.network, "selective", settings, &schedule) == ST_SPEC);
        cr_assert(strstr(status_message(), wrong[i].says), "%s", status_message());
    }
    net_release(&b);
}

/* ---- slices ---- */

/* The least live peak of `optimal`, and the time of its plan; *sliced: whether its schedule names slices. */
static size_t least_of(const struct net *net, int64_t slices, const char *const whole[2], double *time, bool *sliced)
{
    struct source source = {.seed = 1};
    struct graph *graph = net_build(net, RELU_BITS);
    sliced_graph(graph, slices, 0, &source);
    for (int i = 0; i < 2 && whole[i] && slices > 1; i++) graph->whole[graph_find_node(graph, whole[i])] = true;
    struct bench bench = set_up_graph(net, "ref", graph);
    struct plan *plan = policy_text_plan(bench.network, "optimal", "budget=least", &usual);
    cr_assert(simulate_plan(plan) == ST_OK, "%s", status_message());
    const size_t live = plan->live_peak;
    *time = plan->time;
    *sliced = strchr(plan->schedule, '/');
    plan_destroy(plan);
    tear_down(&bench);
    return live;
}

/* Wherever the whole layers are, `optimal` runs stretches of the others slice by slice, and so needs less memory than
 * any schedule of the whole batch that it finds. */
Test(policies_nets, optimal_slices_between_whole_layers)
{
    static const struct {
        const struct net *net;
        const char *whole[2];
    } cases[] = {{&nets[2], {"conv3"}},   {&nets[2], {"conv4", "linear1"}}, {&nets[2], {"conv6"}},
                 {&nets[2], {"linear1"}}, {&fronted_net, {"batch_norm1"}},  {&fronted_net, {"batch_norm1", "linear1"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct net net = *cases[i].net;
        double time, whole_time;
        bool sliced;
        net.batch = 8;
        const size_t live = least_of(&net, 4, cases[i].whole, &time, &sliced),
                     whole_live = least_of(&net, 1, cases[i].whole, &whole_time, &(bool){false});
        printf("%s: %zu bytes live and time %.3g in slices, %zu and %.3g of the whole batch\n", net.name, live, time,
               whole_live, whole_time);
        cr_assert(sliced && (double)live < 0.9 * (double)whole_live, "%s, %s", net.name, cases[i].whole[0]);
    }
}

/* With a fused update, micro-batches of the last layers come before those of the first, whose gradients then are not
 * live at the same time. */
Test(policies_nets, optimal_runs_micro_batches_in_phases)
{
    struct cli cli;
    cli_open(&cli);
    cli_file(
        &cli, "net.yaml",
        "rematch: 1\nname: net\nmodel:\n  layers:\n"
        "    - repeat: {name: r, times: 4, layers: [{conv: {channels: 16, kernel: 3, padding: 1}}, relu]}\n"
        "    - global_avg_pool\n"
        "    - repeat: {name: w, times: 2, layers: [{linear: {units: 256}}, relu]}\n    - linear: {units: classes}\n"
        "data: {name: synthetic, shape: [16, 16, 3], classes: 4}\nbatch: 16\nslices: 4\nsteps: 2\n"
        "optimizer: {name: sgd, lr: 0.1}\nupdate: fused\nbackend: ref\n"
        "policy: {name: manual, schedule: phases}\n");
    cli_file(&cli, "phases",
             "F[0,9) F[9,15)/0 B[9,15)/0 F[9,15)/1 B[9,15)/1 F[9,15)/2 B[9,15)/2 F[9,15)/3 B[9,15)/3 "
             "F[0,9)/0 B[0,9)/0 F[0,9)/1 B[0,9)/1 F[0,9)/2 B[0,9)/2 F[0,9)/3 B[0,9)/3");
    json_t *plan = cli_json(&cli, 0, "plan net.yaml --json");
    const double time = json_number_value(json_object_get(plan, "slowdown"));
    const json_int_t peak = json_integer_value(json_object_get(plan, "peak_bytes"));
    cr_assert(peak && time > 1);
    char arguments[128];
    snprintf(arguments, sizeof arguments, "plan net.yaml 'policy={name: optimal, budget: %lld}' --json",
             (long long)peak);
    json_t *best = cli_json(&cli, 0, arguments);
    cr_assert(json_number_value(json_object_get(best, "slowdown")) <= time);
    json_decref(plan);
    json_decref(best);
    cli_close(&cli);
}

/* In slices too dtr keeps the bytes of its least plan, and more; so does `optimal`, which has dtr's schedules as
 * candidates. */
static void check_dtr(const char *name, const struct network *network)
{
    struct plan *least = policy_text_try(network, "dtr", "budget=least", &usual);
    struct pool *pool = rivals_front(network, &usual);
    const struct member *const *origin;
    cr_assert(pool_front(pool, pool->region, &origin).point[0].peak <= least->live_peak, "%s", name);
    pool_destroy(pool);
    plan_search_placement(least);
    size_t bytes = plan_peak(least);
    for (int i = 0; i < 6; i++, bytes += bytes / 256) {
        char budget[48];
        snprintf(budget, sizeof budget, "budget=%zu", bytes);
        struct plan *dtr = policy_text_try(network, "dtr", budget, &usual),
                    *optimal = policy_text_try(network, "optimal", budget, &usual);
        cr_assert(dtr && optimal, "%s, %d: %s", name, i, status_message());
        if (plan_peak(dtr) > bytes) plan_search_placement(dtr);
        if (plan_peak(optimal) > bytes) plan_search_placement(optimal);
        cr_assert(plan_peak(dtr) <= bytes && plan_peak(optimal) <= bytes, "%s, %d", name, i);
        cr_assert(optimal->time <= dtr->time * (1 + 1e-12), "%s, %d: %g %g", name, i, optimal->time, dtr->time);
        plan_destroy(dtr);
        plan_destroy(optimal);
    }
    plan_destroy(least);
}

Test(policies_nets, dtr_keeps_what_its_least_takes, .timeout = 600)
{
    for (const struct net *net = nets; net->name; net++)
        for (int64_t slices = 1; slices <= net->batch; slices += net->batch - 1) {
            struct source source = {.seed = 1};
            struct graph *graph = net_build(net, RELU_BITS);
            sliced_graph(graph, slices, 0, &source);
            struct bench bench = set_up_graph(net, "ref", graph);
            check_dtr(net->name, bench.network);
            tear_down(&bench);
        }
}
