/* A budget of memory, and a fast schedule whose placed plan keeps it.
 *
 * In bytes a budget bounds the peak: static bytes and arena. As a percentage it is a share of what store_all has live
 * at its peak, activation outputs kept and relus where they were written, and bounds the arena. It is never exceeded:
 * where placing a schedule takes more than its live peak, a schedule for less is taken. */
#ifndef REMATCH_SEARCH_BUDGET_H
#define REMATCH_SEARCH_BUDGET_H

#include "plan/plan.h"
#include "search/optimum.h"

enum budget_kind { BUDGET_LEAST, BUDGET_BYTES, BUDGET_PERCENT };

struct budget {
    enum budget_kind kind;
    uint64_t bytes;
    double percent;
};

/* "6GB", "64%", or "least": as little as any schedule can do with. ST_SPEC says what was expected. */
enum status budget_parse(const char *text, struct budget *budget);
enum status budget_check(const char *text);

/* What store_all has live at its peak where relus keep their outputs and are taken where they were written: 100 % of
 * all of a model's plans. */
enum status budget_baseline(const struct network *network, const struct plan_options *options, size_t *bytes);

/* Bytes that a budget leaves for the arena; least: a plan of least memory, for its static bytes and for BUDGET_LEAST.
 * *baseline: what is 100 %, where the budget is a percentage. */
enum status budget_limit(const struct network *network, const struct budget *budget, const struct plan_options *options,
                         const struct plan *least, size_t *limit, size_t *baseline);

/* ST_SPEC with a message: that the policy of that name found no schedule that keeps the budget, and what least, the
 * smallest that it found, needs and the op and the tensors that set it. */
enum status budget_refuse(const struct budget *budget, const struct plan *least, size_t baseline, const char *policy);

/* A budget is hard for evaluations, too, and no schedule of the training changes what they need: ST_SPEC where that is
 * more than the limit of the arena, 0: there is none. */
enum status budget_evaluation(const struct plan *evaluation, size_t limit);

struct budgeted {
    int point;        /* of the front */
    int tries;        /* schedules placed until one fitted */
    size_t limit;     /* of the arena */
    size_t live_peak; /* of the lowered plan; the front predicts the same to the byte */
    size_t arena;
    double lost; /* time above that of the fastest schedule whose live peak keeps the budget */
};

/* The plan of a point of the front. */
enum status budget_place(const struct optimum *optimum, int point, const struct plan_options *options,
                         struct plan **plan);

/* The fastest point of those looked at whose placed arena takes at most limit bytes; point -1: none of them does. Not
 * every point is placed: those from the fastest that may fit downwards, each time by the excess; of those between the
 * last that did not fit and the one that did, the fastest few; and where nothing fits, a few of least memory. */
enum status budget_find(const struct optimum *optimum, size_t limit, const struct plan_options *options,
                        struct budgeted *budgeted);

/* Appends to an empty schedule; solves as much of the front as that takes. Errors: ST_SPEC where no schedule of the
 * front that was looked at keeps the budget: budget_refuse() with the least arena among a few points of least memory.
 */
enum status budget_schedule(struct optimum *optimum, const struct budget *budget, const struct plan_options *options,
                            struct schedule *schedule, struct budgeted *budgeted);

#endif
