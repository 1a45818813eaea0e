/* The result file of one run: HDF5, schema rematch-run 2.0 (results/README.md). It is written as ID.h5.part under SWMR
 * and renamed at the end: a .h5 is always complete, a .part holds every committed step. */
#ifndef REMATCH_RESULT_RECORD_H
#define REMATCH_RESULT_RECORD_H

#include "job/job.h"
#include "result/record_rows.h"

struct record;

/* Creates RESULTS/EXPERIMENT/ID.h5.part with its whole layout: spec, provenance, plan, empty step columns. variant:
 * "baseline" or "variant"; a variant with the id of its baseline (the control) is written as ID-repeat.h5. Runs with
 * the same REMATCH_INVOCATION in their environment were measured side by side. ST_FAILED: it cannot be written (the
 * message names path and reason), or another process is writing it. A file-size limit becomes an error like a full disk
 * (SIGXFSZ is ignored from here on). */
enum status record_create(const struct job *job, const char *variant, struct record **record);

/* The path of the finished file. */
const char *record_path(const struct record *record);

/* With record.state: before the first step the initial parameters, after the last the final ones and the last
 * gradients; the batch of a step. */
enum status record_tensors(struct record *record, bool after, struct executor *exec);
enum status record_batch(struct record *record, uint32_t step, const float *x, const int32_t *labels);

enum status record_step(struct record *record, const struct step_record *step);
enum status record_eval(struct record *record, const struct eval_record *eval);

/* Writes the summary and status ("completed", "failed: ...", "interrupted"); renames a completed file to ID.h5.
 * ST_FAILED: writing failed, now or at an earlier step; the .part holds the committed steps. Frees record. */
enum status record_finish(struct record *record, const char *status, const struct run_summary *summary);

/* Frees record and leaves the .part, readable; HDF5 keeps it open until the process ends. */
void record_abandon(struct record *record);

#endif
