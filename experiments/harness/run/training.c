#include "run/training.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "job/batches.h"
#include "job/machine.h"
#include "run/progress.h"
#include "run/signals.h"
#include "train/training_step.h"

static const char *const split_names[SPLITS] = {"training", "test"};

struct training {
    struct job *job;
    struct executor *exec;
    struct train *train;
    struct batches *batches;
    struct record *record;
    struct progress progress;
    struct run_report report;
    struct best_case least;
    int64_t end; /* steps after which it ends: the job's, or fewer */
    uint64_t start;
    bool ahead; /* the next step's batch was made during the last step, in next_ns */
    uint64_t next_ns;
};

/* At each op: counted in dynamic memory, else planned. */
static const size_t *live_bytes(const struct training *t)
{
    const size_t *counted = executor_counted(t->exec);
    return counted ? counted : t->job->plan->live;
}

static size_t live_peak(const struct training *t)
{
    const size_t *live = live_bytes(t);
    size_t most = 0;
    for (int i = 0; i < t->job->plan->lowered.ops; i++) most = live[i] > most ? live[i] : most;
    return most;
}

static enum status record_training_step(struct training *t, struct step_record *s)
{
    s->metric = s->result.correct / (float)t->job->spec->batch;
    s->live_peak = live_peak(t);
    s->rss = process_rss();
    s->live = record_wants_memory(t->job->spec, s->step) ? live_bytes(t) : NULL;
    TRY(record_step(t->record, s));
    if (t->report.steps < REPORT_LOSSES) t->report.loss[t->report.steps] = s->result.loss;
    t->report.last_loss = s->result.loss;
    const uint64_t *op_ns = executor_op_ns(t->exec);
    if (op_ns && t->report.steps > 0) timing_add(&t->least, op_ns, s->total_ns);
    t->report.step_ns = s->total_ns;
    t->report.steps++;
    progress_step(&t->progress, s);
    return ST_OK;
}

static enum status make_batch(struct training *t, uint32_t step, uint64_t *ns)
{
    uint64_t start = clock_now_ns();
    TRY(batches_training(t->batches, step, executor_batch(t->exec), executor_labels(t->exec)));
    *ns = clock_now_ns() - start;
    return record_batch(t->record, step, executor_batch(t->exec), executor_labels(t->exec));
}

static bool evaluation_due(const struct job *job, int64_t done)
{
    int64_t each = job->spec->eval_every * (job->spec->epochs > 0 ? job_epoch_steps(job) : 1);
    return each > 0 && (done % each == 0 || done == job->steps);
}

/* The next batch is made while the device computes, unless an evaluation follows this step. */
static enum status next_batch(struct training *t, uint32_t step)
{
    if (!executor_ahead(t->exec) || step + 1 >= t->end || evaluation_due(t->job, step + 1)) return ST_OK;
    TRY(make_batch(t, step + 1, &t->next_ns));
    executor_send(t->exec);
    t->ahead = true;
    return ST_OK;
}

/* The next batch is made in the same memory, so this one must have been sent. */
static enum status first_batch(struct training *t, uint32_t step, uint64_t *ns)
{
    TRY(make_batch(t, step, ns));
    if (!executor_ahead(t->exec)) return ST_OK;
    executor_send(t->exec);
    return t->job->backend->kind->wait(t->job->backend);
}

/* A batch made ahead adds nothing to the time of the step that uses it. */
static enum status one_step(struct training *t, uint32_t step)
{
    struct step_record s = {.step = step, .data_ns = t->ahead ? t->next_ns : 0};
    uint64_t own = 0;
    if (!t->ahead) TRY(first_batch(t, step, &own));
    t->ahead = false;
    uint64_t begin = clock_now_ns();
    enum status begun = train_begin(t->train, step), made = begun == ST_OK ? next_batch(t, step) : ST_OK;
    TRY(made);
    enum status ended = train_end(t->train, &s.result);
    if (ended != ST_OK) memcpy(t->report.summary.not_finite, s.result.not_finite, NOT_FINITE);
    TRY(ended);
    s.data_ns += own;
    s.total_ns = clock_now_ns() - begin - s.result.phase_ns[PHASE_UNDEFINE] + own;
    return record_training_step(t, &s);
}

/* Adds the loss and the correct predictions of count samples of the evaluated split to sum, in the memory of the
 * training run. */
static enum status add_samples(struct training *t, int64_t first, int64_t count, double sum[2])
{
    const struct spec *spec = t->job->spec;
    float loss[2];
    TRY(batches_in_order(t->batches, (enum split)spec->eval_split, first, count, executor_batch(t->exec),
                         executor_labels(t->exec)));
    TRY(executor_run_plan(t->exec, t->job->evaluation, (uint32_t)t->report.steps, loss));
    sum[0] += (double)loss[0] * (double)spec->batch;
    sum[1] += (double)loss[1];
    return ST_OK;
}

/* Loss and accuracy over the whole split; every sample counts once. The last batch is filled with copies of its last
 * sample; a batch of copies alone gives the share of one copy, which is subtracted. */
