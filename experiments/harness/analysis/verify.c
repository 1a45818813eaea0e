#include "analysis/verify.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/resolved_spec.h"
#include "check/simulate.h"
#include "console/terminal.h"
#include "plan/placement.h"
#include "plan/placement_search.h"
#include "result/plan_file.h"
#include "result/record_plan.h"
#include "run/child.h"
#include "run/job_plans.h"
#include "run/signals.h"

/* ---- the plan ---- */

/* The first buffer that does not lie where placement puts it, if the plan has its hash with that placement: an offset
 * may be altered to one at which the plan is right too, and then only the hash differs. */
static void find_moved(struct verification *v)
{
    struct plan_data *a = &v->data;
    struct buffer *placed;
    struct digest digest;
    size_t bound = a->count[COUNT_LIVE_PEAK];
    NEW(v->result->region, placed, (size_t)a->buffers);
    memcpy(placed, a->buffer, (size_t)a->buffers * sizeof *placed);
    const size_t extent = placement_assign(placed, a->buffers);
    placement_search(placed, a->buffers, extent, &bound);
    digest = ops_digest(a->op, a->ops, placed, a->buffers);
    if (strcmp(a->hash, DIGEST_TEXT(digest)) != 0) return;
    for (int i = a->buffers - 1; i >= 0; i--)
        if (placed[i].offset != a->buffer[i].offset) v->placed = placed[v->moved = i].offset;
}

static enum status judge_plan(struct verification *v)
{
    struct result *r = v->result;
    if (!h5_exists(&r->h5, "/plan/ops")) return fail(ST_SPEC, "%s: /plan/ops is missing: it holds no plan", r->h5.path);
    TRY(record_plan_read(&r->h5, r->region, &v->data));
    enum status status = simulate(&v->data);
    if (status != ST_DIFFERS) return status;
    v->wrong = region_text(r->region, "%s", status_message());
    if (plan_data_check(&v->data) == ST_OK) find_moved(v);
    return ST_OK;
}

/* ---- the lower bounds ---- */

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

static double value_of(const struct field *column, const struct record_bounds *bounds)
{
    const void *member = (const char *)bounds + column->offset;
    return column->number == NUMBER_U64 ? (double)*(const uint64_t *)member : *(const double *)member;
}

static enum status judge_rows(struct verification *v, const struct field *columns, const struct record_bounds *expected)
{
    struct record_bounds found;
    char claimed[96], ours[96];
    table_read_attributes(&v->result->h5, "/plan", columns, &found, true, v->result->region);
    TRY(h5_status(&v->result->h5));
    for (const struct field *c = columns; c->name && !v->wrong_bound; c++) {
        const double is = value_of(c, &found), should = value_of(c, expected);
        if (fabs(is - should) > rounding * fmax(1, fabs(should)))
            v->wrong_bound = region_text(v->result->region, "%s is %s; expected %s", c->name,
                                         column_text(c, &found, claimed), column_text(c, expected, ours));
    }
    return ST_OK;
}

static enum status judge_all_rows(struct verification *v, struct job *job)
{
    const struct plan_options options = job_plan_options(job);
    record_plan_costs(&v->data, job->network->cost);
    job->plan->time = v->data.real[REAL_TIME]; /* by those costs, as the simulator found it */
    TRY(plan_bounds(job->plan, job->spec->policy, &job->spec->policy_settings, &options, &job->bounds,
                    &job->budget_bounds));
    const struct record_bounds expected = record_bounds(&job->bounds, &job->budget_bounds, job->plan->time);
    TRY(judge_rows(v, record_bound_columns, &expected));
    if (expected.budget && !v->wrong_bound) TRY(judge_rows(v, record_budget_columns, &expected));
    return ST_OK;
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
    plan_auto *plan = NULL;
    enum status status = plan_file_of_model(job, v->path, &v->data, region);
    if (status == ST_SPEC) return deny(v, status_message());
    TRY(status);
    status = plan_file_take(job, v->path, &plan);
    if (status != ST_SPEC) return status;
    const char *why = region_text(region, "%s", status_message());
    TRY(verify_run_id(v->result, &theirs));
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
    if (evaluation == v->data.evaluation_arena) return judge_all_rows(v, job);
    v->wrong_bound = region_text(v->result->region, "evaluation_arena_bytes is %zu; expected %zu",
                                 v->data.evaluation_arena, evaluation);
    return ST_OK;
}

