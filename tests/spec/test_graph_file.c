/* Graph files: every file of tests/bad_graphs is refused with the errors of its first lines; peaks and times of small
 * chains as counted by hand; the JSON. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plan_summary.h"
#include "analysis/policy_grid.h"
#include "result/record_plan.h"
#include "run/job_plans.h"
#include "spec/graph_file.h"
#include "spec/spec.h"
#include "tests/support/planned_graphs.h"
#include "tests/support/spec_text.h"

TestSuite(graph_file, .init = spec_text_begin, .fini = spec_text_end);

static void refuse(const char *path)
{
    struct spec *spec;
    struct network *network;
    cr_expect(graph_file_load(path, 0, NULL, &spec, &network) == ST_SPEC && !spec && !network, "%s: accepted", path);
}

Test(graph_file, errors_say_where_and_why)
{
    int files = each_bad_file("tests/bad_graphs", refuse);
    cr_expect(files >= 60, "%d files", files);
}

static const struct {
    const char *chain, *overrides;
    size_t peak;
    double time;
} known[] = {
    {THREE, "policy.name=store_all", 10 + 3 + 20 + 4 + 30 + 5, 29},
    {THREE, "policy.name=optimal policy.budget=72", 72, 29},
    /* stage 1 is recomputed, so neither its output nor its saved tensors are live at stage 3 */
    {THREE, "policy.name=optimal policy.budget=71", 20 + 4 + 30 + 5, 30},
    /* forward 3, backward 3 and backward 2 each hold 17; placing it would take 18, but a chain is not placed */
    {"  - {forward: 1, backward: 1, output: 4, saved: 2, gradient: 6}\n"
     "  - {forward: 1, backward: 1, output: 5, saved: 3, gradient: 2}\n"
     "  - {forward: 1, backward: 1, output: 6, saved: 0, gradient: 4}\n",
     "policy.name=optimal policy.budget=17", 4 + 2 + 3 + 2 + 6, 7},
    {STEPS(10), "policy.name=store_all", 10 * 1000 + 10, 10},
    {STEPS(10), "policy.name=optimal policy.budget=1004", 1004, 10 + 15},
    {STEPS(64), "policy.name=optimal policy.budget=1005", 1005, 64 + 200},
    {STEPS(100), "policy.name=optimal policy.budget=1011", 1011, 100 + 222},
    /* one stage: its input is not counted, its output's gradient is, and it has no input gradient */
    {"  - {forward: 2.5, backward: 0.25, output: 1KiB, saved: 1GiB, gradient: 3KiB}\n", "policy=store_all",
     (1 << 30) + 3 * 1024, 2.75},
    /* two stages: forward 2 holds all of a(1), a(2) and both saved tensors; backward 2 both gradients instead of a(2)
     */
    {"  - stages:\n    - {name: a, forward: 1, backward: 1, output: 5, saved: 1, gradient: 7}\n"
     "    - {name: b, forward: 1, backward: 1, output: 2, saved: 3, gradient: 4}\n",
     "policy=store_all", 5 + 1 + 3 + 7 + 4, 4},
    /* the graph of test_abstract_graph.c, which counts its live bytes op by op */
    {MASKED, "policy=store_all", 10 + 3 + 10 + 8, 59.5},
    /* the first node's saved tensors are recomputed; its output is not kept at the shortcut's end either */
    {MASKED, "policy.name=optimal policy.budget=30", 10 + 10 + 8, 59.5 + 1},
    /* a concatenation of three holds them and its output, and so do their gradients; B loss holds x, dy and dx */
    {CONCATENATED, "policy=store_all", 30 + 1 + 30, 10},
};

Test(graph_file, peaks_and_times_are_those_counted_by_hand)
{
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        struct planned_graph p;
        cr_assert(planned_graph(known[k].chain, known[k].overrides, &p) == ST_OK, "%s: %s", status_message(),
                  messages());
        const struct plan *plan = p.job->plan;
        cr_expect(plan->live_peak == known[k].peak && plan_peak(plan) == known[k].peak, "chain %zu: %zu bytes", k,
                  plan->live_peak);
        cr_expect(plan->time == known[k].time, "chain %zu: time %g", k, plan->time);
        cr_expect(p.job->bounds.best <= plan->time && p.job->bounds.memory <= plan->live_peak);
        planned_graph_done(&p);
    }
}

