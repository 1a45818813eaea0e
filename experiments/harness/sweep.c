#include "experiment.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/result_row.h"
#include "console/columns.h"
#include "console/terminal.h"
#include "report/figures_text.h"
#include "result/record_file.h"
#include "spec/spec.h"
#include "yaml/text_errors.h"
#include "yaml/yaml_write.h"

/* A point and its outcome. */
struct point {
    const char **value;  /* one per axis */
    const char *outcome; /* "equal", "DIFFERS", "refused" (before any point ran), "failed", "stopped", "not run" */
    const char *reason;  /* why it was refused, failed or stopped; else NULL */
    int code;
    json_t *row; /* its figures, by the columns of the CSV; null: not measured */
};

/* A baseline that ran; points whose baselines have the same spec share it. */
struct shared_baseline {
    const char *resolved;
    struct run_report report;
};

struct sweep {
    struct region *region;
    const struct request *request;
    struct spec *spec;
    int points, baselines;
    struct point *point;
    struct shared_baseline *baseline;
    json_t *rows;   /* of all points, at the end */
    uint64_t noted; /* time of the last line about planning, ns */
};

/* The last axis changes fastest. */
static void collect_points(struct sweep *s)
{
    s->points = 1;
    for (int a = 0; a < s->spec->axes; a++) s->points *= (int)s->spec->axis[a].values.count;
    NEW(s->region, s->point, (size_t)s->points);
    NEW(s->region, s->baseline, (size_t)s->points);
    for (int i = 0; i < s->points; i++) {
        s->point[i].row =
            json_pack("{s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:n}", "live_peak_bytes", "arena_bytes", "peak_ratio",
                      "live_ratio", "time_ratio", "best_case_ratio", "planned_ratio", "last_loss");
        NEW(s->region, s->point[i].value, (size_t)s->spec->axes);
        for (int a = s->spec->axes - 1, rest = i; a >= 0; a--) {
            int count = (int)s->spec->axis[a].values.count;
            s->point[i].value[a] = s->spec->axis[a].values.texts[rest % count];
            rest /= count;
        }
    }
}

/* Plans a point. Its request has the user's overrides, then the point's. */
static enum status load_point(const struct sweep *s, const struct point *p, struct request *request,
                              struct experiment **experiment)
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
    return experiment_create(spec, experiment);
}

/* Takes a point out of the sweep. */
static void give_up(struct sweep *s, struct point *p, const char *outcome, int code, const char *reason)
{
    p->outcome = outcome;
    p->code = code;
    p->reason = region_text(s->region, "%s", reason);
}

static const char *point_text(const struct sweep *s, const struct point *p)
{
    const char *text = "";
    for (int a = 0; a < s->spec->axes; a++)
        text = region_text(s->region, "%s%s%s=%s", text, *text ? " " : "", s->spec->axis[a].key, p->value[a]);
    return text;
}

/* On a terminal a line that is overwritten; elsewhere the first line, then one a second. */
static void note_planning(struct sweep *s, int number)
{
    char text[256];
    if (s->request->quiet) return;
    const uint64_t now = clock_now_ns();
    snprintf(text, sizeof text, "planning point %d of %d: %.200s", number + 1, s->points,
             point_text(s, &s->point[number]));
    terminal_note(stderr, text);
    if (terminal_width(stderr) || (s->noted && now - s->noted < 1000000000)) return;
    fprintf(stderr, "%s\n", text);
    s->noted = now;
}

static void add_plan(json_t *row, const struct plan *plan)
{
    PUT(row, "static_bytes", plan_static(plan));
    PUT(row, "live_peak_bytes", plan->live_peak);
    PUT(row, "arena_bytes", plan->arena_bytes);
    PUT(row, "slowdown", plan->slowdown);
    PUT(row, "planned_ratio", plan->slowdown);
}

static void plan_point(struct sweep *s, int number)
{
    struct point *p = &s->point[number];
    struct request request;
    struct experiment *e = NULL;
    note_planning(s, number);
    p->outcome = "not run";
    enum status status = load_point(s, p, &request, &e);
    if (status == ST_OK) {
        add_plan(p->row, e->side[SIDE_VARIANT].job->plan);
        status = experiment_fits(e, &request);
    }
    experiment_destroy(e);
    if (status == ST_OK) return;
    give_up(s, p, "refused", (int)status, errors_reason());
    fprintf(stderr, "point %d of %d cannot run: %s\n", number + 1, s->points, point_text(s, p));
}

