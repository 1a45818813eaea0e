/* The result file during a run. Contract: a step is committed when the kernel has all of its bytes; a failed write
 * damages no committed step. */
#include "result/record.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "job/run_id.h"
#include "result/h5_manifest.h"
#include "result/h5_write.h"
#include "result/record_file.h"
#include "result/record_layout.h"
#include "result/record_state.h"
#include "result/timing.h"

enum { DIGESTS = 3 }; /* gradients, parameters, state */

struct record {
    struct h5 h5;
    struct h5_manifest *manifest;
    struct record_file file;
    const struct job *job;
    char id[RUN_ID_TEXT];
    struct table steps, eval;
    struct record_state state;
    hid_t digest_step, digest[DIGESTS], memory_step, memory_live;
    struct digest zeros; /* of gradients that are all zero */
    bool zeros_known;
};

static void open_columns(struct record *r)
{
    r->steps = table_open(&r->h5, "/steps", record_step_columns);
    r->eval = table_open(&r->h5, "/eval", record_eval_columns);
    r->memory_step = h5_dataset(&r->h5, "/memory/step");
    r->memory_live = h5_dataset(&r->h5, "/memory/live");
    if (r->job->spec->record_state) r->state = record_state_open(&r->h5);
    if (!r->job->spec->record_digests) return;
    r->digest_step = h5_dataset(&r->h5, "/digests/step");
    for (int i = 0; i < record_digests_kept(r->job); i++) r->digest[i] = h5_dataset(&r->h5, record_digest_paths[i]);
}

/* The control has the id of its baseline, and must not replace its file. */
static bool is_baselines(const char *path)
{
    struct h5 h5;
    struct region *region = region_create();
    bool is = h5_open(&h5, path, H5_READ) == ST_OK;
    if (is) {
        is = strcmp(h5_read_attribute_text(&h5, "/", "variant", "", region), "baseline") == 0;
        h5_close(&h5);
    }
    region_destroy(region);
    return is;
}

static enum status begin_file(struct record *r, const char *variant)
{
    char name[RUN_ID_TEXT + 8];
    const struct spec *spec = r->job->spec;
    snprintf(name, sizeof name, "%s", r->id);
    TRY(record_file_begin(&r->file, spec->results, spec->name, name));
    if (strcmp(variant, "baseline") == 0 || !is_baselines(r->file.path)) return ST_OK;
    record_file_drop(&r->file);
    record_file_release(&r->file);
    snprintf(name, sizeof name, "%s-repeat", r->id);
    return record_file_begin(&r->file, spec->results, spec->name, name);
}

static enum status open_file(struct record *r, const char *path, enum h5_mode mode)
{
    TRY(h5_open(&r->h5, path, mode));
    r->h5.manifest = r->manifest;
    return ST_OK;
}

/* Readers see fresh only after it was closed and read back. */
static enum status publish(struct record *r, bool whole)
{
    TRY(h5_status(&r->h5));
    TRY(h5_close(&r->h5));
    TRY(h5_manifest_check(r->manifest, r->file.fresh));
    return record_file_publish(&r->file, whole);
}

/* The layout is written under another name, so that a .part is readable from the beginning. */
static enum status begin(struct record *r, const char *variant)
{
    TRY(run_id_compute(r->job, r->id));
    TRY(begin_file(r, variant));
    enum status status = open_file(r, r->file.fresh, H5_CREATE);
    if (status == ST_OK) {
        record_layout(&r->h5, r->job, variant, r->id);
        status = publish(r, false);
    }
    if (status != ST_OK) {
        record_file_drop(&r->file);
        return status;
    }
    TRY(open_file(r, r->file.part, H5_APPEND));
    open_columns(r);
    return h5_status(&r->h5);
}

enum status record_create(const struct job *job, const char *variant, struct record **record)
{
    *record = NULL;
    signal(SIGXFSZ, SIG_IGN);
    struct record *r = allocate(1, sizeof *r);
    r->job = job;
    r->file.lock = -1;
    r->manifest = h5_manifest_create();
    enum status status = begin(r, variant);
    if (status != ST_OK) {
        record_file_release(&r->file);
        record_abandon(r);
        return status;
    }
    *record = r;
    return ST_OK;
}

const char *record_path(const struct record *record) { return record->file.path; }

enum status record_tensors(struct record *record, bool after, struct executor *exec)
{
    if (record->job->spec->record_state) record_state_tensors(&record->h5, record->job, after, exec);
    return h5_status(&record->h5);
}

