#include "experiment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/finished_run.h"
#include "analysis/policy_grid.h"
#include "base/text.h"
#include "base/units.h"
#include "console/terminal.h"
#include "job/thread_waiting.h"
#include "run/job_plans.h"
#include "run/state_file.h"
#include "spec/spec.h"

/* known: its plan; NULL: it is searched for. */
static enum status plan_side(struct side *side, const struct plan_handoff *known)
{
    TRY(report_error(spec_place(side->spec, job_create_planned(side->spec, known, &side->job))));
    TRY(report_error(job_check_plans(side->job)));
    if (side->spec->baseline) job_warn(side->job);
    return report_error(spec_place(side->spec, plan_summary_create(side->job, false, &side->summary)));
}

static struct digest spec_digest(const struct spec *spec)
{
    return digest_bytes(spec->resolved, strlen(spec->resolved));
}

enum status experiment_create(struct spec *spec, const struct plans *plans, struct experiment **experiment)
{
    struct experiment *e = *experiment = allocate(1, sizeof *e);
    e->side[SIDE_VARIANT].spec = spec;
    e->side[SIDE_BASELINE].spec = spec->baseline;
    const bool known = plans->side[SIDE_VARIANT].data && digest_equal(plans->spec, spec_digest(spec));
    TRY(plan_side(&e->side[SIDE_VARIANT], known ? &plans->side[SIDE_VARIANT] : NULL));
    return plan_side(&e->side[SIDE_BASELINE], known ? &plans->side[SIDE_BASELINE] : NULL);
}

struct plans experiment_plans(const struct experiment *experiment, struct region *region)
{
    struct plans plans = {.spec = spec_digest(experiment->side[SIDE_VARIANT].spec)};
    for (int i = 0; i < SIDES; i++) plans.side[i] = plan_handoff_of(experiment->side[i].job, region);
    return plans;
}

void experiment_destroy(struct experiment *experiment)
{
    if (!experiment) return;
    for (int i = 0; i < SIDES; i++) {
        struct side *side = &experiment->side[i];
        plan_summary_destroy(side->summary);
        job_destroy(side->job);
    }
    json_decref(experiment->comparison.json);
    spec_destroy(experiment->side[SIDE_VARIANT].spec);
    free(experiment);
}

static bool will_run(const struct request *request, int side)
{
    return !request->only[SIDE_BASELINE + SIDE_VARIANT - side];
}

enum status experiment_fits(const struct experiment *experiment, const struct request *request)
{
    for (int i = 0; i < SIDES; i++) {
        const struct plan_summary *o = experiment->side[i].summary, *other = experiment->side[SIDES - 1 - i].summary;
        char least[SMALLEST_TEXT];
        if (!will_run(request, i) || plan_summary_fits(o)) continue;
        TRY(report_error(policy_grid_smallest(o->job, o->machine.bytes, least)));
        bool hint = !request->only[i] && plan_summary_fits(other);
        return report_error(
            fail(ST_FAILED,
                 "memory: the %s (policy %s) needs %s, static %s and arena %s, of the %s that %s leaves; "
                 "nothing was run%s%s%s%s",
                 side_names[i], o->job->spec->policy->name, BYTES_TEXT(plan_peak(o->job->plan)),
                 BYTES_TEXT(plan_static(o->job->plan)), BYTES_TEXT(o->job->plan->arena_bytes),
                 BYTES_TEXT(o->machine.bytes), o->machine.limit, hint ? "; the other run fits: --only " : "",
                 hint ? side_names[SIDES - 1 - i] : "", *least ? "; " : "", least));
    }
    return ST_OK;
}

enum status experiment_run_side(struct experiment *experiment, enum side_index side, const struct request *request,
                                int *code)
{
    struct side *s = &experiment->side[side];
    const struct child child = {.spec = request->spec,
                                .overrides = request->overrides,
                                .override = request->override,
                                .baseline = side == SIDE_BASELINE,
                                .quiet = request->quiet,
                                .resume = request->resume != RESUME_NEVER,
                                .planned = s->job};
    if (!request->quiet)
        fprintf(stderr, "%s: policy %s, %lld step%s\n", side_names[side], s->spec->policy->name,
                (long long)s->job->steps, text_plural(s->job->steps));
    TRY(report_error(child_run(&child, &s->report, code)));
    char text[WAITING_TEXT];
    if (!request->quiet && *code == 0 && waiting_warning(s->report.step_ns, s->report.best_case_ns, text))
        fprintf(stderr, "warning: %s: %s\n", side_names[side], text);
    return ST_OK;
}

bool experiment_ended(const struct experiment *experiment, int code)
{
    return code == ST_OK || (code == ST_FAILED && *experiment->side[SIDE_VARIANT].report.summary.not_finite);
}