static enum status one_evaluation(struct training *t)
{
    const struct spec *spec = t->job->spec;
    const int64_t samples = t->job->dataset->count[spec->eval_split], batch = spec->batch;
    double sum[2] = {0}, copies[2] = {0};
    for (int64_t first = 0; first < samples; first += batch) {
        const int64_t count = samples - first < batch ? samples - first : batch;
        if ((t->report.stopped = signals_pending())) return ST_OK;
        TRY(add_samples(t, first, count, sum));
        if (count == batch) continue;
        TRY(add_samples(t, first + count - 1, 1, copies));
        for (int i = 0; i < 2; i++) sum[i] -= copies[i] / (double)batch * (double)(batch - count);
    }
    const struct eval_record eval = {.step = (uint32_t)t->report.steps,
                                     .loss = (float)(sum[0] / (double)samples),
                                     .accuracy = (float)(sum[1] / (double)samples)};
    TRY(record_eval(t->record, &eval));
    t->report.accuracy = eval.accuracy;
    progress_eval(&t->progress, &eval, split_names[spec->eval_split]);
    return ST_OK;
}

static enum status all_steps(struct training *t)
{
    TRY(record_tensors(t->record, false, t->exec));
    while (t->report.steps < t->end) {
        if ((t->report.stopped = signals_pending())) return ST_OK;
        TRY(one_step(t, (uint32_t)t->report.steps));
        if (evaluation_due(t->job, t->report.steps)) TRY(one_evaluation(t));
        if (t->report.stopped) return ST_OK;
    }
    return t->end < t->job->steps ? ST_OK : record_tensors(t->record, true, t->exec);
}

static uint64_t device_used(struct backend *backend)
{
    return backend->kind->device ? backend->kind->device->used(backend) : 0;
}

/* Memory is reserved before the file is created: a run that gets no memory leaves no file. */
static enum status begin(struct training *t, const char *variant)
{
    const struct spec *spec = t->job->spec;
    struct executor_options options = job_exec_options(t->job);
    struct train_options train = {.optimizer = spec->optimizer,
                                  .settings = spec->optimizer_settings,
                                  .learning_rate = spec->learning_rate,
                                  .learning_rate_settings = spec->learning_rate_settings,
                                  .steps = t->job->steps,
                                  .seed = (uint64_t)spec->seed,
                                  .given = t->job->weights ? t->job->weights->given : NULL,
                                  .given_state = t->job->weights ? t->job->weights->given_state : NULL};
    t->least.ops = t->job->plan->lowered.ops;
    NEW(t->job->graph->region, t->least.op_ns, (size_t)t->least.ops);
    t->batches = batches_create(t->job);
    t->report.summary.start_rss = process_rss();
    t->report.summary.device_start = device_used(t->job->backend);
    TRY(executor_create(t->job->plan, &options, &t->exec));
    TRY(train_create(t->job->network, t->exec, &train, &t->train));
    if (t->job->weights) TRY(weights_load(t->job->weights, t->job->backend, t->exec));
    TRY(record_create(t->job, variant, &t->record));
    memset(t->job->backend->clock_ns, 0, sizeof t->job->backend->clock_ns);
    t->report.summary.setup_ns = clock_now_ns() - t->start;
    snprintf(t->report.path, sizeof t->report.path, "%s", record_path(t->record));
    return ST_OK;
}

/* Closes the file with the status of the run. The first error is the one reported. */
static enum status finish(struct training *t, enum status status)
{
    char how[2048 + 16], message[2048];
    struct run_summary *summary = &t->report.summary;
    const bool cut = t->report.stopped || t->end < t->job->steps;
    snprintf(message, sizeof message, "%s", status_message()); /* record_finish() may replace it */
    summary->high_water = process_high_water();
    summary->device_used = device_used(t->job->backend);
    summary->wall_ns = clock_now_ns() - t->start;
    memcpy(summary->clock_ns, t->job->backend->clock_ns, sizeof summary->clock_ns);
    if (status == ST_OK)
        snprintf(how, sizeof how, "%s", cut ? "interrupted" : "completed");
    else
        snprintf(how, sizeof how, "failed: %s", message);
    enum status closed = record_finish(t->record, how, summary, &t->least);
    if (summary->figures.timing.steps) t->report.step_ns = (uint64_t)summary->figures.timing.median_ns;
    t->report.best_case_ns = timing_best_case(&t->least);
    if (status != ST_OK) return fail(status, "%s", message);
    t->report.finished = closed == ST_OK && !cut;
    return closed;
}

static void end(struct training *t)
{
    train_destroy(t->train);
    executor_destroy(t->exec);
    batches_destroy(t->batches);
}

static void send_report(const struct training *t, int descriptor)
{
    ssize_t written = pwrite(descriptor, &t->report, sizeof t->report, 0);
    (void)written;
}

enum status training_run(struct job *job, const char *variant, bool quiet, int64_t steps, int descriptor, int *stopped)
{
    struct training t = {.job = job, .end = job->steps, .report.accuracy = NAN, .start = clock_now_ns()};
    if (steps > 0 && steps < job->steps) t.end = steps;
    enum status status = begin(&t, variant);
    if (status == ST_OK) {
        send_report(&t, descriptor);
        if (job->weights && !quiet) fprintf(stderr, "weights   %s\n", weights_text(job->weights));
        t.progress = progress_begin(quiet ? NULL : stderr, job->steps);
        status = finish(&t, all_steps(&t));
        progress_end(&t.progress);
        send_report(&t, descriptor);
    }
    *stopped = status == ST_OK ? t.report.stopped : 0;
    end(&t);
    return status;
}
