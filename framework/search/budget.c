#include "search/budget.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "plan/placement.h"
#include "search/bounds.h"
#include "search/schedule_search.h"

enum { REFINED_MAX = 16, LEAST_POINTS = 8, FIRST_SHARE = 64, NEAR_SHARE = 32, LOWERED = 3, LOWERED_SHARE = 100 };

enum status budget_check(const char *text)
{
    struct budget budget;
    return budget_parse(text, &budget);
}

enum status budget_parse(const char *text, struct budget *budget)
{
    *budget = (struct budget){.kind = BUDGET_LEAST};
    if (!strcmp(text, "least")) return ST_OK;
    size_t length = strlen(text);
    const char *wrong;
    if (length && length < 32 && text[length - 1] == '%') {
        char number[32];
        memcpy(number, text, length);
        number[length - 1] = '\0';
        budget->kind = BUDGET_PERCENT;
        wrong = text_to_real(number, &budget->percent);
        if (!wrong && !(budget->percent > 0)) wrong = "is not greater than 0";
    } else {
        budget->kind = BUDGET_BYTES;
        wrong = text_to_bytes(text, &budget->bytes);
        if (!wrong && !budget->bytes) wrong = "is not greater than 0";
    }
    if (!wrong) return ST_OK;
    return fail(ST_SPEC,
                "'%.*s' %s; expected bytes such as 6GB, a share of store_all such as 64%%, or "
                "least",
                text_shown(text, 40), text, wrong);
}

/* A copy in which a relu that is moved behind a pool has the footprint of where it was written. */
static struct network *as_written(const struct network *network, struct region *region)
{
    struct network *written = network_copy(network, region);
    for (int i = 0; i < network->graph->nodes; i++) {
        const struct node *node = &network->graph->node[i];
        if (!node->relu_of_input) continue;
        struct footprint *here = &written->binding[i].footprint;
        struct footprint *there = &written->binding[node->inputs[0] - 1].footprint;
        here->reads[PART_INDEX_INPUT] &= ~(unsigned)READS_Y;
        here->writes_dy = false;
        there->reads[PART_INDEX_PARAMS] |= READS_Y;
        there->writes_dy = true;
    }
    return written;
}

size_t budget_baseline(const struct network *network, const struct plan_options *options)
{
    struct region *region = region_create();
    struct schedule schedule = schedule_empty(region);
    schedule_append(&schedule, STEP_FORWARD, 0, network->graph->nodes);
    schedule_append_backward(&schedule, 0, network->graph->nodes, RELU_OUTPUT);
    const size_t bytes = plan_cost(as_written(network, region), &schedule, &options->lower).live_peak;
    region_destroy(region);
    return bytes;
}

struct plan *budget_place(const struct optimum *optimum, int point, const struct plan_options *options)
{
    struct region *region = region_create();
    struct schedule schedule = schedule_empty(region);
    optimum_schedule(optimum, point, &schedule);
    struct plan *plan = plan_build(optimum->target, &schedule, options);
    region_destroy(region);
    return plan;
}

size_t budget_arena(struct optimum *optimum, int point, const struct plan_options *options)
{
    struct plan_options unplaced = *options;
    unplaced.unplaced = true;
    struct plan *plan = budget_place(optimum, point, &unplaced);
    int at = 0;
    while (at < optimum->placings && !digest_equal(optimum->placing[at].schedule, plan->hash)) at++;
    if (at == optimum->placings) {
        const struct lowered *l = &plan->lowered;
        region_grow(optimum->region, &optimum->placing, at, sizeof *optimum->placing);
        optimum->placing[optimum->placings++] =
            (struct placing){plan->hash, options->unplaced ? plan->live_peak : placement_assign(l->buffer, l->buffers)};
    }
    plan_destroy(plan);
    return optimum->placing[at].arena;
}

/* Takes a point where its arena fits; returns the bytes of that. */
static size_t try_point(struct optimum *optimum, int point, const struct plan_options *options, struct budgeted *b)
{
    const size_t arena = budget_arena(optimum, point, options);
    b->tries++;
    if (arena <= b->limit) b->point = point;
    return arena;
}

struct budgeted budget_find(struct optimum *optimum, size_t limit, const struct plan_options *options)
{
    const struct front *front = &optimum->front;
    const int within = front_at(front, limit);
    int at = within, failed = at + 1;
    struct budgeted b = {.point = -1, .limit = limit};
    while (at >= 0 && b.point < 0) {
        const size_t arena = try_point(optimum, at, options, &b);
        if (b.point >= 0) break;
        failed = at;
        limit = arena - b.limit < limit ? limit - (arena - b.limit) : 0;
        at = front_at(front, limit) < at ? front_at(front, limit) : at - 1;
    }
    for (int i = failed - 1, first = b.point; i > first && failed - i <= REFINED_MAX; i--) {
        if (b.point > first) break;
        try_point(optimum, i, options, &b);
    }
    /* a schedule of the whole batch may take fewer bytes in slices than its point says */
    const bool exact = optimum->target == optimum->network;
    for (int i = front->count < LEAST_POINTS ? front->count - 1 : LEAST_POINTS - 1; i >= 0 && b.point < 0; i--)
        if (!exact || front->point[i].peak <= b.limit) try_point(optimum, i, options, &b);
    if (b.point >= 0 && within >= 0) b.lost = fmax(front->point[b.point].time - front->point[within].time, 0);
    return b;
}

