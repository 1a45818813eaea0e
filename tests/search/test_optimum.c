/* The front of time against memory: against exhaustive search, against lowering, against every other policy. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "policies/rivals.h"
#include "search/bounds.h"
#include "tests/support/exhaustive_search.h"
#include "tests/support/policy_text.h"
#include "tests/support/random_chains.h"
#include "tests/support/simulated.h"
#include "tests/support/small_networks.h"
#include "tests/support/thinning.h"

enum { CHAINS = 200 };

static void random_chain(struct source *source, int stages, struct abstract_stage *stage)
{
    chain_draw(source, &narrow_limits, stages, stage);
}

static struct optimum *solve(const struct abstract_stage *stage, int stages)
{
    return optimum_solve(chain_network(stage, stages), RNG_COUNTER);
}

static void done(struct optimum *optimum)
{
    struct network *network = (struct network *)optimum->network;
    optimum_destroy(optimum);
    abstract_destroy(network);
}

/* How fronts compare with schedules that they are not chosen from. */
struct against {
    int budgets, slower;
    double worst, worst_memory;
};

/* The front of a chain is that of the schedules among; and how it compares with those of a wider class. Times are
 * constant between two steps of a front, so its steps and the bytes before them are all budgets. */
static void check_exhaustively(const struct abstract_stage *stage, int stages, enum schedules among,
                               enum schedules wider, int chain, struct against *against)
{
    struct optimum *o = solve(stage, stages);
    for (int i = 0; i < o->front.count; i++) {
        const struct point *p = &o->front.point[i];
        int64_t at = exhaustive_time(stage, stages, (int64_t)p->peak, among);
        cr_assert((double)at == p->time, "chain %d: %lld with %zu bytes, found %g", chain, (long long)at, p->peak,
                  p->time);
        int64_t less = exhaustive_time(stage, stages, (int64_t)p->peak - 1, among);
        double before = i ? o->front.point[i - 1].time : -1;
        cr_assert((double)less == before, "chain %d: %lld with %zu bytes less 1, found %g", chain, (long long)less,
                  p->peak, before);
        int64_t wider_time = exhaustive_time(stage, stages, (int64_t)p->peak, wider);
        cr_assert(wider_time >= 0 && wider_time <= at);
        against->budgets++;
        against->slower += wider_time < at;
        if (wider_time > 0) against->worst = fmax(against->worst, (double)(at - wider_time) / (double)wider_time);
    }
    size_t least = o->front.point[0].peak, peak = least;
    for (size_t step = (size_t)1 << 8; step; step /= 2)
        while (peak > step && exhaustive_time(stage, stages, (int64_t)(peak - step), wider) >= 0) peak -= step;
    if (peak) against->worst_memory = fmax(against->worst_memory, (double)(least - peak) / (double)peak);
    done(o);
}

static void print_against(const struct against *a, int chains, const char *wider)
{
    printf(
        "%d chains, %d steps: a schedule that is %s is faster at %d, by at most %.2f %%; its least memory is lower by "
        "at most %.2f %%\n",
        chains, a->budgets, wider, a->slower, 100 * a->worst, 100 * a->worst_memory);
}

/* As in networks: a gradient has the bytes of its value. */
Test(optimum, is_the_persistent_optimum_of_every_chain_at_every_budget, .timeout = 600)
{
    struct source source = {.seed = 31};
    struct against a = {.budgets = 0};
    for (int c = 0; c < CHAINS; c += THINNING) {
        struct abstract_stage stage[EXHAUSTIVE_STAGES_MAX];
        int stages = 1 + c % EXHAUSTIVE_STAGES_MAX;
        random_chain(&source, stages, stage);
        for (int i = 0; i < stages; i++) stage[i].gradient = stage[i].output;
        check_exhaustively(stage, stages, PERSISTENT, ANY, c, &a);
    }
    print_against(&a, (CHAINS + THINNING - 1) / THINNING, "not persistent");
}

/* Where gradients have any bytes, it can help to recompute ahead, while the pending gradient is still small. */
Test(optimum, is_the_optimum_in_turn_with_gradients_of_any_size, .timeout = 600)
{
    struct source source = {.seed = 31};
    struct against a = {.budgets = 0};
    for (int c = 0; c < CHAINS / 2; c += THINNING) {
        struct abstract_stage stage[EXHAUSTIVE_STAGES_MAX];
        int stages = 1 + c % EXHAUSTIVE_STAGES_MAX;
        random_chain(&source, stages, stage);
        check_exhaustively(stage, stages, IN_TURN, PERSISTENT, c, &a);
    }
    print_against(&a, (CHAINS / 2 + THINNING - 1) / THINNING, "persistent but out of turn");
}

