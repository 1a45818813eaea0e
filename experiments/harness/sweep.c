#include "sweep.h"

#include <string.h>

#include "analysis/finished_run.h"
#include "analysis/result_row.h"
#include "base/text.h"
#include "console/columns.h"
#include "console/terminal.h"
#include "job/run_id.h"
#include "report/text_table.h"
#include "result/record_claim.h"
#include "yaml/text_errors.h"

/* ---- points ---- */

/* "policy=sqrt batch=8" */
static const char *point_text(const struct sweep *s, int point)
{
    const char *text = "";
    for (int a = 0; a < s->spec->axes; a++)
        text =
            region_text(s->region, "%s%s%s=%s", text, *text ? " " : "", s->spec->axis[a].key, s->point[point].value[a]);
    return text;
}

static void collect_points(struct sweep *s)
{
    const struct request *q = s->request;
    const struct spec *spec = s->spec;
    s->points = spec->points;
    NEW(s->region, s->point, (size_t)s->points);
    for (int i = 0; i < s->points; i++) {
        struct point *p = &s->point[i];
        p->outcome = "not run";
        p->own = q->point ? q->point == i + 1 : !q->shards || i % q->shards == q->shard - 1;
        p->row = json_pack("{s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:n}", "live_peak_bytes", "arena_bytes", "peak_ratio",
                           "live_ratio", "time_ratio", "best_case_ratio", "planned_ratio", "last_loss");
        NEW(s->region, p->value, (size_t)spec->axes);
        for (int a = 0; a < spec->axes; a++) p->value[a] = spec->axis[a].text[spec->point[i * spec->axes + a]];
    }
}

/* ---- planning ---- */

/* And what the point needs: on a host, besides its plan's bytes its two processes, each at least as large as this. */
static enum status find_ids(struct sweep *s, struct point *p, const struct experiment *e)
{
    for (int i = 0; i < SIDES; i++) {
        char id[RUN_ID_TEXT];
        s->device = e->side[i].job->backend->kind->device != NULL;
        const uint64_t need = plan_peak(e->side[i].job->plan) + (s->device ? 0 : 2 * process_rss());
        TRY(report_error(run_id_compute(e->side[i].job, id)));
        p->id[i] = region_text(s->region, "%s", id);
        p->need = need > p->need ? need : p->need;
    }
    p->threads = (uint64_t)e->side[SIDE_VARIANT].job->backend->options.threads;
    return ST_OK;
}

/* Plans a point. Its request has the user's overrides, then the point's. */
static enum status load_point(struct sweep *s, struct point *p, struct request *request, struct experiment **experiment)
{
    struct spec *spec;
    const int count = s->request->overrides;
    const char **override;
    NEW(s->region, override, (size_t)(count + s->spec->axes));
    for (int i = 0; i < count; i++) override[i] = s->request->override[i];
    for (int a = 0; a < s->spec->axes; a++)
        override[count + a] = region_text(s->region, "%s=%s", s->spec->axis[a].key, p->value[a]);
    *request = *s->request;
    request->overrides = count + s->spec->axes;
    request->override = override;
    TRY(report_error(spec_load(request->spec, request->overrides, request->override, &spec)));
    TRY(experiment_create(spec, &p->plans, experiment));
    if (!p->plans.side[SIDE_VARIANT].data) p->plans = experiment_plans(*experiment, s->region);
    return find_ids(s, p, *experiment);
}

/* On a terminal a line that is overwritten; elsewhere the first line, then one a second. */
static void note_planning(struct sweep *s, int number)
{
    char text[256];
    if (s->request->quiet) return;
    const uint64_t now = clock_now_ns();
    snprintf(text, sizeof text, "planning point %d of %d: %.200s", number + 1, s->points, point_text(s, number));
    terminal_note(stderr, text);
    if (terminal_width(stderr) || (s->noted && now - s->noted < 1000000000)) return;
    fprintf(stderr, "%s\n", text);
    s->noted = now;
}

/* ---- comparing ---- */

/* A point without recomputation, which proves nothing by itself, serves as a reference. */
static enum status code_of(const struct comparison *c)
{
    const enum status status = comparison_status(c);
    const bool alone = json_array_size(json_object_get(c->json, "reasons")) == 1;
    return status == ST_UNPROVEN && alone && comparison_reason(c, "no_recomputation") ? ST_OK : status;
}

