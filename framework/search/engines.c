#include "search/engines.h"

#include <math.h>

#include "search/bounds.h"
#include "search/drops.h"
#include "search/dtr_simulation.h"
#include "search/improve.h"
#include "search/limits.h"
#include "search/state_search.h"

enum beam { BEAM_LEAST, BEAM_NARROW, BEAM_WIDE };
static const int widths[] = {[BEAM_LEAST] = STATES_LEAST, [BEAM_NARROW] = STATES_NARROW, [BEAM_WIDE] = STATES_WIDE};

static const struct {
    enum beam from;
    int levels;
    enum state_estimate estimate;
    bool deep;
} tried[] = {
#define BEAM(from, levels, estimate, deep) {BEAM_##from, levels, ESTIMATE_##estimate, deep},
    STATES_BEAMS(BEAM)
#undef BEAM
};

struct simulation {
    enum dtr_score score;
    size_t limit;
    bool fits;
};

struct engines {
    struct step_model model;
    size_t all;                    /* bytes with which DTR evicts nothing; 0: it is not simulated */
    struct simulation *simulation; /* of DTR so far, by all scores */
    int simulations;
    size_t least; /* live bytes that engines_least found last; 0: it was not asked */
};

const char *const engine_names[ENGINES + 1] = {"chain",   "dtr",      "msps",   "drops", "states",
                                               "windows", "policies", "slices", NULL};

static int nodes_of(const struct pool *pool) { return pool->whole->graph->nodes; }

/* The least time of a member of at most limit live bytes, less what sums may be rounded by. */
static double time_within(const struct pool *pool, size_t limit)
{
    double time = INFINITY;
    for (int i = 0; i < pool->members; i++)
        if (pool->member[i].point.peak <= limit) time = fmin(time, pool->member[i].point.time);
    return time * (1 - 1e-12);
}

static size_t least_live(const struct pool *pool)
{
    size_t least = SIZE_MAX;
    for (int i = 0; i < pool->members; i++)
        if (pool->member[i].point.peak < least) least = pool->member[i].point.peak;
    return least;
}

static bool add_sequence(struct pool *pool, const struct step_model *model, const struct sequence *sequence,
                         const char *found_by)
{
    region_auto *region = region_create();
    struct schedule schedule = schedule_empty(region);
    sequence_schedule(model, sequence, &schedule);
    return pool_add(pool, &schedule, found_by);
}

/* ---- chain ---- */

/* Solves the stretch of the front just below a limit, and its last point before that. */
static void chain_within(struct pool *pool, size_t limit)
{
    if (pool->without[ENGINE_CHAIN] || optimum_none_within(pool->chain, limit)) return;
    optimum_between(pool->chain, limit - limit / CHAIN_NEAR_SHARE, limit);
    pool_add_chain(pool);
}

static bool chain_reaches(const struct optimum *o, double time)
{
    return o->front.count && o->front.point[o->front.count - 1].time <= time;
}

/* Solves the front from its least memory on, by sketches, until it has a point of at most this time, then exactly. */
static void chain_in_time(struct pool *pool, double time)
{
    struct optimum *o = pool->chain;
    if (pool->without[ENGINE_CHAIN]) return;
    const size_t bound = bounds_find(pool->whole, 1).memory, share = pool->baseline / CHAIN_FIRST_SHARE + 1;
    size_t bytes = share > bound ? share : bound;
    for (o->most = 0; !chain_reaches(o, time) && o->most < SIZE_MAX; bytes += bytes / 4 + 1)
        optimum_sketch(o, bytes > pool->baseline ? SIZE_MAX : bytes);
    const int at = front_in_time(&o->front, time);
    bytes = at < o->front.count ? o->front.point[at].peak : SIZE_MAX / 2;
    optimum_within(o, bytes > pool->baseline ? SIZE_MAX : bytes + bytes / CHAIN_NEAR_SHARE);
    pool_add_chain(pool);
}

/* ---- dtr ---- */

static const struct {
    enum engine engine;
    const char *name;
} scores[DTR_SCORES] = {[DTR_SCORE] = {ENGINE_DTR, "dtr"}, [DTR_MSPS] = {ENGINE_MSPS, "dtr by h_MSPS"}};

/* Simulates, unless that was done before; returns whether it succeeds. */
static bool add_dtr(struct pool *pool, enum dtr_score score, size_t limit)
{
    struct engines *e = pool->engines;
    region_auto *region = region_create();
    struct schedule schedule = schedule_empty(region);
    if (pool->without[scores[score].engine]) return false;
    for (int i = 0; i < e->simulations; i++)
        if (e->simulation[i].score == score && e->simulation[i].limit == limit) return e->simulation[i].fits;
    const size_t peak = dtr_simulate(&e->model, score, limit, &schedule);
    if (!e->all) e->all = peak;
    if (peak) pool_add(pool, &schedule, scores[score].name);
    region_grow(pool->region, &e->simulation, e->simulations, sizeof *e->simulation);
    e->simulation[e->simulations++] = (struct simulation){score, limit, peak > 0};
    return peak > 0;
}

