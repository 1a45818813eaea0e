/* What planning finds of a spec before anything runs: a row a stage, what the peak consists of, whether it fits, lower
 * bounds, and why checkpointing does not help where it does not. */
#pragma once

#include "analysis/json_tree.h"
#include "job/job.h"
#include "job/machine.h"

struct plan_summary {
    struct region *region;
    const struct job *job;
    json_t *json; /* all of them, under the keys of `rematch plan --json` */
    struct machine_memory machine;
    size_t store_all_live; /* bytes: live peak of store_all with the same kernels */
};

/* choices: with the plans of other policies that require no setting, and of a network without kernels the front of
 * `optimal`. */
enum status plan_summary_create(const struct job *job, bool choices, struct plan_summary **summary);
void plan_summary_destroy(struct plan_summary *summary);

/* Whether the machine has the memory that the plan needs. */
bool plan_summary_fits(const struct plan_summary *summary);

/* One object; ops: with every op. */
void plan_summary_json(const struct plan_summary *summary, bool ops, FILE *out);

/* Every op of a plan with its live bytes. */
json_t *json_of_ops(const struct plan *plan);

/* The step as what no schedule changes (search/step_model.h), for programs that search for schedules themselves. */
json_t *json_of_step(const struct plan *plan);

/* report/plan_print.c: the spec's name, title and overrides; the whole summary; two plans side by side, with the notes
 * of the second; every op. */
void spec_print_head(const struct spec *spec, FILE *out);
void plan_summary_print(const struct plan_summary *summary, FILE *out);
void plan_summary_print_pair(const struct plan_summary *baseline, const struct plan_summary *variant, FILE *out);
void plan_print_ops(const struct plan *plan, FILE *out);
