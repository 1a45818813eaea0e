/* The front of a large problem: below a ceiling it is that of all alternatives, approximately it is schedules. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "plan/plan.h"
#include "search/optimum.h"
#include "tests/support/random_chains.h"
#include "tests/support/thinning.h"

/* Some twenty points have the bytes and the time that lowering finds. */
static void check_front(const struct optimum *o, const char *what)
{
    static const struct lower_options usual = {.drop_dead = true};
    for (int i = 0; i < o->front.count; i += 1 + o->front.count / 20) {
        const struct point *p = &o->front.point[i];
        struct region *region = region_create();
        struct schedule schedule = schedule_empty(region);
        optimum_schedule(o, i, &schedule);
        cr_assert(schedule_check(&schedule, &(struct slicing){o->network->graph->nodes, 1, NULL}, false) == ST_OK, "%s",
                  status_message());
        const struct plan_cost cost = plan_cost(o->network, &schedule, &usual);
        cr_assert(cost.live_peak == p->peak && cost.time == p->time, "%s, point %d: %zu %g, lowered %zu %g", what, i,
                  p->peak, p->time, cost.live_peak, cost.time);
        region_destroy(region);
    }
}

/* Whether a front is nowhere behind another one. */
static bool reaches(const struct front *front, const struct front *other)
{
    for (int i = 0; i < other->count; i++) {
        int at = front_at(front, other->point[i].peak);
        if (at < 0 || front->point[at].time > other->point[i].time) return false;
    }
    return true;
}

/* A network of one of three kinds: a chain of any stages, one of few kinds of stages, nodes of any footprints. */
struct any_chain {
    struct sketch sketch;
    struct network *network;
    int kind;
};

static void any_chain_open(struct any_chain *any, struct source *source, int kind, int stages)
{
    enum { STAGES = 64 };
    struct abstract_stage stage[STAGES];
    any->kind = kind;
    cr_assert(stages <= STAGES);
    if (kind == 2) sketch_random(&any->sketch, source, stages);
    chain_draw(source, &narrow_limits, stages, stage);
    for (int i = 2; kind == 1 && i < stages; i++) stage[i] = stage[draw_below(source, 3) == 0];
    any->network = kind == 2 ? any->sketch.network : chain_network(stage, stages);
}

static void any_chain_close(struct any_chain *any)
{
    if (any->kind == 2)
        sketch_end(&any->sketch);
    else
        abstract_destroy(any->network);
}

/* Points [from, count) of a front are those of another one that has nothing else between low and most bytes. */
static void check_equal(const struct front *front, const struct front *whole, size_t low, size_t most, int chain)
{
    const int first = front_at(whole, low) < 0 ? 0 : front_at(whole, low), last = front_at(whole, most);
    cr_assert(front->count == last - first + 1, "chain %d: %d points between %zu and %zu, not %d", chain, front->count,
              low, most, last - first + 1);
    for (int i = 0; i < front->count; i++) {
        const struct point *a = &front->point[i], *b = &whole->point[first + i];
        cr_assert(a->peak == b->peak && a->time == b->time, "chain %d, point %d: %zu %g, not %zu %g", chain, i, a->peak,
                  a->time, b->peak, b->time);
    }
}

/* Solved below a ceiling, the front has the bits that it has without one. */
Test(large_optimum, is_the_same_below_a_ceiling, .timeout = 600)
{
    struct source source = {.seed = 13};
    for (int c = 0; c < 90; c += THINNING) {
        struct any_chain any;
        any_chain_open(&any, &source, c % 3, 6 + c / 3);
        struct optimum *plain = optimum_prepare(any.network, RNG_COUNTER),
                       *below = optimum_prepare(any.network, RNG_COUNTER);
        plain->few = plain->many = below->many = plain->whole = below->whole = INFINITY;
        below->few = 0;
        optimum_within(plain, SIZE_MAX);
        optimum_within(below, SIZE_MAX);
        check_equal(&below->front, &plain->front, 0, SIZE_MAX, c);
        check_front(below, "below a ceiling");
        const size_t least = plain->front.point[0].peak,
                     range = plain->front.point[plain->front.count - 1].peak - least;
        for (size_t part = 0; part < 8; part++) {
            const size_t low = least + range * part / 8, most = low + range / 8;
            optimum_between(below, low, most);
            check_equal(&below->front, &plain->front, low, most, c);
        }
        check_front(below, "between");
        optimum_destroy(plain);
        optimum_destroy(below);
        any_chain_close(&any);
    }
}

/* Where comparisons run out, the front is an approximation and says so; where no schedule of few visits keeps the
 * limit, its least memory is still exact. */
Test(large_optimum, is_approximate_where_comparisons_run_out, .timeout = 600)
{
    struct source source = {.seed = 15};
    for (int c = 0; c < 30; c += THINNING) {
        struct any_chain any;
        any_chain_open(&any, &source, c % 3, 8 + c);
        struct optimum *o = optimum_prepare(any.network, RNG_COUNTER), *exact = optimum_solve(any.network, RNG_COUNTER);
        const size_t least = exact->front.point[0].peak;
        o->few = 0;
        o->steps = 0;
        optimum_within(o, least);
        cr_expect(!o->exact && optimum_approximation(o, o->region), "chain %d", c);
        cr_assert(o->front.count == 1 && o->front.point[0].peak == least, "chain %d: %d points within %zu", c,
                  o->front.count, least);
        check_front(o, "comparisons ran out");
        optimum_within(o, SIZE_MAX);
        cr_expect(!o->exact && reaches(&exact->front, &o->front), "chain %d", c);
        check_front(o, "comparisons ran out");
        optimum_destroy(o);
        optimum_destroy(exact);
        any_chain_close(&any);
    }
}

/* Solved approximately, every point is a schedule of so many bytes and so much time, none better than the front. */
Test(large_optimum, approximations_are_schedules_and_not_ahead, .timeout = 600)
{
    struct source source = {.seed = 14};
    double lost = 0, worst = 0, most = 0;
    int points = 0;
    for (int c = 0; c < 60; c += THINNING) {
        struct any_chain any;
        any_chain_open(&any, &source, c % 3, 4 + c / 2); /* a random network has up to twice the nodes */
        struct optimum *o = optimum_prepare(any.network, RNG_COUNTER), *exact = optimum_solve(any.network, RNG_COUNTER);
        o->whole = o->many = 0;
        optimum_within(o, SIZE_MAX);
        cr_assert(!o->exact && exact->exact && optimum_approximation(o, o->region));
        cr_assert(!optimum_approximation(exact, o->region));
        check_front(o, "approximation");
        cr_assert(reaches(&exact->front, &o->front), "chain %d", c);
        for (int i = 0; i < exact->front.count; i++, points++) {
            const int at = front_at(&o->front, exact->front.point[i].peak);
            const double loss = at < 0 ? 0 : o->front.point[at].time / exact->front.point[i].time - 1;
            lost += loss;
            if (loss > worst) worst = loss;
        }
        const double more = (double)o->front.point[0].peak / (double)exact->front.point[0].peak - 1;
        if (more > most) most = more;
        optimum_destroy(o);
        optimum_destroy(exact);
        any_chain_close(&any);
    }
    printf("approximations of %d points: slower by %.2f %% on average, at most %.1f %%; least memory at most %.1f %% "
           "above\n",
           points, 100 * lost / points, 100 * worst, 100 * most);
}
