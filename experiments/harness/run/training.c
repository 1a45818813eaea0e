#include "run/training.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "job/batches.h"
#include "job/machine.h"
#include "run/job_plans.h"
#include "run/progress.h"
#include "run/signals.h"
#include "run/state_file.h"
#include "train/training_step.h"

static const char *const split_names[SPLITS] = {"training", "test"};

struct training {
    const struct training_options *options;
    struct job *job;
    struct executor *exec;
    struct train *train;
    struct batches *batches;
    struct record *record;
    struct progress progress;
    struct run_report report;
    struct best_case least;
    int64_t end;            /* steps after which it ends: the job's, or fewer */
    uint64_t start, worked; /* its time, and that of the processors for it, before the first step */
    bool ahead;             /* the next step's batch was made during the last step, in next_ns */
    uint64_t next_ns;

    struct result *past;          /* what earlier processes recorded of the run, NULL: nothing */
    struct state_numbers earlier; /* theirs, up to the state that it goes on from */
    int64_t recorded, evaluated;  /* steps in past; steps done before its last evaluation */
    int64_t fresh;                /* steps of a state that has not yet replaced the one before, 0: there is none */
    bool failing;                 /* the last state could not be written */
};

/* A step that an earlier process recorded after its last state is computed again. */
static enum status check_recorded(const struct training *t, const struct step_record *s)
{
    const struct result *past = t->past;
    const struct train_result *r = &s->result;
    uint32_t bits;
    memcpy(&bits, &r->loss, sizeof bits);
    if (bits == past->loss_bits[s->step] && digest_equal(r->gradients, past->gradients[s->step]) &&
        digest_equal(r->parameters, past->parameters_digest[s->step]) && digest_equal(r->state, past->state[s->step]) &&
        digest_equal(r->running, past->running_digest[s->step]))
        return ST_OK;
    return fail(ST_DIFFERS,
                "step %u has other bits than %s recorded before the run was interrupted: this machine does not "
                "repeat them; --resume never runs it from the beginning",
                s->step, past->h5.path);
}