/* The flops of 96 layers of GPT-3 and 64 samples of 2048 tokens add up to more than 2^53. */
#define LAYERS(forward, backward)                                                                                      \
    "  - repeat: 96\n    stages:\n      - {name: layer, forward: " forward ", backward: " backward                     \
    ", output: 3221225472, saved: 180388626432, gradient: 3221225472}\n"

Test(graph_file, times_may_add_up_to_more_than_2_to_the_53rd)
{
    static const char *const policies[] = {"policy=store_all", "policy=sqrt", "policy=every", "policy=revolve",
                                           "policy.name=optimal policy.budget=40%"};
    static const struct {
        const char *chain;
        double forward, backward;
    } units[] = {{LAYERS("488183162732544", "976366325465088"), 488183162732544, 976366325465088},
                 {LAYERS("488183.162732544", "976366.325465088"), 488183.162732544, 976366.325465088},
                 {LAYERS("1e28", "2e26"), 1e28, 2e26}};
    for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
        char *first = NULL;
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            struct planned_graph p;
            cr_assert(planned_graph(units[u].chain, policies[k], &p) == ST_OK, "%s: %s", status_message(), messages());
            const struct plan *plan = p.job->plan;
            const double again = plan->recomputations * units[u].forward;
            const double time = 96 * (units[u].forward + units[u].backward) + again;
            cr_expect(fabs(plan->time - time) <= 1e-13 * time, "%s: %g, not %g", policies[k], plan->time, time);
            if (!first) first = strdup(plan->schedule);
            /* of equally fast schedules `optimal` may find another where sums are rounded */
            if (strstr(policies[k], "optimal") == NULL)
                cr_expect(!strcmp(first, plan->schedule), "%s: %s", policies[k], plan->schedule);
            planned_graph_done(&p);
        }
        free(first);
    }
}

#define MIB ((size_t)1 << 20)

/* Layers that save 512 MiB and write 32 MiB are recomputed whole, by every policy: one layer's saved tensors beside all
 * outputs and a gradient, in a third of the backward's time more. */
Test(graph_file, every_policy_recomputes_stages_whole)
{
    static const char twelve[] = "  - repeat: 12\n    stages:\n      - {name: layer, forward: 5, backward: 10, "
                                 "output: 32MiB, saved: 512MiB, gradient: 32MiB}\n";
    static const char *const policies[] = {"policy=every", "policy=sqrt", "policy=chen", "policy=revolve",
                                           "policy.name=segments policy.segments=5"};
    char overrides[128];
    struct planned_graph p;
    cr_assert(planned_graph(twelve, "policy=every", &p) == ST_OK, "%s", messages());
    cr_expect(p.job->plan->live_peak == (12 * 32 + 512 + 32) * MIB, "%zu", p.job->plan->live_peak);
    cr_expect(p.job->plan->recomputations == 12 && p.job->plan->time == 12 * (5 + 5 + 10));
    planned_graph_done(&p);
    for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
        size_t live[2];
        double time[2];
        for (int given = 0; given < 2; given++) {
            snprintf(overrides, sizeof overrides, "%s%s", policies[k], given ? " policy.keep_saved=false" : "");
            cr_assert(planned_graph(twelve, overrides, &p) == ST_OK, "%s: %s", overrides, messages());
            cr_expect(p.job->plan->recomputations > 0);
            live[given] = p.job->plan->live_peak, time[given] = p.job->plan->time;
            planned_graph_done(&p);
        }
        cr_expect(live[0] == live[1] && time[0] == time[1], "%s", policies[k]);
        snprintf(overrides, sizeof overrides, "%s policy.keep_saved=true", policies[k]);
        cr_assert(planned_graph(twelve, overrides, &p) == ST_OK, "%s: %s", overrides, messages());
        cr_expect(p.job->plan->live_peak > live[0], "%s", overrides);
        planned_graph_done(&p);
    }
}

static const struct {
    const char *overrides, *says, *chain; /* NULL: THREE */
} refused[] = {
    {"policy.name=optimal policy.budget=0", "'0' is not greater than 0"},
    {"policy.name=optimal policy.budget=lots", "'lots' is not a size"},
    {"policy.name=optimal policy.budget=40", "the smallest budget that it found kept is 55"},
    {"policy.name=dtr policy.budget=40", "dtr found no schedule that keeps it"},
    {"policy.name=dtr policy.budget=1000", "it is set by B stage2101 with stage2101.scratch (8.58 MiB)", LONG},
    {"policy.name=segments policy.segments=4", "4 segments of 3 units"},
    {"policy.name=fastest", "'fastest' is not known"},
    {"budget=4", "a graph file has no such key"},
    {"policy.name=optimal policy.name=sqrt", "given twice"}};