bool budget_keep(struct plan *plan, size_t limit)
{
    if (plan->live_peak <= limit && plan->arena_bytes > limit) plan_search_placement(plan);
    return plan->arena_bytes <= limit;
}

/* The least percentage, to two decimals, of which bytes are a share. */
static double percent_of(size_t bytes, size_t baseline)
{
    double percent = ceil(1e4 * (double)bytes / (double)baseline) / 100;
    while ((double)baseline * percent / 100 < (double)bytes) percent += 0.01;
    return percent;
}

enum status budget_refuse(const struct network *network, const struct budget *budget,
                          const struct plan_options *options, const struct plan *least, const char *policy)
{
    char op[128], bytes[UNIT_TEXT], given[UNIT_TEXT], share[64] = "", fixed[96] = "";
    const bool percent = budget->kind == BUDGET_PERCENT;
    const char *tensors = plan_peak_text(least, least->region);
    if (percent)
        snprintf(given, sizeof given, "%.10g%%", budget->percent);
    else
        exact_bytes_text((size_t)budget->bytes, given);
    if (percent)
        snprintf(share, sizeof share, "%.2f%% of store_all's live peak, outputs kept, ",
                 percent_of(least->arena_bytes, budget_baseline(network, options)));
    if (plan_static(least))
        snprintf(fixed, sizeof fixed, ", %s %s that no schedule changes", percent ? "besides" : "including",
                 bytes_text((double)plan_static(least), bytes));
    return fail(
        ST_SPEC,
        "policy.budget: %s: %s found no schedule that keeps it; the smallest budget that it found kept is %s%s%s; it "
        "is set by %s with %s",
        given, policy, share, exact_bytes_text(percent ? least->arena_bytes : plan_peak(least), bytes), fixed,
        plan_op_text(least, least->peak_op, op), tensors);
}

size_t budget_limit(const struct network *network, const struct budget *budget, const struct plan_options *options,
                    const struct plan *least)
{
    const size_t fixed = plan_static(least);
    if (budget->kind == BUDGET_LEAST) return least->arena_bytes;
    if (budget->kind == BUDGET_BYTES) return budget->bytes > fixed ? (size_t)(budget->bytes - fixed) : 0;
    const double share = (double)budget_baseline(network, options) * budget->percent / 100;
    return share < (double)(SIZE_MAX / 2) ? (size_t)share : SIZE_MAX / 2;
}

enum status budget_evaluation(const struct plan *evaluation, size_t limit)
{
    if (!limit || evaluation->arena_bytes <= limit) return ST_OK;
    char needs[UNIT_TEXT], leaves[UNIT_TEXT], op[128];
    const char *tensors = plan_peak_text(evaluation, evaluation->region);
    return fail(ST_SPEC,
                "policy.budget: an evaluation needs an arena of %s, and the budget leaves %s; it is set by %s with %s",
                exact_bytes_text(evaluation->arena_bytes, needs), exact_bytes_text(limit, leaves),
                plan_op_text(evaluation, evaluation->peak_op, op), tensors);
}

/* The point of least arena among those of least memory. */
static int find_least(struct optimum *optimum, const struct plan_options *options)
{
    int least = 0; /* a front has a point */
    for (int i = 1; i < LEAST_POINTS && i < optimum->front.count; i++)
        if (budget_arena(optimum, i, options) < budget_arena(optimum, least, options)) least = i;
    return least;
}

static void extend(struct optimum *optimum, size_t bytes)
{
    if (optimum->most < bytes || optimum->low) optimum_within(optimum, bytes);
}

static bool reaches(const struct optimum *optimum, int points, double time)
{
    const struct front *front = &optimum->front;
    return front->count >= points && front->point[front->count - 1].time <= time;
}

int budget_sketch(struct optimum *optimum, double time, const struct plan_options *options)
{
    const size_t all = budget_baseline(optimum->target, options);
    const size_t bound = bounds_find(optimum->network, 1).memory, share = all / FIRST_SHARE + 1;
    size_t bytes = share > bound ? share : bound;
    if (!optimum->front.count && optimum->most > bytes) bytes = optimum->most + optimum->most / 4 + 1;
    for (; !reaches(optimum, 1, time) && optimum->most < SIZE_MAX; bytes += bytes / 4 + 1)
        optimum_sketch(optimum, bytes > all ? SIZE_MAX : bytes);
    return front_in_time(&optimum->front, time);
}

