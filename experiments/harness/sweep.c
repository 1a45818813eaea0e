#include "sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record_file.h"
#include "told.h"
#include "units.h"
#include "writing.h"

/* What a point came to. */
struct point {
    const char *const *value; /* one an axis */
    const char *outcome;      /* "equal", "DIFFERS", "failed", "not run" */
    int code;
    size_t static_bytes, live_peak, arena;
    double time_factor;
    struct comparison comparison; /* where both sides ran */
    struct run_report baseline, variant;
};

/* A baseline that ran: points whose baselines are the same spec share it. */
struct shared_baseline {
    const char *resolved;
    struct run_report report;
};

struct sweep {
    struct region *region;
    const struct request *request;
    struct spec *spec;
    int axes, points, baselines;
    const struct sweep_axis *axis; /* those of the spec; it leaves out what an override sets, and bounds the points */
    struct point *point;
    struct shared_baseline *baseline;
};

/* The last axis changes fastest. */
static enum status collect_points(struct sweep *s)
{
    s->points = 1;
    for (int a = 0; a < s->axes; a++) s->points *= (int)s->axis[a].values.count;
    TRY(NEW(s->region, s->point, (size_t)s->points));
    TRY(NEW(s->region, s->baseline, (size_t)s->points));
    for (int i = 0; i < s->points; i++) {
        const char **value;
        TRY(NEW(s->region, value, (size_t)s->axes));
        for (int a = s->axes - 1, rest = i; a >= 0; a--) {
            int count = (int)s->axis[a].values.count;
            value[a] = s->axis[a].values.texts[rest % count];
            rest /= count;
        }
        s->point[i].value = value;
    }
    return ST_OK;
}

/* The request of one point: the user's overrides, then the point's. */
static enum status point_request(const struct sweep *s, const struct point *p, struct request *request)
{
    int count = s->request->overrides;
    const char **override;
    TRY(NEW(s->region, override, (size_t)(count + s->axes)));
    for (int i = 0; i < count; i++) override[i] = s->request->override[i];
    for (int a = 0; a < s->axes; a++)
        if (!(override[count + a] = region_text(s->region, "%s=%s", s->axis[a].key, p->value[a]))) return ST_FAILED;
    *request = *s->request;
    request->overrides = count + s->axes;
    request->override = override;
    return ST_OK;
}

/* Every point is loaded and planned before the first one runs, so that what is wrong with the last is told at once. */
static enum status plan_points(struct sweep *s)
{
    for (int i = 0; i < s->points; i++) {
        struct request request;
        struct experiment *e = NULL;
        TRY(point_request(s, &s->point[i], &request));
        enum status status = experiment_load(&request, &e);
        if (status != ST_OK) return fail(status, "sweep: point %d of %d cannot run", i + 1, s->points);
        const struct plan *plan = e->side[SIDE_VARIANT].job->plan;
        s->point[i].static_bytes = plan_static(plan);
        s->point[i].live_peak = plan->live_peak;
        s->point[i].arena = plan->arena_bytes;
        s->point[i].time_factor = plan->time_factor;
        s->point[i].outcome = "not run";
        experiment_destroy(e);
    }
    return ST_OK;
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
    if (!(b->resolved = region_text(s->region, "%s", side->spec->resolved))) return ST_FAILED;
    b->report = side->report;
    s->baselines++;
    return ST_OK;
}

static enum status run_both(struct sweep *s, struct point *p, struct experiment *e, const struct request *request)
{
    TRY(experiment_fits(e, request));
    TRY(run_baseline(s, e, request, &p->code));
    if (p->code == 0) TRY(experiment_run_side(e, SIDE_VARIANT, request, &p->code));
    p->baseline = e->side[SIDE_BASELINE].report;
    p->variant = e->side[SIDE_VARIANT].report;
    if (p->code != 0) return ST_OK;
    TRY(experiment_compare(e));
    p->comparison = e->comparison;
    p->code = p->comparison.equal ? ST_OK : ST_DIFFERS;
    p->outcome = p->comparison.equal ? "equal" : "DIFFERS";
    return ST_OK;
}

static void run_point(struct sweep *s, int number)
{
    struct point *p = &s->point[number];
    struct request request;
    struct experiment *e = NULL;
    fprintf(stderr, "point %d of %d:", number + 1, s->points);
    for (int a = 0; a < s->axes; a++) fprintf(stderr, " %s=%s", s->axis[a].key, p->value[a]);
    fprintf(stderr, "\n");
    p->outcome = "failed";
    enum status status = point_request(s, p, &request);
    if (status == ST_OK) status = experiment_load(&request, &e);
    if (status == ST_OK) status = run_both(s, p, e, &request);
    if (status != ST_OK) p->code = (int)status;
    experiment_destroy(e);
}

/* Columns that the axis takes: its key, its values, and a space. */
static int axis_width(const struct sweep *s, int axis)
{
    size_t width = strlen(s->axis[axis].key);
    for (size_t i = 0; i < s->axis[axis].values.count; i++) {
        size_t length = strlen(s->axis[axis].values.texts[i]);
        if (length > width) width = length;
    }
    return (int)width + 1;
}

enum { FIGURE_LAST_LOSS = 7, FIGURES = 9 };

/* Of a point, as in the CSV from peak_ratio on; NaN: was not measured. */
static void figures_of(const struct point *p, double figure[FIGURES])
{
    const struct comparison *c = &p->comparison;
    const struct run_report *r = &p->variant;
    const double compared = c->steps ? 0 : NAN, trained = r->steps ? 0 : NAN;
    const double all[FIGURES] = {
        compared + c->peak_ratio,
        compared + c->live_ratio,
        compared + c->time_ratio,
        compared + c->undisturbed_ratio,
        p->time_factor,
        trained + (double)r->step_ns,
        trained + (double)r->loss[0],
        trained + (double)r->last_loss,
        trained + (double)r->accuracy,
    };
    memcpy(figure, all, sizeof all);
}

