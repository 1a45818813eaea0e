/* Policies with an algorithm of their own, on abstract chains: what revolve computes again against Griewank and
 * Walther's table, the segments of chen and of sqrt by bytes against divisions found by looking at them all. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"
#include "policies/policy.h"
#include "search/bounds.h"
#include "tests/support/random_chains.h"
#include "tests/support/simulated.h"
#include "tests/support/thinning.h"

enum { STAGES_MAX = 1000 };

static const struct plan_options usual = {.lower = {.drop_dead = true, .rng = RNG_COUNTER}};

static struct network *uniform(struct abstract_stage one, int stages)
{
    static struct abstract_stage stage[STAGES_MAX];
    for (int i = 0; i < stages; i++) stage[i] = one;
    return chain_network(stage, stages);
}

static struct schedule word_of(const struct network *network, const char *policy,
                               const struct policy_settings *settings, struct region *region)
{
    struct schedule schedule = schedule_empty(region);
    cr_assert(policy_find(policy)->emit(network, settings, region, &schedule) == ST_OK, "%s", status_message());
    return schedule;
}

static struct plan *plan_of(const struct network *network, const char *policy, const struct policy_settings *settings,
                            const struct plan_options *options)
{
    struct plan *plan;
    struct schedule schedule = word_of(network, policy, settings, network->graph->region);
    cr_assert(plan_build(network, &schedule, options, &plan) == ST_OK, "%s", status_message());
    return plan;
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
    static const struct policy_settings settings = {.segments = 3, .slots = 2, .budget = "least"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct network *network = uniform((struct abstract_stage){.forward = 1, .saved = 1}, 9);
        struct plan *plan = plan_of(network, names[i], &settings, &usual);
        cr_expect(count_forwards(plan) > 9, "%s recomputes", names[i]);
        cr_expect(simulate_plan(plan) == ST_OK, "%s: %s", names[i], status_message());
        plan_destroy(plan);
        abstract_destroy(network);
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
    struct plan *plan = plan_of(network, "revolve", &(struct policy_settings){.slots = slots}, &usual);
    cr_assert(count_forwards(plan) == advances + 1, "%d steps, %d slots: %d", steps, slots, count_forwards(plan));
    cr_assert(plan->live_peak <= (size_t)slots + 1, "%d steps, %d slots: %zu live", steps, slots, plan->live_peak);
    plan_destroy(plan);
    abstract_destroy(network);

    network = uniform((struct abstract_stage){.forward = 1, .output = 1, .saved = 1}, steps);
    plan = plan_of(network, "revolve", &(struct policy_settings){.slots = slots}, &usual);
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
        struct schedule own = word_of(network, "revolve", &(struct policy_settings){.slots = 0}, region);
        struct schedule told = word_of(network, "revolve", &(struct policy_settings){.slots = known[i][1]}, region);
        cr_assert(!strcmp(schedule_print(&own, region), schedule_print(&told, region)), "%d stages", known[i][0]);
        abstract_destroy(network);
    }
}

/* ---- segments by bytes ---- */

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

struct worth {
    int64_t bytes;
    double time;
};

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* What the model of sqrt says of a division: cut values and the largest segment. The last stage's value is read by no
 * backward. */
static struct worth worth_of(const struct abstract_stage *stage, int stages, unsigned cuts, bool keep_last)
{
    int64_t kept = 0, largest = 0, inside = 0, op = 0;
    struct worth w = {0, 0};
    double time = 0;
    for (int i = 0; i < stages; i++) {
        const struct abstract_stage *s = &stage[i];
        const bool ends = i + 1 == stages || cuts >> (i + 1) & 1;
        inside += s->saved + (ends ? 0 : s->output);
        op = most(op, most(s->forward_scratch, s->gradient + (i ? stage[i - 1].gradient : 0) + s->backward_scratch));
        time += s->forward;
        if (!ends) continue;
        if (i + 1 < stages) kept += s->output;
        if (i + 1 < stages || !keep_last) w.time += time;
        largest = most(largest, inside + op);
        inside = op = 0;
        time = 0;
    }
    w.bytes = kept + largest;
    return w;
}

Test(policies_chains, sqrt_by_bytes_is_the_best_of_all_divisions)
{
    struct source source = {.seed = 11};
    for (int c = 0; c < 400; c += THINNING) {
        struct abstract_stage stage[10];
        const int stages = 1 + c % 10;
        const bool keep_last = c % 3;
        chain_draw(&source, &limits, stages, stage);
        struct network *network = chain_network(stage, stages);
        struct policy_settings settings = {.by = 1, .keep_last = keep_last};
        struct schedule schedule = word_of(network, "sqrt", &settings, network->graph->region);
        struct worth found = worth_of(stage, stages, cuts_of(&schedule), keep_last), best = {INT64_MAX, 0};
        for (unsigned cuts = 0; cuts < 1U << stages; cuts += 2) {
            struct worth w = worth_of(stage, stages, cuts, keep_last);
            if (w.bytes < best.bytes || (w.bytes == best.bytes && w.time < best.time)) best = w;
        }
        cr_assert(found.bytes == best.bytes && found.time == best.time,
                  "chain %d: %lld bytes in %g, but %lld in %g: %s", c, (long long)found.bytes, found.time,
                  (long long)best.bytes, best.time, schedule_print(&schedule, network->graph->region));
        abstract_destroy(network);
    }
}

/* k - 1 cuts and segments of ceil(n / k): the textbook's least slots on a chain of equal stages. */
Test(policies_chains, sqrt_by_bytes_needs_twice_the_root)
{
    static const int known[][2] = {{24, 9}, {64, 15}, {100, 19}, {256, 31}, {1000, 63}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct network *network = uniform((struct abstract_stage){.forward = 1, .output = 1}, known[i][0]);
        struct plan *plan = plan_of(network, "sqrt", &(struct policy_settings){.by = 1, .keep_last = true}, &usual);
        cr_assert(plan->live_peak == (size_t)known[i][1], "%d stages: %zu live", known[i][0], plan->live_peak);
        plan_destroy(plan);
        abstract_destroy(network);
    }
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
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)budget);
    return plan_of(network, "chen", &(struct policy_settings){.segment_budget = text, .keep_last = true}, &usual);
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
            struct policy_settings settings = {.segment_budget = "0"};
            char text[32];
            snprintf(text, sizeof text, "%lld", (long long)budget[budgets]);
            settings.segment_budget = text;
            struct schedule schedule = word_of(network, "chen", &settings, network->graph->region);
            unsigned cuts = greedy(stage, stages, budget[budgets], &kept, &largest);
            cr_assert(cuts_of(&schedule) == cuts, "chain %d: %s", c, schedule_print(&schedule, network->graph->region));
            least = fmin(least, largest);
            guess = floor(sqrt(kept * largest / 2));
        }
        for (double step = (sqrt(2) * guess - least) / 6; step > 0 && budgets < 9; budgets++)
            budget[budgets] = (int64_t)(least + (budgets - 2) * step);
        struct plan *found = plan_of(network, "chen", &(struct policy_settings){.keep_last = true}, &usual);
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
