/* What a pool promises, on small networks and on random ones with shortcuts: never behind another policy, nor behind
 * itself with fewer bytes or fewer engines; and what a plan takes suffices for it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "policies/rivals.h"
#include "search/drops.h"
#include "search/improve.h"
#include "search/limits.h"
#include "tests/support/graph_families.h"
#include "tests/support/policy_text.h"
#include "tests/support/simulated.h"
#include "tests/support/small_networks.h"
#include "tests/support/thinning.h"

static const struct plan_options usual = {.lower = {.drop_dead = true}};

static struct plan *plan_by(const struct network *network, const char *policy, const char *settings)
{
    struct plan *plan = policy_text_try(network, policy, settings, &usual);
    if (plan) plan_search_placement(plan);
    return plan;
}

static struct plan *within(const struct network *network, size_t bytes, const char *without)
{
    char settings[96];
    snprintf(settings, sizeof settings, "budget=%zu%s%s", bytes, *without ? " without=" : "", without);
    return plan_by(network, "optimal", settings);
}

/* Runs a check on every small net and on networks of seven families. */
static void check_all(int networks, int nodes, uint32_t seed, void (*check)(const struct network *, const char *))
{
    struct source source = {.seed = seed};
    for (const struct net *net = nets; net->name; net++) {
        struct bound_net b = net_bind(net, RELU_OUTPUT);
        check(b.network, net->name);
        net_release(&b);
    }
    for (int c = 0; c < networks; c += THINNING) {
        struct sketch sketch;
        family_draw(&sketch, &source, c % FAMILIES, nodes + c % 5);
        network_settle_relus(sketch.network);
        check(sketch.network, family_names[c % FAMILIES]);
        sketch_end(&sketch);
    }
}

/* What another policy's plan takes is enough, and enough for its time. */
static void check_policies(const struct network *network, const char *what)
{
    static const char *const others[][2] = {
        {"store_all", ""},          {"optimal", "budget=least"}, {"dtr", "budget=least"},
        {"dtr", "budget=60%"},      {"dtr", "budget=40%"},       {"sqrt", ""},
        {"segments", "segments=3"}, {"every", "unit=stage"},     {"chen", ""},
        {"selective", ""}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct plan *other = plan_by(network, others[i][0], others[i][1]);
        if (!other) continue;
        struct plan *plan = within(network, plan_peak(other), "");
        cr_assert(plan != NULL, "%s, %s %s: %s", what, others[i][0], others[i][1], status_message());
        cr_expect(plan->time <= other->time * (1 + 1e-12), "%s, %s %s: %g, for %g in %zu bytes", what, others[i][0],
                  others[i][1], plan->time, other->time, plan_peak(other));
        cr_expect(plan_peak(plan) <= plan_peak(other) && simulate_plan(plan) == ST_OK, "%s", what);
        plan_destroy(plan);
        plan_destroy(other);
    }
}

Test(pool, is_behind_no_policy_in_its_bytes, .timeout = 600) { check_all(28, 18, 5, check_policies); }

/* More bytes are never slower; and what is refused is less than the least. */
static void check_monotone(const struct network *network, const char *what)
{
    enum { BUDGETS = 12 };
    struct plan *least = plan_by(network, "optimal", "budget=least"), *all = plan_by(network, "store_all", "");
    const size_t low = plan_peak(least), high = plan_peak(all);
    double before = least->time;
    cr_expect(!within(network, low - 1, ""), "%s: less than the least is kept", what);
    for (size_t i = 0; i <= BUDGETS && high > low; i++) {
        struct plan *plan = within(network, low + (high - low) / BUDGETS * i + (i == BUDGETS ? BUDGETS : 0), "");
        cr_assert(plan != NULL, "%s: %s", what, status_message());
        cr_expect(plan->time <= before * (1 + 1e-12), "%s, budget %zu of %d: %g, %g in fewer bytes", what, i, BUDGETS,
                  plan->time, before);
        before = plan->time;
        plan_destroy(plan);
    }
    cr_expect(before <= all->time * (1 + 1e-12), "%s", what);
    plan_destroy(least);
    plan_destroy(all);
}

Test(pool, more_memory_is_never_slower, .timeout = 600) { check_all(28, 18, 6, check_monotone); }

/* Without any one engine a plan is no faster. */
static void check_engines(const struct network *network, const char *what)
{
    struct plan *all = plan_by(network, "store_all", "");
    for (size_t percent = 40; percent <= 80; percent += 20) {
        const size_t bytes = plan_static(all) + all->live_peak / 100 * percent;
        struct plan *plan = within(network, bytes, "");
        for (int e = 0; e < ENGINES && plan; e++) {
            struct plan *fewer = within(network, bytes, engine_names[e]);
            cr_expect(!fewer || plan->time <= fewer->time * (1 + 1e-12), "%s, %zu %%: %g, without %s %g", what, percent,
                      plan->time, engine_names[e], fewer->time);
            plan_destroy(fewer);
        }
        plan_destroy(plan);
    }
    plan_destroy(all);
}

