/* One training run in this process: everything between a spec and its result file. */
#ifndef REMATCH_JOB_JOB_H
#define REMATCH_JOB_JOB_H

#include "job/costs.h"
#include "job/weights.h"
#include "search/bounds.h"

/* A spec made ready: data opened, graph built, backend opened, plan made. Or a network without kernels, which is
 * planned and never runs: of its spec only name, title, overrides, drop_dead and policy count. */
struct job {
    struct spec *spec;
    struct dataset *dataset; /* NULL: the network has no kernels */
    struct backend *backend; /* NULL: the same */
    struct graph *graph;
    struct network *network;
    struct costs *costs;     /* NULL: flops */
    struct weights *weights; /* NULL: initial values come from no file */
    struct plan *plan;
    struct policy_notes notes;   /* what the policy says of the plan besides */
    struct bounds bounds;        /* of any schedule with the plan's live peak */
    struct bounds budget_bounds; /* of any schedule within the budget that the spec sets; budget 0: it sets none */
    struct plan *evaluation;     /* forward only; NULL: none is asked for */
    int64_t steps;               /* of training; from epochs where those are given */
    int fault_node;              /* -1: none */
    uint64_t planning_ns;        /* word, lowering, placement and bounds, kernels prepared */
    uint64_t preparing_ns;       /* what precedes planning: layouts and kernels */
};

/* All but costs and plans: what needs no policy. ST_SPEC, ST_MISSING or ST_FAILED with the message set. job_plans.h has
 * the rest. */
enum status job_prepare(struct spec *spec, struct job **job);
void job_destroy(struct job *job);

/* How the spec wants its plan to be executed. */
struct executor_options job_exec_options(const struct job *job);

/* What the spec says of how a plan is made from a schedule. */
struct plan_options job_plan_options(const struct job *job);

/* The plan that a policy makes for the job's network, whatever its spec says; region takes the schedule. */
enum status job_plan(const struct job *job, const struct policy *policy, const struct policy_settings *settings,
                     struct plan **plan);

/* Of any schedule with the live peak of a policy's plan; and within the budget that its settings set (budget 0: they
 * set none). ST_FAILED: the plan is faster than a bound. */
enum status plan_bounds(const struct plan *plan, const struct policy *policy, const struct policy_settings *settings,
                        const struct plan_options *options, struct bounds *own, struct bounds *within);

/* Steps in an epoch: whole batches of the training split; 0 where the data set has no end. */
int64_t job_epoch_steps(const struct job *job);

#endif
