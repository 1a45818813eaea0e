/* The front of time against memory: against exhaustive search, against lowering, against every other policy. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "exhaustive.h"
#include "optimum.h"
#include "plan.h"
#include "sketch.h"

enum { CHAINS = 200 };

static int64_t size(struct source *source, uint32_t below)
{
    return draw_below(source, 4) ? (int64_t)draw_below(source, below) : 0;
}

/* Sizes and times in a narrow range, so that ties and near misses are common. */
static void random_chain(struct source *source, int stages, struct abstract_stage *stage)
{
    for (int i = 0; i < stages; i++)
        stage[i] = (struct abstract_stage){.forward = draw_below(source, 12),
                                           .backward = draw_below(source, 20),
                                           .output = draw_below(source, 40),
                                           .saved = size(source, 60),
                                           .gradient = draw_below(source, 40),
                                           .forward_scratch = size(source, 15),
                                           .backward_scratch = size(source, 15),
                                           .split = draw_below(source, 2)};
}

static struct optimum *solve(const struct abstract_stage *stage, int stages)
{
    struct network *network;
    struct optimum *optimum;
    cr_assert(abstract_create(stage, stages, &network) == ST_OK, "%s", status_message());
    cr_assert(optimum_solve(network, RNG_COUNTER, &optimum) == ST_OK, "%s", status_message());
    return optimum;
}

static void done(struct optimum *optimum)
{
    struct network *network = (struct network *)optimum->network;
    optimum_destroy(optimum);
    abstract_destroy(network);
}

/* Times are constant between two steps of the front, so its steps and the bytes before them are all budgets. */
Test(optimum, is_the_persistent_optimum_of_every_chain_at_every_budget)
{
    struct source source = {.seed = 31};
    int budgets = 0, slower = 0;
    double worst = 0, worst_memory = 0;
    for (int c = 0; c < CHAINS; c++) {
        struct abstract_stage stage[EXHAUSTIVE_STAGES_MAX];
        int stages = 1 + c % EXHAUSTIVE_STAGES_MAX;
        random_chain(&source, stages, stage);
        struct optimum *o = solve(stage, stages);
        for (int i = 0; i < o->front.count; i++) {
            const struct point *p = &o->front.point[i];
            int64_t at = exhaustive_time(stage, stages, (int64_t)p->peak, true);
            cr_assert((double)at == p->time, "chain %d: %lld with %zu bytes, found %g", c, (long long)at, p->peak,
                      p->time);
            int64_t less = exhaustive_time(stage, stages, (int64_t)p->peak - 1, true);
            double before = i ? o->front.point[i - 1].time : -1;
            cr_assert((double)less == before, "chain %d: %lld with %zu bytes less 1, found %g", c, (long long)less,
                      p->peak, before);
            int64_t free_time = exhaustive_time(stage, stages, (int64_t)p->peak, false);
            cr_assert(free_time >= 0 && free_time <= at);
            budgets++;
            slower += free_time < at;
            if (free_time > 0) worst = fmax(worst, (double)(at - free_time) / (double)free_time);
        }
        size_t least = o->front.point[0].peak, peak = least;
        for (size_t step = (size_t)1 << 8; step; step /= 2)
            while (peak > step && exhaustive_time(stage, stages, (int64_t)(peak - step), false) >= 0) peak -= step;
        if (peak) worst_memory = fmax(worst_memory, (double)(least - peak) / (double)peak);
        done(o);
    }
    printf(
        "%d chains, %d steps: a schedule that is not persistent is faster at %d, by at most %.2f %%; its least memory "
        "is lower by at most %.2f %%\n",
        CHAINS, budgets, slower, 100 * worst, 100 * worst_memory);
}
