/* The layout of a result file: schema rematch-run 2.0 (results/README.md). */
#ifndef REMATCH_RESULT_RECORD_LAYOUT_H
#define REMATCH_RESULT_RECORD_LAYOUT_H

#include "job/job.h"
#include "result/table.h"

/* Columns of /steps (of struct step_record) and of /eval (of struct eval_record). */
extern const struct column record_step_columns[], record_eval_columns[];

/* Digests of every tensor: gradients, parameters, and the optimiser's state if it has any; how many of the three. */
extern const char *const record_digest_paths[];
int record_digests_kept(const struct job *job);

void record_layout(struct h5 *h5, const struct job *job, const char *variant, const char *id);

#endif