/* Limits of one question: fewer of a large network, whose simulations take long. */
static size_t dtr_limits(const struct pool *pool)
{
    const int most = DTR_NODES / nodes_of(pool);
    return (size_t)(most < 1 ? 1 : most > DTR_LIMITS ? DTR_LIMITS : most);
}

/* Also above the limit, since what is evicted at its last read is dead before; just below it, since a placement may
 * need more; and further below, since a simulation within fewer bytes sometimes takes less time. */
static void dtr_within(struct pool *pool, enum dtr_score score, size_t limit)
{
    const size_t all = pool->engines->all, limits = dtr_limits(pool);
    if (all <= limit) return;
    add_dtr(pool, score, limit);
    for (size_t k = 1; k < limits; k++) {
        add_dtr(pool, score, limit + (all - limit) / limits * k);
        add_dtr(pool, score, limit - limit / DTR_BELOW_SHARE / limits * k);
        add_dtr(pool, score, limit - limit / DTR_NEAR_SHARE / limits * k);
    }
}

/* Bisects the limits between one with a schedule and none; returns the least with one, of all scores. */
static size_t dtr_least(struct pool *pool)
{
    size_t least = pool->engines->all;
    for (enum dtr_score score = 0; score < DTR_SCORES; score++) {
        size_t no = 0, yes = pool->engines->all;
        while (!pool->without[scores[score].engine] && yes - no > yes / STATES_LEAST_RESOLUTION + 1) {
            const size_t at = no + (yes - no) / 2;
            *(add_dtr(pool, score, at) ? &yes : &no) = at;
        }
        dtr_within(pool, score, yes);
        if (yes < least) least = yes;
    }
    return least;
}

/* ---- drops ---- */

static void drops_within(struct pool *pool, size_t limit)
{
    region_auto *region = region_create();
    const struct step_model *model = &pool->engines->model;
    if (pool->without[ENGINE_DROPS]) return;
    const struct sequence sequence = drops_search(model, limit, region);
    if (sequence.length) add_sequence(pool, model, &sequence, "a search over dropped outputs");
}

/* ---- states ---- */

/* Searches for a schedule of at most limit bytes that takes less time than *below, and lowers that; returns whether
 * there is none that takes less. */
static bool search_below(struct pool *pool, size_t limit, double *below, const struct state_effort *effort)
{
    const struct step_model *model = &pool->engines->model;
    region_auto *region = region_create();
    struct state_search_result r = state_search(model, limit, *below, *effort, region);
    if (!r.found) return r.proven;
    const struct sequence_cost cost = sequence_evaluate(model, &r.sequence, limit);
    if (cost.excess > 0) return false; /* the search leaves out masks that no backward reads */
    *below = cost.time;
    add_sequence(pool, model, &r.sequence, "a search over states");
    return r.proven;
}

static bool states_within(struct pool *pool, size_t limit, double below, enum beam beam)
{
    const int nodes = pool->engines->model.forwards;
    const double share = (double)STATES_WIDE_NODES / nodes, cube = share * share * share;
    int width = nodes <= STATES_COMPLETE_NODES ? STATES_COMPLETE_WIDTH : widths[beam];
    bool proven = false;
    if (nodes > STATE_NODES_MAX || pool->without[ENGINE_STATES]) return false;
    if (share < 1) width = (int)(width * cube);
    const int deep = (int)(STATES_DEEP * fmin(cube, STATES_COMPLETE_WIDTH));
    for (size_t i = 0; i < sizeof tried / sizeof *tried && !proven; i++) {
        const int wide = tried[i].deep ? deep : width / tried[i].levels + 1;
        const struct state_effort effort = {wide, tried[i].levels, tried[i].estimate, tried[i].deep};
        if (beam >= tried[i].from && wide) proven = search_below(pool, limit, &below, &effort);
    }
    return proven;
}

/* Bisects between a bound and the least found, again where that found less: a limit with no schedule is no proof that
 * lower ones have none. */
static void states_least(struct pool *pool)
{
    const bool small = nodes_of(pool) <= STATES_COMPLETE_NODES;
    const size_t bound = bounds_find(pool->whole, 1).memory;
    size_t before, yes = least_live(pool);
    do {
        size_t no = bound ? bound - 1 : 0;
        before = yes;
        while (yes > no + 1 && (small || yes - no > yes / STATES_LEAST_RESOLUTION)) {
            const size_t at = no + (yes - no) / 2;
            states_within(pool, at, INFINITY, BEAM_LEAST);
            if (least_live(pool) <= at)
                yes = least_live(pool);
            else
                no = at;
        }
    } while (yes < before && !small);
}

/* ---- windows ---- */

