#include "search/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/budget.h"
#include "search/limits.h"

struct pool *pool_create(const struct network *network, const struct plan_options *options, const bool *without)
{
    struct region *region = region_create();
    struct pool *pool = region_array(region, 1, sizeof *pool);
    *pool = (struct pool){.region = region, .network = network, .whole = network, .options = *options};
    if (network->slice) pool->whole = network_unsliced(network, region);
    pool->baseline = budget_baseline(network, options);
    pool->stages = stages_find(pool->whole->graph, region).count;
    for (int e = 0; without && e < ENGINES; e++) pool->without[e] = without[e];
    pool->without[ENGINE_CHAIN] |= pool->stages > CHAIN_STAGES;
    if (!pool->without[ENGINE_CHAIN]) pool->chain = optimum_prepare(pool->whole, options->lower.rng);
    return pool;
}

const char *pool_approximation(const struct pool *pool)
{
    if (pool->chain) return optimum_approximation(pool->chain, pool->region);
    return region_text(pool->region, "without the programme on stages, which takes up to %d; this network has %d",
                       CHAIN_STAGES, pool->stages);
}

void pool_destroy(struct pool *pool)
{
    if (!pool) return;
    optimum_destroy(pool->chain);
    region_destroy(pool->region);
}

/* ---- members ---- */

/* Whether the op is half a backward, and there are forwards before the other half. */
static bool is_apart(const struct lowered *l, int op)
{
    int next = op + 1;
    if (l->op[op].kind != OP_BACKWARD) return false;
    while (next < l->ops && l->op[next].kind == OP_FORWARD) next++;
    return next > op + 1 && next < l->ops && l->op[next].kind == OP_BACKWARD && l->op[next].node == l->op[op].node;
}

/* The schedule of the ops that another was lowered to. A node's backward stands at the first of its ops; that of a node
 * without ops may stand anywhere. */
static void append_lowered(const struct lowered *l, int nodes, struct schedule *schedule)
{
    int due = nodes, next = 0; /* backwards of nodes from due on are written, and first forwards below next */
    for (int i = 0; i < l->ops; i++) {
        const struct op *op = &l->op[i];
        if (op->kind == OP_COPY) continue; /* its node's backward follows */
        if (op->kind == OP_FORWARD) {
            const bool first = op->node >= next; /* nodes without a forward come before it */
            schedule_append(schedule, STEP_FORWARD, first ? next : op->node, op->node + 1);
            if (first) next = op->node + 1;
        } else if (is_apart(l, i)) {
            schedule_append(schedule, STEP_BACKWARD, op->node + 1, due);
            schedule_append(schedule, STEP_PARAMS, op->node, op->node + 1);
            due = op->node + 1;
        } else if (op->node < due) {
            schedule_append(schedule, STEP_BACKWARD, op->node, due);
            due = op->node;
        }
    }
    schedule_append(schedule, STEP_BACKWARD, 0, due);
}

static struct member *append(struct pool *pool, struct member member)
{
    region_grow(pool->region, &pool->member, pool->members, sizeof *pool->member);
    pool->member[pool->members] = member;
    return &pool->member[pool->members++];
}

bool pool_add(struct pool *pool, const struct schedule *schedule, const char *found_by)
{
    struct plan_options options = pool->options;
    options.unplaced = true;
    plan_auto *plan = plan_build(pool->network, schedule, &options);
    for (int i = 0; i < pool->members; i++) {
        const struct point *other = &pool->member[i].point;
        if (other->peak == plan->live_peak && other->time == plan->time) return false;
    }
    struct member *new = append(pool, (struct member){.found_by = found_by,
                                                      .point = {plan->live_peak, plan->time},
                                                      .at = -1,
                                                      .schedule = schedule_empty(pool->region)});
    if (pool->network->slice)
        schedule_append_all(&new->schedule, schedule);
    else
        append_lowered(&plan->lowered, pool->network->graph->nodes, &new->schedule);
    return true;
}

/* In slices a schedule needs other bytes than the front of the whole batch says. */
static void add_sliced(struct pool *pool)
{
    const int last = pool->chain->front.count - 1, points = last < POOL_SLICED_POINTS ? last + 1 : POOL_SLICED_POINTS;
    for (int i = 0; i < points; i++) {
        region_auto *region = region_create();
        struct schedule schedule = schedule_empty(region);
        optimum_schedule(pool->chain, points > 1 ? (int)((int64_t)i * last / (points - 1)) : last, &schedule);
        pool_add(pool, &schedule, NULL);
    }
}

void pool_add_chain(struct pool *pool)
{
    int kept = 0;
    if (pool->network->slice) {
        add_sliced(pool);
        return;
    }
    for (int i = 0; i < pool->members; i++)
        if (pool->member[i].at < 0) pool->member[kept++] = pool->member[i];
    pool->members = kept;
    for (int i = 0; i < pool->chain->front.count; i++)
        append(pool, (struct member){.point = pool->chain->front.point[i], .at = i});
}

void pool_schedule(const struct pool *pool, const struct member *member, struct schedule *schedule)
{
    if (member->at < 0)
        schedule_append_all(schedule, &member->schedule);
    else
        optimum_schedule(pool->chain, member->at, schedule);
}

/* ---- answers ---- */

static int by_number(double a, double b) { return (a > b) - (a < b); }

