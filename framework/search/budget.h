/* Memory budgets.
 *
 * In bytes a budget bounds the peak: static bytes and arena. As a percentage it is a share of store_all's live peak,
 * with activation outputs kept and relus where they were written, and bounds the arena. It is never exceeded. */
#pragma once

#include "plan/plan.h"

enum budget_kind { BUDGET_LEAST, BUDGET_BYTES, BUDGET_PERCENT };

struct budget {
    enum budget_kind kind;
    uint64_t bytes;
    double percent;
};

/* "6GB", "64%", or "least": the least that any schedule needs. ST_SPEC: the message says what was expected. */
enum status budget_parse(const char *text, struct budget *budget);

/* store_all's live peak with relus that keep their outputs and stand where they were written: 100 % for all plans of a
 * model. */
size_t budget_baseline(const struct network *network, const struct plan_options *options);

/* Bytes that a budget other than the least leaves for the arena. */
size_t budget_room(const struct network *network, const struct budget *budget, const struct plan_options *options);

/* ST_SPEC with a message: the policy found no schedule that keeps the budget; the bytes of least, the smallest plan
 * that it found, and the op and the tensors of its peak. */
enum status budget_refuse(const struct network *network, const struct budget *budget,
                          const struct plan_options *options, const struct plan *least, const char *policy);

/* Evaluations must keep the budget, too, and need the same with every schedule of the training: ST_SPEC where that is
 * more than the limit of the arena (0: no limit). */
enum status budget_evaluation(const struct plan *evaluation, size_t limit);
