/* /plan and /memory of a result file: everything known before the first step. */
#ifndef REMATCH_RESULT_RECORD_PLAN_H
#define REMATCH_RESULT_RECORD_PLAN_H

#include "job/job.h"
#include "result/table.h"

/* Columns of /plan/nodes (of the model, and of the kernels: networks are the same if both are equal), /plan/ops and
 * /plan/buffers; attributes of /plan that determine the plan of a schedule, and static bytes besides the parameters',
 * as columns of struct plan_data. */
extern const struct column record_model_columns[], record_node_columns[], record_op_columns[], record_buffer_columns[],
    record_settings[], record_static_settings[];
extern const struct text_column record_node_texts[];

/* Attributes of /plan for the lower bounds; times as slowdowns. The rows of the budget come last, if there is one. */
struct record_bound {
    const char *name;
    bool bytes; /* an unsigned integer; else a real number */
    double value;
};
enum { RECORD_BOUNDS = 7 };
int record_bounds(const struct bounds *own, const struct bounds *budget, double time,
                  struct record_bound row[RECORD_BOUNDS]);

void record_plan(struct h5 *h5, const struct job *job);

/* The categories of memory, static ones first, with the bytes that the plan predicts for each at its peak. */
enum { MEMORY_CATEGORIES = PLAN_DATA_CATEGORIES };
void record_memory(struct h5 *h5, const struct plan *plan);

/* Reads both into data, whose memory is region's. ST_FAILED: something is missing or of another kind. simulate() checks
 * the content. */
enum status record_plan_read(struct h5 *h5, struct region *region, struct plan_data *data);

#endif