Test(graph_file, wrong_overrides_and_policies_are_refused)
{
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        struct planned_graph p;
        cr_expect(planned_graph(refused[k].chain ? refused[k].chain : THREE, refused[k].overrides, &p) == ST_SPEC, "%s",
                  refused[k].overrides);
        const char *told = messages();
        cr_expect(strstr(told, refused[k].says) || strstr(status_message(), refused[k].says), "%s: %s: %s",
                  refused[k].overrides, status_message(), told);
        planned_graph_done(&p);
    }
}

Test(graph_file, repeat_makes_numbered_copies)
{
    static const char *const names[] = {"a",       "stage2",  "b[0][0]", "b[1][0]", "stage5",
                                        "b[0][1]", "b[1][1]", "stage8",  "c[0]",    "c[1]"};
    struct planned_graph p;
    cr_assert(planned_graph("  - {name: a, forward: 1, backward: 1, output: 1, saved: 1, gradient: 1}\n"
                            "  - {forward: 2, backward: 1, output: 1, saved: 1, gradient: 1}\n"
                            "  - repeat: 2\n    stages:\n"
                            "    - {name: b, repeat: 2, forward: 3, backward: 1, output: 1, saved: 1, gradient: 1}\n"
                            "    - {forward: 4, backward: 1, output: 1, saved: 1, gradient: 1}\n"
                            "  - {name: c, repeat: 2, forward: 5, backward: 1, output: 1, saved: 1, gradient: 1}\n",
                            "", &p) == ST_OK,
              "%s", messages());
    cr_assert(p.job->graph->nodes == 10);
    for (int i = 0; i < 10; i++) cr_expect_str_eq(p.job->graph->node[i].name, names[i]);
    static const double forward[] = {1, 2, 3, 3, 4, 3, 3, 4, 5, 5};
    for (int i = 0; i < 10; i++) cr_expect(p.job->network->cost[i].forward == forward[i]);
    planned_graph_done(&p);
}

Test(graph_file, inputs_in_copies_are_those_of_the_copy)
{
    static const struct {
        const char *name;
        int inputs[2]; /* -1: none */
    } expected[] = {{"stem", {0, -1}},  {"in[0]", {1, -1}},    {"conv[0]", {2, -1}}, {"add[0]", {3, 2}},
                    {"far[0]", {4, 1}}, {"in[1]", {5, -1}},    {"conv[1]", {6, -1}}, {"add[1]", {7, 6}},
                    {"far[1]", {8, 1}}, {"cat.join1", {4, 9}}, {"cat", {10, 0}}};
    struct planned_graph p;
    cr_assert(planned_graph("  - {name: stem, " PLAIN "}\n"
                            "  - repeat: 2\n    nodes:\n    - {name: in, " PLAIN "}\n    - {name: conv, " PLAIN "}\n"
                            "    - {name: add, inputs: [conv, in], " PLAIN "}\n"
                            "    - {name: far, inputs: [add, stem], " PLAIN "}\n"
                            "  - {name: cat, inputs: ['add[0]', 'far[1]', batch], " PLAIN "}\n",
                            "", &p) == ST_OK,
              "%s", messages());
    const struct graph *graph = p.job->graph;
    cr_assert(graph->nodes == 11);
    for (int i = 0; i < 11; i++) {
        const struct node *node = &graph->node[i];
        cr_expect_str_eq(node->name, expected[i].name);
        cr_expect(node->layer->inputs == 1 + (expected[i].inputs[1] >= 0));
        for (int k = 0; k < node->layer->inputs; k++) cr_expect(node->inputs[k] == expected[i].inputs[k], "%d", i);
    }
    planned_graph_done(&p);
}

