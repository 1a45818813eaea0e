/* /plan and /memory of a result file: everything known before the first step. */
#pragma once

#include "job/job.h"
#include "result/table.h"

/* Columns of /plan/nodes (of the model, and of the kernels: networks are the same if all are equal), and of the other
 * tables of /plan; attributes of /plan that determine the plan of a schedule, and static bytes besides the parameters',
 * as columns of struct plan_data. */
extern const struct field record_name_columns[], record_model_columns[], record_node_columns[],
    record_parameter_columns[], record_op_columns[], record_buffer_columns[], record_settings[],
    record_static_settings[];

/* Attributes of /plan for the lower bounds, and within the budget (bytes of the arena), if there is one. */
struct record_bounds {
    uint64_t floor, budget;                                            /* bytes; budget 0: there is none */
    double knapsack, binomial, closure, gap, budget_bound, budget_gap; /* slowdowns; gaps in percent */
};
extern const struct field record_bound_columns[], record_budget_columns[];
struct record_bounds record_bounds(const struct bounds *own, const struct bounds *budget, double time);

/* Readable names of every op and buffer, and of the buffers that are live at the peak. */
struct record_plan_names {
    const char **op, **buffer, **peak;
    size_t peaks;
};
void record_plan_names(const struct plan_data *data, struct region *region, struct record_plan_names *names);

/* Writes both; of /memory the categories, static ones first, with the bytes that the plan predicts for each at its
 * peak. */
enum { MEMORY_CATEGORIES = PLAN_DATA_CATEGORIES };
void record_plan(struct h5 *h5, const struct job *job);

/* Who says what the run recomputed, where another program recorded it and no plan is in the file; "": a plan is. */
const char *record_plan_claimed_by(struct h5 *h5, struct region *region);

/* Reads both into data, whose memory is region's. ST_FAILED: something is missing or of another kind. simulate() checks
 * the content. */
enum status record_plan_read(struct h5 *h5, struct region *region, struct plan_data *data);

/* The times that the data has of its nodes. */
void record_plan_costs(const struct plan_data *data, struct cost *cost);