/* Whether the plan is of the spec; and its lower bounds, computed again on the network of that spec with the times that
 * the file gives its nodes. */
static enum status judge_bounds(struct verification *v)
{
    job_auto *job = NULL;
    if (!v->spec) return deny(v, "/spec/resolved is refused");
    return resolved_spec_prepare(v->spec, &job) == ST_OK ? judge_job(v, job) : leave(v);
}

/* ---- the steps ---- */

/* Whether one of the rows is among the differences in the environment. */
static bool differs_in(const struct verification *v, const char *const *rows)
{
    for (; *rows; rows++)
        for (int i = 0; i < v->differences; i++)
            if (strcmp(v->difference[i].name, *rows) == 0) return true;
    return false;
}

/* What a difference means elsewhere: with other kernels the first loss may be another one, by a little. Where kernels
 * have one definition, the C library's functions alone may differ. */
static void judge_elsewhere(struct verification *v, const struct result *again)
{
    static const char *const kernels[] = {"program_xxh3", "kernels", "isa", "device", "threads", "libc", NULL},
                             *const libc[] = {"libc", NULL}, *const data[] = {"digest_xxh3", NULL};
    if (v->steps != STEPS_DIFFER || !v->request->elsewhere) return;
    if (differs_in(v, data)) {
        v->steps = STEPS_NOT_RUN;
        v->code = ST_MISSING;
    } else if (differs_in(v, v->defined ? libc : kernels) && v->result->steps == again->steps) {
        const double was = (double)v->result->loss[0], is = (double)again->loss[0];
        v->first_loss = was == is ? 0 : fabs(is - was) / fabs(was);
        if (v->first_loss <= VERIFY_FIRST_LOSS) v->steps = STEPS_CLOSE;
    }
}

/* The second run is of the file's spec and plan: with the program, data and machine that it had, they give its id.
 * anew: the plan was made for the kernels here. */
static enum status judge_identity(struct verification *v, struct result *again, bool anew)
{
    const struct result *r = v->result;
    struct run_id_parts theirs, ours;
    char id[RUN_ID_TEXT];
    if (v->wrong_record) return ST_OK;
    TRY(verify_run_id(v->result, &theirs));
    TRY(verify_run_id(again, &ours));
    ours.resolved = theirs.resolved;
    if (!anew) ours.plan = theirs.plan;
    run_id_print(&ours, r->region, id);
    if (!anew && strcmp(again->plan_hash, r->plan_hash) != 0)
        v->wrong_record =
            region_text(r->region, "/plan@hash is %s; the second run has %s", r->plan_hash, again->plan_hash);
    else if (strcmp(again->run_id, id) != 0)
        v->wrong_record = region_text(r->region, "the second run has the id %s; expected %s, of the file's spec%s",
                                      again->run_id, id, anew ? "" : " and plan");
    return ST_OK;
}

static bool one_definition(struct result *a, struct result *b)
{
    const char *text = h5_read_attribute_text(&a->h5, "/provenance/libs", "kernels", "", a->region);
    return !strncmp(text, DEFINED_KERNELS, strlen(DEFINED_KERNELS)) &&
           !strcmp(text, h5_read_attribute_text(&b->h5, "/provenance/libs", "kernels", "", b->region));
}

