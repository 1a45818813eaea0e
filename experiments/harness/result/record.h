/* The result file of one run: HDF5, schema rematch-run 5.2 (results/README.md). It is written as ID.h5.part under SWMR
 * and renamed at the end: a .h5 is always complete, a .part holds every committed step. */
#pragma once

#include "job/job.h"
#include "job/run_id.h"
#include "result/result_read.h"
#include "result/table.h"
#include "train/training_step.h"

/* One step, as measured. */
struct step_record {
    struct train_result result;
    uint32_t step;
    float metric; /* accuracy on the batch */
    uint64_t data_ns, total_ns;
    uint64_t live_peak, rss; /* bytes */
    bool gradients_zero;     /* every gradient is zero; set by record_step() */
    const size_t *live;      /* bytes at each op, counted or planned; NULL where this step's memory is not recorded */
};

struct eval_record {
    uint32_t step; /* steps done before it */
    float loss, accuracy;
};

/* Numbers of /summary that follow from others: of the steps, of the plan, and of what was measured. */
struct record_numbers {
    uint64_t steps, live_peak, peak, overhead, device_overhead;
    float final_loss;
    struct timing timing;
};

/* Known only at the end. */
struct run_summary {
    uint64_t high_water; /* VmHWM, bytes */
    uint64_t start_rss;  /* VmRSS before the blocks were reserved */
    /* Bytes of the device's memory in use by all processes, before the blocks were reserved and at the end; 0 on the
     * host. */
    uint64_t device_start, device_used;
    uint64_t wall_ns, setup_ns; /* of all pieces */
    uint64_t states_ns;         /* of writing state files */
    uint64_t processor_ns;      /* that the process worked after its set-up, all threads; of all pieces */
    uint64_t clock_ns[CLOCK_CLASSES];
    char not_finite[NOT_FINITE];   /* the loss, output or gradient that ended the run by not being finite, or "" */
    struct record_numbers numbers; /* set by record_finish() */
};

/* record_columns.c: columns of /steps (of struct step_record) and of /eval (of struct eval_record); attributes of
 * /summary, of struct run_summary and of struct record_numbers, the last ones on a device. */
extern const struct field record_step_columns[], record_eval_columns[], record_summary_columns[],
    record_number_columns[], record_device_columns[];

/* From the steps of a file, what was measured, and the peak and the bytes in use of the plan. */
struct record_numbers record_numbers(const struct result *result, const struct run_summary *summary, uint64_t peak,
                                     uint64_t bytes);

/* What the end of a run wrote, but its clocks. */
struct run_summary record_summary_read(struct result *result);

/* Whether the spec asks for the bytes at each op of a step. */
bool record_wants_memory(const struct spec *spec, int64_t step);

/* Everything of a result file that is known before its first step. */
void record_layout(struct h5 *h5, const struct job *job, const char *variant, const char *id);

/* A process that worked on a run: the steps that it recorded, up to those of the next piece, computed from the state
 * after some step; when it began, how it ended (of the last piece "": @status says it), and what may differ between the
 * pieces of a run although the run id is the same. */
struct record_piece {
    uint32_t step, state;
    const char *created, *ended, *host, *cpu, *kernel, *invocation;
};

extern const struct field record_piece_columns[];

/* The pieces of a file; region holds the texts. Failures are those of h5. */
struct record_piece *record_pieces_read(struct h5 *h5, struct region *region, size_t *count);

/* The time, as text. */
enum { RECORD_TIME = 32 };
char *record_time(char text[RECORD_TIME]);

/* record_resume.c: writes /pieces, and from an unfinished file of the same run (past, NULL: there is none) its rows and
 * initial tensors. state: steps after which the state is that the run goes on from. ST_FAILED: past lacks something. */
enum status record_pieces(struct h5 *h5, const struct spec *spec, struct result *past, uint32_t state);

/* The last evaluation in a file, but its loss; false: there is none. */
bool record_last_eval(struct result *past, struct eval_record *eval);

/* The name of a run's file, without .h5: its id; of a variant with the id of its baseline (the control), whose file it
 * must not replace, ID-repeat. */
enum { RECORD_NAME = RUN_ID_TEXT + 8 };
char *record_name(const struct spec *spec, const char *variant, const char *id, char name[RECORD_NAME]);

struct record;

/* Creates RESULTS/EXPERIMENT/ID.h5.part with its whole layout: spec, provenance, plan, empty step columns; in two
 * parts, between which no other process can write the file, and where record_keep() opens what an earlier process left
 * of the same run (NULL: nothing): the new file keeps its steps. variant: "baseline" or "variant". state: steps that
 * are not computed again, 0: none. Runs with the same REMATCH_INVOCATION in their environment were measured side by
 * side. ST_FAILED: it cannot be written (the message names path and reason), or another process is writing it; where
 * record_start() fails, it frees record, as record_cancel() does. A file-size limit becomes an error like a full disk
 * (SIGXFSZ is ignored from here on). */
enum status record_begin(const struct job *job, const char *variant, struct record **record);
enum status record_keep(struct record *record, struct result **past);
enum status record_start(struct record *record, uint32_t state);
void record_cancel(struct record *record);

/* The run id. */
const char *record_id(const struct record *record);

/* The path of the finished file. */
const char *record_path(const struct record *record);

/* With record.state: before the first step the initial parameters, after the last the final ones and the last
 * gradients; the batch of a step. */
enum status record_tensors(struct record *record, bool after, struct executor *exec);
enum status record_batch(struct record *record, uint32_t step, const float *x, const int32_t *labels);

enum status record_step(struct record *record, const struct step_record *step);

/* Forces all rows to the disk. */
enum status record_sync(struct record *record);

enum status record_eval(struct record *record, const struct eval_record *eval);

/* Writes the summary and status ("completed", "failed: ...", "interrupted"); renames a completed file to ID.h5. least:
 * NULL, or not known, for a single step or on a device.
 * ST_FAILED: writing failed, now or at an earlier step; the .part holds the committed steps. ST_DIFFERS: it does not,
 * because the system lost a write. Frees record. */
enum status record_finish(struct record *record, const char *status, struct run_summary *summary,
                          const struct best_case *least);

/* Frees record and leaves the .part, readable; HDF5 keeps it open until the process ends. */
void record_abandon(struct record *record);

/* record_state.c: /state, with initial and final parameters, the last gradients and the batches in logical order, so
 * that another framework can reproduce the run. */
void record_state_layout(struct h5 *h5, const struct job *job);

/* Before the first step: the initial parameters. After the last: the final parameters and the last gradients. */
void record_state_tensors(struct h5 *h5, const struct job *job, bool after, struct executor *exec);
void record_state_batch(struct h5 *h5, const struct graph *graph, uint32_t step, const float *x, const int32_t *labels);
