/* Every schedule that an engine or a policy found for a network, and the answers to questions about them: the fastest
 * that can be placed within some bytes, the one of least memory, the front. A schedule is placed when that is first
 * asked, by the quick placement, and by the search for placements (placement_search.h) where that does not suffice.
 *
 * More schedules never make an answer worse. But what the engines (engines.h) add depends in part on what is asked:
 * that an answer with more bytes is no slower is tested (tests/search/test_pool.c), not guaranteed. */
#pragma once

#include "plan/plan.h"
#include "search/optimum.h"

struct member {
    const char *found_by; /* NULL: the programme on stages */
    struct point point;   /* live peak, and time of all ops */
    int at;               /* of the programme's front, whose schedule it is; -1: it has its own */
    struct schedule schedule;
    size_t arena;  /* bytes of the placement found so far; 0: not placed yet */
    bool searched; /* no search for placements will find fewer */
};

/* Who fills a pool, each of which can be left out to see what it wins: the engines of engines.h, other policies, and
 * schedules of slices. */
enum engine {
    ENGINE_CHAIN,
    ENGINE_DTR,
    ENGINE_MSPS,
    ENGINE_DROPS,
    ENGINE_STATES,
    ENGINE_WINDOWS,
    ENGINE_POLICIES,
    ENGINE_SLICES,
    ENGINES
};
extern const char *const engine_names[ENGINES + 1]; /* ended by NULL */

struct engines;

struct pool {
    struct region *region;
    const struct network *network; /* that is planned, maybe in slices */
    const struct network *whole;   /* without slices */
    struct plan_options options;
    size_t baseline;         /* live bytes of storing everything (budget.h) */
    int stages;              /* of the whole network */
    struct optimum *chain;   /* of it; NULL: left out, or there are more than CHAIN_STAGES stages */
    struct engines *engines; /* the rest of them */
    bool without[ENGINES];   /* left out */
    struct member *member;
    int members;
};

/* Without members. options: of the plans to be built; without: by enum engine, those left out, NULL: none. */
struct pool *pool_create(const struct network *network, const struct plan_options *options, const bool *without);
void pool_destroy(struct pool *pool);

/* Adds a schedule of any class without its dead recomputations; with them where the batch is in slices. found_by must
 * outlive the pool. Returns whether it is a new one. */
bool pool_add(struct pool *pool, const struct schedule *schedule, const char *found_by);

/* Adds the points of the programme's front, in place of those of the last one. */
void pool_add_chain(struct pool *pool);

/* What the programme left out, as text; NULL: nothing. */
const char *pool_approximation(const struct pool *pool);

/* Appends a member's schedule to an empty one. */
void pool_schedule(const struct pool *pool, const struct member *member, struct schedule *schedule);

/* The members that no other one beats in live peak and time, as a front in region; (*origin)[point]: the member. */
struct front pool_front(const struct pool *pool, struct region *region, const struct member *const **origin);

struct selection {
    const struct member *member;  /* NULL: none can be placed within the limit */
    const struct member *fastest; /* of those whose live peak keeps the limit; NULL: none does */
    int tries;                    /* members that were placed */
    double lost;                  /* time above that of the fastest */
};

/* The fastest member whose arena takes at most limit bytes. Where many cannot be placed there, not all are tried. */
struct selection pool_select(struct pool *pool, size_t limit);

/* The member of least arena, with the same exception; there must be one. */
const struct member *pool_least(struct pool *pool);

/* A member's plan with its arena; and the bytes of that. */
struct plan *pool_plan(const struct pool *pool, const struct member *member);
size_t pool_arena(struct pool *pool, const struct member *member);
