/* Networks with shortcuts: searches over states against an independent one, `optimal` against both. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "search/state_search.h"
#include "tests/support/graph_families.h"
#include "tests/support/graph_search.h"
#include "tests/support/thinning.h"

static const struct plan_options usual = {.lower = {.drop_dead = true}};

/* What lowering says of a sequence. */
static struct plan_cost cost_of(const struct step_model *m, const struct sequence *sequence, struct region *region)
{
    struct schedule schedule = schedule_empty(region);
    sequence_schedule(m, sequence, NULL, &schedule);
    cr_assert(schedule_check(&schedule, m->nodes, false) == ST_OK, "%s: %s", status_message(),
              schedule_print(&schedule, region));
    return plan_cost(m->network, &schedule, &usual.lower);
}

/* The whole front, point by point, of the search over states and of the independent one. */
static void check_states(const struct sketch *sketch, const char *what)
{
    struct region *region = region_create();
    const struct step_model m = step_model_create(sketch->network, &usual.lower, region);
    size_t limit = SIZE_MAX / 2, expanded = 0;
    for (int point = 0;; point++) {
        struct schedule schedule = schedule_empty(region);
        double least = INFINITY;
        const bool any = graph_search(sketch->network, limit, true, &least, &schedule);
        const struct state_search_result r = state_search(&m, limit, INFINITY, 100000, region);
        expanded += r.expanded;
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
    printf("%s: %zu states\n", what, expanded);
    region_destroy(region);
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
