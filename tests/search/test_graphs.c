/* Networks with shortcuts: searches over states against an independent one, `optimal` against both. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "policies/rivals.h"
#include "search/bounds.h"
#include "search/state_search.h"
#include "tests/support/graph_families.h"
#include "tests/support/graph_search.h"
#include "tests/support/layer_settings.h"
#include "tests/support/policy_text.h"
#include "tests/support/small_networks.h"
#include "tests/support/thinning.h"

static const struct plan_options usual = {.lower = {.drop_dead = true}};

/* What lowering says of a sequence. */
static struct plan_cost cost_of(const struct step_model *m, const struct sequence *sequence, struct region *region)
{
    struct schedule schedule = schedule_empty(region);
    sequence_schedule(m, sequence, &schedule);
    cr_assert(schedule_check(&schedule, &(struct slicing){m->nodes, 1, NULL}, false) == ST_OK, "%s: %s",
              status_message(), schedule_print(&schedule, region));
    return plan_cost(m->network, &schedule, &usual.lower);
}

/* The whole front, point by point, of the search over states and of the independent one. */
static void check_states(const struct sketch *sketch, const char *what)
{
    struct region *region = region_create();
    const struct step_model m = step_model_create(sketch->network, &usual.lower, region);
    size_t limit = SIZE_MAX / 2;
    for (int point = 0;; point++) {
        struct schedule schedule = schedule_empty(region);
        double least = INFINITY;
        const bool any = graph_search(sketch->network, limit, INFINITY, &least, &schedule);
        const struct state_search_result r =
            state_search(&m, limit, INFINITY, (struct state_effort){100000, 1}, region);
        cr_assert(r.proven && r.found == any, "%s, point %d: %d, %d", what, point, r.found, any);
        if (!any) break;
        const struct plan_cost cost = plan_cost(sketch->network, &schedule, &usual.lower);
        const struct plan_cost ours = cost_of(&m, &r.sequence, region);
        struct sequence again = r.sequence;
        const struct sequence_cost evaluated = sequence_evaluate(&m, &again, limit);
        cr_assert(cost.live_peak <= limit && cost.time == m.floor + least, "%s: %zu of %zu, %g: %s", what,
                  cost.live_peak, limit, cost.time - least, schedule_print(&schedule, region));
        cr_assert(ours.live_peak <= limit && ours.time == cost.time, "%s: %zu of %zu, %g, %g", what, ours.live_peak,
                  limit, ours.time, cost.time);
        cr_assert(evaluated.peak == ours.live_peak && evaluated.time == ours.time);
        limit = cost.live_peak - 1;
    }
    region_destroy(region);
}

/* Near the least memory, where many nodes have to be recomputed before one backward. */
Test(graphs, deep_beams_and_other_estimates_find_schedules_where_flat_ones_find_none, .timeout = 300)
{
    enum { FLAT, DEEP, INPUTS, BACKWARDS, EFFORTS };
    static const struct state_effort efforts[EFFORTS] = {[FLAT] = {300, 1},
                                                         [DEEP] = {1, 16, .deep = true},
                                                         [INPUTS] = {300, 1, ESTIMATE_INPUTS},
                                                         [BACKWARDS] = {300, 1, ESTIMATE_BACKWARDS}};
    struct source source = {.seed = 5};
    int found[EFFORTS] = {0};
    for (int c = 0; c < 60; c += THINNING) {
        struct sketch sketch;
        region_auto *region = region_create();
        sketch_random(&sketch, &source, 24 + c % 8);
        const struct step_model m = step_model_create(sketch.network, &usual.lower, region);
        const size_t limit = bounds_find(sketch.network, 1).memory;
        for (int i = 0; i < EFFORTS; i++) {
            struct state_search_result r = state_search(&m, limit, INFINITY, efforts[i], region);
            if (!r.found) continue;
            const struct plan_cost cost = cost_of(&m, &r.sequence, region);
            cr_assert(cost.live_peak <= limit, "%d: %zu of %zu", c, cost.live_peak, limit);
            found[i]++;
        }
        sketch_end(&sketch);
    }
    cr_expect(found[DEEP] > found[FLAT] && found[INPUTS] > found[FLAT] && found[BACKWARDS] > found[INPUTS],
              "%d deep, %d with inputs, %d at all backwards, %d flat", found[DEEP], found[INPUTS], found[BACKWARDS],
              found[FLAT]);
}

Test(graphs, the_search_over_states_finds_the_optimum, .timeout = 600)
{
    struct source source = {.seed = 1};
    for (int c = 0; c < 70; c += THINNING) {
        struct sketch sketch;
        family_draw(&sketch, &source, c % FAMILIES, 8 + c / FAMILIES % 3);
        check_states(&sketch, family_names[c % FAMILIES]);
        sketch_end(&sketch);
    }
}

/* How `optimal` compares with the optimum of all schedules: at the least bytes of all fronts' steps, and the bytes
 * before them. */
