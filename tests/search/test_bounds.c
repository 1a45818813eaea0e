/* Lower bounds: never above what exhaustive search finds, and met where theory says so. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "plan/plan.h"
#include "policies/policy.h"
#include "search/bounds.h"
#include "tests/support/exhaustive_search.h"
#include "tests/support/policy_cases.h"
#include "tests/support/policy_text.h"
#include "tests/support/random_chains.h"
#include "tests/support/sliced_schedules.h"
#include "tests/support/small_training.h"
#include "tests/support/thinning.h"

static struct bounds find(const struct abstract_stage *stage, int stages, size_t budget)
{
    struct network *network = chain_network(stage, stages);
    const struct bounds bounds = bounds_find(network, budget);
    abstract_destroy(network);
    return bounds;
}

static const struct abstract_stage limits = {.forward = 13,
                                             .backward = 20,
                                             .output = 40,
                                             .saved = 60,
                                             .gradient = 40,
                                             .forward_scratch = 9,
                                             .backward_scratch = 9,
                                             .split = true};

Test(bounds, hold_for_every_schedule_of_random_chains)
{
    struct source source = {.seed = 5};
    int budgets = 0, tight = 0;
    for (int c = 0; c < 150; c += THINNING) {
        struct abstract_stage stage[6];
        int stages = 1 + c % 6;
        chain_draw(&source, &limits, stages, stage);
        for (int i = 1; i < stages && c % 2; i++) stage[i] = stage[0]; /* uniform: the binomial bound counts */
        for (int64_t budget = 10; budget < 300; budget += 7) {
            int64_t least = exhaustive_time(stage, stages, budget, ANY);
            struct bounds bounds = find(stage, stages, (size_t)budget);
            cr_assert(least < 0 || (size_t)budget >= bounds.memory, "%zu with %lld", bounds.memory, (long long)budget);
            if (least < 0) continue;
            cr_assert((double)least >= bounds.knapsack, "chain %d, %lld bytes: %lld, knapsack %g", c, (long long)budget,
                      (long long)least, bounds.knapsack);
            cr_assert((double)least >= bounds.binomial, "chain %d, %lld bytes: %lld, binomial %g", c, (long long)budget,
                      (long long)least, bounds.binomial);
            budgets++;
            tight += (double)least == bounds.best;
        }
    }
    printf("lower bounds: met at %d of %d budgets\n", tight, budgets);
}

/* What the backward of stage i, or the half that reads its input's value or makes its gradient, has live at least. */
static int64_t op_bytes(const struct abstract_stage *stage, int i, bool reads, bool makes)
{
    int64_t bytes = stage[i].saved + stage[i].gradient + stage[i].backward_scratch;
    if (i > 0 && reads) bytes += stage[i - 1].output;
    if (i > 0 && makes) bytes += stage[i - 1].gradient;
    return bytes;
}

/* The least time of the first `stages` stages' forwards that must run again, of all sets of those whose saved tensors,
 * and values but of the last `live` of them, are kept in room bytes meanwhile. */
static double forced(const struct abstract_stage *stage, int stages, int live, int64_t room)
{
    double least = INFINITY;
    for (unsigned kept = 0; kept < 1U << stages; kept++) {
        int64_t bytes = 0;
        double time = 0;
        for (int j = 0; j < stages; j++) {
            const int64_t needed = stage[j].saved + (j + live < stages ? stage[j].output : 0);
            if (kept >> j & 1)
                bytes += needed;
            else if (needed)
                time += stage[j].forward;
        }
        if (bytes <= room) least = fmin(least, time);
    }
    return least;
}

struct exact {
    int64_t memory;
    double knapsack;
};

static struct exact exact_bounds(const struct abstract_stage *stage, int stages, int64_t budget)
{
    struct exact e = {0, 0};
    double time = 0;
    for (int i = 0; i < stages; i++) {
        const bool halves = stage[i].split && i > 0;
        const int64_t forward = stage[i].forward_scratch + stage[i].output + (i ? stage[i - 1].output : 0);
        if (stage[i].saved + forward > e.memory) e.memory = stage[i].saved + forward;
        if (forward <= budget) e.knapsack = fmax(e.knapsack, forced(stage, i + 1, 2, budget - forward));
        for (int half = 0; half < 1 + halves; half++) {
            const int64_t bytes = op_bytes(stage, i, !half, half || !halves);
            if (bytes > e.memory) e.memory = bytes;
            if (bytes <= budget) e.knapsack = fmax(e.knapsack, forced(stage, i, 1, budget - bytes));
        }
        time += stage[i].forward + stage[i].backward;
    }
    e.knapsack += time;
    return e;
}