enum status record_batch(struct record *record, uint32_t step, const float *x, const int32_t *labels)
{
    if (record->job->spec->record_state) record_state_batch(&record->h5, &record->state, step, x, labels);
    return h5_status(&record->h5);
}

/* The step's digest where all gradients are zero, computed on an anonymous mapping that is never written. */
static void find_zeros(struct record *r)
{
    const struct graph *graph = r->job->graph;
    size_t most = 0, count = (size_t)graph->parameters;
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = (size_t)graph->parameter[i].elements * sizeof(float);
        most = bytes > most ? bytes : most;
    }
    struct digest *digest = allocate(count, sizeof *digest);
    void *zeros = mmap(NULL, most, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    r->zeros_known = zeros != MAP_FAILED;
    for (size_t i = 0; r->zeros_known && i < count; i++)
        digest[i] = digest_tensor(zeros, (size_t)graph->parameter[i].elements * sizeof(float),
                                  (int)r->job->backend->options.threads);
    if (r->zeros_known) r->zeros = digest_bytes(digest, count * sizeof *digest);
    if (zeros != MAP_FAILED) munmap(zeros, most);
    free(digest);
}

static void append_digests(struct record *r, const struct step_record *step)
{
    const struct digest *rows[] = {step->gradient, step->parameter, step->parameter_state};
    const int kept = record_digests_kept(r->job);
    if (!r->job->spec->record_digests) return;
    for (int i = 0; i < kept && i < DIGESTS; i++)
        if (!rows[i]) return; /* all three have the same steps */
    for (int i = 0; i < kept && i < DIGESTS; i++) h5_append(&r->h5, r->digest[i], NUMBER_U64, rows[i]);
    h5_append(&r->h5, r->digest_step, NUMBER_U32, &step->step);
}

static void append_memory(struct record *r, const struct step_record *step)
{
    if (!step->live) return;
    h5_append(&r->h5, r->memory_live, NUMBER_U64, step->live);
    h5_append(&r->h5, r->memory_step, NUMBER_U32, &step->step);
}

static enum status sync_rows(struct record *r)
{
    h5_flush(&r->h5);
    TRY(h5_status(&r->h5));
    return record_file_sync(&r->file);
}

/* Every record.fsync steps, the row is on the disk before its commit is. */
enum status record_step(struct record *record, const struct step_record *step)
{
    const int64_t every = record->job->spec->record_fsync;
    const bool sync = every > 0 && (step->step + 1) % every == 0;
    struct step_record row = *step;
    if (!record->zeros_known) find_zeros(record);
    row.gradients_zero |= record->zeros_known && digest_equal(step->gradients, record->zeros);
    append_digests(record, step);
    append_memory(record, step);
    table_append(&record->h5, &record->steps, &row);
    if (sync) TRY(sync_rows(record));
    table_commit(&record->h5, &record->steps);
    return sync ? sync_rows(record) : h5_status(&record->h5);
}

enum status record_eval(struct record *record, const struct eval_record *eval)
{
    table_append(&record->h5, &record->eval, eval);
    table_commit(&record->h5, &record->eval);
    return h5_status(&record->h5);
}

static void summarise_prediction(struct h5 *h5, const struct job *job, const struct timing *timing)
{
    if (!job->costs) return;
    const double predicted = costs_predict(job->costs, job->plan);
    h5_attribute_f64(h5, "/summary", "predicted_step_ns", predicted);
    if (timing->steps)
        h5_attribute_f64(h5, "/summary", "prediction_percent", 100 * (predicted / timing->median_ns - 1));
}

static void summarise_ops(struct h5 *h5, const struct best_case *least)
{
    const hsize_t ops = (hsize_t)least->ops;
    if (!least->known) return;
    h5_attribute_u64(h5, "/summary", "step_best_case_ns", timing_best_case(least));
    h5_attribute_u64(h5, "/summary", "rest_least_ns", least->rest_ns);
    h5_array(h5, "/summary/op_least_ns", NUMBER_U64, 1, &ops, least->op_ns);
    h5_attribute_text(h5, "/summary/op_least_ns", "units", "ns");
    h5_attribute_text(h5, "/summary/op_least_ns", "long_name", "least time of the op in the steps after the first");
    h5_attach(h5, "/summary/op_least_ns", 0, "/plan/ops/op");
}

