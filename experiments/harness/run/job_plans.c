#include "run/job_plans.h"

#include <string.h>

#include "base/region.h"
#include "base/units.h"
#include "check/simulate.h"
#include "console/terminal.h"
#include "console/work_line.h"
#include "result/costs_read.h"
#include "result/plan_file.h"
#include "search/budget.h"

static enum status find_training(struct job *job)
{
    const struct plan_options options = job_plan_options(job);
    const struct policy_settings *settings = &job->spec->policy_settings;
    if (job->spec->plan) {
        TRY(plan_file_take(job, job->spec->plan, &job->plan));
    } else {
        TRY(job_plan(job, job->spec->policy, settings, &job->notes, &job->plan));
        plan_search_placement(job->plan);
    }
    return plan_bounds(job->plan, job->spec->policy, settings, &options, &job->bounds, &job->budget_bounds);
}

static enum status plan_training(struct job *job)
{
    work_line_begin();
    const enum status status = find_training(job);
    work_line_end();
    return status;
}

/* A forward without backwards, run in the arena of the training plan. If it needs a larger arena because of
 * fragmentation, the arena grows within the budget. */
static enum status plan_evaluation(struct job *job)
{
    region_auto *region = region_create();
    struct schedule schedule = schedule_empty(region), all = schedule_empty(region);
    struct plan_options options = job_plan_options(job);
    options.lower.evaluate = true;
    const struct slicing slicing = graph_slicing(job->graph);
    schedule_append(&all, STEP_FORWARD, 0, job->graph->nodes);
    schedule_append_by_slice(&schedule, &slicing, &all);
    job->evaluation = plan_build(job->network, &schedule, &options);
    TRY(budget_evaluation(job->evaluation, job->budget_bounds.budget));
    if (job->evaluation->arena_bytes > job->plan->arena_bytes) job->plan->arena_bytes = job->evaluation->arena_bytes;
    if (job->evaluation->arena_bound > job->plan->arena_bound) job->plan->arena_bound = job->evaluation->arena_bound;
    return ST_OK;
}

/* rng: unsafe and commit: every must make a difference that the comparison can catch. */
static enum status check_wrong(const struct job *job)
{
    bool draws = job->spec->rng != RNG_UNSAFE, moves = !job->spec->commit;
    for (int i = 0; i < job->plan->lowered.ops; i++) {
        const struct op *op = &job->plan->lowered.op[i];
        if (op->kind != OP_FORWARD || !op->recompute) continue;
        draws |= job->graph->node[op->node].draws > 0;
        moves |= job->graph->node[op->node].states > 0;
    }
    if (!draws) return fail(ST_SPEC, "rng: unsafe, but the plan recomputes no random node, so nothing could differ");
    if (moves) return ST_OK;
    return fail(ST_SPEC, "commit: every, but the plan recomputes no node with running state, so nothing could differ");
}

/* handoff: a training plan; NULL: it is searched for. */
static enum status make_plans(struct job *job, const struct plan_handoff *handoff)
{
    const struct spec *spec = job->spec;
    uint64_t start = clock_now_ns();
    if (spec->init_file) TRY(weights_open(spec, job->graph, &job->weights));
    if (spec->costs == COSTS_MEASURED) TRY(costs_read(job));
    TRY(handoff ? plan_handoff_take(job, handoff) : plan_training(job));
    if (!handoff) job->planning_ns = clock_now_ns() - start;
    struct executor_options options = job_exec_options(job);
    int op;
    TRY(fault_find(job->plan, &options.fault, options.memory != MEMORY_DYNAMIC, &op));
    TRY(check_wrong(job));
    if (spec->eval_every <= 0) return ST_OK;
    if (job->dataset->count[spec->eval_split] > 0) return plan_evaluation(job);
    return fail(ST_SPEC, "eval: data set '%s' has no %s samples", job->dataset->kind->name,
                spec->eval_split == SPLIT_TEST ? "test" : "training");
}

void job_warn(const struct job *job)
{
    const struct spec *spec = job->spec;
    bool divided = !spec->update_part;
    for (int i = 0; i < job->graph->nodes; i++) divided |= network_update_parts(job->network, i) > 1;
    report_warning(job->dataset->notice);
    if (!divided)
        report_warning(region_text(spec->region,
                                   "update_part: %s: no gradient is divided; a part is of rows of a linear layer that "
                                   "computes the whole batch at once, and has 64 KiB at least",
                                   BYTES_TEXT(spec->update_part)));
    if (!strcmp(job_backend(job)->isa, "scalar"))
        report_warning(
            "the kernels of this build use no fused multiply-adds of the processor: each is a call of fmaf(), "
            "in the same bits and many times slower; build for one with AVX2, MARCH=native or x86-64-v3");
    if (spec->optimizer_settings.lr == 0) report_warning("optimizer.lr: 0: no step changes a parameter");
}

static enum status check_plan(const struct plan *plan, const struct plan *evaluation)
{
    region_auto *region = region_create();
    struct plan_data data;
    plan_to_data(plan, region, &data);
    if (evaluation) data.evaluation_arena = evaluation->arena_bytes;
    const enum status status = simulate(&data);
    if (status != ST_DIFFERS) return status;
    return fail(ST_FAILED, "the checker refuses the plan that was made: %s", status_message());
}

enum status job_check_plans(struct job *job)
{
    const uint64_t start = clock_now_ns();
    TRY(check_plan(job->plan, job->evaluation));
    if (job->evaluation) TRY(check_plan(job->evaluation, NULL));
    job->checking_ns = clock_now_ns() - start;
    return ST_OK;
}

enum status job_make_plans(struct job *job) { return make_plans(job, NULL); }

enum status job_create_planned(struct spec *spec, const struct plan_handoff *handoff, struct job **job)
{
    TRY(job_prepare(spec, job));
    const enum status status = make_plans(*job, handoff);
    if (status != ST_OK) job_destroy(*job), *job = NULL;
    return status;
}

enum status job_create(struct spec *spec, struct job **job) { return job_create_planned(spec, NULL, job); }

enum status job_create_abstract(struct spec *spec, struct network *network, struct job **job)
{
    *job = job_prepare_abstract(spec, network);
    const enum status status = job_make_plans(*job);
    if (status != ST_OK) job_destroy(*job), *job = NULL;
    return status;
}
