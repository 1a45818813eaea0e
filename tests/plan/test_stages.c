/* Stages, units and recomputations of a range: by hand on small networks, and as properties of random ones. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"
#include "plan/stages.h"
#include "tests/support/planned_networks.h"
#include "tests/support/small_networks.h"
#include "tests/support/thinning.h"

static const struct footprint dense = {.reads = {READS_X, 0}, .split = true};
static const struct footprint dense_relu = {.reads = {READS_X | READS_Y, 0}, .split = true, .writes_dy = true};
static const struct footprint pool = {.saved = 300, .reads = {0, READS_SAVED}};
static const struct footprint sum = {.y_over_x = true, .passes_gradient = true};

static int node(struct sketch *s, const struct footprint *footprint, int x0, int x1)
{
    return sketch_add(s, &(struct sketch_node){{x0, x1}, 1024, footprint->split, false, *footprint});
}

static char *print(const struct node_ranges *ranges, struct region *region)
{
    char *text = region_array(region, 4096, 1), *end = text;
    for (int i = 0; i < ranges->count; i++)
        end += sprintf(end, "%s%d-%d", i ? " " : "", ranges->range[i].from, ranges->range[i].to);
    return text;
}

static void group(struct graph *graph, const char *name)
{
    cr_assert(graph_group_begin(graph, name) == ST_OK, "%s", status_message());
}

Test(chain, stages_of_networks)
{
    static const char *const expected[] = {
        "0-1 1-2 2-3 3-4 4-5 5-6 6-7 7-8 8-9 9-10 10-11 11-12 12-13 13-14",
        "0-1 1-5 5-9 9-10 10-11 11-12 12-13", /* the blocks, from the value both arms read to their sum */
        ("0-1 1-2 2-3 3-4 4-5 5-6 6-7 7-8 8-9 9-10 10-11 11-12 12-13 13-14 14-15 15-16 16-17 17-18 18-19 19-20 20-21 "
         "21-22 22-23 23-24 24-25"),
        /* the batch, which attention reads, is no activation: it holds no stage together */
        "0-1 1-2 2-3 3-8 8-9 9-14 14-15 15-20 20-21 21-26 26-27 27-28 28-29 29-30 30-31 31-32",
        "0-1 1-8 8-10 10-13 13-14 14-15 15-16 16-17", "0-1 1-2 2-3 3-7 7-8 8-9 9-10 10-11 11-12 12-13",
        "0-1 1-7 7-8 8-11 11-12 12-13 13-14 14-15", "0-1 1-7 7-12 12-18 18-23 23-24 24-25 25-26",
        "0-1 1-2 2-3 3-4 4-7 7-8 8-9 9-10 10-11 11-12 12-13 13-14 14-15"};
    static const char *const units[] = {"0-4 4-9 9-13 13-14",
                                        "0-1 1-5 5-10 10-11 11-12 12-13",
                                        "0-3 3-6 6-10 10-14 14-18 18-24 24-25",
                                        "0-3 3-15 15-27 27-31 31-32",
                                        "0-8 8-14 14-15 15-16 16-17",
                                        "0-1 1-2 2-3 3-7 7-12 12-13",
                                        "0-1 1-7 7-12 12-13 13-14 14-15",
                                        "0-1 1-12 12-23 23-24 24-25 25-26",
                                        "0-3 3-7 7-8 8-9 9-10 10-11 11-12 12-13 13-14 14-15"};
    for (int i = 0; nets[i].name; i++) {
        struct node_ranges found;
        struct graph *graph = net_build(&nets[i], false);
        found = stages_find(graph, graph->region);
        cr_expect(!strcmp(print(&found, graph->region), expected[i]), "stages of %s: %s", nets[i].name,
                  print(&found, graph->region));
        cr_assert(units_find(graph, UNIT_AUTO, graph->region, &found) == ST_OK);
        cr_expect(!strcmp(print(&found, graph->region), units[i]), "units of %s: %s", nets[i].name,
                  print(&found, graph->region));
        cr_assert(units_find(graph, UNIT_STAGE, graph->region, &found) == ST_OK);
        cr_expect(!strcmp(print(&found, graph->region), expected[i]), "units: stage of %s", nets[i].name);
        graph_destroy(graph);
    }
}

