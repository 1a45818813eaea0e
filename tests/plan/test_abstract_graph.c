/* Abstract chains and graphs: their live bytes at every op, counted by hand, and nodes that are refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "backend/abstract_graph.h"
#include "plan/plan.h"
#include "tests/support/random_chains.h"
#include "tests/support/simulated.h"

static const struct abstract_stage chain[] = {
    {.forward = 1, .backward = 2, .output = 10, .saved = 3, .gradient = 7, .forward_scratch = 2, .backward_scratch = 5},
    {.forward = 3,
     .backward = 5,
     .output = 20,
     .saved = 4,
     .gradient = 6,
     .forward_scratch = 1,
     .backward_scratch = 8,
     .split = true},
    {.forward = 7, .backward = 11, .output = 30, .saved = 5, .gradient = 9, .backward_scratch = 11},
};

static void check(struct network *network, const char *text, int ops, const size_t *live, double time)
{
    struct schedule schedule;
    cr_assert(schedule_parse(text, network->graph->region, &schedule) == ST_OK);
    struct plan_options options = {.lower = {.drop_dead = true}, .state_per_parameter = 2};
    struct plan *plan = plan_build(network, &schedule, &options);
    cr_assert(plan->lowered.ops == ops, "%s: %d ops", text, plan->lowered.ops);
    for (int i = 0; i < ops; i++) cr_assert(plan->live[i] == live[i], "%s: op %d has %zu live", text, i, plan->live[i]);
    cr_assert(plan_static(plan) == 0);
    cr_assert(plan->time == time);
    plan_destroy(plan);
}

Test(abstract_graph, live_bytes_of_a_chain_as_counted_by_hand)
{
    struct network *network;
    int at;
    cr_assert(chain_create(chain, 3, &at, &network) == ST_OK, "%s", status_message());
    check(network, "F[0,3) B[0,3)", 7,
          (const size_t[]){10 + 3 + 2, 10 + 3 + 20 + 4 + 1, 10 + 3 + 20 + 4 + 30 + 5, 10 + 3 + 20 + 4 + 5 + 9 + 6 + 11,
                           10 + 3 + 4 + 6 + 8, 3 + 4 + 6 + 7 + 8, 3 + 7 + 5},
          29);
    check(network, "F[0,3) B[2,3) F[0,1) B[0,2)", 8,
          (const size_t[]){10 + 2, 10 + 20 + 4 + 1, 20 + 4 + 30 + 5, 20 + 4 + 5 + 9 + 6 + 11, 4 + 6 + 10 + 3 + 2,
                           10 + 3 + 4 + 6 + 8, 3 + 4 + 6 + 7 + 8, 3 + 7 + 5},
          30);
    abstract_destroy(network);
}

/* A mask of the first node, without a backward; an activation that multiplies by it; a shortcut past that. */
static const struct abstract_node graph[] = {
    {{.name = "a", .forward = 1, .backward = 2, .output = 10, .saved = 3, .gradient = 7}, 1, {0}, READS_SAVED},
    {{.name = "mask", .forward = 3, .output = 4}, 1, {1}, .once = 0.5, .forward_only = true},
    {{.name = "b", .forward = 5, .backward = 7, .output = 10, .gradient = 7}, 2, {1, 2}, READS_Y, .in_place = true},
    {{.name = "c", .forward = 11, .output = 8, .gradient = 7}, 2, {3, 1}, .passes_gradient = true},
    {{.name = "loss", .forward = 13, .backward = 17, .output = 5, .gradient = 2}, 1, {4}, READS_X},
};

Test(abstract_graph, live_bytes_of_a_graph_as_counted_by_hand)
{
    struct abstract_node node[5];
    struct network *network;
    int at;
    cr_assert(abstract_graph_create(graph, 5, &at, &network) == ST_OK, "%s", status_message());
    cr_expect(graph_parameter_bytes(network->graph) == 0);
    check(network, "F[0,5) B[0,5)", 10,
          (const size_t[]){10 + 3, 10 + 3 + 4, 10 + 3 + 4 + 10, 10 + 3 + 10 + 8, 3 + 10 + 8 + 5, 3 + 10 + 8 + 2 + 7,
                           3 + 10 + 7, 3 + 10 + 7 + 7, 3 + 7 + 7, 3 + 7},
          59.5);
    check(network, "F[0,5) B[3,5) F[0,3) B[0,3)", 13,
          (const size_t[]){10, 10 + 4, 10 + 4 + 10, 10 + 10 + 8, 8 + 5, 8 + 2 + 7, 7, 7 + 10 + 3, 7 + 10 + 3 + 4,
                           7 + 3 + 4 + 10, 7 + 3 + 10 + 7, 3 + 7 + 7, 3 + 7},
          59.5 + 1 + 3 + 5);
    abstract_destroy(network);
    memcpy(node, graph, sizeof node);
    node[3].input[1] = 3; /* twice the same: the activation takes a's place, and c counts it once */
    cr_assert(abstract_graph_create(node, 5, &at, &network) == ST_OK, "%s", status_message());
    check(network, "F[0,5) B[0,5)", 10,
          (const size_t[]){10 + 3, 10 + 3 + 4, 10 + 3 + 4, 3 + 10 + 8, 3 + 10 + 8 + 5, 3 + 10 + 8 + 2 + 7, 3 + 10 + 7,
                           3 + 10 + 7, 3 + 10 + 7 + 7, 3 + 7},
          59.5);
    abstract_destroy(network);
}