/* No less than can be said: a bound that is too low certifies gaps that are not there. */
Test(bounds, equal_those_of_an_exhaustive_search)
{
    struct source source = {.seed = 6};
    int forcing = 0;
    for (int c = 0; c < 200; c += THINNING) {
        struct abstract_stage stage[8];
        const int stages = 1 + c % 8;
        chain_draw(&source, &limits, stages, stage);
        for (int64_t budget = 10; budget < 400; budget += 7) {
            const struct bounds bounds = find(stage, stages, (size_t)budget);
            const struct exact e = exact_bounds(stage, stages, budget);
            cr_assert((int64_t)bounds.memory == e.memory, "chain %d: %zu bytes, not %lld", c, bounds.memory,
                      (long long)e.memory);
            cr_assert(bounds.knapsack == e.knapsack, "chain %d, %lld bytes: %g, not %g", c, (long long)budget,
                      bounds.knapsack, e.knapsack);
            cr_assert(bounds.best == fmax(bounds.closure, fmax(bounds.knapsack, bounds.binomial)));
            forcing += e.knapsack > bounds.floor;
        }
    }
    cr_assert(forcing > 1000 / THINNING, "%d", forcing);
}

/* How far above the bounds at its own live peak a policy's plan is, in percent: never below; INFINITY: it refuses. */
static double gap_of(const struct network *network, const char *policy, const char *budget)
{
    char settings[64];
    snprintf(settings, sizeof settings, "budget=%s", budget ? budget : "least");
    struct plan *plan = policy_text_try(network, policy, settings, NULL);
    if (!plan) return INFINITY;
    const struct bounds bounds = bounds_find(network, plan->live_peak);
    cr_assert(plan->live_peak >= bounds.memory && plan->time >= bounds.best * (1 - 1e-12), "%s %s: %g, bound %g",
              policy, settings, plan->time, bounds.best);
    double gap = bounds_gap(&bounds, plan->time);
    plan_destroy(plan);
    return gap;
}

Test(bounds, hold_for_every_plan_of_networks)
{
    static const char *const budgets[] = {"least", "75%", "80%", "85%", "90%", "95%", "100%"};
    double least = INFINITY;
    for (const struct net *net = nets; net->name; net++)
        for (int save = RELU_OUTPUT; save <= RELU_BITS; save++) {
            struct bound_net b = net_bind(net, (enum relu_save)save);
            cr_assert(gap_of(b.network, "store_all", NULL) == 0);
            (void)gap_of(b.network, "every", NULL);
            (void)gap_of(b.network, "sqrt", NULL);
            for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++)
                least = fmin(least, gap_of(b.network, "optimal", budgets[i]));
            net_release(&b);
        }
    cr_assert(least == 0);
}

/* Stages that save nothing: all that costs is to make values again. A forward needs two values at once where the bound
 * counts one, so the optimum lies between the bounds for as many values and for one less. */
Test(bounds, binomial_encloses_uniform_chains)
{
    for (int stages = 2; stages <= EXHAUSTIVE_STAGES_MAX; stages++)
        for (int values = 2; values < stages; values++) {
            struct abstract_stage stage[EXHAUSTIVE_STAGES_MAX];
            for (int i = 0; i < stages; i++) stage[i] = (struct abstract_stage){.forward = 1, .output = 1};
            int64_t least = exhaustive_time(stage, stages, values, ANY);
            struct bounds bounds = find(stage, stages, (size_t)values);
            double most = bounds_advances(stages, values - 1) + 1;
            cr_assert(bounds.binomial == bounds_advances(stages, values) + 1, "%g", bounds.binomial);
            cr_assert((double)least >= bounds.binomial && (double)least <= most, "%d stages, %d values: %lld, %g..%g",
                      stages, values, (long long)least, bounds.binomial, most);
        }
}

/* Tapes of which two never fit: what costs is Griewank and Walther's advances, and a forward a stage for its tape. The
 * slots of the bound are those beside a backward; in its forward a stage's output takes one of them. */
Test(bounds, binomial_counts_slots_beside_the_saved_tensors)
{
    enum { TAPE = 100 };
    double gap = 0;
    int chains = 0;
    for (int stages = 2; stages <= EXHAUSTIVE_STAGES_MAX; stages++)
        for (int slots = 1; slots < stages; slots++, chains++) {
            struct abstract_stage stage[EXHAUSTIVE_STAGES_MAX];
            for (int i = 0; i < stages; i++)
                stage[i] = (struct abstract_stage){.forward = 1, .output = 1, .saved = TAPE};
            const int64_t budget = TAPE + slots, least = exhaustive_time(stage, stages, budget, ANY);
            struct bounds bounds = find(stage, stages, (size_t)budget);
            cr_assert(bounds.binomial == stages + bounds_advances(stages, slots), "%d stages, %d slots: %g", stages,
                      slots, bounds.binomial);
            cr_assert(least < 0 || (double)least >= bounds.binomial, "%d stages, %d slots: %lld, bound %g", stages,
                      slots, (long long)least, bounds.binomial);
            if (least > 0) gap += (double)least / bounds.binomial - 1;
        }
    printf("binomial bound of chains with tapes: %.1f %% below the least time on average\n", 100 * gap / chains);
}