/* Sizes of batch 4 at batch 10: 2.5 times as many, rounded up one by one; parameters and what is static stay. */
Test(graph_file, another_batch_has_sizes_in_proportion)
{
    static const char nodes[] = "  - {forward: 2, backward: 4, output: 10, saved: 3, gradient: 7, parameters: 300}\n"
                                "  - {forward: 2, backward: 6, output: 6, saved: 1, gradient: 2, backward_scratch: 5}\n"
                                "batch: 4\nstatic: 1000\n";
    struct planned_graph p;
    cr_assert(planned_graph(nodes, "", &p) == ST_OK, "%s", messages());
    cr_expect(p.job->plan->live_peak == 10 + 3 + 1 + 2 + 7 + 5 && p.job->plan->time == 14);
    cr_expect(plan_static(p.job->plan) == 2 * 512 + 1024);
    planned_graph_done(&p);
    cr_assert(planned_graph(nodes, "batch=10", &p) == ST_OK, "%s", messages());
    cr_expect(p.job->plan->live_peak == 25 + 8 + 3 + 5 + 18 + 13 && p.job->plan->time == 35);
    cr_expect(plan_static(p.job->plan) == 2 * 512 + 1024 && p.job->plan->slowdown == 1);
    planned_graph_done(&p);
    cr_expect(planned_graph(nodes, "batch=2147483648", &p) == ST_OK);
    cr_expect(p.job->plan->live_peak == ((size_t)(10 + 3 + 1 + 2 + 7 + 5) << 31) / 4);
    planned_graph_done(&p);
    cr_expect(planned_graph("  - {forward: 1, backward: 1, output: 1, saved: 134217728, gradient: 1}\nbatch: 1\n",
                            "batch=2147483648", &p) == ST_SPEC);
    cr_expect(strstr(messages(), "node 1: the sizes of all nodes up to it add up to"));
}

static json_t *row_of(const json_t *rows, const char *policy);

/* Against one plan a batch. */
Test(graph_file, largest_batch_is_the_last_that_fits)
{
    static const char nodes[] = "batch: 3\nstatic: 1000\nstages:\n" THREE;
    struct region *region = region_create();
    struct planned_graph p;
    for (size_t memory = 1024 + 23; memory < 1024 + 1000; memory += 97) {
        int largest = 0;
        for (int batch = 1; batch < 50; batch++) {
            cr_assert(planned_graph(nodes, region_text(region, "batch=%d", batch), &p) == ST_OK, "%s", messages());
            if (plan_peak(p.job->plan) <= memory) largest = batch;
            planned_graph_done(&p);
        }
        json_t *rows = json_array(), *notes = json_array();
        cr_assert(planned_graph(nodes, "", &p) == ST_OK, "%s", messages());
        cr_assert(largest_batch_find(p.job, memory, INFINITY, region, rows, notes) == ST_OK, "%s", status_message());
        const json_t *found = json_object_get(row_of(rows, "store_all"), "largest_batch");
        cr_expect(json_integer_value(found) == largest, "%zu bytes: %d", memory, (int)json_integer_value(found));
        json_decref(rows);
        json_decref(notes);
        planned_graph_done(&p);
    }
    cr_assert(planned_graph(THREE, "", &p) == ST_OK, "%s", messages());
    cr_expect(largest_batch_find(p.job, 1000, INFINITY, region, NULL, NULL) == ST_SPEC);
    cr_expect(strstr(status_message(), "--max-batch needs the key batch"));
    planned_graph_done(&p);
    region_destroy(region);
}

/* The JSON of a chain's plan, to be freed by json_decref; without a policy all are compared. */
static json_t *json_of(const char *chain, const char *overrides, bool ops)
{
    char *text = NULL;
    size_t length;
    struct planned_graph p;
    FILE *out = open_memstream(&text, &length);
    cr_assert(out && planned_graph(chain, overrides, &p) == ST_OK, "%s", status_message());
    struct plan_summary *summary;
    cr_assert(plan_summary_create(p.job, !strstr(overrides, "policy"), &summary) == ST_OK, "%s", status_message());
    plan_summary_json(summary, ops, out);
    plan_summary_destroy(summary);
    fclose(out);
    planned_graph_done(&p);
    json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    cr_assert(all, "%s", text);
    free(text);
    return all;
}

static double number(const json_t *object, const char *key)
{
    cr_assert(json_is_number(json_object_get(object, key)), "%s is no number", key);
    return json_number_value(json_object_get(object, key));
}