static const struct run_report *find_baseline(const struct sweep *s, const char *resolved)
{
    for (int i = 0; i < s->baselines; i++)
        if (strcmp(s->baseline[i].resolved, resolved) == 0) return &s->baseline[i].report;
    return NULL;
}

static enum status run_baseline(struct sweep *s, struct experiment *e, const struct request *request, int *code)
{
    struct side *side = &e->side[SIDE_BASELINE];
    const struct run_report *known = find_baseline(s, side->spec->resolved);
    if (known) {
        side->report = *known;
        return ST_OK;
    }
    TRY(experiment_run_side(e, SIDE_BASELINE, request, code));
    if (*code != 0) return ST_OK;
    struct shared_baseline *b = &s->baseline[s->baselines];
    b->resolved = region_text(s->region, "%s", side->spec->resolved);
    b->report = side->report;
    s->baselines++;
    return ST_OK;
}

/* The reason is the status in the side's file, else its exit code. */
static void side_failed(struct sweep *s, struct point *p, const struct side *side, enum side_index index)
{
    const char *path = side->report.path, *reason;
    json_t *row = *path ? result_row(region_text(s->region, "%s.part", path)) : NULL;
    if (row && !figure_string(row, "reason"))
        reason = region_text(s->region, "%s: %s", side_names[index], figure_string(row, "status"));
    else
        reason = region_text(s->region, "%s: exit code %d", side_names[index], p->code);
    json_decref(row);
    give_up(s, p, p->code > 128 ? "stopped" : "failed", p->code, reason);
}

/* A point without recomputation, which proves nothing by itself, serves as a reference. */
static enum status code_of(const struct comparison *c)
{
    const enum status status = comparison_status(c);
    const bool alone = json_array_size(json_object_get(c->figures, "reasons")) == 1;
    return status == ST_UNPROVEN && alone && comparison_reason(c, "no_recomputation") ? ST_OK : status;
}

static void add_runs(json_t *row, const struct run_report *baseline, const struct run_report *variant)
{
    PUT(row, "baseline", baseline->path);
    PUT(row, "variant", variant->path);
    if (!variant->steps) return;
    PUT(row, "step_ns", variant->step_ns);
    PUT(row, "first_loss", variant->loss[0]);
    PUT(row, "last_loss", variant->last_loss);
    PUT(row, "accuracy", variant->accuracy);
}

/* With where the bits differ first, or why equal ones prove nothing. */
static void add_comparison(json_t *row, const struct comparison *c, struct region *region)
{
    const char *names = "", *remark = !c->differs && *c->fault ? "FAULT NOT CAUGHT" : "";
    if (c->steps) {
        PUT(row, "peak_ratio", c->peak_ratio);
        PUT(row, "live_ratio", c->live_ratio);
        PUT(row, "time_ratio", c->time_ratio);
        PUT(row, "best_case_ratio", c->best_case_ratio);
    }
    if (c->differs) {
        PUT(row, "first_difference_step", c->first_step);
        PUT(row, "first_difference", c->first_tensor);
        remark = region_text(region, "at step %lld, %s", (long long)c->first_step, c->first_tensor);
    }
    size_t i;
    json_t *reason;
    json_array_foreach(!c->differs ? json_object_get(c->figures, "reasons") : NULL, i, reason)
    {
        remark = region_text(region, "%s%s%s", remark, *remark ? "; " : "no proof: ", figure_string(reason, "text"));
        names = region_text(region, "%s%s%s", names, *names ? " " : "", figure_string(reason, "name"));
    }
    PUT(row, "no_proof", names);
    PUT(row, "remark", remark);
}

static enum status run_both(struct sweep *s, struct point *p, struct experiment *e, const struct request *request)
{
    TRY(experiment_fits(e, request));
    TRY(run_baseline(s, e, request, &p->code));
    const enum side_index last = p->code == 0 ? SIDE_VARIANT : SIDE_BASELINE;
    if (p->code == 0) TRY(experiment_run_side(e, SIDE_VARIANT, request, &p->code));
    add_runs(p->row, &e->side[SIDE_BASELINE].report, &e->side[SIDE_VARIANT].report);
    if (!experiment_ended(e, p->code)) {
        side_failed(s, p, &e->side[last], last);
        return ST_OK;
    }
    TRY(experiment_compare(e));
    add_comparison(p->row, &e->comparison, s->region);
    p->code = (int)code_of(&e->comparison);
    p->outcome = !e->comparison.differs ? "equal" : "DIFFERS";
    return ST_OK;
}