/* Chains of equal stages of any kind, and of stages that differ a little: the bound is at most the least time. */
Test(bounds, binomial_is_at_most_the_least_time, .timeout = 600)
{
    static const struct abstract_stage narrow = {.forward = 4,
                                                 .backward = 3,
                                                 .output = 5,
                                                 .saved = 12,
                                                 .gradient = 5,
                                                 .forward_scratch = 4,
                                                 .backward_scratch = 4,
                                                 .split = true};
    struct source source = {.seed = 41};
    int above = 0;
    for (int c = 0; c < 120; c += THINNING) {
        struct abstract_stage stage[EXHAUSTIVE_STAGES_MAX], kind[2];
        const int stages = 3 + c % (EXHAUSTIVE_STAGES_MAX - 2);
        chain_draw(&source, &narrow, 2, kind);
        for (int i = 0; i < 2; i++) kind[i].forward++, kind[i].output++;
        for (int i = 0; i < stages; i++) stage[i] = kind[c % 2 && !draw_below(&source, 3)];
        for (int b = 0; b < 12; b++) {
            const int64_t budget = 2 + draw_below(&source, 60);
            const int64_t least = exhaustive_time(stage, stages, budget, ANY);
            if (least < 0) continue;
            const struct bounds bounds = find(stage, stages, (size_t)budget);
            cr_assert((double)least >= bounds.best, "chain %d, %lld bytes: %lld, knapsack %g, binomial %g", c,
                      (long long)budget, (long long)least, bounds.knapsack, bounds.binomial);
            above += bounds.binomial > bounds.knapsack;
        }
    }
    cr_assert(above > 0, "the knapsack is never below");
}

/* Table of Griewank and Walther's closed form. */
Test(bounds, advances_match_the_published_table)
{
    static const struct {
        int64_t steps, slots;
        double advances;
    } known[] = {{10, 3, 15},      {64, 2, 420}, {64, 16, 110}, {100, 10, 222}, {1000, 10, 3636},
                 {1000, 32, 2405}, {7, 1, 21},   {1, 1, 0},     {5, 5, 4}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        cr_assert(bounds_advances(known[i].steps, known[i].slots) == known[i].advances, "%g",
                  bounds_advances(known[i].steps, known[i].slots));
}

/* ---- slices ---- */

static struct {
    int plans, of_slice, of_batch, met; /* above the floor; met within 1 % */
} sliced;

static void check_slices(const struct network *network, const struct schedule *schedule, const char *what)
{
    static const struct plan_options options = {.lower = {.drop_dead = true}};
    struct plan *plan = plan_build(network, schedule, &options);
    const struct bounds bounds = bounds_find(network, plan->live_peak);
    cr_assert(plan->live_peak >= bounds.memory && plan->time >= bounds.best * (1 - 1e-12),
              "%s: %zu bytes, %g, bound %g", what, plan->live_peak, plan->time, bounds.best);
    const bool above = bounds.best > bounds.floor * (1 + 1e-9);
    sliced.plans++;
    sliced.of_slice += above && bounds.of_slice;
    sliced.of_batch += above && !bounds.of_slice;
    sliced.met += above && bounds_gap(&bounds, plan->time) < 1;
    plan_destroy(plan);
}

/* Of every policy and random ones, and of `optimal` at every budget. */
Test(bounds, hold_for_schedules_of_slices)
{
    static const struct net *const small[] = {&fronted_net, &nets[0], &nets[2]};
    sliced_schedules_visit(check_slices);
    for (int i = 0; i < 3; i++) {
        struct net net = *small[i];
        struct source source = {.seed = 2};
        net.batch = 8;
        struct graph *graph = net_build(&net, RELU_BITS);
        sliced_graph(graph, 4, i ? 6 : 0, &source);
        struct bench bench = set_up_graph(&net, "ref", graph);
        for (int percent = 5; percent <= 100; percent += 5)
            (void)gap_of(bench.network, "optimal", region_text(graph->region, "%d%%", percent));
        tear_down(&bench);
    }
    printf("slices: %d plans, forced recomputations of one slice alone in %d, of the batch in %d; within 1 %%: %d\n",
           sliced.plans, sliced.of_slice, sliced.of_batch, sliced.met);
    cr_assert(sliced.of_slice > 0 && sliced.of_batch > 0 && sliced.met > 0);
}

/* Of a network without whole nodes, that has a slice as its batch, times the slices. */
Test(bounds, of_slices_are_those_of_one_alone)
{
    struct net net = nets[0];
    net.batch = 6;
    struct graph *graph = net_build(&net, RELU_OUTPUT);
    struct source source = {.seed = 1};
    sliced_graph(graph, 3, 0, &source);
    struct bench all = set_up_graph(&net, "ref", graph);
    net.batch = 2;
    struct bound_net one = net_bind(&net, RELU_OUTPUT);
    for (size_t budget = bounds_find(one.network, 1).memory; budget < (1 << 20); budget += budget / 8) {
        const struct bounds a = bounds_find(one.network, budget), b = bounds_find(all.network, budget);
        cr_assert(fabs(3 * a.best - b.best) <= 1e-9 * b.best, "%zu bytes: 3 times %g, not %g", budget, a.best, b.best);
    }
    net_release(&one);
    tear_down(&all);
}