struct against {
    int budgets, equal, networks, least;
    double worst, worst_memory;
};

static void compare_budget(const struct front *front, size_t budget, double time, struct against *a)
{
    const int at = front_at(front, budget);
    const double ours = at < 0 ? INFINITY : front->point[at].time;
    cr_assert(ours > time * (1 - 1e-12), "%g within %zu bytes, the optimum takes %g", ours, budget, time);
    a->budgets++;
    a->equal += ours < time * (1 + 1e-12);
    if (at >= 0) a->worst = fmax(a->worst, ours / time - 1);
}

static void compare(const struct sketch *sketch, struct against *a)
{
    struct region *region = region_create();
    const struct network *network = sketch->network;
    struct pool *pool = rivals_front(network, &usual);
    const struct member *const *origin;
    const struct front front = pool_front(pool, region, &origin);
    const struct step_model m = step_model_create(network, &usual.lower, region);
    size_t peak = 0;
    for (size_t limit = SIZE_MAX / 2;; limit = peak - 1) {
        struct schedule s = schedule_empty(region);
        const int at = front_at(&front, limit);
        const double ours = at < 0 ? INFINITY : front.point[at].time - m.floor;
        double recomputations;
        const bool faster = graph_search(network, limit, ours * (1 - 1e-12) - 1e-9, &recomputations, &s);
        if (!faster && at < 0) break;
        struct point best = at < 0 ? (struct point){0, INFINITY} : front.point[at];
        if (faster) {
            const struct plan_cost cost = plan_cost(network, &s, &usual.lower);
            best = (struct point){cost.live_peak, cost.time};
        }
        compare_budget(&front, peak = best.peak, best.time, a);
    }
    a->networks++;
    a->least += front.point[0].peak == peak;
    a->worst_memory = fmax(a->worst_memory, (double)front.point[0].peak / (double)peak - 1);
    pool_destroy(pool);
    region_destroy(region);
}

static int number_from(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : otherwise;
}

/* GRAPH_CASES and GRAPH_SEED change how many networks are drawn, and which. */
Test(graphs, optimal_is_the_optimum_of_all_schedules, .timeout = 0)
{
    struct source source = {.seed = (uint32_t)number_from("GRAPH_SEED", 2)};
    struct against all[FAMILIES] = {{0}};
    for (int c = 0; c < number_from("GRAPH_CASES", 42); c += THINNING) {
        struct sketch sketch;
        family_draw(&sketch, &source, c % FAMILIES, 8 + 5 * (c / FAMILIES) % 9);
        if (sketch.graph->nodes <= GRAPH_SEARCH_NODES_MAX) compare(&sketch, &all[c % FAMILIES]);
        sketch_end(&sketch);
    }
    for (int f = 0; f < FAMILIES; f++) {
        const struct against *a = &all[f];
        printf("%s: equal at %d of %d budgets, at most %.2f %% slower; the least memory of %d of %d networks, at most "
               "%.2f %% above\n",
               family_names[f], a->equal, a->budgets, 100 * a->worst, a->least, a->networks, 100 * a->worst_memory);
        cr_expect(a->equal == a->budgets && a->least == a->networks);
    }
}

/* The placed plan of `optimal` within the live bytes of each step of the front of all schedules. No schedule that fits
 * is faster than the fastest of those live bytes. */
static void compare_placed(const struct sketch *sketch, int *budgets, int *equal)
{
    struct region *region = region_create();
    const struct network *network = sketch->network;
    struct plan *stored = policy_text_plan(network, "store_all", "", &usual);
    for (size_t limit = stored->live_peak;;) {
        struct schedule schedule = schedule_empty(region);
        double recomputations;
        if (!graph_search(network, limit, INFINITY, &recomputations, &schedule)) break;
        const struct plan_cost best = plan_cost(network, &schedule, &usual.lower);
        const char *budget = region_text(region, "budget=%zu", plan_static(stored) + best.live_peak);
        plan_auto *plan = policy_text_try(network, "optimal", budget, &usual);
        cr_assert(!plan || plan->arena_bytes <= best.live_peak, "%zu of %zu", plan->arena_bytes, best.live_peak);
        cr_assert(!plan || plan->time >= best.time * (1 - 1e-12), "%g, the optimum takes %g", plan->time, best.time);
        ++*budgets;
        *equal += plan && plan->time <= best.time * (1 + 1e-12);
        limit = best.live_peak - 1;
    }
    plan_destroy(stored);
    region_destroy(region);
}

Test(graphs, placed_plans_are_the_optimum_at_99_of_100_budgets, .timeout = 0)
{
    struct source source = {.seed = (uint32_t)number_from("GRAPH_SEED", 5)};
    int budgets = 0, equal = 0;
    for (int c = 0; c < number_from("GRAPH_CASES", 42); c += THINNING) {
        struct sketch sketch;
        family_draw(&sketch, &source, c % FAMILIES, 6 + 5 * (c / FAMILIES) % 9);
        if (sketch.graph->nodes <= GRAPH_SEARCH_NODES_MAX) compare_placed(&sketch, &budgets, &equal);
        sketch_end(&sketch);
    }
    printf("placed plans: the optimum of all schedules at %d of %d budgets\n", equal, budgets);
    cr_expect(budgets > 100 / THINNING && 100 * equal >= 99 * budgets, "%d of %d", equal, budgets);
}