Test(graph_file, json_has_the_keys_of_any_plan)
{
    static const char *const shared[] = {"name",           "policy",       "static_bytes", "live_peak_bytes",
                                         "arena_bytes",    "peak_bytes",   "static",       "live_peak",
                                         "recomputations", "time",         "slowdown",     "nodes",
                                         "stages",         "schedule",     "hash",         "store_all_live_peak_bytes",
                                         "peak",           "table",        "planning_ms",  "ops",
                                         "bounds",         "budget_bounds"};
    json_t *all = json_of(THREE, "policy.name=optimal policy.budget=71", true);
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        cr_expect(json_object_get(all, shared[i]), "%s is missing", shared[i]);
    cr_expect(number(all, "peak_bytes") == 59 && number(all, "static_bytes") == 0);
    cr_expect(number(all, "store_all_live_peak_bytes") == 72 && number(all, "time") == 30);
    /* 71 bytes at forward 3 require recomputing stage 1 or 2, and stage 1 is the cheaper */
    const json_t *bounds = json_object_get(all, "budget_bounds");
    const double best = number(bounds, "best_slowdown") * 29;
    cr_expect(number(bounds, "live_bytes") == 71 && fabs(best - 30) < 1e-9 && number(bounds, "gap_percent") == 0);
    cr_expect(json_array_size(json_object_get(all, "ops")) == 8 && json_array_size(json_object_get(all, "table")) == 3);
    cr_expect_str_eq(json_string_value(json_object_get(json_object_get(all, "peak"), "op")), "F stage3");
    cr_expect_str_eq(json_string_value(json_object_get(all, "schedule")), "F[0,3) B[2,3) F[0,1) B[0,2)");
    json_decref(all);
}

static json_t *row_of(const json_t *rows, const char *policy)
{
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (!strcmp(json_string_value(json_object_get(json_array_get(rows, i), "policy")), policy))
            return json_array_get(rows, i);
    return NULL;
}

/* No policy is below the front in memory or time. */
static void expect_none_ahead(const json_t *all)
{
    const json_t *front = json_object_get(all, "front"), *one;
    size_t i;
    json_array_foreach (json_object_get(all, "choices"), i, one) {
        const char *policy = json_string_value(json_object_get(one, "policy"));
        size_t at = json_array_size(front);
        while (at && number(json_array_get(front, at - 1), "peak_bytes") > number(one, "peak_bytes")) at--;
        cr_assert(at > 0, "%s needs less than the front", policy);
        cr_expect(number(json_array_get(front, at - 1), "time") <= number(one, "time"), "%s is ahead of the front",
                  policy);
    }
}

Test(graph_file, without_a_policy_the_json_has_every_policy_and_the_front)
{
    static const char *const simple[] = {"store_all", "every", "sqrt", "optimal"};
    json_t *all = json_of(STEPS(20), "", false), *one;
    const json_t *front = json_object_get(all, "front"), *choices = json_object_get(all, "choices");
    size_t i, points = json_array_size(front), optimal = 0;
    cr_assert(points > 12);
    cr_expect_str_eq(json_string_value(json_object_get(all, "policy")), "store_all");
    for (i = 1; i < points; i++) {
        const json_t *before = json_array_get(front, i - 1), *point = json_array_get(front, i);
        cr_expect(number(before, "peak_bytes") < number(point, "peak_bytes"));
        cr_expect(number(before, "time") > number(point, "time"));
    }
    expect_none_ahead(all);
    json_array_foreach (choices, i, one) {
        cr_expect(number(one, "gap_percent") >= 0 && number(one, "slowdown") * 20 == number(one, "time"));
        const char *remark = json_string_value(json_object_get(one, "remark"));
        cr_expect((remark && !strcmp(remark, "recomputes nothing")) == (number(one, "time") == 20));
        optimal += !strcmp(json_string_value(json_object_get(one, "policy")), "optimal");
    }
    for (i = 0; i < sizeof simple / sizeof *simple; i++) cr_expect(row_of(choices, simple[i]), "%s", simple[i]);
    cr_expect(optimal == 12 && !row_of(choices, "segments"));
    json_decref(all);
}

Test(graph_file, no_policy_is_ahead_of_the_front_behind_a_shortcut)
{
    json_t *all = json_of("  - {name: a, forward: 3, backward: 4, output: 1000, saved: 300, gradient: 1000}\n"
                          "  - {name: b, forward: 5, backward: 4, output: 1000, saved: 300, gradient: 1000}\n"
                          "  - {name: c, forward: 5, backward: 4, output: 1000, saved: 300, gradient: 1000}\n"
                          "  - {inputs: [c, a], forward: 1, backward: 0, output: 1000, saved: 0, gradient: 1000, "
                          "reads: nothing, passes_gradient: true, in_place: true}\n"
                          "  - {forward: 1, backward: 1, output: 100, saved: 0, gradient: 100}\n",
                          "", false);
    cr_expect(row_of(json_object_get(all, "choices"), "dtr"));
    expect_none_ahead(all);
    json_decref(all);
}