/* One chain in some fifty with gradients of any bytes is like this one. */
Test(optimum, recomputing_ahead_of_turn_can_be_faster)
{
    enum { STAGES = 7, BYTES = 80 };
    static const struct abstract_stage stage[STAGES] = {
        {NULL, 6, 16, 12, 43, 6, 0, 8, true},   {NULL, 5, 10, 12, 13, 28, 4, 0, false},
        {NULL, 11, 12, 12, 0, 9, 10, 14, true}, {NULL, 1, 18, 8, 0, 35, 13, 10, false},
        {NULL, 2, 0, 25, 0, 3, 0, 10, false},   {NULL, 11, 1, 12, 0, 38, 6, 9, true},
        {NULL, 9, 17, 12, 0, 14, 0, 10, true}};
    struct optimum *o = solve(stage, STAGES);
    int at = front_at(&o->front, BYTES);
    cr_assert(at >= 0 && o->front.point[at].time == 160);
    cr_assert(exhaustive_time(stage, STAGES, BYTES, IN_TURN) == 160);
    cr_assert(exhaustive_time(stage, STAGES, BYTES, PERSISTENT) == 154);
    done(o);
}

/* Stages drawn from a few kinds: stretches of them come again, in some order. */
static void repetitive_chain(struct source *source, int stages, struct abstract_stage *stage)
{
    struct abstract_stage kind[2];
    random_chain(source, 2, kind);
    for (int i = 0; i < stages; i++) stage[i] = kind[draw_below(source, 3) == 0];
}

Test(optimum, solves_equal_stretches_once_and_right)
{
    struct source source = {.seed = 5};
    struct against a = {.budgets = 0};
    for (int c = 0; c < 40; c += THINNING) {
        struct abstract_stage stage[EXHAUSTIVE_STAGES_MAX];
        int stages = EXHAUSTIVE_STAGES_MAX - c % 3;
        repetitive_chain(&source, stages, stage);
        check_exhaustively(stage, stages, IN_TURN, PERSISTENT, c, &a);
    }
}

/* One state in and out of each step, and a tape so large that two never fit: Griewank and Walther, "Algorithm 799:
 * revolve", 2000, whose slots hold the first state too. */
Test(optimum, reaches_the_binomial_number_of_advances_on_uniform_chains)
{
    enum { STEPS = 200, TAPE = 1000 };
    static const struct {
        int steps, slots, advances;
    } known[] = {{10, 3, 15},   {64, 2, 420},  {64, 3, 258},   {64, 4, 200},   {64, 8, 137},
                 {64, 16, 110}, {100, 3, 490}, {100, 10, 222}, {100, 20, 178}, {200, 10, 522}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        struct abstract_stage stage[STEPS];
        for (int i = 0; i < STEPS; i++) stage[i] = (struct abstract_stage){.forward = 1, .output = 1, .saved = TAPE};
        struct optimum *o = solve(stage, known[k].steps);
        int at = front_at(&o->front, (size_t)TAPE + (size_t)known[k].slots + 1);
        cr_assert(at >= 0);
        double recomputations =
            o->front.point[at].time - known[k].steps; /* as many as advances: each step is taped besides */
        cr_expect(recomputations == known[k].advances, "%d steps, %d slots: %g advances, expected %d", known[k].steps,
                  known[k].slots, recomputations, known[k].advances);
        cr_expect(bounds_advances(known[k].steps, known[k].slots) == known[k].advances);
        done(o);
    }
}

static struct plan *plan_of(const struct network *network, const struct schedule *schedule,
                            const struct plan_options *options)
{
    return plan_build(network, schedule, options);
}

/* Every point of a front, up to about most of them: monotone, and what lowering says of its schedule. */
static void check_front(const struct optimum *o, const struct plan_options *options, int most, const char *what)
{
    const struct point *p = o->front.point;
    cr_assert(o->front.count > 0);
    for (int i = 0; i < o->front.count; i++) {
        cr_assert(!i || (p[i].peak > p[i - 1].peak && p[i].time < p[i - 1].time), "%s: point %d", what, i);
        if (i % (1 + o->front.count / most) && i + 1 < o->front.count) continue;
        struct region *region = region_create();
        struct schedule schedule = schedule_empty(region);
        optimum_schedule(o, i, &schedule);
        struct plan *plan = plan_of(o->network, &schedule, options);
        cr_assert(plan->live_peak == p[i].peak, "%s, point %d: %zu predicted, %zu lowered: %s", what, i, p[i].peak,
                  plan->live_peak, plan->schedule);
        cr_assert(plan->time == p[i].time, "%s, point %d: %g predicted, %g lowered: %s", what, i, p[i].time, plan->time,
                  plan->schedule);
        cr_assert(!plan->lowered.dropped, "%s, point %d: a dead recomputation: %s", what, i, plan->schedule);
        cr_assert(simulate_plan(plan) == ST_OK, "%s, point %d: %s: %s", what, i, status_message(), plan->schedule);
        plan_destroy(plan);
        region_destroy(region);
    }
}