/* Improves the fastest members of at most limit live bytes, one of each engine. */
static void windows_within(struct pool *pool, size_t limit)
{
    const char *improved[ENGINES] = {NULL};
    for (int count = 0; count < WINDOWS_STARTS && !pool->network->slice && !pool->without[ENGINE_WINDOWS]; count++) {
        region_auto *region = region_create();
        const struct member *best = NULL;
        for (int i = 0; i < pool->members; i++) {
            const struct member *member = &pool->member[i];
            bool seen = member->point.peak > limit;
            for (int k = 0; k < count; k++) seen |= member->found_by == improved[k];
            if (!seen && (!best || member->point.time < best->point.time)) best = member;
        }
        if (!best) return;
        improved[count] = best->found_by;
        struct schedule schedule = schedule_empty(region);
        pool_schedule(pool, best, &schedule);
        const struct step_model *model = &pool->engines->model;
        const struct sequence start = sequence_of(model, &schedule, region),
                              faster = improve_windows(model, limit, &start, region);
        if (faster.length) add_sequence(pool, model, &faster, "a search of windows");
    }
}

/* ---- all of them ---- */

void engines_prepare(struct pool *pool)
{
    const struct lower_options options = pool->options.lower;
    struct engines *e;
    NEW(pool->region, e, 1);
    pool->engines = e;
    const struct schedule all = schedule_store_all(nodes_of(pool), pool->region);
    pool_add(pool, &all, "store_all");
    e->model = step_model_create(pool->whole, &options, pool->region);
    for (enum dtr_score score = 0; score < DTR_SCORES; score++) add_dtr(pool, score, SIZE_MAX);
}

static bool search_within(struct pool *pool, size_t limit, enum beam beam)
{
    if (!limit) return false;
    for (enum dtr_score score = 0; score < DTR_SCORES; score++) dtr_within(pool, score, limit);
    drops_within(pool, limit);
    return states_within(pool, limit, time_within(pool, limit), beam);
}

void engines_least(struct pool *pool)
{
    chain_in_time(pool, INFINITY); /* again, too: after a budget it may find other points of least memory */
    if (pool->engines->least && pool->engines->least <= least_live(pool)) return;
    if (pool->engines->all) (void)dtr_least(pool);
    if (pool->engines->model.forwards <= STATE_NODES_MAX && !pool->without[ENGINE_STATES]) states_least(pool);
    const size_t share = nodes_of(pool) <= STATES_COMPLETE_NODES ? SIZE_MAX : STATES_LEAST_RESOLUTION;
    for (size_t before = SIZE_MAX; least_live(pool) < before - before / share;) { /* as for fewer bytes */
        before = least_live(pool);
        if (before) search_within(pool, before - 1, BEAM_WIDE);
    }
    search_within(pool, least_live(pool), BEAM_WIDE);
    pool->engines->least = least_live(pool);
}

/* Whether the limit is so near the least memory that what is found there may be the fastest here, too. */
static bool is_near(size_t limit, size_t least) { return limit - limit / STATES_FLOOR_SHARE <= least; }

/* Near the least memory, engines_least comes first: then it finds what it finds when asked for that alone. */
bool engines_within(struct pool *pool, size_t limit)
{
    const int nodes = nodes_of(pool);
    const bool searched = nodes > STATES_COMPLETE_NODES && nodes <= STATE_NODES_MAX;
    const bool first = searched && pool->engines->all && is_near(limit, dtr_least(pool));
    if (first) engines_least(pool);
    chain_within(pool, limit);
    if (search_within(pool, limit, BEAM_WIDE)) return true;
    windows_within(pool, limit);
    if (first || !is_near(limit, least_live(pool))) return false;
    engines_least(pool);
    chain_within(pool, limit);
    return false;
}

void engines_front(struct pool *pool)
{
    engines_least(pool);
    if (!pool->without[ENGINE_CHAIN]) {
        optimum_within(pool->chain, SIZE_MAX);
        pool_add_chain(pool);
    }
    size_t least = least_live(pool), most = pool->engines->all;
    for (int i = 0; i < pool->members; i++)
        if (pool->member[i].point.peak > most) most = pool->member[i].point.peak;
    if (nodes_of(pool) > STATES_COMPLETE_NODES) {
        for (size_t k = 1; k < STATES_FRONT_LIMITS; k++)
            search_within(pool, least + (most - least) / STATES_FRONT_LIMITS * k, BEAM_NARROW);
        return;
    }
    for (size_t limit = most; limit >= least;) { /* each time the step below the last one */
        search_within(pool, limit, BEAM_WIDE);
        const double time = time_within(pool, limit) * (1 + 2e-12);
        size_t peak = limit;
        for (int i = 0; i < pool->members; i++)
            if (pool->member[i].point.time <= time && pool->member[i].point.peak < peak)
                peak = pool->member[i].point.peak;
        limit = peak - 1;
    }
}

void engines_in_time(struct pool *pool, double time)
{
    chain_in_time(pool, time);
    search_within(pool, least_live(pool), BEAM_NARROW);
}