static enum status record_training_step(struct training *t, struct step_record *s)
{
    s->metric = s->result.counted ? s->result.correct / (float)s->result.counted : 0;
    s->live_peak = t->job->plan->live_peak; /* which in dynamic memory the allocator counted, too */
    s->rss = process_rss();
    s->live = record_wants_memory(t->job->spec, s->step) ? t->job->plan->live : NULL;
    TRY(s->step < t->recorded ? check_recorded(t, s) : record_step(t->record, s));
    if (t->report.steps < REPORT_LOSSES) t->report.loss[t->report.steps] = s->result.loss;
    t->report.last_loss = s->result.loss;
    if (t->report.steps > 0) timing_add(&t->least, executor_op_ns(t->exec), s->total_ns);
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
    if (step < t->recorded) return ST_OK;
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

/* Adds the loss, the correct predictions, the number of labels and what the loss is divided by of count samples of the
 * evaluated split to sum, in the memory of the training run. */
static enum status add_samples(struct training *t, int64_t first, int64_t count, double sum[4])
{
    const struct spec *spec = t->job->spec;
    float loss[2];
    TRY(batches_in_order(t->batches, (enum split)spec->eval_split, first, count, executor_batch(t->exec),
                         executor_labels(t->exec)));
    TRY(executor_run_plan(t->exec, t->job->evaluation, (uint32_t)t->report.steps, loss));
    const struct step_moment *moment = &t->job->backend->moment;
    sum[0] += (double)loss[0] * moment->divisor;
    sum[1] += (double)loss[1];
    sum[2] += (double)moment->counted;
    sum[3] += moment->divisor;
    return ST_OK;
}

/* Loss and accuracy over the whole split; every label counts once. The last batch is filled with copies of its last
 * sample; a batch of copies alone gives the share of one copy, which is subtracted. */
static enum status one_evaluation(struct training *t)
{
    const struct spec *spec = t->job->spec;
    const int64_t samples = t->job->dataset->count[spec->eval_split], batch = spec->batch;
    double sum[4] = {0}, copies[4] = {0};
    for (int64_t first = 0; first < samples; first += batch) {
        const int64_t count = samples - first < batch ? samples - first : batch;
        if ((t->report.stopped = signals_pending())) return ST_OK;
        TRY(add_samples(t, first, count, sum));
        if (count == batch) continue;
        TRY(add_samples(t, first + count - 1, 1, copies));
        for (int i = 0; i < 4; i++) sum[i] -= copies[i] / (double)batch * (double)(batch - count);
    }
    const struct eval_record eval = {.step = (uint32_t)t->report.steps,
                                     .loss = sum[3] > 0 ? (float)(sum[0] / sum[3]) : 0,
                                     .accuracy = sum[2] > 0 ? (float)(sum[1] / sum[2]) : 0};
    TRY(record_eval(t->record, &eval));
    t->report.accuracy = eval.accuracy;
    progress_eval(&t->progress, &eval, split_names[spec->eval_split]);
    return ST_OK;
}

static uint64_t device_used(struct backend *backend)
{
    return backend->kind->device ? backend->kind->device->used(backend) : 0;
}

/* Numbers of the run so far, with those of earlier processes. */
static void measure(struct training *t)
{
    struct run_summary *now = &t->report.summary;
    const struct run_summary *earlier = &t->earlier.summary;
    const uint64_t high_water = process_high_water();
    now->high_water = high_water > earlier->high_water ? high_water : earlier->high_water;
    now->device_used = device_used(t->job->backend);
    now->wall_ns = earlier->wall_ns + clock_now_ns() - t->start;
    now->processor_ns = earlier->processor_ns + process_worked_ns() - t->worked;
    for (int i = 0; i < CLOCK_CLASSES; i++) now->clock_ns[i] = earlier->clock_ns[i] + t->job->backend->clock_ns[i];
}

/* ---- its state ---- */

static struct state_file state_file_of(const struct training *t)
{
    return (struct state_file){record_path(t->record), record_id(t->record), t->job, t->exec};
}

/* Every state_every steps; and where a stop is announced, as by a time limit. With record.state, no state is written
 * after the last step, whose gradients it does not hold. */
static bool state_due(const struct training *t)
{
    const int64_t every = t->job->spec->state_every, done = t->report.steps;
    const int stopped = t->report.stopped;
    if (t->options->temporary || done <= t->report.state || done == t->fresh) return false;
    if (!stopped) return every > 0 && done % every == 0 && done < t->end;
    if (done == t->job->steps && t->job->spec->record_state) return false;
    return every > 0 || stopped == SIGTERM || stopped == SIGUSR1;
}

/* A state that cannot be written ends no run: the file goes on, and the last state is as it was. */
static void note_failure(struct training *t)
{
    if (t->failing) return;
    progress_end(&t->progress);
    fprintf(stderr, "warning: %s; training is not affected, ", status_message());
    if (t->report.state)
        fprintf(stderr, "the last state is that after %lld steps\n", (long long)t->report.state);
    else
        fprintf(stderr, "there is no state yet\n");
}

/* What the file has recorded is on the disk before its state. */
static enum status save_state(struct training *t)
{
    const struct state_file file = state_file_of(t);
    struct run_summary *summary = &t->report.summary;
    const uint64_t start = clock_now_ns();
    TRY(record_sync(t->record));
    measure(t);
    const struct state_numbers numbers = {.steps = (uint64_t)t->report.steps, .summary = *summary};
    const bool written = state_file_write(&file, &numbers, &t->least) == ST_OK;
    t->fresh = written ? t->report.steps : 0;
    if (!written) note_failure(t);
    t->failing = !written;
    summary->states_ns += clock_now_ns() - start;
    return ST_OK;
}

/* A state replaces the one before when the step after it is recorded: a process that goes on from it computes that step
 * again, and so finds whether its machine repeats the bits. */
static void place_state(struct training *t)
{
    const struct state_file file = state_file_of(t);
    if (!t->fresh) return;
    const bool placed = state_file_place(&file) == ST_OK;
    if (placed) t->report.state = t->fresh;
    if (!placed) note_failure(t);
    t->failing = !placed;
    t->fresh = 0;
}

static enum status evaluate_if_due(struct training *t)
{
    const int64_t done = t->report.steps;
    return done > t->evaluated && evaluation_due(t->job, done) ? one_evaluation(t) : ST_OK;
}

/* The state is in place at once, as there may be little time; then the step after it is recorded. */
static enum status stop(struct training *t)
{
    if (state_due(t)) TRY(save_state(t));
    place_state(t);
    const int64_t done = t->report.steps;
    const bool bare = done && t->report.state == done && done >= t->recorded && done < t->end;
    return bare ? one_step(t, (uint32_t)done) : ST_OK;
}

static enum status all_steps(struct training *t)
{
    if (!t->past) TRY(record_tensors(t->record, false, t->exec));
    TRY(evaluate_if_due(t));
    while (!t->report.stopped && t->report.steps < t->end) {
        if ((t->report.stopped = signals_pending())) break;
        TRY(one_step(t, (uint32_t)t->report.steps));
        place_state(t);
        TRY(evaluate_if_due(t));
        if (!t->report.stopped && state_due(t)) TRY(save_state(t));
    }
    if (t->report.stopped) TRY(stop(t));
    return t->report.stopped || t->end < t->job->steps ? ST_OK : record_tensors(t->record, true, t->exec);
}

/* Takes numbers over from the unfinished file. What it recorded after the state counts as time of the run. */
static enum status take_over(struct training *t)
{
    struct result *past = t->past;
    struct run_report *report = &t->report;
    struct eval_record eval;
    const struct run_summary *earlier = &t->earlier.summary;
    report->steps = report->state = (int64_t)t->earlier.steps;
    t->recorded = (int64_t)past->steps;
    for (size_t i = 0; i < t->earlier.steps && i < REPORT_LOSSES; i++) report->loss[i] = past->loss[i];
    report->last_loss = past->loss[t->earlier.steps - 1];
    report->summary.states_ns = earlier->states_ns;
    for (size_t i = t->earlier.steps; i < past->steps; i++) t->earlier.summary.wall_ns += past->total_ns[i];
    if (record_last_eval(past, &eval)) {
        report->accuracy = eval.accuracy;
        t->evaluated = eval.step;
    }
    return h5_status(&past->h5);
}

/* Of an unfinished file with a state; both are left alone where one of them cannot be used. */
static enum status go_on(struct training *t)
{
    const struct state_file file = state_file_of(t);
    if (!t->options->resume || !state_file_exists(file.path)) return ST_OK;
    enum status status = record_keep(t->record, &t->past);
    if (status == ST_OK && !t->past) return ST_OK;
    if (status == ST_OK) status = state_file_read(&file, t->past, &t->earlier, &t->least);
    if (status == ST_OK) status = take_over(t);
    if (status != ST_OK) return fail(ST_FAILED, "%s; --resume never runs it from the beginning", status_message());
    if (!t->options->quiet)
        fprintf(stderr, "%s: goes on after %lld of %lld steps%s\n", t->options->variant, (long long)t->report.steps,
                (long long)t->job->steps,
                t->recorded > t->report.steps ? "" : "; no recorded step is left to be computed again");
    return ST_OK;
}

/* A state of an earlier run is no state of this one's file. */
static enum status open_record(struct training *t)
{
    TRY(record_begin(t->job, t->options->variant, &t->record));
    snprintf(t->report.path, sizeof t->report.path, "%s", record_path(t->record));
    const enum status status = go_on(t);
    if (status != ST_OK) {
        record_cancel(t->record);
        return status;
    }
    if (!t->past) state_file_remove(t->report.path);
    return record_start(t->record, (uint32_t)t->report.state);
}

/* Memory is reserved before the file is created: a run that gets no memory leaves no file. */
static enum status begin(struct training *t)
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
    if (spec->epochs > 0) train.learning_rate_settings.unit = job_epoch_steps(t->job);
    t->least.ops = t->job->plan->lowered.ops;
    NEW(t->job->graph->region, t->least.op_ns, (size_t)t->least.ops);
    t->batches = batches_create(t->job);
    t->report.summary.start_rss = process_rss();
    t->report.summary.device_start = device_used(t->job->backend);
    TRY(executor_create(t->job->plan, &options, &t->exec));
    TRY(train_create(t->job->network, t->exec, &train, &t->train));
    if (t->job->weights) TRY(weights_load(t->job->weights, t->job->backend, t->exec));
    TRY(open_record(t));
    memset(t->job->backend->clock_ns, 0, sizeof t->job->backend->clock_ns);
    t->report.summary.setup_ns = t->earlier.summary.setup_ns + clock_now_ns() - t->start;
    t->worked = process_worked_ns();
    return ST_OK;
}