static const struct plan_options usual = {.lower = {.drop_dead = true}};

Test(optimum, predicts_what_lowering_says_of_chains)
{
    struct source source = {.seed = 77};
    for (int c = 0; c < 60; c += THINNING) {
        struct abstract_stage stage[30];
        int stages = 1 + c / 2;
        (c % 2 ? repetitive_chain : random_chain)(&source, stages, stage);
        struct optimum *o = solve(stage, stages);
        check_front(o, &usual, 40, "chain");
        done(o);
    }
}

/* No point of a front is below the lower bounds. */
static void check_bounds(const struct optimum *o, const char *what)
{
    for (int i = 0; i < o->front.count; i++) {
        const struct point *p = &o->front.point[i];
        const struct bounds bounds = bounds_find(o->network, p->peak);
        cr_assert(bounds.memory <= p->peak && bounds.best <= p->time * (1 + 1e-12), "%s, point %d: %g, bound %g", what,
                  i, p->time, bounds.best);
    }
}

Test(optimum, predicts_what_lowering_says_of_networks)
{
    for (const struct net *net = nets; net->name; net++)
        for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_BITS; relu++)
            for (enum rng_mode rng = RNG_COUNTER; rng <= RNG_MASK; rng++) {
                struct bound_net p = net_bind(net, relu);
                struct plan_options options = {.lower = {.drop_dead = true, .rng = rng}};
                struct optimum *o = optimum_solve(p.network, rng);
                check_front(o, &options, 25, net->name);
                check_bounds(o, net->name);
                optimum_destroy(o);
                net_release(&p);
            }
}

/* A plan of another policy is no better than the front: neither faster at its peak nor smaller in its time. */
static void check_rival(const struct optimum *o, const struct policy *policy, const char *settings, const char *what)
{
    struct plan *plan = policy_text_try(o->network, policy->name, settings, &usual);
    if (!plan) return;
    int at = front_at(&o->front, plan->live_peak);
    cr_assert(at >= 0, "%s: %s needs %zu bytes, the front at least %zu", what, policy->name, plan->live_peak,
              o->front.point[0].peak);
    cr_assert(o->front.point[at].time <= plan->time, "%s: %s takes %g with %zu bytes, the front %g: %s", what,
              policy->name, plan->time, plan->live_peak, o->front.point[at].time, plan->schedule);
    plan_destroy(plan);
}

static void check_rivals(const struct optimum *o, const char *what)
{
    static const char *const kinds[] = {"weightless", "conv",    "max_pool", "linear", "dropout",
                                        "add",        "flatten", "pool",     "relu"};
    for (const struct policy *const *policy = policy_table; *policy; policy++)
        for (int segments = 0; segments <= 8 && !(*policy)->fills && !(*policy)->needs_slices; segments++)
            for (int k = 0; k < 8; k++) {
                char settings[128];
                snprintf(settings, sizeof settings, "segments=%d slots=%d kinds=%s keep_last=%s keep_saved=%s unit=%s",
                         segments, segments, kinds[segments], k & 1 ? "true" : "false", k & 2 ? "true" : "false",
                         k & 4 ? "stage" : "auto");
                check_rival(o, *policy, settings, what);
            }
}

Test(optimum, is_never_behind_another_policy)
{
    struct source source = {.seed = 4};
    for (int c = 0; c < 20; c += THINNING) {
        struct abstract_stage stage[16];
        random_chain(&source, 1 + c % 16, stage);
        struct optimum *o = solve(stage, 1 + c % 16);
        check_rivals(o, "chain");
        done(o);
    }
    for (const struct net *net = nets; net->name; net++)
        for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_BITS; relu++) {
            struct bound_net p = net_bind(net, relu);
            struct optimum *o = optimum_solve(p.network, RNG_COUNTER);
            check_rivals(o, net->name);
            optimum_destroy(o);
            net_release(&p);
        }
}

/* With the bytes of each member of a pool, a plan is as fast, and the notes name who found a schedule outside the
 * class. */
