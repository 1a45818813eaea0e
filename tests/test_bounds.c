/* Lower bounds: never above what exhaustive search finds, and met where theory says so. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "bounds.h"
#include "exhaustive.h"
#include "sketch.h"

static struct bounds find(const struct abstract_stage *stage, int stages, size_t budget)
{
    struct network *network;
    struct bounds bounds;
    cr_assert(abstract_create(stage, stages, &network) == ST_OK, "%s", status_message());
    cr_assert(bounds_find(network, budget, &bounds) == ST_OK, "%s", status_message());
    abstract_destroy(network);
    return bounds;
}

static struct abstract_stage random_stage(struct source *source)
{
    return (struct abstract_stage){.forward = 1 + draw_below(source, 12),
                                   .backward = draw_below(source, 20),
                                   .output = draw_below(source, 40),
                                   .saved = draw_below(source, 2) ? draw_below(source, 60) : 0,
                                   .gradient = draw_below(source, 40),
                                   .forward_scratch = draw_below(source, 9),
                                   .backward_scratch = draw_below(source, 9),
                                   .split = draw_below(source, 2)};
}

Test(bounds, below_every_schedule_of_random_chains)
{
    struct source source = {.seed = 5};
    int budgets = 0, tight = 0;
    for (int c = 0; c < 150; c++) {
        struct abstract_stage stage[6];
        int stages = 1 + c % 6;
        for (int i = 0; i < stages; i++) stage[i] = random_stage(&source);
        for (int i = 1; i < stages && c % 2; i++) stage[i] = stage[0]; /* uniform: the binomial bound counts */
        for (int64_t budget = 10; budget < 300; budget += 7) {
            int64_t least = exhaustive_time(stage, stages, budget, false);
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

/* Stages that save nothing: all that costs is to make values again. A forward needs two values at once where the bound
 * counts one, so the optimum lies between the bounds for as many values and for one less. */
Test(bounds, binomial_encloses_uniform_chains)
{
    for (int stages = 2; stages <= EXHAUSTIVE_STAGES_MAX; stages++)
        for (int values = 2; values < stages; values++) {
            struct abstract_stage stage[EXHAUSTIVE_STAGES_MAX];
            for (int i = 0; i < stages; i++) stage[i] = (struct abstract_stage){.forward = 1, .output = 1};
            int64_t least = exhaustive_time(stage, stages, values, false);
            struct bounds bounds = find(stage, stages, (size_t)values);
            double most = bounds_advances(stages, values - 1) + 1;
            cr_assert((double)least >= bounds.binomial && (double)least <= most, "%d stages, %d values: %lld, %g..%g",
                      stages, values, (long long)least, bounds.binomial, most);
        }
}

/* Table of Griewank and Walther's closed form. */
Test(bounds, advances)
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
