/* /plan and /memory of a result file: all that was known before the first step. */
#ifndef REMATCH_RESULT_RECORD_PLAN_H
#define REMATCH_RESULT_RECORD_PLAN_H

#include "job/job.h"
#include "result/table.h"

/* Columns of /plan/nodes (what the model says, and what kernels make of it: together what makes two networks the same),
 * /plan/ops and /plan/buffers; attributes of /plan that decide which plan a schedule gives, and static bytes beside the
 * parameters', as columns of struct plan_data. */
extern const struct column record_model_columns[], record_node_columns[], record_op_columns[], record_buffer_columns[],
    record_settings[], record_static_settings[];
extern const struct text_column record_node_texts[];

/* What /plan says of lower bounds, as attributes: times as factors of the floor, as slowdown is. The last rows are
 * of the budget and are there where there is one. */
struct record_bound {
    const char *name;
    bool bytes; /* an unsigned integer; else a real number */
    double value;
};
enum { RECORD_BOUNDS = 7 };
int record_bounds(const struct bounds *own, const struct bounds *budget, double time,
                  struct record_bound row[RECORD_BOUNDS]);

void record_plan(struct h5 *h5, const struct job *job);

/* The categories of memory, static ones first, and what the plan predicts for each at its peak. */
enum { MEMORY_CATEGORIES = PLAN_DATA_CATEGORIES };
void record_memory(struct h5 *h5, const struct plan *plan);

/* What both wrote; region holds it. ST_FAILED: something is missing or of another kind. Nothing is checked but that:
 * see simulate(). */
enum status record_plan_read(struct h5 *h5, struct region *region, struct plan_data *data);

#endif
