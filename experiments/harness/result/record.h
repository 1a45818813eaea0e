/* The result file of one run: HDF5, schema rematch-run 2.0 (results/README.md). Written as ID.h5.part under SWMR and
 * renamed at the end, so that a .h5 is always whole and a .part holds every committed step. */
#ifndef REMATCH_RESULT_RECORD_H
#define REMATCH_RESULT_RECORD_H

#include "job/job.h"
#include "result/record_rows.h"

struct record;

/* Creates RESULTS/EXPERIMENT/ID.h5.part with its whole layout: spec, provenance, plan, empty step columns. variant:
 * "baseline" or "variant"; a variant of its baseline's very id (the control) is written as ID-repeat.h5. Runs whose
 * environment has the same REMATCH_INVOCATION were measured side by side. ST_FAILED: cannot be written (message names
 * the path and why), or another process is writing it. A file-size limit becomes an error like a full disk (SIGXFSZ is
 * ignored from here on). */
enum status record_create(const struct job *job, const char *variant, struct record **record);

/* Run id: 16 hexadecimal digits; and the path the finished file has. */
const char *record_id(const struct record *record);
const char *record_path(const struct record *record);

/* Where record.state is set: before the first step, the initial parameters; after the last, the final ones and the
 * gradients of that step; and the batch of a step. */
enum status record_tensors(struct record *record, bool after, struct executor *exec);
enum status record_batch(struct record *record, uint32_t step, const float *x, const int32_t *labels);

enum status record_step(struct record *record, const struct step_record *step);
enum status record_eval(struct record *record, const struct eval_record *eval);

/* Writes the summary and status ("completed", "failed: ...", "interrupted"); a completed file is renamed to ID.h5.
 * ST_FAILED: it could not, now or at an earlier step; the .part holds what was committed. Frees record. */
enum status record_finish(struct record *record, const char *status, const struct run_summary *summary);

/* Frees record and leaves the .part as it is, readable; HDF5 keeps it open until the process ends. */
void record_abandon(struct record *record);

#endif