Test(pool, fewer_engines_are_never_faster, .timeout = 600) { check_all(14, 22, 7, check_engines); }

/* Nearly every schedule can be placed in its live peak. So the arena of every second one is written down as a byte
 * more, as where no placement is found, before the pool asks for it. */
static void check_misplaced(const struct network *network, const char *what)
{
    struct pool *pool = rivals_front(network, &usual);
    const struct member *const *origin;
    const struct front front = pool_front(pool, pool->region, &origin);
    for (int i = front.count - 1; i >= 0; i -= 2) {
        struct member *member = &pool->member[origin[i] - pool->member];
        member->arena = member->point.peak + 1;
        member->searched = true;
    }
    for (int i = front.count - 1; i >= 0; i--) {
        const size_t limit = front.point[i].peak;
        const bool missed = (front.count - 1 - i) % 2 == 0;
        const struct selection selection = pool_select(pool, limit);
        const struct member *member = selection.member;
        cr_expect(selection.fastest->point.time == front.point[i].time, "%s, point %d", what, i);
        cr_expect(!member || pool_arena(pool, member) <= limit, "%s, point %d", what, i);
        cr_expect(missed ? member != origin[i] : member && !(selection.lost > 0), "%s, point %d", what, i);
        cr_expect(!missed || !member || selection.tries > 1, "%s, point %d", what, i);
    }
    const struct member *least = pool_least(pool);
    for (int i = 0; i < front.count; i++)
        cr_expect(pool_arena(pool, least) <= pool_arena(pool, origin[i]), "%s, point %d", what, i);
    pool_destroy(pool);
}

Test(pool, what_cannot_be_placed_is_not_taken, .timeout = 300) { check_all(14, 12, 9, check_misplaced); }

/* Of more schedules than are placed for one answer, the one of least arena is not passed over, although its live peak
 * is above what the others let expect. */
Test(pool, the_least_is_kept_where_most_cannot_be_placed)
{
    enum { MEMBERS = 3 * POOL_PLACED };
    const size_t limit = 1 << 20;
    struct bound_net b = net_bind(&nets[0], RELU_OUTPUT);
    struct pool *pool = pool_create(b.network, &usual, NULL);
    NEW(pool->region, pool->member, MEMBERS);
    pool->members = MEMBERS;
    for (int i = 0; i < MEMBERS; i++)
        pool->member[i] =
            (struct member){.point = {limit - (size_t)i, i}, .at = -1, .arena = 2 * limit, .searched = true};
    struct member *last = &pool->member[MEMBERS - 1];
    last->arena = limit;
    cr_expect(pool_least(pool) == last && pool_select(pool, limit).member == last);
    cr_expect(!pool_select(pool, limit - 1).member);
    pool_destroy(pool);
    net_release(&b);
}

/* A search's sequence keeps its limit, takes the time that lowering says, and is no slower than where it began. */
static void check_sequence(const struct step_model *m, const struct lower_options *options,
                           const struct sequence *sequence, size_t limit, double most, const char *what)
{
    struct region *region = region_create();
    struct schedule schedule = schedule_empty(region);
    struct sequence copy = *sequence;
    const struct sequence_cost cost = sequence_evaluate(m, &copy, limit);
    sequence_schedule(m, &copy, &schedule);
    const struct plan_cost lowered = plan_cost(m->network, &schedule, options);
    cr_expect(cost.peak <= limit && !(cost.excess > 0) && cost.time <= most, "%s: %zu of %zu bytes, %g, at most %g",
              what, cost.peak, limit, cost.time, most);
    cr_expect(lowered.live_peak == cost.peak && lowered.time == cost.time, "%s: lowered to %zu bytes, %g", what,
              lowered.live_peak, lowered.time);
    region_destroy(region);
}

static void check_searches_with(const struct network *network, enum rng_mode rng, const char *what)
{
    struct region *region = region_create();
    const struct lower_options options = {.drop_dead = true, .rng = rng};
    const struct step_model m = step_model_create(network, &options, region);
    struct plan *stored = plan_by(network, "store_all", "");
    const size_t all = stored->live_peak;
    plan_destroy(stored);
    for (size_t percent = 35; percent <= 95; percent += 15) {
        const size_t limit = all / 100 * percent;
        const struct sequence dropped = drops_search(&m, limit, region);
        if (!dropped.length) continue;
        struct sequence copy = dropped;
        const double time = sequence_evaluate(&m, &copy, limit).time;
        check_sequence(&m, &options, &dropped, limit, INFINITY, what);
        const struct sequence better = improve_windows(&m, limit, &dropped, region);
        if (better.length) check_sequence(&m, &options, &better, limit, time, what);
    }
    region_destroy(region);
}

static void check_searches(const struct network *network, const char *what)
{
    check_searches_with(network, RNG_COUNTER, what);
    check_searches_with(network, RNG_MASK, what);
}

Test(pool, searches_say_what_their_schedules_take) { check_all(70, 30, 8, check_searches); }
