/* The bound that sees shortcuts: never above the optimum, and as high as its relaxation allows. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "plan/plan.h"
#include "search/bounds.h"
#include "search/closure_bound.h"
#include "tests/support/graph_families.h"
#include "tests/support/graph_search.h"
#include "tests/support/thinning.h"

static const struct lower_options usual = {.drop_dead = true};

struct against {
    int budgets, higher, met, met_before;
};

/* At every step of the front of all schedules of the network: the bounds of open, which may leave choices open. */
static void compare(const struct network *network, const struct network *open, const char *what, struct against *a)
{
    struct region *region = region_create();
    size_t limit = SIZE_MAX / 2;
    double least;
    for (struct schedule s = schedule_empty(region); graph_search(network, limit, INFINITY, &least, &s);
         s = schedule_empty(region)) {
        const struct plan_cost cost = plan_cost(network, &s, &usual);
        const struct bounds b = bounds_find(open, cost.live_peak);
        const double before = fmax(b.knapsack, b.binomial);
        cr_assert(b.best == fmax(b.closure, before) && b.closure <= cost.time * (1 + 1e-12),
                  "%s: %g within %zu bytes, bound %g: %s", what, cost.time, cost.live_peak, b.closure,
                  schedule_print(&s, region));
        a->budgets++;
        a->higher += b.closure > before * (1 + 1e-9);
        a->met += b.best > cost.time * (1 - 1e-9);
        a->met_before += before > cost.time * (1 - 1e-9);
        limit = cost.live_peak - 1;
    }
    region_destroy(region);
}

Test(closure_bound, is_never_above_the_optimum, .timeout = 600)
{
    struct source source = {.seed = 12};
    struct against all = {0};
    for (int f = 0; f < FAMILIES; f++) {
        struct against a = {0};
        for (int c = 0; c < 20; c += THINNING) {
            struct sketch sketch;
            family_draw(&sketch, &source, (enum family)f, 8 + c % 4);
            for (int n = 0; n < sketch.graph->nodes && c % 2; n++) { /* saved tensors that both halves read */
                struct footprint *at = &sketch.network->binding[n].footprint;
                if (at->split && at->reads[PART_INDEX_INPUT] & READS_SAVED) at->reads[PART_INDEX_PARAMS] |= READS_SAVED;
            }
            compare(sketch.network, sketch.network, family_names[f], &a);
            sketch_end(&sketch);
        }
        printf("%s: higher than the other bounds at %d of %d budgets, met at %d, without it at %d\n", family_names[f],
               a.higher, a.budgets, a.met, a.met_before);
        all.budgets += a.budgets;
        all.higher += a.higher;
        all.met += a.met;
    }
    cr_assert(6 * all.higher > all.budgets, "higher at %d of %d", all.higher, all.budgets);
    cr_assert(20 * all.met > 11 * all.budgets, "met at %d of %d", all.met, all.budgets);
}

enum { THINGS_MAX = 16, UNITS_MAX = 4096, UNIT = 256 };

/* What may be kept at one event: a node's value or its saved tensors, that a later event reads or that a recomputation
 * of what it reads needs. */
struct thing {
    int node;
    bool saved, read;
};

static bool reads_value(const struct step_model *m, int event, int node)
{
    const struct step_event *e = &m->event[event];
    const struct node *at = &m->network->graph->node[e->node];
    bool input = false;
    for (int k = 0; k < at->layer->inputs; k++) input |= at->inputs[k] == node + 1;
    if (e->kind == STEP_FORWARD) return input;
    return (e->reads & READS_X && input) || (e->reads & READS_X0 && at->inputs[0] == node + 1) ||
           (e->reads & READS_Y && e->node == node);
}

static bool reads_saved(const struct step_model *m, int event, int node)
{
    const struct step_event *e = &m->event[event];
    return e->kind == STEP_BACKWARD && e->node == node && e->reads & READS_SAVED && m->saved[node];
}

/* Whether the value is live at the event whatever is kept. */
static bool is_live(const struct step_model *m, int event, int node)
{
    const struct step_event *e = &m->event[event];
    if (e->kind == STEP_BACKWARD) return reads_value(m, event, node);
    const bool replaced = m->over[e->node] && m->network->graph->node[e->node].inputs[0] == node + 1;
    return e->node == node || (!replaced && reads_value(m, event, node));
}

static int list_things(const struct step_model *m, int event, struct thing *thing)
{
    bool wanted[SKETCH_NODES_MAX] = {false};
    int things = 0;
    for (int n = event < m->nodes ? event : m->nodes - 1; n >= 0; n--) {
        struct thing y = {n, false, false}, saved = {n, true, false};
        for (int e = event + 1; e < m->events; e++) {
            y.read |= reads_value(m, e, n);
            saved.read |= reads_saved(m, e, n);
        }
        saved.read &= !reads_saved(m, event, n);
        const bool live = is_live(m, event, n);
        cr_assert(things + 2 <= THINGS_MAX);
        if (saved.read) thing[things++] = saved;
        if (!live && (y.read || wanted[n])) thing[things++] = y;
        const struct node *node = &m->network->graph->node[n];
        if (saved.read || (!live && (y.read || wanted[n])))
            for (int k = 0; k < node->layer->inputs; k++)
                if (node->inputs[k]) wanted[node->inputs[k] - 1] = true;
    }
    return things;
}