static void print_figure(const char *format, double figure, const char *unmeasured, FILE *out)
{
    if (isnan(figure))
        fputs(unmeasured, out);
    else
        fprintf(out, format, figure);
}

/* What no figure says: since when the bits differ, or that equal ones prove nothing. */
static void print_remark(const struct comparison *c, FILE *out)
{
    if (c->differs) fprintf(out, "  at step %lld, %s", (long long)c->first_step, c->first_tensor);
    if (c->degenerate) fprintf(out, "  degenerate: proves nothing");
    fputc('\n', out);
}

static void print_table(const struct sweep *s, FILE *out)
{
    for (int a = 0; a < s->axes; a++) fprintf(out, "%-*s ", axis_width(s, a), s->axis[a].key);
    fprintf(out, "%-8s %12s %12s %8s %8s %8s %8s %8s %14s\n", "bits", "live peak", "arena", "peak x", "live x",
            "time x", "undist x", "planned", "last loss");
    for (int i = 0; i < s->points; i++) {
        const struct point *p = &s->point[i];
        char live[UNIT_TEXT], arena[UNIT_TEXT];
        for (int a = 0; a < s->axes; a++) fprintf(out, "%-*s ", axis_width(s, a), p->value[a]);
        fprintf(out, "%-8s %12s %12s ", p->outcome, bytes_text((double)p->live_peak, live),
                bytes_text((double)p->arena, arena));
        double figure[FIGURES];
        figures_of(p, figure);
        for (int k = 0; k < 5; k++) print_figure("%8.3f ", figure[k], "       - ", out);
        print_figure("%14.9g", figure[FIGURE_LAST_LOSS], "             -", out);
        print_remark(&p->comparison, out);
    }
}

static void csv_text(const char *text, const char *end, FILE *out)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"') fputc('"', out);
        fputc(*text, out);
    }
    fprintf(out, "\"%s", end);
}

static bool write_rows(const void *of, FILE *out)
{
    const struct sweep *s = of;
    for (int a = 0; a < s->axes; a++) csv_text(s->axis[a].key, ",", out);
    fputs(
        "outcome,exit_code,static_bytes,live_peak_bytes,arena_bytes,peak_ratio,live_ratio,time_ratio,undisturbed_ratio,"
        "time_factor,step_ns,first_loss,last_loss,accuracy,degenerate,first_difference_step,first_difference,baseline,"
        "variant\n",
        out);
    for (int i = 0; i < s->points; i++) {
        const struct point *p = &s->point[i];
        for (int a = 0; a < s->axes; a++) csv_text(p->value[a], ",", out);
        double figure[FIGURES];
        figures_of(p, figure);
        fprintf(out, "%s,%d,%zu,%zu,%zu,", p->outcome, p->code, p->static_bytes, p->live_peak, p->arena);
        for (int k = 0; k < FIGURES; k++) print_figure("%.12g,", figure[k], ",", out);
        const struct comparison *c = &p->comparison;
        print_figure("%.0f,", c->steps ? (double)c->degenerate : (double)NAN, ",", out);
        print_figure("%.0f,", c->differs ? (double)c->first_step : (double)NAN, ",", out);
        csv_text(c->first_tensor, ",", out);
        csv_text(p->baseline.path, ",", out);
        csv_text(p->variant.path, "\n", out);
    }
    return fflush(out) == 0 && !ferror(out);
}

/* Its folder is not there yet where no point came to run. */
static enum status write_csv(const struct sweep *s)
{
    const char *folder = region_text(s->region, "%s/%s", s->spec->results, s->spec->name);
    const char *path = folder ? region_text(s->region, "%s/sweep.csv", folder) : NULL;
    if (!path) return ST_FAILED;
    TRY(record_folder(folder));
    TRY(writing_whole(path, write_rows, s));
    printf("table     %s\n", path);
    return ST_OK;
}

static int run_points(struct sweep *s)
{
    int worst = 0, signal = 0;
    for (int i = 0; i < s->points && !signal; i++) {
        run_point(s, i);
        if (s->point[i].code > 128) signal = s->point[i].code;
        if (s->point[i].code > worst) worst = s->point[i].code;
    }
    spec_print_head(s->spec, stdout);
    print_table(s, stdout);
    enum status status = told(write_csv(s));
    return worst > (int)status ? worst : (int)status;
}

static enum status prepare(struct sweep *s)
{
    s->axes = s->spec->axes;
    s->axis = s->spec->axis;
    if (s->axes == 0) return ST_OK;
    if (s->request->only[SIDE_BASELINE] || s->request->only[SIDE_VARIANT])
        return fail(ST_SPEC, "--only is for one run, and this spec sweeps %s: set it with %s=value", s->axis[0].key,
                    s->axis[0].key);
    TRY(collect_points(s));
    return plan_points(s);
}

int sweep_run(const struct request *request, bool *swept)
{
    struct sweep s = {.region = region_create(), .request = request};
    enum status status = s.region ? ST_OK : told(fail(ST_FAILED, "out of memory for a sweep"));
    if (status == ST_OK) status = spec_load(request->spec, request->overrides, request->override, false, &s.spec);
    if (status == ST_OK) status = told(prepare(&s));
    *swept = status != ST_OK || s.axes > 0;
    int code = status == ST_OK && s.axes > 0 ? run_points(&s) : (int)status;
    spec_destroy(s.spec);
    region_destroy(s.region);
    return code;
}