enum status experiment_compare(struct experiment *experiment)
{
    const struct run_report *variant = &experiment->side[SIDE_VARIANT].report;
    char path[REPORT_PATH + 8];
    snprintf(path, sizeof path, "%s%s", variant->path, variant->finished ? "" : ".part");
    TRY(report_error(compare_files(experiment->side[SIDE_BASELINE].report.path, path, &experiment->comparison)));
    experiment->compared = true;
    return ST_OK;
}

/* Prints details, expectations and the verdict; returns the exit code. finished: the variant's numbers are complete. */
static int conclude(struct experiment *e, const struct request *request, bool finished)
{
    FILE *out = request->json ? NULL : stdout;
    if (experiment_compare(e) != ST_OK) return ST_FAILED;
    if (finished && !request->quiet) experiment_print(e, request->verbose, stdout);
    if (out) comparison_print_numbers(&e->comparison, out);
    const bool expected = !finished || experiment_expectations(e, out);
    if (out) comparison_print_verdict(&e->comparison, expected, out);
    return expected ? (int)comparison_status(&e->comparison) : (int)ST_DIFFERS;
}

/* ---- runs that go on ---- */

/* Where the variant goes on, a complete baseline need not be run again; likewise if states are written, but the variant
 * did not get to its first. Without any unfinished file, no run id needs to be computed. */
enum status experiment_resume(struct experiment *e, const struct request *request, struct region *region)
{
    const struct spec *spec = e->side[SIDE_VARIANT].spec;
    const char *folder = region_text(region, "%s/%s", spec->results, spec->name);
    bool part[SIDES] = {false}, state[SIDES] = {false}, any = false;
    char id[SIDES][RUN_ID_TEXT], name[RECORD_NAME];
    if (request->resume == RESUME_NEVER) return ST_OK;
    for (int i = 0; i < SIDES && *record_file_find(folder, ".part", false, region); i++) {
        TRY(report_error(run_id_compute(e->side[i].job, id[i])));
        const char *path = region_text(region, "%s/%s.h5", folder, record_name(spec, side_names[i], id[i], name));
        part[i] = access(region_text(region, "%s.part", path), F_OK) == 0;
        state[i] = part[i] && state_file_exists(path);
        any |= will_run(request, i) && state[i];
    }
    if (request->resume == RESUME_MUST && !any)
        return report_error(
            fail(ST_MISSING,
                 "--resume must: %s has no state of this run (spec, program, machine and data); nothing "
                 "was run",
                 folder));
    if (!any && !request->quiet && *record_file_find(folder, ".state", false, region))
        fprintf(stderr, "note: %s has the state of another run (spec, program, machine or data), which is left alone\n",
                folder);
    const bool goes_on = state[SIDE_VARIANT] || (part[SIDE_VARIANT] && spec->state_every > 0);
    if (goes_on && !part[SIDE_BASELINE] && will_run(request, SIDE_BASELINE))
        (void)finished_run(folder, id[SIDE_BASELINE], side_names[SIDE_BASELINE], NULL, &e->side[SIDE_BASELINE].report);
    return ST_OK;
}

static int run_sides(struct experiment *e, const struct request *request)
{
    bool alone = request->only[SIDE_BASELINE] || request->only[SIDE_VARIANT];
    region_auto *region = region_create();
    TRY(experiment_resume(e, request, region));
    for (int i = 0; i < SIDES; i++) {
        int code = 0;
        if (!will_run(request, i)) continue;
        if (e->side[i].report.finished) {
            if (!request->quiet) fprintf(stderr, "%s: complete, %s\n", side_names[i], e->side[i].report.path);
            continue;
        }
        if (experiment_run_side(e, (enum side_index)i, request, &code) != ST_OK) return ST_FAILED;
        if (code != 0 && !alone && i == SIDE_VARIANT && experiment_ended(e, code)) return conclude(e, request, false);
        if (code != 0) return code;
        if (!alone) continue;
        if (!request->quiet) experiment_print_side(&e->side[i], side_names[i], request->verbose, stdout);
        if (!request->json) printf("%-9s %s\n", side_names[i], e->side[i].report.path);
    }
    return alone ? ST_OK : conclude(e, request, true);
}

int experiment_run(const struct request *request, struct spec *spec)
{
    struct experiment *e;
    enum status status = experiment_create(spec, &(struct plans){0}, &e);
    if (status == ST_OK && !request->quiet) {
        spec_print_head(spec, stdout);
        plan_summary_print_pair(e->side[SIDE_BASELINE].summary, e->side[SIDE_VARIANT].summary, stdout);
        fflush(stdout);
    }
    if (status == ST_OK) status = experiment_fits(e, request);
    int code = status == ST_OK ? run_sides(e, request) : (int)status;
    if (status == ST_OK && request->json) json_answer(experiment_json(e, code), "run", stdout);
    experiment_destroy(e);
    return code;
}
