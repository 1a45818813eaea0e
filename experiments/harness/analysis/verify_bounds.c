/* Whether a file's plan is one of the spec beside it; and its lower bounds, computed again on the network of that spec
 * with the times that the file gives its nodes. */
#include <math.h>
#include <string.h>

#include "analysis/verify.h"
#include "result/plan_file.h"
#include "result/record_plan.h"
#include "run/job_plans.h"

/* Relative: another machine may round sums differently. */
static const double rounding = 1e-9;

static enum status deny(struct verification *v, const char *why)
{
    v->wrong = region_text(v->result->region, "it is not of its spec: %s", why);
    return ST_OK;
}

static enum status leave(struct verification *v)
{
    v->bounds_unjudged = region_text(v->result->region, "%s", status_message());
    return ST_OK;
}

static double value_of(const struct column *column, const struct record_bounds *bounds)
{
    const void *member = (const char *)bounds + column->offset;
    return column->number == NUMBER_U64 ? (double)*(const uint64_t *)member : *(const double *)member;
}

static enum status judge_rows(struct verification *v, const struct column *columns,
                              const struct record_bounds *expected)
{
    struct record_bounds found;
    char claimed[96], ours[96];
    table_read_attributes(&v->result->h5, "/plan", columns, &found, v->result->region);
    TRY(h5_status(&v->result->h5));
    for (const struct column *c = columns; c->name && !v->wrong_bound; c++) {
        const double is = value_of(c, &found), should = value_of(c, expected);
        if (fabs(is - should) > rounding * fmax(1, fabs(should)))
            v->wrong_bound = region_text(v->result->region, "%s is %s; expected %s", c->name,
                                         column_text(c, &found, claimed), column_text(c, expected, ours));
    }
    return ST_OK;
}

static enum status judge(struct verification *v, struct job *job)
{
    const struct plan_options options = job_plan_options(job);
    for (int i = 0; i < v->data.nodes; i++) {
        const struct plan_data_node *n = &v->data.node[i];
        job->network->cost[i] = (struct cost){n->forward_time, {n->backward_time[0], n->backward_time[1]}};
    }
    job->plan->time = v->data.real[REAL_TIME]; /* by those costs, as the simulator found it */
    TRY(plan_bounds(job->plan, job->spec->policy, &job->spec->policy_settings, &options, &job->bounds,
                    &job->budget_bounds));
    const struct record_bounds expected = record_bounds(&job->bounds, &job->budget_bounds, job->plan->time);
    TRY(judge_rows(v, record_bound_columns, &expected));
    if (expected.budget && !v->wrong_bound) TRY(judge_rows(v, record_budget_columns, &expected));
    return ST_OK;
}

enum status verify_run_id(const struct verification *verification, struct run_id_parts *identity)
{
    struct result *r = verification->result;
    struct h5 *h5 = &r->h5;
    *identity = (struct run_id_parts){
        .resolved = h5_read_text(h5, "/spec/resolved", r->region),
        .program = h5_read_attribute_text(h5, "/provenance/build", "program_xxh3", NULL, r->region),
        .data = h5_read_attribute_text(h5, "/provenance/data", "digest_xxh3", NULL, r->region),
        .libraries = h5_read_attribute_text(h5, "/provenance/libs", "kernels", NULL, r->region),
        .libc = h5_read_attribute_text(h5, "/provenance/libs", "libc", NULL, r->region),
        .isa = h5_read_attribute_text(h5, "/provenance/host", "isa", NULL, r->region),
        .plan = r->plan_hash,
        .costs = h5_read_attribute_text(h5, "/plan", "costs_digest_xxh3", "", r->region),
        .weights = h5_read_attribute_text(h5, "/provenance/weights", "sha256", "", r->region),
        .device = h5_read_attribute_text(h5, "/provenance/gpu", "device", "", r->region),
    };
    h5_read_value(h5, "/provenance/host", "threads", NUMBER_U64, false, &identity->threads, NULL);
    return h5_status(h5);
}

/* Whether the kernels of the file's plan are those that the program has here. */
static bool same_kernels(const struct run_id_parts *a, const struct run_id_parts *b)
{
    return !strcmp(a->program, b->program) && !strcmp(a->libraries, b->libraries) && !strcmp(a->isa, b->isa) &&
           !strcmp(a->device, b->device) && a->threads == b->threads;
}

/* As a spec's `plan:` reads it. What does not depend on kernels is wrong where it differs; so is the rest where the
 * kernels are the same, and with others it cannot be judged. */
static enum status judge_plan_file(struct verification *v, struct job *job)
{
    struct region *region = v->result->region;
    struct run_id_parts theirs, ours;
    struct plan *plan = NULL;
    enum status status = plan_file_of_model(job, v->path, &v->data, region);
    if (status == ST_SPEC) return deny(v, status_message());
    TRY(status);
    status = plan_file_take(job, v->path, &plan);
    plan_destroy(plan);
    if (status != ST_SPEC) return status;
    const char *why = region_text(region, "%s", status_message());
    TRY(verify_run_id(v, &theirs));
    TRY(run_id_of_job(job, region, &ours));
    if (same_kernels(&theirs, &ours)) return deny(v, why);
    v->bounds_unjudged = region_text(region, "not of the kernels here: %s", why);
    return ST_OK;
}

static enum status judge_job(struct verification *v, struct job *job)
{
    TRY(judge_plan_file(v, job));
    if (v->wrong || v->bounds_unjudged) return ST_OK;
    if (job_make_plans(job) != ST_OK) return leave(v);
    const size_t evaluation = job->evaluation ? job->evaluation->arena_bytes : 0;
    if (evaluation == v->data.evaluation_arena) return judge(v, job);
    v->wrong_bound = region_text(v->result->region, "evaluation_arena_bytes is %zu; expected %zu",
                                 v->data.evaluation_arena, evaluation);
    return ST_OK;
}

enum status verify_bounds(struct verification *v)
{
    struct job *job = NULL;
    if (!v->spec) return deny(v, "/spec/resolved is refused");
    enum status status = job_prepare(v->spec, &job) == ST_OK ? judge_job(v, job) : leave(v);
    job_destroy(job);
    return status;
}