/* By time, then live peak; of equal ones those of the programme first. */
static int by_time(const void *x, const void *y)
{
    const struct member *a = *(struct member *const *)x, *b = *(struct member *const *)y;
    if (a->point.time != b->point.time) return by_number(a->point.time, b->point.time);
    if (a->point.peak != b->point.peak) return a->point.peak < b->point.peak ? -1 : 1;
    return (a->found_by != NULL) - (b->found_by != NULL);
}

/* By live peak, then time. */
static int by_peak(const void *x, const void *y)
{
    const struct member *a = *(struct member *const *)x, *b = *(struct member *const *)y;
    if (a->point.peak != b->point.peak) return a->point.peak < b->point.peak ? -1 : 1;
    return by_time(x, y);
}

/* The members of at most limit live bytes, in order. */
static int list_members(const struct pool *pool, size_t limit, int (*order)(const void *, const void *),
                        struct region *region, struct member ***list)
{
    int count = 0;
    NEW(region, *list, (size_t)pool->members);
    for (int i = 0; i < pool->members; i++)
        if (pool->member[i].point.peak <= limit) (*list)[count++] = &pool->member[i];
    qsort(*list, (size_t)count, sizeof **list, order);
    return count;
}

struct front pool_front(const struct pool *pool, struct region *region, const struct member *const **origin)
{
    struct member **list;
    const struct member **kept;
    struct front front = {0, NULL};
    double least = INFINITY;
    const int count = list_members(pool, SIZE_MAX, by_peak, region, &list);
    NEW(region, front.point, (size_t)count);
    NEW(region, kept, (size_t)count);
    for (int i = 0; i < count; i++) {
        if (!(list[i]->point.time < least)) continue;
        least = list[i]->point.time;
        kept[front.count] = list[i];
        front.point[front.count++] = list[i]->point;
    }
    *origin = kept;
    return front;
}

static struct plan *quick_plan(const struct pool *pool, const struct member *member)
{
    region_auto *region = region_create();
    struct schedule schedule = schedule_empty(region);
    pool_schedule(pool, member, &schedule);
    return plan_build(pool->network, &schedule, &pool->options);
}

struct plan *pool_plan(const struct pool *pool, const struct member *member)
{
    struct plan *plan = quick_plan(pool, member);
    if (!pool->options.unplaced) plan_search_placement(plan);
    return plan;
}

/* Places the member by the quick placement, and by the search for placements where that takes more than enough. */
static void place(const struct pool *pool, struct member *member, size_t enough)
{
    plan_auto *plan = quick_plan(pool, member);
    member->searched = plan->arena_bytes > enough || plan->arena_bytes == plan->live_peak;
    if (plan->arena_bytes > enough && !pool->options.unplaced) plan_search_placement(plan);
    member->arena = plan->arena_bytes;
}

size_t pool_arena(struct pool *pool, const struct member *found)
{
    struct member *member = &pool->member[found - pool->member];
    if (!member->searched) place(pool, member, 0);
    return member->arena;
}

/* Members that are placed for one answer, some of them by the search. */
struct tries {
    size_t enough; /* bytes that are not searched for fewer */
    int most, placed, searched;
    size_t over; /* bytes that the last one takes above its live peak */
};

static struct tries tries_of(const struct pool *pool, size_t enough)
{
    const int most = POOL_PLACED_NODES / pool->network->graph->nodes;
    return (struct tries){.enough = enough, .most = most < 1 ? 1 : most < POOL_PLACED ? most : POOL_PLACED};
}

/* Whether the member can be placed within the limit. Once so many were placed, those whose arena is not known do not
 * fit if they would not by taking as much above their live peak as the last one. */
static bool fits(const struct pool *pool, struct member *member, size_t limit, struct tries *tries)
{
    const bool search = tries->searched < POOL_SEARCHED;
    if (tries->placed >= tries->most && !member->arena && member->point.peak + tries->over > limit) return false;
    tries->placed++;
    if (!member->arena || (member->arena > limit && !member->searched && search)) {
        place(pool, member, search ? tries->enough : SIZE_MAX);
        tries->searched += member->arena > member->point.peak && member->searched;
    }
    tries->over = member->arena - member->point.peak;
    return member->arena <= limit;
}

struct selection pool_select(struct pool *pool, size_t limit)
{
    region_auto *region = region_create();
    struct selection selection = {NULL};
    struct member **list;
    struct tries tries = tries_of(pool, limit);
    const int count = list_members(pool, limit, by_time, region, &list);
    if (count) selection.fastest = list[0];
    for (int i = 0; i < count && !selection.member; i++)
        if (fits(pool, list[i], limit, &tries)) selection.member = list[i];
    selection.tries = tries.placed;
    if (selection.member) selection.lost = selection.member->point.time - selection.fastest->point.time;
    return selection;
}

const struct member *pool_least(struct pool *pool)
{
    region_auto *region = region_create();
    struct member **list, *least = NULL;
    struct tries tries = tries_of(pool, 0);
    size_t bytes = SIZE_MAX;
    const int count = list_members(pool, SIZE_MAX, by_peak, region, &list);
    for (int i = 0; i < count && list[i]->point.peak < bytes; i++)
        if (fits(pool, list[i], bytes - 1, &tries)) {
            least = list[i];
            bytes = pool_arena(pool, least);
        }
    return least;
}