static void add_runs(json_t *row, const struct run_report *baseline, const struct run_report *variant)
{
    PUT_ALL(row, KEY("baseline", baseline->path), KEY("variant", variant->path));
    if (!variant->steps) return;
    PUT_ALL(row, KEY("step_ns", variant->step_ns), KEY("first_loss", variant->loss[0]),
            KEY("last_loss", variant->last_loss), KEY("accuracy", variant->accuracy));
}

/* With where the bits differ first, or why equal ones prove nothing. */
static void add_comparison(json_t *row, const struct comparison *c, struct region *region)
{
    const char *names = "", *remark = !c->differs && *c->fault ? "FAULT NOT CAUGHT" : "";
    if (c->steps) {
        PUT_ALL(row, KEY("peak_ratio", c->peak_ratio), KEY("live_ratio", c->live_ratio),
                KEY("time_ratio", c->time_ratio), KEY("best_case_ratio", c->best_case_ratio),
                KEY("side_by_side", json_boolean(c->side_by_side)));
    }
    if (c->differs) {
        PUT_ALL(row, KEY("first_difference_step", c->first_step), KEY("first_difference", c->first_tensor));
        remark = region_text(region, "at step %lld, %s", (long long)c->first_step, c->first_tensor);
    }
    EACH (!c->differs ? json_object_get(c->json, "reasons") : NULL, i, reason) {
        remark = region_text(region, "%s%s%s", remark, *remark ? "; " : "no proof: ", json_string_at(reason, "text"));
        names = region_text(region, "%s%s%s", names, *names ? " " : "", json_string_at(reason, "name"));
    }
    PUT_ALL(row, KEY("no_proof", names), KEY("remark", remark));
}

/* The expectations at this point that are not met. */
static void judge(struct sweep *s, int number, const struct experiment *e)
{
    struct point *p = &s->point[number];
    const char *unmet = "";
    bool judged = false;
    for (int i = 0; i < s->spec->expectations; i++) {
        const struct expectation *x = &s->spec->expectation[i];
        char text[EXPECTATION_TEXT];
        if (!sweep_point_meets(s->spec, number, x->value)) continue;
        const enum judgement judgement = experiment_expectation(e, s->spec, x, text);
        judged |= judgement != NOT_JUDGED;
        if (judgement == UNMET) unmet = region_text(s->region, "%s%s%s", unmet, *unmet ? "; " : "", text);
    }
    PUT_ALL(p->row, KEY("judged", json_boolean(judged)), KEY("unmet", unmet));
    if (*unmet) p->code = ST_DIFFERS;
}

/* The reports of both sides are known. */
static enum status compare_point(struct sweep *s, int number, struct experiment *e)
{
    struct point *p = &s->point[number];
    add_runs(p->row, &e->side[SIDE_BASELINE].report, &e->side[SIDE_VARIANT].report);
    TRY(experiment_compare(e));
    add_comparison(p->row, &e->comparison, s->region);
    p->code = (int)code_of(&e->comparison);
    p->outcome = !e->comparison.differs ? "equal" : "DIFFERS";
    judge(s, number, e);
    return ST_OK;
}

/* ---- planning and running ---- */

/* Whether the run's completed file is there; if forced, of this sweep. */
static bool is_finished(const struct sweep *s, const struct point *p, struct experiment *e, enum side_index side)
{
    return finished_run(s->folder, p->id[side], side_names[side], s->request->force ? child_invocation() : NULL,
                        &e->side[side].report);
}

/* The reason is the status in the side's file, else its exit code. */
static void side_failed(struct sweep *s, int number, const struct side *side, enum side_index index)
{
    const char *path = side->report.path, *reason;
    const int code = s->point[number].code;
    json_auto_t *row = *path ? result_row(region_text(s->region, "%s.part", path)) : NULL;
    if (row && !json_string_at(row, "reason"))
        reason = region_text(s->region, "%s: %s", side_names[index], json_string_at(row, "status"));
    else
        reason = region_text(s->region, "%s: exit code %d", side_names[index], code);
    sweep_give_up(s, number, code > 128 ? "stopped" : "failed", code, reason);
}

/* Points share a baseline, and other processes may run points of the same sweep: one of them runs it. */
static enum status run_side(struct sweep *s, struct point *p, struct experiment *e, enum side_index side,
                            const struct request *request)
{
    struct record_claim claim;
    const char *path = region_text(s->region, "%s/%s.claim", s->folder, p->id[side]);
    enum status status = ST_OK;
    TRY(report_error(record_folder(s->folder)));
    TRY(report_error(record_claim_take(&claim, path)));
    if (!is_finished(s, p, e, side)) status = experiment_run_side(e, side, request, &p->code);
    record_claim_release(&claim);
    return status;
}