static const struct abstract_stage limits = {.forward = 9,
                                             .backward = 9,
                                             .output = 9,
                                             .saved = 9,
                                             .gradient = 4,
                                             .forward_scratch = 9,
                                             .backward_scratch = 9,
                                             .split = true};

/* The checker knows neither the nodes' marks nor the code that plans by them. */
Test(abstract_graph, random_plans_pass_the_checker)
{
    struct source source = {.seed = 20};
    int shortcuts = 0, masks = 0, passed = 0;
    for (int round = 0; round < 500; round++) {
        struct abstract_node node[20];
        const int nodes = 2 + (int)draw_below(&source, 19), cut = 1 + (int)draw_below(&source, (uint32_t)nodes - 1);
        graph_draw(&source, &limits, nodes, node);
        for (int i = 0; i < nodes; i++) {
            shortcuts += node[i].inputs == 2 && node[i].input[1] < i;
            masks += node[i].forward_only;
            passed += node[i].passes_gradient;
        }
        struct network *network = graph_network(node, nodes);
        struct schedule schedule = schedule_empty(network->graph->region);
        schedule_append(&schedule, STEP_FORWARD, 0, nodes);
        schedule_append(&schedule, STEP_BACKWARD, cut, nodes);
        schedule_append(&schedule, STEP_FORWARD, 0, cut);
        schedule_append(&schedule, STEP_BACKWARD, 0, cut);
        const struct plan_options options = {.lower = {.drop_dead = round % 2}};
        struct plan *plan = plan_build(network, &schedule, &options);
        cr_assert(simulate_plan(plan) == ST_OK, "graph %d: %s", round, status_message());
        plan_destroy(plan);
        abstract_destroy(network);
    }
    cr_expect(shortcuts > 500 && masks > 100 && passed > 100, "%d, %d, %d", shortcuts, masks, passed);
}

Test(abstract_graph, impossible_nodes_are_refused)
{
    static const struct {
        int at;
        struct abstract_node node;
        const char *says;
    } bad[] = {
        {2, {.inputs = 0}, "0 inputs; expected 1 to 2"},
        {2, {.inputs = 3}, "3 inputs; expected 1 to 2"},
        {2, {.inputs = 1, .input = {3}}, "reads value 3; expected one of 0 to 2"},
        {2, {.inputs = 1, .input = {-1}}, "reads value -1"},
        {2, {.inputs = 1, .input = {1}, .once = NAN}, "times"},
        {2, {.inputs = 1, .input = {1}, .parameters = -4}, "sizes"},
        {2, {.inputs = 1, .input = {1}, .parameters = (INT64_C(1) << 57)}, "sizes"},
        {2, {.inputs = 1, .input = {1}, .forward_only = true, .stage = {.backward = 1}}, "has no backward"},
        {2, {.inputs = 1, .input = {1}, .forward_only = true, .stage = {.gradient = 1}}, "has no backward"},
        {2, {.inputs = 1, .input = {1}, .passes_gradient = true, .stage = {.gradient = 8}}, "as one of 7"},
        {1, {.inputs = 2, .input = {0, 1}}, "", /* where nothing is wrong */},
        {1, {{.name = "a"}, 1, {0}}, "two layers are called 'a'"},
        {0, {{.name = "a"}, 1, {0}, .forward_only = true}, ""},
        {2, {.inputs = 1, .input = {1}, .forward_only = true}, "node 1: no gradient reaches it"},
        {3,
         {.inputs = 1, .input = {1}, .passes_gradient = true, .stage = {.gradient = 7}},
         "node 3: no node reads its output"},
        {4, {.inputs = 1, .input = {4}, .forward_only = true}, "the last one has no backward"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct abstract_node node[5];
        struct network *network;
        int at;
        memcpy(node, graph, sizeof node);
        node[bad[i].at] = bad[i].node;
        if (i == 13) node[3].inputs = 1; /* else the shortcut reads the first node */
        const enum status status = abstract_graph_create(node, 5, &at, &network);
        cr_expect((status == ST_OK) == !*bad[i].says, "case %zu: %s", i, status_message());
        if (status == ST_OK)
            abstract_destroy(network);
        else
            cr_expect(strstr(status_message(), bad[i].says), "case %zu: %s", i, status_message());
    }
}

Test(abstract_graph, impossible_stages_are_refused)
{
    static const struct {
        struct abstract_stage stage;
        const char *says;
    } bad[] = {{{.output = -1}, "sizes"},
               {{.saved = -5}, "sizes"},
               {{.gradient = INT64_MIN}, "sizes"},
               {{.forward_scratch = INT64_MAX}, "sizes"},
               {{.backward_scratch = (INT64_C(1) << 58) + 1}, "sizes"},
               {{.saved = INT64_C(1) << 57, .gradient = (INT64_C(1) << 57) + 1}, "sizes"},
               {{.forward = -1}, "times"},
               {{.backward = NAN}, "times"},
               {{.forward = INFINITY}, "times"},
               {{.forward = 6e29, .backward = 5e29}, "times of all nodes up to it add up to 1.1e+30; expected"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct abstract_stage stage[] = {chain[0], bad[i].stage};
        struct network *network;
        int at;
        cr_assert(chain_create(stage, 2, &at, &network) == ST_SPEC && at == 1);
        cr_assert(strstr(status_message(), "node 2") && strstr(status_message(), bad[i].says), "%s", status_message());
    }
    struct network *network;
    int at;
    cr_assert(chain_create(chain, 0, &at, &network) == ST_SPEC);
}