static int put(struct graph *graph, const char *layer, struct settings settings, int x, int other)
{
    const int inputs[] = {x, other};
    int y = -1;
    cr_assert(graph_add(graph, layer_find(layer), settings_of(layer_find(layer), &settings), NULL, inputs, &y) == ST_OK,
              "%s", status_message());
    return y;
}

static int conv(struct graph *graph, int activation, int x)
{
    return put(graph, "conv",
               (struct settings){.channels = 32, .kernel = 3, .stride = 1, .padding = 1, .activation = activation}, x,
               -1);
}

static int sum(struct graph *graph, int x, int y) { return put(graph, "add", (struct settings){.rate = 0}, x, y); }

static int head(struct graph *graph, int activation, int v)
{
    v = put(graph, "global_avg_pool", (struct settings){.rate = 0}, conv(graph, activation, v), -1);
    return put(graph, "linear", (struct settings){.units = 10}, v, -1);
}

/* 20 convolutions behind one shortcut. */
static int long_shortcut(struct graph *graph)
{
    const int start = conv(graph, ACTIVATION_RELU, 0);
    int v = start;
    for (int i = 0; i < 20; i++) v = conv(graph, ACTIVATION_RELU, v);
    return head(graph, ACTIVATION_RELU, sum(graph, v, start));
}

/* 20 convolutions and ten shortcuts, each but the first within another one. */
static int nested_shortcuts(struct graph *graph)
{
    int skip[10], v = conv(graph, ACTIVATION_RELU, 0);
    for (int i = 0; i < 10; i++) v = conv(graph, ACTIVATION_RELU, skip[i] = v);
    for (int i = 9; i >= 0; i--) v = sum(graph, conv(graph, ACTIVATION_RELU, v), skip[i]);
    return head(graph, ACTIVATION_RELU, v);
}

/* 16 residual blocks behind a shortcut. */
static int blocks_in_shortcut(struct graph *graph)
{
    const int start = conv(graph, ACTIVATION_NONE, 0);
    int v = start;
    for (int i = 0; i < 16; i++) v = sum(graph, conv(graph, ACTIVATION_NONE, conv(graph, ACTIVATION_NONE, v)), v);
    return head(graph, ACTIVATION_NONE, sum(graph, conv(graph, ACTIVATION_NONE, v), start));
}

/* The slowdowns at these budgets were reached by hand and by random changes of schedules of dtr. */
static const struct {
    struct net net;
    struct {
        const char *budget;
        double slowdown;
    } row[6];
} known[] = {{{"long_shortcut", long_shortcut, {3, {32, 32, 3}}, 16, 10},
              {{"85%", 1.049}, {"70%", 1.112}, {"60%", 1.144}, {"50%", 1.191}, {"40%", 1.223}, {"30%", 1.336}}},
             {{"nested_shortcuts", nested_shortcuts, {3, {32, 32, 3}}, 16, 10},
              {{"85%", 1.000}, {"70%", 1.018}, {"60%", 1.112}, {"50%", 1.207}}},
             {{"blocks_in_shortcut", blocks_in_shortcut, {3, {32, 32, 3}}, 16, 10},
              {{"85%", 1.050}, {"70%", 1.099}, {"60%", 1.138}}}};

Test(graphs, optimal_divides_long_stages, .timeout = 600)
{
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        struct bound_net b = net_bind(&known[k].net, RELU_OUTPUT);
        for (int i = 0; i < 6 && known[k].row[i].budget; i++) {
            char settings[32];
            snprintf(settings, sizeof settings, "budget=%s", known[k].row[i].budget);
            struct plan *plan = policy_text_try(b.network, "optimal", settings, &usual),
                        *dtr = policy_text_try(b.network, "dtr", settings, &usual);
            cr_assert(plan, "%s", status_message());
            cr_expect(plan->slowdown < known[k].row[i].slowdown + 0.0005 && (!dtr || plan->time <= dtr->time),
                      "%s: %s: %.5f, dtr %.5f", known[k].net.name, settings, plan->slowdown, dtr ? dtr->slowdown : 0);
            plan_destroy(plan);
            plan_destroy(dtr);
        }
        struct plan *plan = policy_text_try(b.network, "optimal", "budget=least", &usual),
                    *dtr = policy_text_try(b.network, "dtr", "budget=least", &usual);
        cr_expect(plan && dtr && plan->live_peak <= dtr->live_peak, "%s: %zu", known[k].net.name, plan->live_peak);
        plan_destroy(plan);
        plan_destroy(dtr);
        net_release(&b);
    }
}