static void run_point(struct sweep *s, int number)
{
    struct point *p = &s->point[number];
    struct request request;
    struct experiment *e = NULL;
    fprintf(stderr, "point %d of %d: %s\n", number + 1, s->points, point_text(s, p));
    enum status status = load_point(s, p, &request, &e);
    if (status == ST_OK) status = run_both(s, p, e, &request);
    if (status != ST_OK) give_up(s, p, "failed", (int)status, errors_reason());
    experiment_destroy(e);
}

/* The rows of all points, with the last figures. */
static json_t *rows_of(const struct sweep *s)
{
    json_t *rows = json_array();
    for (int i = 0; i < s->points; i++) {
        const struct point *p = &s->point[i];
        for (int a = 0; a < s->spec->axes; a++) PUT(p->row, s->spec->axis[a].key, p->value[a]);
        PUT(p->row, "outcome", p->outcome);
        PUT(p->row, "bits", p->outcome);
        PUT(p->row, "exit_code", p->code);
        PUT(p->row, "reason", p->reason);
        json_array_append_new(rows, p->row);
    }
    return rows;
}

/* The axes' keys, at most so many, and other keys. */
static const char *keys_of(const struct sweep *s, int axes, const char *others)
{
    const char *keys = "";
    for (int a = 0; a < s->spec->axes && a < axes; a++)
        keys = region_text(s->region, "%s%s ", keys, s->spec->axis[a].key);
    return region_text(s->region, "%s%s", keys, others);
}

static void print_table(const struct sweep *s, FILE *out)
{
    enum { OTHERS = 10 }; /* axes that have no column left have one value each */
    const char *keys = keys_of(s, COLUMNS_MOST - OTHERS,
                               "bits live_peak_bytes arena_bytes peak_ratio live_ratio time_ratio best_case_ratio "
                               "planned_ratio last_loss remark");
    figures_table(s->rows, keys, 0, false, out);
}

/* The points without a comparison. */
static void print_reasons(const struct sweep *s, FILE *out)
{
    for (int i = 0; i < s->points; i++)
        if (s->point[i].reason)
            fprintf(out, "point %d %s (%s): %s\n", i + 1, s->point[i].outcome, point_text(s, &s->point[i]),
                    s->point[i].reason);
}

static bool write_rows(const void *of, FILE *out)
{
    const struct sweep *s = of;
    const char *keys = keys_of(s, s->spec->axes,
                               "outcome exit_code static_bytes live_peak_bytes arena_bytes peak_ratio live_ratio "
                               "time_ratio best_case_ratio slowdown step_ns first_loss last_loss accuracy no_proof "
                               "first_difference_step first_difference reason baseline variant");
    figures_csv(s->rows, keys, out);
    return fflush(out) == 0 && !ferror(out);
}

/* The folder does not exist yet if no point ran. */
static enum status write_csv(const struct sweep *s)
{
    const char *folder = region_text(s->region, "%s/%s", s->spec->results, s->spec->name);
    const char *path = region_text(s->region, "%s/sweep.csv", folder);
    TRY(record_folder(folder));
    TRY(yaml_write_whole(path, write_rows, s));
    printf("table     %s\n", path);
    return ST_OK;
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

static int run_points(struct sweep *s)
{
    int worst = ST_OK, signal = 0;
    for (int i = 0; i < s->points; i++) plan_point(s, i);
    terminal_note(stderr, "");
    for (int i = 0; i < s->points && !signal; i++) {
        if (!s->point[i].reason) run_point(s, i);
        if (s->point[i].code > 128) signal = s->point[i].code;
        worst = worse(worst, s->point[i].code);
    }
    s->rows = rows_of(s);
    spec_print_head(s->spec, stdout);
    print_table(s, stdout);
    print_reasons(s, stdout);
    return worse(worst, (int)report_error(write_csv(s)));
}

int sweep_run(const struct request *request, struct spec *spec)
{
    struct sweep s = {.region = region_create(), .request = request, .spec = spec};
    const char *key = spec->axis[0].key;
    int code = ST_SPEC;
    if (request->only[SIDE_BASELINE] || request->only[SIDE_VARIANT]) {
        report_error(fail(ST_SPEC, "--only is for one run, and this spec sweeps %s: set it with %s=value", key, key));
    } else {
        collect_points(&s);
        code = run_points(&s);
        json_decref(s.rows);
    }
    spec_destroy(spec);
    region_destroy(s.region);
    return code;
}