static void check_named(struct pool *pool, const char *what)
{
    int named = 0;
    struct region *region = region_create();
    for (int i = 0; i < pool->members; i += 1 + pool->members / 40) {
        char budget[32];
        struct policy_notes notes = {0};
        struct plan *least = pool_plan(pool, &pool->member[i]), *plan = NULL;
        snprintf(budget, sizeof budget, "budget=%zu", plan_peak(least));
        plan_destroy(least);
        const struct policy_settings settings = policy_text_settings(policy_find("optimal"), budget, region);
        const struct policy_input input = {pool->network, &settings, &usual, &notes};
        cr_assert(policy_plan(policy_find("optimal"), &input, &plan) == ST_OK, "%s", status_message());
        cr_assert(plan->time <= pool->member[i].point.time * (1 + 1e-12), "%s, %s: %g, the member %g", what, budget,
                  plan->time, pool->member[i].point.time);
        plan_destroy(plan);
        named += strstr(notes.found, "the schedule of ") != NULL;
    }
    cr_assert(named > 0, "%s: no candidate is better", what);
    region_destroy(region);
}

static void check_candidates(const struct net *net)
{
    struct bound_net p = net_bind(net, RELU_BITS);
    struct pool *pool = rivals_pool(p.network, &usual, NULL);
    optimum_within(pool->chain, SIZE_MAX);
    pool_add_chain(pool);
    struct optimum front = *pool->chain; /* with the front of all */
    const struct member *const *origin;
    check_front(pool->chain, &usual, 25, net->name);
    front.front = pool_front(pool, pool->region, &origin);
    check_bounds(&front, net->name);
    check_rivals(&front, net->name);
    check_named(pool, net->name);
    pool_destroy(pool);
    net_release(&p);
}

/* Sets of nodes hold the first 64 of a stage, and not all of them are examined: schedules of other policies are points
 * of the front where they are better. */
Test(optimum, is_behind_no_policy_with_a_long_stage, .timeout = 600) { check_candidates(&deep_net); }

/* The same with groups within a stage, which revolve recomputes over several levels. */
Test(optimum, is_behind_no_policy_that_divides_a_stage, .timeout = 600) { check_candidates(&divided_net); }

/* A chain of single nodes that read and keep whatever they like, some of them with relus. */
static void chain_sketch(struct sketch *sketch, struct source *source, int nodes)
{
    int value = 0;
    sketch_begin(sketch, 1024);
    for (int i = 0; i < nodes; i++) {
        struct footprint f = {.saved = 4 * draw_below(source, 2) * draw_below(source, 300),
                              .forward_scratch = draw_below(source, 2) * draw_below(source, 2000),
                              .backward_scratch = {draw_below(source, 900), draw_below(source, 2000)},
                              .reads = {draw_below(source, 8), draw_below(source, 8)},
                              .split = draw_below(source, 2),
                              .y_over_x = draw_below(source, 2),
                              .dx_over_dy = draw_below(source, 2),
                              .writes_dy = draw_below(source, 2)};
        struct sketch_node node = {.x = {value, -1},
                                   .bytes = (size_t)1024 << draw_below(source, 4),
                                   .parameters = !i || draw_below(source, 2),
                                   .random = !draw_below(source, 4),
                                   .footprint = f};
        if (draw_below(source, 2)) sketch_make_relu(source, &node);
        value = sketch_add(sketch, &node);
    }
    sketch_finish(sketch, value);
    for (int i = 0; i < nodes; i++) sketch->graph->node[i].relu_save = RELU_BITS;
    network_settle_relus(sketch->network);
}

/* Any footprints and any structure. */
Test(optimum, predicts_what_lowering_says_of_any_network)
{
    struct source source = {.seed = 12};
    for (int c = 0; c < 300; c += THINNING) {
        struct sketch sketch;
        char what[32];
        (c % 2 ? sketch_random : chain_sketch)(&sketch, &source, 2 + c % 13);
        enum rng_mode rng = c % 3 ? RNG_COUNTER : RNG_MASK;
        struct plan_options options = {.lower = {.drop_dead = true, .rng = rng}};
        struct optimum *o = optimum_solve(sketch.network, rng);
        snprintf(what, sizeof what, "network %d", c);
        check_front(o, &options, 30, what);
        optimum_destroy(o);
        sketch_end(&sketch);
    }
}

/* Of stages that are equal but for what their first forward writes once: batch norms of other channels. */
Test(optimum, predicts_what_lowering_says_of_stages_that_write_other_bytes_once)
{
    struct source source = {.seed = 15};
    for (int c = 0; c < 40; c++) {
        struct sketch sketch;
        int value = 0;
        sketch_begin(&sketch, 1024);
        for (int i = 0; i < 10; i++) {
            const struct footprint f = {.once = (size_t)256 * draw_below(&source, 4), .reads = {READS_X, READS_X}};
            value = sketch_add(&sketch, &(struct sketch_node){{value, -1}, 2048, true, false, f});
        }
        sketch_finish(&sketch, value);
        struct optimum *o = optimum_solve(sketch.network, RNG_COUNTER);
        check_front(o, &usual, 30, "network");
        optimum_destroy(o);
        sketch_end(&sketch);
    }
}
