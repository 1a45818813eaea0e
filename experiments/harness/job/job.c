#include "job/job.h"

#include <stdlib.h>

#include "job/cuda_program.h"
#include "policies/policy.h"
#include "search/budget.h"
#include "spec/model.h"

struct plan_options job_plan_options(const struct job *job)
{
    const struct spec *spec = job->spec;
    return (struct plan_options){
        .lower = {.drop_dead = spec->drop_dead, .rng = (enum rng_mode)spec->rng},
        .state_per_parameter = spec->optimizer ? optimizer_copies(spec->optimizer, &spec->optimizer_settings) : 0,
        .unplaced = !job->backend && !spec->placed,
    };
}

enum status job_plan(const struct job *job, const struct policy *policy, const struct policy_settings *settings,
                     struct policy_notes *notes, struct plan **plan)
{
    const struct plan_options options = job_plan_options(job);
    return policy_plan(policy, &(struct policy_input){job->network, settings, &options, notes}, plan);
}

/* A lower bound above the time of a schedule is wrong, and would make that schedule look optimal. */
static enum status check_bound(const struct plan *plan, const struct bounds *bounds)
{
    const double noise = 1e-9; /* the same times are summed in different orders */
    if (plan->time >= bounds->best * (1 - noise)) return ST_OK;
    return fail(ST_FAILED, "the lower bound for %zu live bytes, %g, is above the time of a schedule, %g: it is wrong",
                bounds->budget, bounds->best, plan->time);
}

enum status plan_bounds(const struct plan *plan, const struct policy *policy, const struct policy_settings *settings,
                        const struct plan_options *options, struct bounds *own, struct bounds *within)
{
    const char *text = policy_budget(policy, settings);
    struct budget budget;
    *within = (struct bounds){.budget = 0};
    *own = bounds_find(plan->network, plan->live_peak);
    TRY(check_bound(plan, own));
    if (!text) return ST_OK;
    TRY(budget_parse(text, &budget));
    if (budget.kind == BUDGET_LEAST) return ST_OK;
    *within = bounds_find(plan->network, budget_room(plan->network, &budget, options));
    return check_bound(plan, within);
}

int64_t job_epoch_steps(const struct job *job)
{
    return job->dataset->kind->sized ? job->dataset->count[SPLIT_TRAIN] / job->spec->batch : 0;
}

static enum status count_steps(struct job *job)
{
    const struct spec *spec = job->spec;
    int64_t each = job_epoch_steps(job);
    if (job->dataset->kind->sized && each < 1)
        return fail(ST_SPEC, "batch: %lld is more than the %lld training samples of data set '%s'",
                    (long long)spec->batch, (long long)job->dataset->count[SPLIT_TRAIN], job->dataset->kind->name);
    job->steps = spec->epochs > 0 ? spec->epochs * each : spec->steps;
    if (job->steps >= UINT32_MAX)
        return fail(ST_SPEC, "steps: %lld is too many; expected at most 2^32 - 2", (long long)job->steps);
    return ST_OK;
}

static enum status find_fault(struct job *job)
{
    const struct spec *spec = job->spec;
    job->fault_node = -1;
    if (spec->fault_kind == FAULT_NONE) return ST_OK;
    job->fault_node = spec->fault_node ? graph_find_node(job->graph, spec->fault_node) : -1;
    if (job->fault_node < 0)
        return fail(ST_SPEC, "fault.node: the model has no node '%s'", spec->fault_node ? spec->fault_node : "");
    if (spec->fault_step >= job->steps)
        return fail(ST_SPEC, "fault.step: %lld; expected 0..%lld, a step of the run", (long long)spec->fault_step,
                    (long long)job->steps - 1);
    return ST_OK;
}

struct executor_options job_exec_options(const struct job *job)
{
    const struct spec *spec = job->spec;
    return (struct executor_options){
        .memory = (enum memory_mode)spec->memory,
        .rng = (enum rng_mode)spec->rng,
        .commit_every = spec->commit,
        .seed = (uint64_t)spec->seed,
        .check_recompute = spec->check,
        .fault = {(enum fault_kind)spec->fault_kind, spec->fault_step, job->fault_node},
    };
}

