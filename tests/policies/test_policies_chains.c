/* Policies with an algorithm of their own, on abstract chains: revolve's advances against Griewank and Walther's table,
 * chen's segments against the division as the paper has it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"
#include "policies/policy.h"
#include "search/bounds.h"
#include "tests/support/policy_text.h"
#include "tests/support/random_chains.h"
#include "tests/support/simulated.h"
#include "tests/support/thinning.h"

enum { STAGES_MAX = 1000 };

static struct network *uniform(struct abstract_stage one, int stages)
{
    static struct abstract_stage stage[STAGES_MAX];
    for (int i = 0; i < stages; i++) stage[i] = one;
    return chain_network(stage, stages);
}

static int count_forwards(const struct plan *plan)
{
    int forwards = 0;
    for (int i = 0; i < plan->lowered.ops; i++) forwards += plan->lowered.op[i].kind == OP_FORWARD;
    return forwards;
}

/* What is recomputed for the next forward alone is read, though it lies in no buffer. */
Test(policies_chains, outputs_of_no_bytes_are_read_too)
{
    static const char *const names[] = {"every", "sqrt", "revolve", "optimal"};
    static const char settings[] = "slots=2 keep_last=false keep_saved=false";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct network *network = uniform((struct abstract_stage){.forward = 1, .saved = 1}, 9);
        struct plan *plan = policy_text_plan(network, names[i], settings, NULL);
        cr_expect(count_forwards(plan) > 9, "%s recomputes", names[i]);
        cr_expect(simulate_plan(plan) == ST_OK, "%s: %s", names[i], status_message());
        plan_destroy(plan);
        abstract_destroy(network);
    }
}

/* Multiplied by a power of two, beyond what integers of a double are exact for, times give the same schedules, which
 * take as much more time. */
Test(policies_chains, times_of_any_size_give_the_same_plans)
{
    enum { STAGES = 9, POWER = 60 };
    static const struct {
        const char *policy, *settings;
    } cases[] = {{"store_all", ""},
                 {"every", ""},
                 {"sqrt", ""},
                 {"chen", ""},
                 {"segments", "segments=3"},
                 {"revolve", "slots=2"},
                 {"dtr", "budget=least"},
                 {"dtr", "budget=60%"},
                 {"optimal", "budget=least"},
                 {"optimal", "budget=60%"}};
    struct source source = {.seed = 53};
    for (int turn = 0; turn < 20; turn++) {
        struct abstract_stage stage[STAGES];
        chain_draw(&source, &narrow_limits, STAGES, stage);
        for (int i = 0; i < STAGES; i++) stage[i].forward = ldexp(stage[i].forward, -3); /* fractions, too */
        struct network *small = chain_network(stage, STAGES);
        for (int i = 0; i < STAGES; i++)
            stage[i].forward = ldexp(stage[i].forward, POWER), stage[i].backward = ldexp(stage[i].backward, POWER);
        struct network *large = chain_network(stage, STAGES);
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            struct plan *a = policy_text_try(small, cases[k].policy, cases[k].settings, NULL);
            struct plan *b = policy_text_try(large, cases[k].policy, cases[k].settings, NULL);
            cr_assert((a != NULL) == (b != NULL), "%s %s", cases[k].policy, cases[k].settings);
            if (a == NULL) continue;
            cr_expect(!strcmp(a->schedule, b->schedule), "%s %s: %s is not %s", cases[k].policy, cases[k].settings,
                      b->schedule, a->schedule);
            cr_expect(b->time == ldexp(a->time, POWER), "%s: %g is not %g", cases[k].policy, b->time, a->time);
            const struct bounds of_a = bounds_find(small, a->live_peak), of_b = bounds_find(large, a->live_peak);
            cr_expect(of_b.best == ldexp(of_a.best, POWER));
            plan_destroy(a), plan_destroy(b);
        }
        abstract_destroy(small), abstract_destroy(large);
    }
}

/* ---- revolve ---- */

/* The least advances by the recurrence itself. */
static int64_t least_advances(int steps, int slots)
{
    static int64_t table[61][9];
    for (int s = 1; s <= slots; s++)
        for (int l = 2; l <= steps; l++) {
            table[l][s] = l * (l - 1) / 2;
            for (int m = 1; m < l && s > 1; m++) {
                int64_t advances = m + table[m][s] + table[l - m][s - 1];
                if (advances < table[l][s]) table[l][s] = advances;
            }
        }
    return table[steps][slots];
}

/* Stages that save nothing need no forward of their own before their backward: what runs is the advances and the first
 * forward of the last stage. Stages that save, recomputed whole, each run once more before their backward. */
static void check_advances(int steps, int slots, int64_t advances)
{
    struct network *network = uniform((struct abstract_stage){.forward = 1, .output = 1}, steps);
    char settings[64];
    snprintf(settings, sizeof settings, "slots=%d", slots);
    struct plan *plan = policy_text_plan(network, "revolve", settings, NULL);
    cr_assert(count_forwards(plan) == advances + 1, "%d steps, %d slots: %d", steps, slots, count_forwards(plan));
    cr_assert(plan->live_peak <= (size_t)slots + 1, "%d steps, %d slots: %zu live", steps, slots, plan->live_peak);
    plan_destroy(plan);
    abstract_destroy(network);

    network = uniform((struct abstract_stage){.forward = 1, .output = 1, .saved = 1}, steps);
    plan = policy_text_plan(network, "revolve", settings, NULL);
    cr_assert(count_forwards(plan) == advances + steps, "%d steps, %d slots: %d", steps, slots, count_forwards(plan));
    cr_assert(plan->time == (double)(advances + steps));
    plan_destroy(plan);
    abstract_destroy(network);
}

