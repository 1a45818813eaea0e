/* Memory budgets, and a fast schedule whose placed plan keeps one.
 *
 * In bytes a budget bounds the peak: static bytes and arena. As a percentage it is a share of store_all's live peak,
 * with activation outputs kept and relus where they were written, and bounds the arena. It is never exceeded: where the
 * placement of a schedule takes more than its live peak, a schedule with a lower one is taken. */
#pragma once

#include "plan/plan.h"
#include "search/optimum.h"

enum budget_kind { BUDGET_LEAST, BUDGET_BYTES, BUDGET_PERCENT };

struct budget {
    enum budget_kind kind;
    uint64_t bytes;
    double percent;
};

/* "6GB", "64%", or "least": the least that any schedule needs. ST_SPEC: the message says what was expected. */
enum status budget_parse(const char *text, struct budget *budget);
enum status budget_check(const char *text);

/* store_all's live peak with relus that keep their outputs and stand where they were written: 100 % for all plans of a
 * model. */
size_t budget_baseline(const struct network *network, const struct plan_options *options);

/* Bytes that a budget leaves for the arena; least: a plan of least memory, for its static bytes and for BUDGET_LEAST.
 */
size_t budget_limit(const struct network *network, const struct budget *budget, const struct plan_options *options,
                    const struct plan *least);

/* The same of a budget that is not the least. */
size_t budget_room(const struct network *network, const struct budget *budget, const struct plan_options *options);

/* Whether the placed plan keeps the limit of its arena; where only its placement does not, a better one is looked for,
 * as for a plan that was chosen. So a budget is kept that is what the least budget's plan takes. */
bool budget_keep(struct plan *plan, size_t limit);

/* ST_SPEC with a message: the policy found no schedule that keeps the budget; the bytes of least, the smallest plan
 * that it found, and the op and the tensors of its peak. */
enum status budget_refuse(const struct network *network, const struct budget *budget,
                          const struct plan_options *options, const struct plan *least, const char *policy);

/* Evaluations must keep the budget, too, and need the same with every schedule of the training: ST_SPEC where that is
 * more than the limit of the arena (0: no limit). */
enum status budget_evaluation(const struct plan *evaluation, size_t limit);

struct budgeted {
    int point;    /* of the front */
    int tries;    /* schedules placed until one kept the limit */
    size_t limit; /* of the arena */
    bool proven;  /* it is the fastest of all schedules whose live peak keeps the budget */
    double lost;  /* time above that of the fastest schedule whose live peak keeps the budget */
};

/* The plan of a point of the front, and the bytes of its arena alone: placing takes the longest, so a schedule that the
 * front had before is not placed again. */
struct plan *budget_place(const struct optimum *optimum, int point, const struct plan_options *options);
size_t budget_arena(struct optimum *optimum, int point, const struct plan_options *options);

/* Solves the front from its points of least memory on, until it has one of at most this time: a short front takes
 * little time. */
void budget_extend(struct optimum *optimum, double time, const struct plan_options *options);

/* The same by a sketch alone, after which nothing is to be extended; returns the first point of at most this time, the
 * front's count where there is none. */
int budget_sketch(struct optimum *optimum, double time, const struct plan_options *options);

/* The fastest point, of those examined, whose placed arena takes at most limit bytes; point -1: none. Not every point
 * is placed: from the fastest that may fit, downwards by the excess of the last one; then the fastest few between the
 * last that did not fit and the one that did; and where none fits, a few of least memory. */
struct budgeted budget_find(struct optimum *optimum, size_t limit, const struct plan_options *options);

/* Appends to an empty schedule; solves as much of the front as that requires. Errors: ST_SPEC where no point examined
 * keeps the budget: budget_refuse() with the least arena among a few points of least memory. */
enum status budget_schedule(struct optimum *optimum, const struct budget *budget, const struct plan_options *options,
                            struct schedule *schedule, struct budgeted *budgeted);