static enum status run_both(struct sweep *s, int number, struct experiment *e, const struct request *request)
{
    struct point *p = &s->point[number];
    TRY(run_side(s, p, e, SIDE_BASELINE, request));
    const enum side_index last = p->code == 0 ? SIDE_VARIANT : SIDE_BASELINE;
    if (p->code == 0) TRY(run_side(s, p, e, SIDE_VARIANT, request));
    if (experiment_ended(e, p->code)) return compare_point(s, number, e);
    add_runs(p->row, &e->side[SIDE_BASELINE].report, &e->side[SIDE_VARIANT].report);
    side_failed(s, number, &e->side[last], last);
    return ST_OK;
}

/* A finished point is compared again, but not run. */
static enum status take_point(struct sweep *s, int number, struct experiment *e, const struct request *request,
                              bool run)
{
    struct point *p = &s->point[number];
    const struct plan *plan = e->side[SIDE_VARIANT].job->plan;
    const uint64_t left = e->side[SIDE_VARIANT].summary->machine.bytes;
    s->memory = s->memory && s->memory < left ? s->memory : left;
    PUT_ALL(p->row, KEY("static_bytes", plan_static(plan)), KEY("live_peak_bytes", plan->live_peak),
            KEY("arena_bytes", plan->arena_bytes), KEY("slowdown", plan->slowdown),
            KEY("planned_ratio", plan->slowdown));
    p->ran = is_finished(s, p, e, SIDE_BASELINE) && is_finished(s, p, e, SIDE_VARIANT);
    s->finished += p->ran;
    if (p->ran) return compare_point(s, number, e);
    if (request->resume == RESUME_MUST) TRY(experiment_resume(e, request, s->region));
    TRY(experiment_fits(e, request));
    p->ran = run;
    return run ? run_both(s, number, e, request) : ST_OK;
}

/* Plans a point; with run, runs it. */
static void do_point(struct sweep *s, int number, bool run)
{
    struct request request;
    struct experiment *e = NULL;
    if (run)
        fprintf(stderr, "point %d of %d: %s\n", number + 1, s->points, point_text(s, number));
    else
        note_planning(s, number);
    enum status status = load_point(s, &s->point[number], &request, &e);
    if (status == ST_OK) status = take_point(s, number, e, &request, run);
    experiment_destroy(e);
    if (status == ST_OK) return;
    const bool refused = !s->point[number].ran;
    sweep_give_up(s, number, refused ? "refused" : "failed", (int)status, errors_reason());
    if (refused) fprintf(stderr, "point %d of %d cannot run: %s\n", number + 1, s->points, point_text(s, number));
}

/* ---- the end ---- */

static void print_table(const struct sweep *s, const json_t *rows, FILE *out)
{
    enum { OTHERS = 10 }; /* axes that have no column left have one value each */
    const char *keys = "";
    for (int a = 0; a < s->spec->axes && a < COLUMNS_MOST - OTHERS; a++)
        keys = region_text(s->region, "%s%s ", keys, s->spec->axis[a].key);
    keys = region_text(s->region,
                       "%sbits live_peak_bytes arena_bytes peak_ratio live_ratio time_ratio best_case_ratio "
                       "planned_ratio last_loss remark",
                       keys);
    text_table(rows, keys, 0, false, out);
}

/* The points without a comparison, and those with unmet expectations; then how many points ended how. */
static void print_outcomes(const struct sweep *s, const json_t *rows, FILE *out)
{
    static const char *const outcomes[] = {"equal", "DIFFERS", "refused", "failed", "stopped", "not run", NULL};
    int points[sizeof outcomes / sizeof *outcomes] = {0}, unmet = 0, judged = 0;
    EACH (rows, i, row) {
        const int number = (int)json_number_at(row, "point");
        const char *reason = json_string_at(row, "reason"), *outcome = json_string_at(row, "outcome"),
                   *failed = json_string_at(row, "unmet");
        for (int c = 0; outcomes[c]; c++) points[c] += !strcmp(outcomes[c], outcome);
        judged += json_is_true(json_object_get(row, "judged"));
        if (reason) fprintf(out, "point %d %s (%s): %s\n", number, outcome, point_text(s, number - 1), reason);
        if (!failed || !*failed) continue;
        fprintf(out, "point %d (%s): expected %s\n", number, point_text(s, number - 1), failed);
        unmet++;
    }
    fprintf(out, "points    %zu of %d: ", json_array_size(rows), s->points);
    for (int c = 0, listed = 0; outcomes[c]; c++)
        if (points[c]) fprintf(out, "%s%d %s", listed++ ? ", " : "", points[c], outcomes[c]);
    fprintf(out, "; %d of them finished before\n", s->finished);
    if (s->spec->expectations)
        fprintf(out, "expected  judged at %d point%s, unmet at %d\n", judged, text_plural(judged), unmet);
}

