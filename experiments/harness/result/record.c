/* The result file during a run. Contract: a step is committed when the kernel has all of its bytes; a failed write
 * damages no committed step. After the layout only rows are added, and at the end the summary. */
#include "result/record.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "build.h"
#include "result/h5_write.h"
#include "result/provenance.h"
#include "result/record_file.h"
#include "result/record_plan.h"
#include "yaml/new_file.h"

/* Digests of every tensor: of the optimizer's and of running state where there is any. */
static bool is_kept(const struct job *job, int digests)
{
    if (digests == DIGESTS_STATE) return job->plan->options.state_per_parameter > 0;
    return digests != DIGESTS_RUNNING || job->graph->states > 0;
}

/* ---- the layout ---- */

static void layout_root(struct h5 *h5, const struct job *job, const char *variant, const char *id)
{
    char created[RECORD_TIME];
    const char *const attributes[][2] = {
        {"schema", "rematch-run"},
        {"schema_version", "5.2"},
        {"run_id", id},
        {"experiment", job->spec->name},
        {"title", job->spec->title},
        {"variant", variant},
        {"status", "running"},
        {"created", record_time(created)},
        {"software", "rematch"},
        {"software_version", BUILD_COMMIT},
        {"invocation", getenv("REMATCH_INVOCATION")},
        {"NX_class", "NXroot"},
        {"default", "steps"},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        h5_attribute_text(h5, "/", attributes[i][0], attributes[i][1]);
}

static void layout_spec(struct h5 *h5, const struct spec *spec)
{
    uint8_t own_size = 1;
    for (int i = 0; i < EXPECTABLE; i++) own_size &= !spec->changed[i];
    h5_group(h5, "/spec");
    h5_attribute_text(h5, "/spec", "path", spec->path);
    h5_attribute(h5, "/spec", "own_size", NUMBER_U8, &own_size);
    h5_text(h5, "/spec/text", spec->text);
    h5_text(h5, "/spec/resolved", spec->resolved);
    h5_texts(h5, "/spec/overrides", (size_t)spec->overrides, spec->override);
}

static void layout_steps(struct h5 *h5)
{
    table_layout(h5, "/steps", record_step_columns);
    h5_attribute_text(h5, "/steps", "NX_class", "NXdata");
    h5_attribute_text(h5, "/steps", "signal", "loss");
    h5_attribute_text(h5, "/steps", "axes", "step");
    table_layout(h5, "/eval", record_eval_columns);
    h5_group(h5, "/summary");
}

static void layout_tensors(struct h5 *h5, const char *path, const struct parameter *tensor, int count)
{
    freed_auto const char **names = allocate((size_t)count, sizeof *names);
    for (int i = 0; i < count; i++) names[i] = tensor[i].name;
    h5_texts(h5, path, (size_t)count, names);
    h5_scale(h5, path, "tensor");
}

/* Digests of every tensor: [step, tensor, low and high word]. */
static void layout_digests(struct h5 *h5, const struct job *job)
{
    const struct graph *graph = job->graph;
    h5_group(h5, "/digests");
    layout_tensors(h5, "/digests/tensor", graph->parameter, graph->parameters);
    if (graph->states) layout_tensors(h5, "/digests/running_tensor", graph->state, graph->states);
    h5_series(h5, "/digests/step", NUMBER_U32, 0, NULL);
    h5_scale(h5, "/digests/step", "step");
    for (int i = 0; i < DIGESTS; i++) {
        const bool running = i == DIGESTS_RUNNING;
        const hsize_t extent[2] = {(hsize_t)(running ? graph->states : graph->parameters), 2};
        if (!is_kept(job, i)) continue;
        h5_series(h5, digest_paths[i], NUMBER_U64, 2, extent);
        h5_attach(h5, digest_paths[i], 0, "/digests/step");
        h5_attach(h5, digest_paths[i], 1, running ? "/digests/running_tensor" : "/digests/tensor");
        h5_attach(h5, digest_paths[i], 2, "/steps/pair");
    }
}

static void layout_memory(struct h5 *h5, const struct job *job)
{
    const hsize_t ops = (hsize_t)job->plan->lowered.ops;
    h5_attribute_text(h5, "/memory", "mode", spec_memory_names[job->spec->memory]);
    h5_series(h5, "/memory/step", NUMBER_U32, 0, NULL);
    h5_series(h5, "/memory/live", NUMBER_U64, 1, &ops);
    h5_scale(h5, "/memory/step", "step");
    h5_attach(h5, "/memory/live", 0, "/memory/step");
    h5_attach(h5, "/memory/live", 1, "/plan/ops/op");
    h5_describe(h5, "/memory/live", "byte",
                job->spec->memory == MEMORY_DYNAMIC
                    ? "live bytes while the op ran, as the allocator counted them"
                    : "live bytes of the arena while the op ran, as planned: this mode does not count them");
}

void record_layout(struct h5 *h5, const struct job *job, const char *variant, const char *id)
{
    layout_root(h5, job, variant, id);
    layout_spec(h5, job->spec);
    provenance_write(h5, job);
    record_plan(h5, job);
    layout_steps(h5);
    if (job->spec->record_digests) layout_digests(h5, job);
    layout_memory(h5, job);
    if (job->spec->record_state) record_state_layout(h5, job);
}

/* ---- the file ---- */

struct record {
    struct h5 h5;
    struct h5_manifest *manifest;
    struct record_file file;
    const struct job *job;
    const char *variant;
    struct result *past; /* the unfinished file, NULL: none */
    char id[RUN_ID_TEXT];
};

static bool is_baselines(const char *path)
{
    struct h5 h5;
    struct stat there; /* opening a pipe waits */
    region_auto *region = region_create();
    if (stat(path, &there) != 0 || !S_ISREG(there.st_mode) || h5_open(&h5, path, H5_READ) != ST_OK) return false;
    const bool is = strcmp(h5_read_attribute_text(&h5, "/", "variant", "", region), "baseline") == 0;
    h5_close(&h5);
    return is;
}

char *record_name(const struct spec *spec, const char *variant, const char *id, char name[RECORD_NAME])
{
    region_auto *region = region_create();
    const char *path = region_text(region, "%s/%s/%s.h5", spec->results, spec->name, id);
    const bool control = strcmp(variant, "variant") == 0 && is_baselines(path);
    snprintf(name, RECORD_NAME, "%s%s", id, control ? "-repeat" : "");
    return name;
}

/* Readers see fresh only after it was closed and read back. */
static enum status publish(struct record *r, bool whole)
{
    TRY(h5_status(&r->h5));
    TRY(h5_close(&r->h5));
    TRY(h5_manifest_check(r->manifest, r->file.fresh));
    return record_file_publish(&r->file, whole);
}

enum status record_begin(const struct job *job, const char *variant, struct record **record)
{
    signal(SIGXFSZ, SIG_IGN);
    struct record *r = allocate(1, sizeof *r);
    r->job = job;
    r->variant = variant;
    r->file.lock = -1;
    r->manifest = h5_manifest_create();
    char name[RECORD_NAME];
    enum status status = run_id_compute(job, r->id);
    if (status == ST_OK)
        status = record_file_begin(&r->file, job->spec->results, job->spec->name,
                                   record_name(job->spec, variant, r->id, name));
    *record = status == ST_OK ? r : NULL;
    if (status != ST_OK) record_abandon(r);
    return status;
}

enum status record_keep(struct record *record, struct result **past)
{
    struct result *r;
    if (access(record->file.part, F_OK) != 0) return ST_OK;
    TRY(result_open(record->file.part, &r));
    record->past = r;
    if (strcmp(r->run_id, record->id) != 0)
        return fail(ST_FAILED, "%s: of run %s; expected %s", record->file.part, r->run_id, record->id);
    if (strcmp(r->variant, record->variant) == 0) *past = r;
    return ST_OK;
}

/* The layout is written under another name, so that a .part is readable from the beginning. */
static enum status start(struct record *r, uint32_t state)
{
    TRY(h5_manifest_open(r->manifest, &r->h5, r->file.fresh, H5_CREATE));
    record_layout(&r->h5, r->job, r->variant, r->id);
    TRY(record_pieces(&r->h5, r->job->spec, state ? r->past : NULL, state));
    TRY(publish(r, false));
    return h5_manifest_open(r->manifest, &r->h5, r->file.part, H5_APPEND);
}

enum status record_start(struct record *record, uint32_t state)
{
    const enum status status = start(record, state);
    if (status != ST_OK) record_cancel(record);
    return status;
}

void record_cancel(struct record *record)
{
    record_file_drop(&record->file);
    record_file_release(&record->file);
    record_abandon(record);
}

const char *record_id(const struct record *record) { return record->id; }
const char *record_path(const struct record *record) { return record->file.path; }

enum status record_tensors(struct record *record, bool after, struct executor *exec)
{
    if (record->job->spec->record_state) record_state_tensors(&record->h5, record->job, after, exec);
    return h5_status(&record->h5);
}

enum status record_batch(struct record *record, uint32_t step, const float *x, const int32_t *labels)
{
    if (record->job->spec->record_state) record_state_batch(&record->h5, record->job->graph, step, x, labels);
    return h5_status(&record->h5);
}

static void append_digests(struct h5 *h5, const struct job *job, const struct step_record *step)
{
    if (!step->result.gradient || !job->spec->record_digests) return;
    const struct train_result *r = &step->result;
    const struct digest *const rows[DIGESTS] = {r->gradient, r->parameter, r->parameter_state, r->running_state};
    for (int i = 0; i < DIGESTS; i++)
        if (is_kept(job, i)) h5_append(h5, digest_paths[i], rows[i]);
    h5_append(h5, "/digests/step", &step->step);
}

enum status record_sync(struct record *record)
{
    h5_flush(&record->h5);
    TRY(h5_status(&record->h5));
    return new_file_sync(record->file.part, O_RDONLY);
}

/* Every record.fsync steps, the row is on the disk before its commit is. */
enum status record_step(struct record *record, const struct step_record *step)
{
    const int64_t every = record->job->spec->record_fsync;
    const bool sync = every > 0 && (step->step + 1) % every == 0;
    struct step_record row = *step;
    row.gradients_zero = step->result.gradient_norm == 0;
    append_digests(&record->h5, record->job, step);
    if (step->live) h5_append(&record->h5, "/memory/live", step->live);
    if (step->live) h5_append(&record->h5, "/memory/step", &step->step);
    table_append(&record->h5, "/steps", record_step_columns, &row);
    if (sync) TRY(record_sync(record));
    table_commit(&record->h5, "/steps");
    return sync ? record_sync(record) : h5_status(&record->h5);
}

enum status record_eval(struct record *record, const struct eval_record *eval)
{
    table_append(&record->h5, "/eval", record_eval_columns, eval);
    table_commit(&record->h5, "/eval");
    return h5_status(&record->h5);
}

static void summarise_prediction(struct h5 *h5, const struct job *job, const struct record_numbers *numbers)
{
    if (!job->costs) return;
    const double predicted = costs_predict(job->costs, job->plan);
    h5_attribute_f64(h5, "/summary", "predicted_step_ns", predicted);
    if (numbers->timing.steps)
        h5_attribute_f64(h5, "/summary", "prediction_percent", 100 * (predicted / numbers->timing.median_ns - 1));
}

static void summarise_ops(struct h5 *h5, const struct best_case *least)
{
    if (!least || !least->known) return;
    const hsize_t ops = (hsize_t)least->ops;
    h5_attribute_u64(h5, "/summary", "step_best_case_ns", timing_best_case(least));
    h5_attribute_u64(h5, "/summary", "rest_least_ns", least->rest_ns);
    h5_array(h5, "/summary/op_least_ns", NUMBER_U64, 1, &ops, least->op_ns);
    h5_describe(h5, "/summary/op_least_ns", "ns", "least time of the op in the steps after the first");
    h5_attach(h5, "/summary/op_least_ns", 0, "/plan/ops/op");
}

static uint64_t beyond(uint64_t used, uint64_t ours) { return used > ours ? used - ours : 0; }

struct record_numbers record_numbers(const struct result *r, const struct run_summary *summary, uint64_t peak,
                                     uint64_t bytes)
{
    return (struct record_numbers){.steps = r->steps,
                                   .live_peak = r->live_peak,
                                   .peak = peak,
                                   .overhead = beyond(summary->high_water, summary->device_used ? 0 : bytes),
                                   .device_overhead = beyond(summary->device_used, bytes),
                                   .final_loss = r->steps ? r->loss[r->steps - 1] : 0,
                                   .timing = r->timing};
}

struct run_summary record_summary_read(struct result *r)
{
    struct run_summary summary = {.high_water = 0};
    table_read_attributes(&r->h5, "/summary", record_summary_columns, &summary, true, r->region);
    table_read_attributes(&r->h5, "/summary", record_number_columns, &summary.numbers, true, r->region);
    if (!h5_exists(&r->h5, "/provenance/gpu")) return summary;
    summary.device_start = h5_read_attribute_u64(&r->h5, "/summary", "device_start_bytes", 0);
    summary.device_used = h5_read_attribute_u64(&r->h5, "/summary", "device_used_bytes", 0);
    return summary;
}

static enum status find_numbers(const struct record *r, struct run_summary *summary)
{
    const struct plan *plan = r->job->plan;
    const size_t arena = r->job->spec->memory == MEMORY_DYNAMIC ? plan->live_peak : plan->arena_bytes;
    result_auto *result = NULL;
    if (result_open(r->file.part, &result) != ST_OK) return fail(ST_FAILED, "%s", status_message());
    summary->numbers = record_numbers(result, summary, plan_peak(plan), plan_static(plan) + arena);
    return ST_OK;
}

static void summarise(struct h5 *h5, const struct job *job, const char *status, const struct run_summary *summary,
                      const struct best_case *least)
{
    char name[64];
    table_write_attributes(h5, "/summary", record_summary_columns, summary);
    table_write_attributes(h5, "/summary", record_number_columns, &summary->numbers);
    if (summary->device_used) {
        h5_attribute_u64(h5, "/summary", "device_start_bytes", summary->device_start);
        h5_attribute_u64(h5, "/summary", "device_used_bytes", summary->device_used);
        table_write_attributes(h5, "/summary", record_device_columns, &summary->numbers);
    }
    h5_attribute_u64(h5, "/summary", "processor_ns", summary->processor_ns);
    summarise_prediction(h5, job, &summary->numbers);
    summarise_ops(h5, least);
    for (int i = 0; i < CLOCK_CLASSES; i++) {
        snprintf(name, sizeof name, "clock_%s_ns", clock_names[i]);
        h5_attribute_u64(h5, "/summary", name, summary->clock_ns[i]);
    }
    if (*summary->not_finite) {
        h5_attribute_text(h5, "/summary", "not_finite", summary->not_finite);
        h5_attribute_u64(h5, "/summary", "not_finite_step", summary->numbers.steps);
    }
    h5_attribute_text(h5, "/", "status", status);
}

/* The summary is written to a copy, which then replaces the file: at no instant is it unreadable. */
static enum status finish(struct record *r, const char *status, struct run_summary *summary,
                          const struct best_case *least)
{
    TRY(h5_close(&r->h5));
    if (h5_manifest_check(r->manifest, r->file.part) != ST_OK) return fail(ST_DIFFERS, "%s", status_message());
    TRY(find_numbers(r, summary));
    TRY(record_file_copy(&r->file));
    TRY(h5_manifest_open(r->manifest, &r->h5, r->file.fresh, H5_EDIT));
    summarise(&r->h5, r->job, status, summary, least);
    return publish(r, strcmp(status, "completed") == 0);
}

enum status record_finish(struct record *record, const char *status, struct run_summary *summary,
                          const struct best_case *least)
{
    h5_flush(&record->h5);
    enum status done = h5_status(&record->h5);
    if (done == ST_OK) {
        done = finish(record, status, summary, least);
        if (done != ST_OK) record_file_drop(&record->file);
        record_file_release(&record->file);
    }
    record_abandon(record);
    return done;
}

void record_abandon(struct record *record)
{
    result_close(record->past);
    h5_manifest_destroy(record->manifest);
    free(record);
}