static enum status compare_again(struct verification *v, const struct run_report *report, bool anew)
{
    struct comparison *c = &v->comparison;
    result_auto *other = NULL;
    const char *path = region_text(v->result->region, "%s%s", report->path, report->finished ? "" : ".part");
    TRY(compare_files(v->path, path, c));
    TRY(result_open(path, &other));
    const bool fewer = v->result->whole && v->result->steps != other->steps;
    v->steps = !c->differs && !fewer ? STEPS_SAME : STEPS_DIFFER;
    v->differences = environment_differences(v->result, other, v->result->region, v->difference);
    v->defined = one_definition(v->result, other);
    judge_elsewhere(v, other);
    TRY(judge_identity(v, other, anew));
    for (int i = 0; i < v->differences && !v->wrong_record; i++) {
        const struct environment_difference *s = &v->difference[i];
        if (s->pin)
            v->wrong_record = region_text(v->result->region, "%s is '%s'; expected '%s', as %s is the same", s->name,
                                          s->a, s->b, s->pin);
    }
    return ST_OK;
}

/* Of an incomplete run as many steps as are in the file. */
static enum status run_again(struct verification *v, const struct resolved_spec *again)
{
    const bool elsewhere = v->request->elsewhere, anew = elsewhere && v->bounds_unjudged; /* without the plan */
    const struct child child = {.spec = again->path,
                                .overrides = OVERRIDES - anew,
                                .override = again->override + anew,
                                .baseline = elsewhere && strcmp(v->result->variant, "baseline") == 0,
                                .quiet = true,
                                .temporary = true,
                                .steps = v->result->whole ? 0 : (int64_t)v->result->steps};
    struct run_report report = {0};
    TRY(child_run(&child, &report, &v->code));
    if (v->code == 0) return compare_again(v, &report, anew);
    v->steps = STEPS_NOT_RUN;
    v->differences = environment_differences(v->result, NULL, v->result->region, v->difference);
    return ST_OK;
}

static int remove_entry(const char *path, const struct stat *file, int flag, struct FTW *place)
{
    (void)file, (void)flag, (void)place;
    return remove(path);
}

/* With results in a folder that is removed afterwards, unless another is asked for; until then signals that would end
 * the program are blocked. They stay blocked where one of them stopped the run, so that no other cuts off the report.
 */
static enum status judge_steps(struct verification *v, struct resolved_spec *again)
{
    const char *set = getenv("TMPDIR"), *temporary = set && *set ? set : P_tmpdir;
    char *folder = region_text(v->result->region, "%s/rematch-verify-XXXXXX", temporary);
    v->steps = STEPS_NONE;
    if (!v->result->steps) return ST_OK;
    const sigset_t before = signals_block(SIGPIPE);
    enum status status = ST_OK;
    if (v->request->results || mkdtemp(folder)) {
        if (v->request->results) folder = region_text(v->result->region, "%s", v->request->results);
        again->override[OVERRIDE_RESULTS] = resolved_spec_set(v->result->region, OVERRIDE_RESULTS, folder);
        status = run_again(v, again);
        if (!v->request->results) nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    } else {
        status = fail(ST_FAILED, "%s: cannot make a temporary folder: %s", temporary, strerror(errno));
    }
    if (v->code <= 128) sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* ---- all of it ---- */

enum status verify_plan(struct verification *v)
{
    TRY(judge_plan(v));
    const enum status loaded = v->wrong ? ST_OK : resolved_spec_load(v->result, v->path, &v->again, &v->spec);
    if (loaded == ST_SPEC)
        report_error(loaded); /* a spec that is refused leaves none, which judge_bounds() finds */
    else
        TRY(loaded);
    return v->wrong ? ST_OK : judge_bounds(v);
}

enum status verify_rest(struct verification *v)
{
    if (v->wrong) return ST_OK;
    TRY(verify_record(v));
    return v->request->plan_only ? ST_OK : judge_steps(v, &v->again);
}

int verify_code(const struct verification *v)
{
    const bool fault = v->spec && v->spec->fault_kind != FAULT_NONE;
    if (v->code > 128) return v->code; /* a signal stopped the run */
    if (v->wrong || v->wrong_record || v->wrong_bound || v->steps == STEPS_DIFFER || fault) return ST_DIFFERS;
    return v->code == 0 && (v->bounds_unjudged || v->steps == STEPS_CLOSE) ? (int)ST_UNPROVEN : v->code;
}
