#include "search/budget.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

enum { REFINED_MAX = 16, LEAST_POINTS = 8, FIRST_SHARE = 64 };

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

enum status budget_baseline(const struct network *network, const struct plan_options *options, size_t *bytes)
{
    struct region *region = region_create();
    struct schedule schedule = schedule_empty(region);
    struct plan_options unplaced = *options;
    struct plan *plan = NULL;
    unplaced.unplaced = true;
    schedule_append(&schedule, STEP_FORWARD, 0, network->graph->nodes);
    schedule_append_backward(&schedule, 0, network->graph->nodes, RELU_OUTPUT);
    const enum status status = plan_build(as_written(network, region), &schedule, &unplaced, &plan);
    if (status == ST_OK) *bytes = plan->live_peak;
    plan_destroy(plan);
    region_destroy(region);
    return status;
}

enum status budget_place(const struct optimum *optimum, int point, const struct plan_options *options,
                         struct plan **plan)
{
    struct region *region = region_create();
    struct schedule schedule = schedule_empty(region);
    enum status status = optimum_schedule(optimum, point, &schedule);
    if (status == ST_OK) status = plan_build(optimum->network, &schedule, options, plan);
    region_destroy(region);
    return status;
}

/* Places a point's schedule; takes it where it fits. */
static enum status try_point(const struct optimum *optimum, int point, const struct plan_options *options,
                             struct budgeted *b, size_t *arena)
{
    struct plan *plan;
    TRY(budget_place(optimum, point, options, &plan));
    b->tries++;
    *arena = plan->arena_bytes;
    if (*arena <= b->limit) {
        b->point = point;
        b->live_peak = plan->live_peak;
        b->arena = *arena;
    }
    plan_destroy(plan);
    return ST_OK;
}

enum status budget_find(const struct optimum *optimum, size_t limit, const struct plan_options *options,
                        struct budgeted *b)
{
    const struct front *front = &optimum->front;
    size_t arena;
    const int within = front_at(front, limit);
    int at = within, failed = at + 1;
    *b = (struct budgeted){.point = -1, .limit = limit};
    while (at >= 0 && b->point < 0) {
        TRY(try_point(optimum, at, options, b, &arena));
        if (b->point >= 0) break;
        failed = at;
        limit = arena - b->limit < limit ? limit - (arena - b->limit) : 0;
        at = front_at(front, limit) < at ? front_at(front, limit) : at - 1;
    }
    for (int i = failed - 1, first = b->point; i > first && failed - i <= REFINED_MAX; i--) {
        if (b->point > first) break;
        TRY(try_point(optimum, i, options, b, &arena));
    }
    for (int i = front->count < LEAST_POINTS ? front->count - 1 : LEAST_POINTS - 1; i >= 0 && b->point < 0; i--)
        if (front->point[i].peak <= b->limit) TRY(try_point(optimum, i, options, b, &arena));
    if (b->point >= 0) b->lost = front->point[b->point].time - front->point[within].time;
    return ST_OK;
}

/* The least percentage, to two decimals, of which bytes are a share. */
static double percent_of(size_t bytes, size_t baseline)
{
    double percent = ceil(1e4 * (double)bytes / (double)baseline) / 100;
    while ((double)baseline * percent / 100 < (double)bytes) percent += 0.01;
    return percent;
}

enum status budget_refuse(const struct budget *budget, const struct plan *least, size_t baseline, const char *policy)
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
                 percent_of(least->arena_bytes, baseline));
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

enum status budget_limit(const struct network *network, const struct budget *budget, const struct plan_options *options,
                         const struct plan *least, size_t *limit, size_t *baseline)
{
    *baseline = 0;
    size_t fixed = plan_static(least);
    switch (budget->kind) {
    case BUDGET_LEAST:
        *limit = least->arena_bytes;
        break;
    case BUDGET_BYTES:
        *limit = budget->bytes > fixed ? (size_t)(budget->bytes - fixed) : 0;
        break;
    case BUDGET_PERCENT:
        TRY(budget_baseline(network, options, baseline));
        double share = (double)*baseline * budget->percent / 100;
        *limit = share < (double)(SIZE_MAX / 2) ? (size_t)share : SIZE_MAX / 2;
    }
    return ST_OK;
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

/* The plan of least arena among the points of least memory. */
static enum status find_least(const struct optimum *optimum, const struct plan_options *options, struct plan **least)
{
    *least = NULL;
    for (int i = 0; i < LEAST_POINTS && i < optimum->front.count; i++) {
        struct plan *plan;
        enum status status = budget_place(optimum, i, options, &plan);
        if (status != ST_OK) {
            plan_destroy(*least);
            return status;
        }
        bool better = !*least || plan->arena_bytes < (*least)->arena_bytes;
        plan_destroy(better ? *least : plan);
        if (better) *least = plan;
    }
    return ST_OK;
}

static void extend(struct optimum *optimum, size_t bytes)
{
    if (optimum->most < bytes) optimum_within(optimum, bytes);
}

/* Extends the front until it has the points of least memory; short fronts take little time. */
static enum status extend_to_least(struct optimum *optimum, const struct plan_options *options)
{
    size_t all = 0;
    if (optimum->most == SIZE_MAX) return ST_OK;
    TRY(budget_baseline(optimum->network, options, &all));
    for (size_t bytes = all / FIRST_SHARE + 1; optimum->most < SIZE_MAX && optimum->front.count < LEAST_POINTS;
         bytes *= 2)
        extend(optimum, bytes > all ? SIZE_MAX : bytes);
    return ST_OK;
}

static enum status choose(struct optimum *optimum, const struct budget *budget, const struct plan_options *options,
                          const struct plan *least, struct schedule *schedule, struct budgeted *b)
{
    size_t baseline;
    size_t limit = 0;
    TRY(budget_limit(optimum->network, budget, options, least, &limit, &baseline));
    extend(optimum, limit);
    TRY(budget_find(optimum, limit, options, b));
    if (b->point < 0) return budget_refuse(budget, least, baseline, "optimal");
    return optimum_schedule(optimum, b->point, schedule);
}

enum status budget_schedule(struct optimum *optimum, const struct budget *budget, const struct plan_options *options,
                            struct schedule *schedule, struct budgeted *budgeted)
{
    *budgeted = (struct budgeted){.point = -1};
    struct plan *least;
    TRY(extend_to_least(optimum, options));
    TRY(find_least(optimum, options, &least));
    assert(least); /* a front has a point */
    enum status status = choose(optimum, budget, options, least, schedule, budgeted);
    plan_destroy(least);
    return status;
}