/* Closes the file with the status of the run. The first error is the one reported. */
static enum status finish(struct training *t, enum status status)
{
    char how[2048 + 16], message[2048];
    struct run_summary *summary = &t->report.summary;
    const bool cut = t->report.stopped || t->end < t->job->steps;
    snprintf(message, sizeof message, "%s", status_message()); /* what follows may replace it */
    place_state(t);
    measure(t);
    if (status == ST_OK)
        snprintf(how, sizeof how, "%s", cut ? "interrupted" : "completed");
    else
        snprintf(how, sizeof how, "failed: %s", message);
    enum status closed = record_finish(t->record, how, summary, &t->least);
    if (closed == ST_DIFFERS) { /* going on would take over what is wrong */
        state_file_remove(t->report.path);
        closed = fail(ST_FAILED, "%s; the same command runs it from the beginning", status_message());
    }
    if (summary->numbers.timing.steps) t->report.step_ns = (uint64_t)summary->numbers.timing.median_ns;
    t->report.best_case_ns = timing_best_case(&t->least);
    if (status != ST_OK) return fail(status, "%s", message);
    t->report.finished = closed == ST_OK && !cut;
    if (t->report.finished) state_file_remove(t->report.path);
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

enum status training_run(struct job *job, const struct training_options *options, int *stopped)
{
    struct training t = {
        .options = options, .job = job, .end = job->steps, .report.accuracy = NAN, .start = clock_now_ns()};
    if (options->steps > 0 && options->steps < job->steps) t.end = options->steps;
    enum status status = job_check_plans(job); /* this process made them, and runs them */
    if (status == ST_OK) status = begin(&t);
    if (status == ST_OK) {
        send_report(&t, options->descriptor);
        if (job->weights && !options->quiet) fprintf(stderr, "weights   %s\n", weights_text(job->weights));
        t.progress = progress_begin(options->quiet ? NULL : stderr, job->steps);
        t.progress.first = t.progress.done = t.report.steps;
        status = finish(&t, all_steps(&t));
        progress_end(&t.progress);
        send_report(&t, options->descriptor);
    }
    *stopped = status == ST_OK ? t.report.stopped : 0;
    end(&t);
    return status;
}
