/* Plans with a planted fault, as a mistake in planning would leave it: they are refused before the first step, and
 * nothing is written. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "run/job_plans.h"
#include "run/training.h"
#include "tests/support/made_runs.h"
#include "tests/support/spec_text.h"

static const char text[] =
    "rematch: 1\nname: checked\nmodel:\n  layers:\n"
    "    - residual: {layers: [{conv: {channels: 2, kernel: 3, padding: 1, activation: relu}}, "
    "{conv: {channels: 2, kernel: 1}}, dropout: {rate: 0.2}], shortcut: [{conv: {channels: 2, kernel: 1}}]}\n"
    "    - residual: {layers: [{conv: {channels: 2, kernel: 3, padding: 1}}]}\n"
    "    - flatten\n    - linear: {units: classes}\n"
    "data: {name: synthetic, shape: [4, 4, 2], classes: 3, samples: 40}\nbatch: 8\nsteps: 2\nslices: 4\n"
    "optimizer: {lr: 0.1}\nbackend: ref\npolicy: {name: revolve, slots: 1}\neval: {split: test}\n";

static struct op *op_of(struct plan *plan, enum op_kind kind, bool recompute)
{
    struct op *op = plan->lowered.op;
    while (op->kind != kind || op->recompute != recompute) cr_assert(++op < plan->lowered.op + plan->lowered.ops);
    return op;
}

static void adds_one_twice(struct job *job)
{
    struct op *op = op_of(job->plan, OP_ACCUMULATE, false);
    cr_assert(op->slice >= 0);
    op->x[1] = op->x[0];
}

static void takes_another_slice(struct job *job) { op_of(job->plan, OP_BACKWARD, false)->slice = 3; }
static void is_no_recomputation(struct job *job) { op_of(job->plan, OP_FORWARD, true)->recompute = false; }
static void ends_early(struct job *job) { job->plan->lowered.buffer[0].death--; }
static void lies_over_another(struct job *job)
{
    for (int i = 0; i < job->plan->lowered.buffers; i++) job->plan->lowered.buffer[i].offset = 0;
}
static void evaluates_wrongly(struct job *job) { op_of(job->evaluation, OP_FORWARD, false)[1].x[0] = BUFFER_BATCH; }

static const struct {
    void (*alter)(struct job *job);
    const char *says;
} faults[] = {{adds_one_twice, "accumulate"},
              {takes_another_slice, "out of order"},
              {is_no_recomputation, "recompute is 0; expected 1"},
              {ends_early, "buffer 0"},
              {lies_over_another, "overlaps buffer"},
              {evaluates_wrongly, "op 1 "}};

Test(checked, a_wrong_plan_is_refused_before_the_first_step)
{
    char folder[256], results[300];
    folder_make(folder);
    snprintf(results, sizeof results, "results=%s", folder);
    spec_text_begin();
    for (size_t i = 0; i <= sizeof faults / sizeof *faults; i++) {
        spec_auto *spec = load_well(text, results, false);
        job_auto *job = NULL;
        const bool right = i == sizeof faults / sizeof *faults;
        int stopped;
        cr_assert(job_create(spec, &job) == ST_OK, "%s", status_message());
        cr_assert(job_check_plans(job) == ST_OK && job->checking_ns > 0, "%s", status_message());
        if (!right) faults[i].alter(job);
        const struct training_options options = {.variant = "variant", .quiet = true, .descriptor = -1};
        const enum status status = training_run(job, &options, &stopped);
        cr_expect(status == (right ? ST_OK : ST_FAILED), "%zu: %d, %s", i, (int)status, status_message());
        cr_expect(right || (strstr(status_message(), "the checker refuses the plan that was made: ") &&
                            strstr(status_message(), faults[i].says)),
                  "%zu: %s", i, status_message());
        cr_expect(folder_count(folder, ".h5") == right && folder_count(folder, ".part") == 0, "%zu", i);
    }
    spec_text_end();
    folder_remove(folder);
}
