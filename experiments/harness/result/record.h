/* The result file of one run: HDF5, schema rematch-run 1.0 (results/README.md). Written as ID.h5.part under SWMR and
 * renamed at the end, so that a .h5 is always whole and a .part holds every committed step. */
#ifndef REMATCH_RESULT_RECORD_H
#define REMATCH_RESULT_RECORD_H

#include "job/job.h"
#include "result/timing.h"

/* One step, as measured. */
struct step_record {
    uint32_t step;
    float loss, metric; /* metric: accuracy on the batch */
    double lr, gradient_norm;
    uint64_t forward_ns, replay_ns, backward_ns, optimizer_ns, digest_ns, undefine_ns, data_ns, total_ns;
    uint64_t live_peak, rss; /* bytes */
    struct digest gradients, parameters, state;
    bool gradients_zero; /* all of them are; record_step() also sees it from the digests */
    const struct digest *gradient, *parameter, *parameter_state; /* one a parameter, or NULL */
    const size_t *live; /* bytes at each op, counted or planned; NULL where this step's memory is not recorded */
};

struct eval_record {
    uint32_t step; /* steps done before it */
    float loss, accuracy;
};

/* What is known only at the end. */
struct run_summary {
    uint64_t high_water; /* VmHWM, bytes */
    uint64_t start_rss;  /* VmRSS before the blocks were reserved */
    /* Bytes of the device's memory in use by everybody, before the blocks were reserved and at the end; 0: the host. */
    uint64_t device_start, device_used;
    uint64_t wall_ns, setup_ns;
    uint64_t clock_ns[CLOCK_CLASSES];
    const char
        *not_finite; /* the loss, output or gradient that was not, in step steps of the run; NULL: none ended it */
    struct undisturbed least; /* not known where there is no step after the first, or on a device */
};

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
enum status record_tensors(struct record *record, bool after, struct exec *exec);
enum status record_batch(struct record *record, uint32_t step, const float *x, const int32_t *labels);

enum status record_step(struct record *record, const struct step_record *step);
enum status record_eval(struct record *record, const struct eval_record *eval);

/* Writes the summary and status ("completed", "failed: ...", "interrupted"); a completed file is renamed to ID.h5.
 * ST_FAILED: it could not, now or at an earlier step; the .part holds what was committed. Frees record. */
enum status record_finish(struct record *record, const char *status, const struct run_summary *summary);

/* Frees record and leaves the .part as it is, readable; HDF5 keeps it open until the process ends. */
void record_abandon(struct record *record);

#endif
