/* One training run: everything between a spec and its result file. */
#pragma once

#include "job/costs.h"
#include "job/weights.h"
#include "search/bounds.h"

/* A spec made ready: data opened, graph built, backend opened, plan made. Or a network without kernels, which is
 * planned and never runs: of its spec only name, title, batch, overrides, drop_dead, placed and policy count. */
struct job {
    struct spec *spec;
    struct dataset *dataset; /* NULL: the network has no kernels */
    struct backend *backend; /* NULL: the same */
    struct graph *graph;
    struct network *network;
    struct costs *costs;     /* NULL: flops */
    struct weights *weights; /* NULL: initial values come from no file */
    struct plan *plan;
    struct policy_notes notes;   /* what the policy reports about the plan */
    struct bounds bounds;        /* of any schedule with the plan's live peak */
    struct bounds budget_bounds; /* of any schedule within the spec's budget; budget 0: the spec has none */
    struct plan *evaluation;     /* forward only; NULL: no evaluation */
    int64_t steps;               /* of training; computed from epochs if those are given */
    int fault_node;              /* -1: none */
    uint64_t planning_ns;        /* schedule, lowering, placement and bounds */
    uint64_t preparing_ns;       /* before planning: layouts and kernels */
    uint64_t checking_ns;        /* after it: the plans, by the checker; 0: they were not */
};

/* The source of the times that planning uses: flops, measured, or, of a network without kernels, its file. */
#define GRAPH_COSTS "file"
const char *job_costs(const struct job *job);

/* What stands for the kernels and the data of a network without them. */
const struct backend *job_backend(const struct job *job);
const struct dataset *job_dataset(const struct job *job);

/* Everything but costs and plans, which job_plans.h adds. ST_SPEC, ST_MISSING or ST_FAILED with the message set. */
enum status job_prepare(struct spec *spec, struct job **job);

/* The job of a network without kernels, which it destroys in the end. */
struct job *job_prepare_abstract(struct spec *spec, struct network *network);
void job_destroy(struct job *job);

/* job_auto *job = NULL: destroyed at the end of the block. */
#define job_auto struct job __attribute__((cleanup(job_end)))
static inline void job_end(struct job **job) { job_destroy(*job); }

/* The spec's options for executing a plan. */
struct executor_options job_exec_options(const struct job *job);

/* The spec's options for making a plan from a schedule. */
struct plan_options job_plan_options(const struct job *job);

/* Plans the job's network with any policy, instead of its spec's; notes may be NULL. */
enum status job_plan(const struct job *job, const struct policy *policy, const struct policy_settings *settings,
                     struct policy_notes *notes, struct plan **plan);

/* Lower bounds: own, of any schedule with the plan's live peak; within, of any schedule within the budget of the
 * settings (budget 0: they have none). ST_FAILED: the plan is faster than a bound. */
enum status plan_bounds(const struct plan *plan, const struct policy *policy, const struct policy_settings *settings,
                        const struct plan_options *options, struct bounds *own, struct bounds *within);

/* Steps in an epoch: whole batches of the training split; 0 where the data set has no end. */
int64_t job_epoch_steps(const struct job *job);
