/* A file's lower bounds, found again: on the network of its spec, with the times that the file gives its nodes. */
#include <math.h>

#include "record_plan.h"
#include "verify.h"

/* Sums may be rounded otherwise elsewhere. */
static const double rounding = 1e-9;

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
    TRY(plan_bounds(job->plan, job->spec->policy, &job->spec->policy_settings, &options, &job->bounds,
                    &job->budget_bounds));
    const int rows = record_bounds(&job->bounds, &job->budget_bounds, v->account.real[REAL_TIME], row);
    for (int i = 0; i < rows && !v->wrong_bound; i++) TRY(judge_row(v, &row[i]));
    return ST_OK;
}

enum status verify_bounds(struct verification *v, const char *path, const char *plan)
{
    struct spec *spec = NULL;
    struct job *job = NULL;
    const char *override[] = {plan, "costs=flops"};
    if (spec_load(path, 2, override, false, &spec) != ST_OK) {
        v->bounds_unjudged = "its spec is refused";
        return ST_OK;
    }
    enum status status = job_create(spec, &job);
    if (status == ST_OK) {
        status = judge(v, job);
    } else {
        v->bounds_unjudged = region_text(v->result->region, "%s", status_message());
        status = v->bounds_unjudged ? ST_OK : ST_FAILED;
    }
    job_destroy(job);
    spec_destroy(spec);
    return status;
}