/* A sketch says how many bytes suffice, which are then solved at once. */
void budget_extend(struct optimum *optimum, double time, const struct plan_options *options)
{
    if (optimum->most == SIZE_MAX || reaches(optimum, LEAST_POINTS, time)) return;
    const int point = budget_sketch(optimum, time, options);
    const size_t all = budget_baseline(optimum->target, options);
    size_t bytes = point < optimum->front.count ? optimum->front.point[point].peak : SIZE_MAX;
    do {
        optimum_within(optimum, bytes > all ? SIZE_MAX : bytes + bytes / NEAR_SHARE);
        bytes += bytes / 4 + 1;
    } while (!reaches(optimum, LEAST_POINTS, time) && optimum->most < SIZE_MAX);
}

/* budget_find(); where the placement of the fastest schedules does not keep the limit, after searches for lower ones.
 */
static struct budgeted find_lowered(struct optimum *optimum, size_t limit, const struct plan_options *options)
{
    size_t at = limit;
    struct budgeted b = budget_find(optimum, limit, options);
    for (int i = 0; i < LOWERED && optimum->search && b.lost > 0; i++) {
        schedule_search_within(optimum, at -= limit / LOWERED_SHARE, false);
        b = budget_find(optimum, limit, options);
    }
    return b;
}

/* Bytes that a budget other than the least leaves for the arena. */
size_t budget_room(const struct network *network, const struct budget *budget, const struct plan_options *options)
{
    const struct plan_options unplaced = {options->lower, options->state_per_parameter, .unplaced = true};
    struct region *region = region_create();
    struct schedule schedule = schedule_empty(region);
    schedule_append(&schedule, STEP_FORWARD, 0, network->graph->nodes);
    schedule_append(&schedule, STEP_BACKWARD, 0, network->graph->nodes);
    struct plan *plan = plan_build(network, &schedule, &unplaced);
    const size_t limit = budget_limit(network, budget, options, plan);
    plan_destroy(plan);
    region_destroy(region);
    return limit;
}

/* Solves a short stretch of the front below the limit, which takes the least time, or where no schedule keeps
 * it, the front's beginning; false: the schedules as placed do not keep the limit. */
static bool find_near(struct optimum *optimum, const struct budget *budget, const struct plan_options *options,
                      struct schedule *schedule, struct budgeted *budgeted)
{
    if (budget->kind == BUDGET_LEAST) return false;
    const size_t limit = budget_room(optimum->target, budget, options);
    if (optimum_none_within(optimum, limit))
        budget_extend(optimum, INFINITY, options); /* so that a refusal needs no other front */
    else
        optimum_between(optimum, limit - limit / NEAR_SHARE, limit);
    const bool proven = schedule_search_within(optimum, limit, true);
    *budgeted = find_lowered(optimum, limit, options);
    budgeted->proven = proven && optimum->target == optimum->network && budgeted->point >= 0 && !(budgeted->lost > 0);
    if (budgeted->point >= 0) optimum_schedule(optimum, budgeted->point, schedule);
    return budgeted->point >= 0;
}

/* The last resort: the points of least arena and of least live peak, placed by a search. */
static void place_again(struct optimum *optimum, const struct plan_options *options, struct budgeted *b)
{
    const int point[] = {find_least(optimum, options), 0};
    for (int i = 0; i < 2 && b->point < 0; i++) {
        struct plan *plan = budget_place(optimum, point[i], options);
        if (budget_keep(plan, b->limit)) b->point = point[i];
        plan_destroy(plan);
    }
}

enum status budget_schedule(struct optimum *optimum, const struct budget *budget, const struct plan_options *options,
                            struct schedule *schedule, struct budgeted *budgeted)
{
    enum status status = ST_OK;
    if (find_near(optimum, budget, options, schedule, budgeted)) return ST_OK;
    budget_extend(optimum, INFINITY, options);
    if (budget->kind == BUDGET_LEAST) schedule_search_least(optimum);
    struct plan *least = budget_place(optimum, find_least(optimum, options), options);
    const size_t limit = budget_limit(optimum->target, budget, options, least);
    extend(optimum, limit);
    *budgeted =
        budget->kind == BUDGET_LEAST ? budget_find(optimum, limit, options) : find_lowered(optimum, limit, options);
    if (budgeted->point < 0) {
        schedule_search_least(optimum);
        plan_destroy(least);
        least = budget_place(optimum, find_least(optimum, options), options);
        *budgeted = budget_find(optimum, limit, options);
    }
    if (budgeted->point < 0) place_again(optimum, options, budgeted);
    if (budgeted->point >= 0)
        optimum_schedule(optimum, budgeted->point, schedule);
    else
        status = budget_refuse(optimum->target, budget, options, least, "optimal");
    plan_destroy(least);
    return status;
}