Test(policies_chains, revolve_advances_as_little_as_can_be)
{
    for (int steps = 1; steps <= 60; steps++)
        for (int slots = 1; slots <= 8; slots++) {
            int64_t least = least_advances(steps, slots);
            cr_assert(bounds_advances(steps, slots) == (double)least);
            check_advances(steps, slots, least);
        }
}

Test(policies_chains, revolve_gives_the_published_table)
{
    static const int known[][3] = {{10, 3, 15},     {64, 2, 420},     {64, 3, 258},     {64, 4, 200},    {64, 8, 137},
                                   {64, 16, 110},   {100, 3, 490},    {100, 5, 316},    {100, 10, 222},  {100, 20, 178},
                                   {1000, 5, 6284}, {1000, 10, 3636}, {1000, 20, 2747}, {1000, 32, 2405}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) check_advances(known[i][0], known[i][1], known[i][2]);
}

/* Slots and repetitions that both grow with the logarithm: C(2s, s) >= n for the first time. */
Test(policies_chains, revolve_takes_logarithmic_slots_by_itself)
{
    static const int known[][2] = {{1, 1},  {2, 1},  {3, 2},  {6, 2},  {7, 3},
                                   {20, 3}, {21, 4}, {70, 4}, {71, 5}, {1000, 7}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct network *network = uniform((struct abstract_stage){.forward = 1, .output = 1}, known[i][0]);
        struct region *region = network->graph->region;
        char slots[32];
        snprintf(slots, sizeof slots, "slots=%d", known[i][1]);
        struct schedule chosen = policy_text_schedule(network, "revolve", "slots=0", region);
        struct schedule given = policy_text_schedule(network, "revolve", slots, region);
        cr_assert(!strcmp(schedule_print(&chosen, region), schedule_print(&given, region)), "%d stages", known[i][0]);
        abstract_destroy(network);
    }
}

static const struct abstract_stage limits = {.forward = 9,
                                             .backward = 9,
                                             .output = 40,
                                             .saved = 30,
                                             .gradient = 40,
                                             .forward_scratch = 60,
                                             .backward_scratch = 15};

/* Bit i of the result: the schedule, of segments recomputed whole, has a cut before stage i. */
static unsigned cuts_of(const struct schedule *schedule)
{
    unsigned cuts = 0;
    for (size_t i = 0; i < schedule->steps; i++)
        if (schedule->step[i].kind == STEP_BACKWARD && schedule->step[i].from) cuts |= 1U << schedule->step[i].from;
    return cuts;
}

/* ---- chen ---- */

/* The greedy division as the paper has it: bit i is a cut before stage i. */
static unsigned greedy(const struct abstract_stage *stage, int stages, int64_t budget, double *kept, double *largest)
{
    unsigned cuts = 0;
    int64_t sum = 0;
    *kept = *largest = 0;
    for (int i = 0; i < stages; i++) {
        sum += stage[i].output;
        *largest = fmax(*largest, (double)sum);
        if (sum <= budget || i + 1 == stages) continue;
        cuts |= 2U << i;
        *kept += (double)stage[i].output;
        sum = 0;
    }
    return cuts;
}

static struct plan *plan_within(struct network *network, int64_t budget)
{
    char settings[64];
    snprintf(settings, sizeof settings, "segment_budget=%lld keep_saved=false", (long long)budget);
    return policy_text_plan(network, "chen", settings, NULL);
}

Test(policies_chains, chen_divides_greedily_and_searches_the_budget)
{
    struct source source = {.seed = 12};
    int better = 0;
    for (int c = 0; c < 200; c += THINNING) {
        struct abstract_stage stage[20];
        const int stages = 1 + c % 20;
        chain_draw(&source, &limits, stages, stage);
        struct network *network = chain_network(stage, stages);
        int64_t budget[9] = {0};
        int budgets = 0;
        double kept, largest, least = INFINITY, guess = 0;
        for (; budgets < 3; budgets++) {
            budget[budgets] = (int64_t)guess;
            char settings[80];
            snprintf(settings, sizeof settings, "segment_budget=%lld keep_last=false keep_saved=false",
                     (long long)budget[budgets]);
            struct schedule schedule = policy_text_schedule(network, "chen", settings, network->graph->region);
            unsigned cuts = greedy(stage, stages, budget[budgets], &kept, &largest);
            cr_assert(cuts_of(&schedule) == cuts, "chain %d: %s", c, schedule_print(&schedule, network->graph->region));
            least = fmin(least, largest);
            guess = floor(sqrt(kept * largest / 2));
        }
        for (double step = (sqrt(2) * guess - least) / 6; step > 0 && budgets < 9; budgets++)
            budget[budgets] = (int64_t)(least + (budgets - 2) * step);
        struct plan *found = policy_text_plan(network, "chen", "keep_saved=false", NULL);
        size_t best = SIZE_MAX;
        for (int i = 0; i < budgets; i++) {
            struct plan *plan = plan_within(network, budget[i]);
            if (plan->live_peak < best) best = plan->live_peak;
            better += i == 0 && plan->live_peak > found->live_peak;
            plan_destroy(plan);
        }
        cr_assert(found->live_peak == best, "chain %d: %zu live, but %zu can be had", c, found->live_peak, best);
        plan_destroy(found);
        abstract_destroy(network);
    }
    cr_assert(better > 50 / THINNING, "the search helped in %d chains", better);
}
