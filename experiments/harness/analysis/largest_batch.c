/* The largest batch that fits, for every policy at once: doubled until it does not fit, then bisected. A peak grows
 * with the batch but for the little that placement and the choice of kernels add, so two batches above the one found
 * are planned, too; where one of them fits, the search goes on from there. */
#include "analysis/plan_query.h"
#include "spec/model.h"
#include "spec/spec_settings.h"

enum { BATCH_STEP = 8, PROBES = 2, ELEMENTS_LOG2 = 44 };

const char batch_slow[] = "every plan is slower than that";

struct batch_search {
    const struct plan_query *query;
    const struct job *job;
    struct batches *found;
    struct policy_grid grid;
};

/* The job with another batch: graph and network its own, everything else shared. */
static enum status prepare(const struct job *job, int64_t batch, struct job *sized)
{
    const int64_t own = job->spec->batch;
    *sized = *job;
    sized->graph = NULL;
    sized->network = NULL;
    job->spec->batch = batch;
    enum status status = model_build(job->spec, job->dataset, &sized->graph);
    job->spec->batch = own;
    return status == ST_OK ? network_prepare(sized->graph, job->backend, &sized->network) : status;
}

static void release(struct job *sized)
{
    network_destroy(sized->network);
    graph_destroy(sized->graph);
}

/* The next batch to plan for a row; 0: its largest batch is found. */
static int64_t next_batch(const struct batch_row *row, int64_t most)
{
    if (row->fails) return row->fails - row->fits > 1 ? row->fits + (row->fails - row->fits) / 2 : 0;
    if (!row->fits) return 1;
    if (row->fits == most) return 0;
    return row->fits > most / 2 ? most : 2 * row->fits;
}

/* Updates a row by the trials at batch. */
static void judge(struct batch_search *s, struct batch_row *row, int64_t batch)
{
    const struct policy_grid *g = &s->grid;
    const struct trial *least = NULL;
    for (int i = 0; i < g->trials; i++)
        if (g->trial[i].plan.slowdown <= s->query->slowdown && (!least || trial_order(&g->trial[i], least) < 0))
            least = &g->trial[i];
    const bool fits = least && least->plan.peak <= s->query->memory;
    if (least && (fits || batch == 1)) row->at = *least;
    if (fits) {
        row->fits = batch;
        return;
    }
    row->fails = batch;
    row->next = least ? least->plan.peak : 0;
    row->why = least ? NULL : g->refusals ? g->refusal[0].why : batch_slow;
}

static enum status plan_row(struct batch_search *s, const struct job *sized, struct batch_row *row, int64_t batch)
{
    s->grid.trials = s->grid.refusals = 0;
    s->grid.job = sized;
    TRY(row->own ? policy_grid_own(&s->grid) : policy_grid_policy(&s->grid, row->policy));
    judge(s, row, batch);
    return ST_OK;
}

/* Plans batch for every row whose range holds it. What cannot be prepared does not fit. */
static enum status plan_rows(struct batch_search *s, int64_t batch)
{
    struct job sized;
    enum status status = prepare(s->job, batch, &sized);
    const char *why = status == ST_OK ? NULL : region_text(s->grid.region, "%s", status_message());
    status = ST_OK;
    for (int i = 0; i < s->found->rows && status == ST_OK; i++) {
        struct batch_row *row = &s->found->row[i];
        if (batch <= row->fits || (row->fails && batch >= row->fails)) continue;
        if (!why) {
            status = plan_row(s, &sized, row, batch);
        } else {
            row->fails = batch;
            row->why = why;
        }
    }
    release(&sized);
    return status;
}

static enum status settle(struct batch_search *s)
{
    for (int i = 0; i < s->found->rows; i++)
        for (int64_t batch; (batch = next_batch(&s->found->row[i], s->found->most));) TRY(plan_rows(s, batch));
    return ST_OK;
}

/* *odd: a batch larger than the one found fits after all; the row then holds that one. */
static enum status probe(struct batch_search *s, struct batch_row *row, bool *odd)
{
    const int64_t above[PROBES] = {row->fits + 2, (row->fits / BATCH_STEP + 1) * BATCH_STEP};
    for (int i = 0; i < PROBES && row->fits && row->fails; i++) {
        const struct batch_row before = *row;
        struct job sized;
        if (above[i] <= row->fails || above[i] > s->found->most) continue;
        enum status status = prepare(s->job, above[i], &sized);
        if (status == ST_OK) status = plan_row(s, &sized, row, above[i]);
        release(&sized);
        if (status != ST_OK && status != ST_SPEC) return status;
        if (status == ST_OK && row->fits > before.fits) {
            row->odd = before.fails;
            row->fails = 0;
            *odd = true;
            return ST_OK;
        }
        *row = before;
    }
    return ST_OK;
}

static int64_t most_batch(const struct job *job)
{
    int64_t most = (int64_t)setting_find(spec_keys, "batch")->max;
    for (int v = 0; v < job->graph->values; v++) {
        const int64_t elements = shape_elements(&job->graph->value[v].shape);
        if (elements > 0 && (INT64_C(1) << ELEMENTS_LOG2) / elements < most)
            most = (INT64_C(1) << ELEMENTS_LOG2) / elements;
    }
    return most;
}

enum status batches_find(const struct plan_query *query, const struct job *job, struct region *region,
                         struct batches *batches)
{
    struct batch_search s = {
        query,
        job,
        batches,
        {.region = region, .memory = query->memory, .progress = stderr, .slowdown = query->slowdown}};
    int policies = 0;
    while (policy_table[policies]) policies++;
    *batches = (struct batches){.rows = policies + 1, .most = most_batch(job)};
    NEW(region, batches->row, (size_t)batches->rows);
    batches->row[0] =
        (struct batch_row){.policy = job->spec->policy, .own = true, .at.settings = "as the spec sets it"};
    for (int i = 0; i < policies; i++) batches->row[i + 1].policy = policy_table[i];
    TRY(settle(&s));
    for (int i = 0; i < batches->rows; i++) {
        bool odd = false;
        TRY(probe(&s, &batches->row[i], &odd));
        if (odd) TRY(settle(&s));
    }
    return ST_OK;
}