Test(chain, units_of_nested_groups)
{
    struct sketch s;
    struct node_ranges units;
    sketch_begin(&s, 1024);
    int v = node(&s, &dense, 0, -1);
    group(s.graph, "empty");
    graph_group_end(s.graph);
    group(s.graph, "outer");
    group(s.graph, "inner");
    v = node(&s, &dense, v, -1);
    graph_group_end(s.graph);
    v = node(&s, &dense, v, -1);
    graph_group_end(s.graph);
    int a = node(&s, &dense, v, -1);
    group(s.graph, "one arm"); /* begins inside a stage */
    int b = node(&s, &dense, v, -1);
    graph_group_end(s.graph);
    sketch_finish(&s, node(&s, &sum, a, b));
    cr_assert(units_find(s.graph, UNIT_GROUP, s.graph->region, &units) == ST_OK);
    cr_expect(!strcmp(print(&units, s.graph->region), "0-1 1-3 3-4 4-5 5-6 6-7"), "%s", print(&units, s.graph->region));
    sketch_end(&s);

    sketch_begin(&s, 1024);
    sketch_finish(&s, node(&s, &dense, 0, -1));
    cr_assert(units_find(s.graph, UNIT_GROUP, s.graph->region, &units) == ST_SPEC);
    cr_assert(units_find(s.graph, UNIT_AUTO, s.graph->region, &units) == ST_OK && units.count == 2);
    sketch_end(&s);
}

/* D dense, R dense with relu (reads y too), P pool with a saved tensors, + sum of the last two values. */
Test(chain, replays_by_hand)
{
    static const struct {
        const char *nodes;
        int from, to;
        bool keep_saved;
        const char *schedule;
    } cases[] = {
        {"DDD", 0, 3, true, "F[0,2) B[0,3)"},        /* y of the last is not read */
        {"DDD", 0, 3, false, "F[0,3) B[0,3)"},       /* as torch does */
        {"DDD", 1, 3, true, "F[1,2) B[1,3)"},        /* x of the first is still there */
        {"DDP", 0, 3, true, "B[2,3) F[0,1) B[0,2)"}, /* y is first read by node 1's backward */
        {"DPD", 0, 3, true, "F[0,2) B[0,3)"},        /* the pool runs again: node 2 reads its y */
        {"DP", 0, 2, true, "B[0,2)"},                /* all that is needed was saved */
        {"RR", 0, 2, true, "F[0,1) B[0,2)"},         /* y of a range's last node is a cut value */
        {"R", 0, 1, true, "B[0,1)"},
        {"R", 0, 1, false, "F[0,1) B[0,1)"},
        {"DDPRP", 0, 5, true, "B[4,5) F[0,4) B[0,4)"}, /* node 3 reads its own y */
        {"DPPD", 1, 4, true, "F[1,3) B[1,4)"},
        {"DDD+D", 1, 5, true, "F[1,4) B[1,5)"},
        {"DDD+P", 1, 5, true, "B[3,5) F[1,2) B[1,3)"}, /* the sum's backward passes dy on and reads neither input */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sketch s;
        int v = 0;
        sketch_begin(&s, 1024);
        for (const char *c = cases[i].nodes; *c; c++)
            v = *c == '+' ? node(&s, &sum, v, v - 1)
                          : node(&s,
                                 *c == 'D'   ? &dense
                                 : *c == 'R' ? &dense_relu
                                             : &pool,
                                 v, -1);
        sketch_finish(&s, v);
        struct schedule schedule = schedule_empty(s.graph->region);
        stages_recompute(s.network, cases[i].from, cases[i].to, cases[i].keep_saved, &schedule);
        const char *text = schedule_print(&schedule, s.graph->region);
        cr_expect(!strcmp(text, cases[i].schedule), "%s [%d,%d): %s, expected %s", cases[i].nodes, cases[i].from,
                  cases[i].to, text, cases[i].schedule);
        sketch_end(&s);
    }
}