/* A label for each row of what the loss reads. */
static enum status check_rows(const struct job *job, const struct node *loss)
{
    const int64_t rows = graph_labels(job->graph), labels = job->dataset->labels;
    char text[96];
    if (rows == labels) return ST_OK;
    return fail(ST_SPEC,
                "model: loss %s reads %lld label%s a sample from its input %s, but data set '%s' has %lld; expected %s",
                loss->layer->name, (long long)rows, rows == 1 ? "" : "s",
                shape_print(&job->graph->value[loss->inputs[0]].shape, text), job->dataset->kind->name,
                (long long)labels, labels == 1 ? "a vector, as flatten and select make one" : "a row for each of them");
}

/* Numbers as targets for a loss that reads them, and an output of their shape; else labels that are classes. */
static enum status check_targets(const struct job *job, const struct node *loss)
{
    const struct shape *x = &job->graph->value[loss->inputs[0]].shape, *target = &job->dataset->target;
    const char *name = loss->layer->name, *data = job->dataset->kind->name;
    char is[96], expected[96];
    if (loss->layer->targets && !target->rank)
        return fail(ST_SPEC,
                    "loss: %s reads numbers as targets, but the labels of data set '%s' are classes; expected data "
                    "such as {name: synthetic, labels: image}, or another loss",
                    name, data);
    if (!loss->layer->targets && target->rank)
        return fail(ST_SPEC,
                    "data: the labels of data set '%s' are numbers here, but loss %s reads labels that are classes; "
                    "expected other data.labels, or loss: mse",
                    data, name);
    if (!target->rank || shape_equal(x, target)) return ST_OK;
    return fail(ST_SPEC,
                "model: loss %s reads an output %s, but the targets of data set '%s' are %s; expected the same "
                "shape",
                name, shape_print(x, is), data, shape_print(target, expected));
}

/* Of the splits that the run reads, if the loss uses labels. */
static enum status check_labels(struct job *job)
{
    const struct graph *graph = job->graph;
    const struct node *loss = &graph->node[graph->nodes - 1];
    const int64_t classes = graph_classes(graph);
    TRY(check_targets(job, loss));
    TRY(check_rows(job, loss));
    if (!loss->layer->predicts) return ST_OK;
    TRY(dataset_check_labels(job->dataset, SPLIT_TRAIN, classes));
    if (job->spec->eval_every <= 0 || job->spec->eval_split == SPLIT_TRAIN) return ST_OK;
    return dataset_check_labels(job->dataset, (enum split)job->spec->eval_split, classes);
}

const char *job_costs(const struct job *job) { return job->backend ? costs_names[job->spec->costs] : GRAPH_COSTS; }

const struct backend *job_backend(const struct job *job)
{
    static const struct backend none = {.libraries = "none", .isa = "none"};
    return job->backend ? job->backend : &none;
}

const struct dataset *job_dataset(const struct job *job)
{
    static const struct dataset_kind graph = {.name = "none, a graph file"};
    static const struct dataset none = {.kind = &graph, .synthetic = true};
    return job->dataset ? job->dataset : &none;
}

static enum status prepare(struct job *job)
{
    struct spec *spec = job->spec;
    TRY(cuda_program_become(spec->backend));
    TRY(dataset_open(spec->data->name, &spec->data_settings, (uint64_t)spec->seed, &job->dataset));
    TRY(model_build(spec, job->dataset, &job->graph));
    TRY(check_labels(job));
    TRY(backend_open(spec->backend, &spec->backend_options, &job->backend));
    TRY(count_steps(job));
    TRY(find_fault(job));
    uint64_t start = clock_now_ns();
    TRY(network_prepare(job->graph, job->backend, &job->network));
    job->preparing_ns = clock_now_ns() - start;
    return ST_OK;
}

enum status job_prepare(struct spec *spec, struct job **job)
{
    *job = allocate(1, sizeof **job);
    (*job)->spec = spec;
    const enum status status = prepare(*job);
    if (status != ST_OK) job_destroy(*job), *job = NULL;
    return status;
}

struct job *job_prepare_abstract(struct spec *spec, struct network *network)
{
    struct job *job = allocate(1, sizeof *job);
    *job = (struct job){.spec = spec, .graph = network->graph, .network = network, .fault_node = -1};
    return job;
}

void job_destroy(struct job *job)
{
    if (!job) return;
    weights_close(job->weights);
    plan_destroy(job->evaluation);
    plan_destroy(job->plan);
    network_destroy(job->network);
    backend_close(job->backend);
    graph_destroy(job->graph);
    dataset_close(job->dataset);
    free(job);
}