/* The time of recomputations where these things are kept; things come by falling node. */
static double derive(const struct step_model *m, int event, const struct thing *thing, int things, unsigned kept)
{
    bool wanted[SKETCH_NODES_MAX] = {false}, made[SKETCH_NODES_MAX] = {false};
    double time = 0;
    for (int i = 0; i < things; i++) {
        const int n = thing[i].node;
        const bool missing = !(kept >> i & 1) && (thing[i].read || (!thing[i].saved && wanted[n]));
        if (!missing || made[n]) continue;
        made[n] = true;
        time += m->time[n];
        for (int k = 0; k < m->network->graph->node[n].layer->inputs; k++) {
            const int x = m->network->graph->node[n].inputs[k] - 1;
            if (x >= 0 && !is_live(m, event, x)) wanted[x] = true;
        }
    }
    return time;
}

static size_t divisor(size_t a, size_t b) { return b ? divisor(b, a % b) : a; }

/* The lower convex hull over bytes of the least times, at the room that the event leaves. */
static double relax_event(const struct step_model *m, int event, size_t limit)
{
    static double least[UNITS_MAX];
    struct thing thing[THINGS_MAX];
    const int things = list_things(m, event, thing);
    size_t live = m->event[event].during, unit = 0, bytes[THINGS_MAX];
    double bound = INFINITY;
    for (int n = 0; n < m->nodes && n <= event; n++)
        live += (is_live(m, event, n) ? m->value[n] : 0) + (reads_saved(m, event, n) ? m->saved[n] : 0);
    if (live > limit || !things) return 0;
    for (int i = 0; i < things; i++) {
        bytes[i] = thing[i].saved ? m->saved[thing[i].node] : m->value[thing[i].node];
        unit = divisor(bytes[i], unit);
    }
    const int room = (int)((limit - live) / unit * unit / UNIT);
    for (int i = 0; i < UNITS_MAX; i++) least[i] = INFINITY;
    for (unsigned kept = 0; kept < 1U << things; kept++) {
        size_t sum = 0;
        for (int i = 0; i < things; i++) sum += kept >> i & 1 ? bytes[i] : 0;
        cr_assert(sum / UNIT < UNITS_MAX);
        least[sum / UNIT] = fmin(least[sum / UNIT], derive(m, event, thing, things, kept));
    }
    for (int low = 0; low < UNITS_MAX && low <= room; low++)
        for (int high = room; high < UNITS_MAX && isfinite(least[low]); high++) {
            const double part = high > low ? (double)(high - room) / (high - low) : 1;
            if (isfinite(least[high])) bound = fmin(bound, least[low] * part + least[high] * (1 - part));
        }
    for (int low = 0; low < UNITS_MAX && low <= room; low++) bound = fmin(bound, least[low]);
    return bound;
}

/* Nearly always as high as the relaxation, never above it: a bound that is too low certifies gaps that are not there.
 */
Test(closure_bound, is_that_of_all_things_kept, .timeout = 600)
{
    struct source source = {.seed = 14};
    int forcing = 0, all = 0, equal = 0;
    for (int c = 0; c < 42; c += THINNING) {
        struct sketch sketch;
        struct region *region = region_create();
        family_draw(&sketch, &source, (enum family)(c % FAMILIES), 7);
        for (int n = 0; n < sketch.graph->nodes; n++) sketch.graph->node[n].relu_save = RELU_OUTPUT;
        network_settle_relus(sketch.network);
        const struct step_model m = step_model_create(sketch.network, &usual, region);
        for (size_t limit = UNIT; limit < 40 * UNIT; limit += 3 * UNIT) {
            double most = 0;
            for (int e = 0; e < m.events; e++) most = fmax(most, relax_event(&m, e, limit));
            const struct moments moments = moments_find(&m, NULL, limit, region);
            const double bound = closure_bound(&moments, false);
            cr_assert(bound <= most + 1e-9 * (1 + most), "%s, case %d, %zu bytes: %g, not %g",
                      family_names[c % FAMILIES], c, limit, bound, most);
            equal += bound >= most - 1e-9 * (1 + most);
            all++;
            forcing += most > 0;
        }
        region_destroy(region);
        sketch_end(&sketch);
    }
    cr_assert(forcing > 100 / THINNING, "%d", forcing);
    cr_assert(20 * equal >= 19 * all, "%d of %d", equal, all);
}