/* Whether only node's own value (and the batch) is read after it: the definition, tried for every node. */
static bool is_cut(const struct graph *graph, int node)
{
    for (int i = node + 1; i < graph->nodes; i++)
        for (int k = 0; k < graph->node[i].layer->inputs; k++) {
            int value = graph->node[i].inputs[k];
            if (value > 0 && value <= node) return false;
        }
    return true;
}

Test(chain, stages_of_random_networks)
{
    for (uint32_t seed = 0; seed < 1000; seed += THINNING) {
        struct source source = {seed, 2};
        struct sketch s;
        struct node_ranges stages;
        sketch_random(&s, &source, 1 + (int)draw_below(&source, 20));
        stages = stages_find(s.graph, s.graph->region);
        int from = 0, stage = 0;
        for (int i = 0; i < s.graph->nodes; i++) {
            if (!is_cut(s.graph, i)) continue;
            cr_assert(stage < stages.count && stages.range[stage].from == from && stages.range[stage].to == i + 1,
                      "seed %u: stage %d is not [%d,%d)", seed, stage, from, i + 1);
            from = i + 1;
            stage++;
        }
        cr_assert(stage == stages.count && from == s.graph->nodes, "seed %u", seed);
        sketch_end(&s);
    }
}

/* Reads of value by op: neither a cut's value nor made again? */
static bool reads_kept(const struct graph *graph, const bool *recomputed, int value, int buffer)
{
    return buffer >= 0 && value > 0 && !recomputed[value - 1] && !is_cut(graph, value - 1);
}

/* After the first forward nothing reads a value from inside a stage that was not made again. */
static bool keeps_cuts_alone(const struct plan *plan)
{
    const struct graph *graph = plan->network->graph;
    bool recomputed[SKETCH_NODES_MAX] = {false};
    for (int i = graph->nodes; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        const struct node *n = &graph->node[op->node];
        if (op->kind != OP_FORWARD && op->kind != OP_BACKWARD) continue;
        for (int k = 0; k < n->layer->inputs; k++)
            if (reads_kept(graph, recomputed, n->inputs[k], op->x[k])) return false;
        if (op->kind == OP_FORWARD) {
            if (recomputed[op->node]) return false; /* twice */
            recomputed[op->node] = true;
        } else if (reads_kept(graph, recomputed, n->output, op->y)) {
            return false;
        }
    }
    return true;
}

/* With every stage recomputed: no recomputation is dead, none is made twice, and only the cuts' values are kept. */
Test(chain, replays_of_random_networks)
{
    for (uint32_t seed = 0; seed < 2000; seed += THINNING) {
        struct source source = {seed, 3};
        struct sketch s;
        struct node_ranges stages;
        sketch_random(&s, &source, 1 + (int)draw_below(&source, 20));
        stages = stages_find(s.graph, s.graph->region);
        struct schedule schedule = schedule_empty(s.graph->region);
        schedule_append(&schedule, STEP_FORWARD, 0, s.graph->nodes);
        for (int i = stages.count - 1; i >= 0; i--)
            stages_recompute(s.network, stages.range[i].from, stages.range[i].to, seed % 2, &schedule);
        struct plan_options options = {.lower = {.drop_dead = true}};
        struct plan *plan = plan_build(s.network, &schedule, &options);
        cr_assert(seed % 2 == 0 || plan->lowered.dropped == 0, "seed %u: %d dead recomputations in %s", seed,
                  plan->lowered.dropped, plan->schedule);
        cr_assert(keeps_cuts_alone(plan), "seed %u: %s", seed, plan->schedule);
        plan_destroy(plan);
        sketch_end(&s);
    }
}