/* Figures of the whole run, from the step columns. */
static void summarise_steps(struct h5 *h5, const struct job *job)
{
    const uint64_t rows = h5_rows(h5, "/steps/committed");
    uint64_t *numbers = allocate(rows, sizeof *numbers), most = 0;
    float loss = 0;
    h5_read_rows(h5, "/steps/live_peak", NUMBER_U64, 1, 0, rows, numbers);
    for (uint64_t i = 0; i < rows; i++) most = numbers[i] > most ? numbers[i] : most;
    h5_read_rows(h5, "/steps/total_ns", NUMBER_U64, 1, 0, rows, numbers);
    const struct timing timing = timing_of(numbers, rows);
    free(numbers);
    if (rows) h5_read_rows(h5, "/steps/loss", NUMBER_F32, 1, rows - 1, 1, &loss);
    h5_attribute_u64(h5, "/summary", "steps", rows);
    h5_attribute(h5, "/summary", "final_loss", NUMBER_F32, &loss);
    h5_attribute_u64(h5, "/summary", "live_peak_bytes", most);
    h5_attribute_u64(h5, "/summary", "timed_steps", timing.steps);
    h5_attribute_f64(h5, "/summary", "step_median_ns", timing.median_ns);
    h5_attribute_f64(h5, "/summary", "step_least_ns", timing.least_ns);
    h5_attribute_f64(h5, "/summary", "step_most_ns", timing.most_ns);
    summarise_prediction(h5, job, &timing);
}

static void summarise_overhead(struct h5 *h5, const char *name, uint64_t used, uint64_t ours)
{
    h5_attribute_u64(h5, "/summary", name, used > ours ? used - ours : 0);
}

static void summarise(struct h5 *h5, const struct job *job, const char *status, const struct run_summary *summary)
{
    const struct plan *plan = job->plan;
    const uint64_t ours =
        plan_static(plan) + (job->spec->memory == MEMORY_DYNAMIC ? plan->live_peak : plan->arena_bytes);
    char name[64];
    summarise_steps(h5, job);
    summarise_ops(h5, &summary->least);
    h5_attribute_u64(h5, "/summary", "peak_bytes", plan_peak(plan));
    h5_attribute_u64(h5, "/summary", "high_water_bytes", summary->high_water);
    h5_attribute_u64(h5, "/summary", "start_rss_bytes", summary->start_rss);
    summarise_overhead(h5, "overhead_bytes", summary->high_water, summary->device_used ? 0 : ours);
    if (summary->device_used) {
        h5_attribute_u64(h5, "/summary", "device_start_bytes", summary->device_start);
        h5_attribute_u64(h5, "/summary", "device_used_bytes", summary->device_used);
        summarise_overhead(h5, "device_overhead_bytes", summary->device_used, ours);
    }
    h5_attribute_u64(h5, "/summary", "wall_ns", summary->wall_ns);
    h5_attribute_u64(h5, "/summary", "setup_ns", summary->setup_ns);
    for (int i = 0; i < CLOCK_CLASSES; i++) {
        snprintf(name, sizeof name, "clock_%s_ns", clock_names[i]);
        h5_attribute_u64(h5, "/summary", name, summary->clock_ns[i]);
    }
    if (summary->not_finite) {
        h5_attribute_text(h5, "/summary", "not_finite", summary->not_finite);
        h5_attribute_u64(h5, "/summary", "not_finite_step", h5_rows(h5, "/steps/committed"));
    }
    h5_attribute_text(h5, "/", "status", status);
}

/* The summary is written to a copy, which then replaces the file: at no instant is it unreadable. */
static enum status finish(struct record *r, const char *status, const struct run_summary *summary)
{
    TRY(h5_close(&r->h5));
    TRY(record_file_copy(&r->file));
    TRY(open_file(r, r->file.fresh, H5_EDIT));
    summarise(&r->h5, r->job, status, summary);
    return publish(r, strcmp(status, "completed") == 0);
}

enum status record_finish(struct record *record, const char *status, const struct run_summary *summary)
{
    h5_flush(&record->h5);
    enum status done = h5_status(&record->h5);
    if (done == ST_OK) {
        done = finish(record, status, summary);
        if (done != ST_OK) record_file_drop(&record->file);
        record_file_release(&record->file);
    }
    record_abandon(record);
    return done;
}

void record_abandon(struct record *record)
{
    h5_manifest_destroy(record->manifest);
    free(record);
}