/* Signals are worst, then failures of a run or plan, then those of comparisons. */
static int rank_of(int code)
{
    static const int mildest_first[] = {ST_OK, ST_UNPROVEN, ST_DIFFERS, ST_SPEC, ST_FAILED, ST_MISSING};
    enum { CODES = sizeof mildest_first / sizeof *mildest_first };
    int rank = 0;
    while (rank < CODES && mildest_first[rank] != code) rank++;
    return rank;
}

static int worse(int a, int b) { return rank_of(b) > rank_of(a) ? b : a; }

static int run_one_by_one(struct sweep *s)
{
    for (int i = 0; i < s->points; i++) {
        if (!s->point[i].own || s->point[i].ran) continue;
        do_point(s, i, true);
        if (s->point[i].code > 128) return s->point[i].code;
        TRY(report_error(sweep_index_update(s)));
    }
    return ST_OK;
}

/* References alone prove nothing. A process that runs a part of the points does not judge that. */
static bool proves_nothing(const struct sweep *s)
{
    bool proof = s->request->point || s->request->shards;
    EACH (s->rows, i, row)
        proof |= !strcmp(json_string_at(row, "outcome"), "equal") && !*json_string_at(row, "no_proof");
    return !proof;
}

static int run_points(struct sweep *s)
{
    int worst = ST_OK;
    for (int i = 0; i < s->points; i++)
        if (s->point[i].own && !s->request->point) do_point(s, i, false); /* a point alone is planned as it runs */
    terminal_note(stderr, "");
    int code = (int)report_error(sweep_index_update(s));
    if (code == ST_OK) code = s->request->jobs > 1 ? sweep_jobs_run(s) : run_one_by_one(s);
    code = worse(code, (int)report_error(sweep_index_update(s)));
    for (int i = 0; i < s->points; i++) worst = worse(worst, s->point[i].code);
    json_auto_t *rows = json_array();
    EACH (s->rows, i, row)
        if (s->point[i].own) json_array_append(rows, row);
    if (s->request->json) {
        sweep_index_print(s, stdout);
    } else {
        spec_print_head(s->spec, stdout);
        print_table(s, rows, stdout);
        print_outcomes(s, rows, stdout);
        printf("table     %s/sweep.csv\n", s->folder);
    }
    return worse(proves_nothing(s) ? worse(worst, ST_UNPROVEN) : worst, code);
}

/* ---- the request ---- */

static enum status check_request(const struct sweep *s)
{
    const struct request *q = s->request;
    const char *key = s->spec->axis[0].key;
    if (q->only[SIDE_BASELINE] || q->only[SIDE_VARIANT])
        return fail(ST_SPEC, "--only is for one run, and this spec sweeps %s: set it with %s=value", key, key);
    if (q->point > s->points) return fail(ST_SPEC, "--point %lld: expected 1..%d", (long long)q->point, s->points);
    return ST_OK;
}

int sweep_run(const struct request *request, struct spec *spec)
{
    char program[33];
    struct sweep s = {.region = region_create(), .request = request, .spec = spec, .rows = json_array()};
    s.folder = region_text(s.region, "%s/%s", spec->results, spec->name);
    s.program = program;
    collect_points(&s);
    int code = (int)report_error(check_request(&s));
    if (code == ST_OK) code = (int)report_error(program_digest(program));
    if (code == ST_OK && request->print_commands)
        sweep_jobs_print(&s, stdout);
    else if (code == ST_OK)
        code = run_points(&s);
    json_decref(s.rows);
    for (int i = 0; i < s.points; i++) json_decref(s.point[i].row);
    spec_destroy(spec);
    region_destroy(s.region);
    return code;
}
