/* Is a file's plan of the spec beside it? And its lower bounds, found again: on the network of that spec, with the
 * times that the file gives its nodes. */
#include <math.h>

#include "plan_file.h"
#include "record_plan.h"
#include "verify.h"

/* Sums may be rounded otherwise elsewhere. */
static const double rounding = 1e-9;

static enum status deny(struct verification *v, const char *why)
{
    v->wrong = region_text(v->result->region, "it is not of its spec: %s", why);
    return v->wrong ? ST_OK : ST_FAILED;
}

static enum status leave(struct verification *v)
{
    v->bounds_unjudged = region_text(v->result->region, "%s", status_message());
    return v->bounds_unjudged ? ST_OK : ST_FAILED;
}

static enum status judge_row(struct verification *v, const struct record_bound *row)
{
    struct h5 *h5 = &v->result->h5;
    uint64_t bytes = 0;
    double claimed = 0;
    h5_read_attribute(h5, "/plan", row->name, row->bytes ? NUMBER_U64 : NUMBER_F64,
                      row->bytes ? (void *)&bytes : (void *)&claimed);
    TRY(h5_status(h5));
    if (row->bytes) claimed = (double)bytes;
    if (fabs(claimed - row->value) <= rounding * fmax(1, fabs(row->value))) return ST_OK;
    v->wrong_bound = region_text(v->result->region, "%s is %.17g; expected %.17g", row->name, claimed, row->value);
    return v->wrong_bound ? ST_OK : ST_FAILED;
}

static enum status judge(struct verification *v, struct job *job)
{
    const struct plan_options options = job_plan_options(job);
    struct record_bound row[RECORD_BOUNDS];
    for (int i = 0; i < v->account.nodes; i++) {
        const struct account_node *n = &v->account.node[i];
        job->network->cost[i] = (struct cost){n->forward_time, {n->backward_time[0], n->backward_time[1]}};
    }
    job->plan->time = v->account.real[REAL_TIME]; /* by those costs, as the simulator found it */
    TRY(plan_bounds(job->plan, job->spec->policy, &job->spec->policy_settings, &options, &job->bounds,
                    &job->budget_bounds));
    const int rows = record_bounds(&job->bounds, &job->budget_bounds, v->account.real[REAL_TIME], row);
    for (int i = 0; i < rows && !v->wrong_bound; i++) TRY(judge_row(v, &row[i]));
    return ST_OK;
}

/* What no kernels decide is wrong where it differs; what they do cannot be judged with others. */
static enum status judge_job(struct verification *v, struct job *job)
{
    enum status status = plan_file_of_model(job, v->path, &v->account, v->result->region);
    if (status == ST_SPEC) return deny(v, status_message());
    TRY(status);
    if (job_make_plans(job) != ST_OK) return leave(v);
    const size_t evaluation = job->evaluation ? job->evaluation->arena_bytes : 0;
    if (evaluation == v->account.evaluation_arena) return judge(v, job);
    v->wrong_bound = region_text(v->result->region, "evaluation_arena_bytes is %zu; expected %zu",
                                 v->account.evaluation_arena, evaluation);
    return v->wrong_bound ? ST_OK : ST_FAILED;
}

enum status verify_bounds(struct verification *v)
{
    struct job *job = NULL;
    if (!v->spec) return deny(v, "/spec/resolved is refused");
    enum status status = job_prepare(v->spec, &job) == ST_OK ? judge_job(v, job) : leave(v);
    job_destroy(job);
    return status;
}
