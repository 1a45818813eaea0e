/* Measured memory and time of two runs beside the plan's, and the spec's expectations. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "experiment.h"
#include "spec/spec_settings.h"

enum { CELL = 160 };

struct row {
    const char *name;
    void (*cell)(const struct side *side, char text[CELL]);
    bool verbose; /* printed only with --verbose */
};

static void cell_bytes(double bytes, char text[CELL])
{
    char number[UNIT_TEXT];
    snprintf(text, CELL, "%s", bytes_text(bytes, number));
}

static void cell_static(const struct side *s, char text[CELL]) { cell_bytes((double)plan_static(s->job->plan), text); }

static void cell_predicted(const struct side *s, char text[CELL]) { cell_bytes((double)s->job->plan->live_peak, text); }

/* Only dynamic memory has an allocator that counts; a step whose counts differ from the plan fails. */
static void cell_counted(const struct side *s, char text[CELL])
{
    char number[UNIT_TEXT];
    if (s->spec->memory == MEMORY_DYNAMIC && s->report.steps)
        snprintf(text, CELL, "%s by the allocator, as predicted at every op",
                 bytes_text((double)s->report.summary.figures.live_peak, number));
}

static void cell_categories(const struct side *s, char text[CELL])
{
    const struct plan *plan = s->job->plan;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < CATEGORIES; i++) {
        char number[UNIT_TEXT];
        if (!plan->peak_by_category[i] || used >= CELL) continue;
        used += (size_t)snprintf(text + used, CELL - used, "%s%s %s", used ? ", " : "", category_names[i],
                                 bytes_text((double)plan->peak_by_category[i], number));
    }
}

static void cell_peak_op(const struct side *s, char text[CELL])
{
    char op[128];
    snprintf(text, CELL, "%s", plan_op_text(s->job->plan, s->job->plan->peak_op, op));
}

static void cell_tensors(const struct side *s, char text[CELL])
{
    snprintf(text, CELL, "%s", plan_peak_text(s->job->plan, s->job->plan->region));
}

/* Memory of our own, without libraries: static and arena; without an arena, static and live peak. */
static double allocated(const struct side *s)
{
    const struct plan *plan = s->job->plan;
    size_t arena = s->spec->memory == MEMORY_DYNAMIC ? plan->live_peak : plan->arena_bytes;
    return (double)(plan_static(plan) + arena);
}

static void cell_sampled(const struct side *s, char text[CELL])
{
    const struct plan *plan = s->job->plan;
    char a[UNIT_TEXT], b[UNIT_TEXT], c[UNIT_TEXT];
    snprintf(text, CELL, "%s after the forward, %s after the gradients; the true peak is %s",
             bytes_text((double)plan_sampled_forward(plan), a), bytes_text((double)plan_static(plan), b),
             bytes_text(allocated(s), c));
}

static void cell_arena(const struct side *s, char text[CELL])
{
    if (s->spec->memory == MEMORY_DYNAMIC)
        snprintf(text, CELL, "none: memory: dynamic");
    else
        cell_bytes((double)s->job->plan->arena_bytes, text);
}

static void cell_peak(const struct side *s, char text[CELL]) { cell_bytes(allocated(s), text); }

static void cell_high_water(const struct side *s, char text[CELL])
{
    cell_bytes((double)s->report.summary.high_water, text);
}

/* Memory in use that is neither static nor arena: at the start of the run, and added since. */
static void cell_over(double over, double before, char text[CELL])
{
    char all[UNIT_TEXT], start[UNIT_TEXT], since[UNIT_TEXT];
    snprintf(text, CELL, "%s, neither static nor arena: %s at the start, %s%s since", bytes_text(fmax(over, 0), all),
             bytes_text(before, start), over < before ? "-" : "", bytes_text(fabs(over - before), since));
}

static void cell_overhead(const struct side *s, char text[CELL])
{
    const double ours = s->report.summary.device_used ? 0 : allocated(s);
    cell_over((double)s->report.summary.high_water - ours, (double)s->report.summary.start_rss, text);
}

static void cell_device(const struct side *s, char text[CELL])
{
    if (s->report.summary.device_used) cell_bytes((double)s->report.summary.device_used, text);
}

static void cell_device_overhead(const struct side *s, char text[CELL])
{
    if (s->report.summary.device_used)
        cell_over((double)s->report.summary.device_used - allocated(s), (double)s->report.summary.device_start, text);
}

static void cell_step(const struct side *s, char text[CELL])
{
    char number[UNIT_TEXT];
    snprintf(text, CELL, "%s%s", duration_text(s->report.step_ns, number),
             s->report.steps > 1 ? ", median after the first" : ", the only one");
}

static void cell_best_case(const struct side *s, char text[CELL])
{
    char number[UNIT_TEXT];
    if (s->report.best_case_ns)
        snprintf(text, CELL, "%s, each op at its least", duration_text(s->report.best_case_ns, number));
}

static void cell_prediction(const struct side *s, char text[CELL])
{
    const struct job *job = s->job;
    char number[UNIT_TEXT], miss[64], least[64];
    if (!job->costs) {
        snprintf(text, CELL, "x%.3f of every pass once, by flops", job->plan->slowdown);
        return;
    }
    const double predicted = costs_predict(job->costs, job->plan);
    costs_miss(predicted, (double)s->report.best_case_ns, "the best case", least);
    snprintf(text, CELL, "%s by measured costs, %s%s%s", duration_text((uint64_t)predicted, number),
             costs_miss(predicted, (double)s->report.step_ns, "measured", miss), *least ? ", " : "", least);
}

/* Of the first steps and the last. */
static void cell_losses(const struct side *s, char text[CELL])
{
    const struct run_report *r = &s->report;
    int first = r->steps < REPORT_LOSSES ? (int)r->steps : REPORT_LOSSES, used = 0;
    text[0] = '\0';
    for (int i = 0; i < first; i++)
        used += snprintf(text + used, (size_t)(CELL - used), "%s%.9g", i ? " " : "", (double)r->loss[i]);
    if (r->steps > REPORT_LOSSES)
        used += snprintf(text + used, (size_t)(CELL - used), " ... %.9g", (double)r->last_loss);
    if (!isnan(r->accuracy))
        snprintf(text + used, (size_t)(CELL - used), "; accuracy %.2f %%", 100 * (double)r->accuracy);
}

static const struct row rows[] = {
    {"static", cell_static, false},
    {"live peak, predicted", cell_predicted, false},
    {"live peak, counted", cell_counted, false},
    {"  made of", cell_categories, false},
    {"  set by", cell_peak_op, true},
    {"  largest tensors", cell_tensors, true},
    {"sampled as the source did", cell_sampled, false},
    {"arena", cell_arena, false},
    {"peak, predicted", cell_peak, false},
    {"process high water", cell_high_water, false},
    {"  overhead", cell_overhead, false},
    {"device memory in use", cell_device, false},
    {"  overhead", cell_device_overhead, false},
    {"step", cell_step, false},
    {"  best case", cell_best_case, false},
    {"  predicted", cell_prediction, false},
    {"loss", cell_losses, false},
};

void verdict_print_side(const struct side *side, const char *name, bool verbose, FILE *out)
{
    fprintf(out, "\n%s (policy %s)\n", name, side->spec->policy->name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[CELL] = "";
        if (verbose || !rows[i].verbose) rows[i].cell(side, text);
        if (*text) fprintf(out, "  %-28s %s\n", rows[i].name, text);
    }
}

void verdict_print(const struct experiment *experiment, bool verbose, FILE *out)
{
    const struct comparison *c = &experiment->comparison;
    const struct plan *base = experiment->side[SIDE_BASELINE].job->plan,
                      *plan = experiment->side[SIDE_VARIANT].job->plan;
    const struct costs *measured = experiment->side[SIDE_VARIANT].job->costs;
    const double ratio =
        measured ? costs_predict(measured, plan) / costs_predict(experiment->side[SIDE_BASELINE].job->costs, base)
                 : plan->time / base->time;
    char miss[64], least[64];
    for (int i = 0; i < SIDES; i++) verdict_print_side(&experiment->side[i], side_names[i], verbose, out);
    fprintf(out, "\ntime of a step, variant : baseline  ");
    if (isfinite(c->time_ratio))
        fprintf(out, "%.3f%s", c->time_ratio, c->side_by_side ? "" : " (not measured side by side)");
    else
        fprintf(out, "no step after the first in both: no ratio");
    if (isfinite(c->best_case_ratio)) fprintf(out, ", best case %.3f", c->best_case_ratio);
    costs_miss(ratio, c->time_ratio, "measured", miss);
    costs_miss(ratio, c->best_case_ratio, "the best case", least);
    fprintf(out, "; predicted by %s %.3f%s%s%s%s\n", measured ? "measured costs" : "flops", ratio, *miss ? ", " : "",
            miss, *least ? ", " : "", least);
    fprintf(out, "\n");
}

/* ---- expectations ---- */

static double observed(const struct experiment *e, int what)
{
    const struct comparison *c = &e->comparison;
    const struct run_report *r = &e->side[SIDE_VARIANT].report;
    const double values[] = {c->peak_ratio, c->live_ratio, c->time_ratio, (double)r->accuracy, (double)r->last_loss};
    return values[what];
}

/* Why an expectation is not judged; *text empty: it is judged. With other data the losses differ, but not bytes and
 * times. A run shortened by an override may not measure a figure. */
static void unjudged(const struct side *side, int what, double value, char text[CELL])
{
    const bool of_data = what == EXPECT_ACCURACY || what == EXPECT_LOSS;
    *text = '\0';
    if (side->spec->changed[what])
        snprintf(text, CELL, "%s was overridden", side->spec->changed[what]);
    else if (of_data && side->job->dataset->kind != side->spec->data)
        snprintf(text, CELL, "other data stand in");
    else if (isnan(value) && side->spec->overrides)
        snprintf(text, CELL, "the spec was overridden");
}

static void print_bound(const struct expectation *x, FILE *out)
{
    if (!isnan(x->below)) fprintf(out, " below %g", x->below);
    if (!isnan(x->above)) fprintf(out, " above %g", x->above);
}

bool verdict_expectations(const struct experiment *experiment, FILE *out)
{
    const struct spec *spec = experiment->side[SIDE_VARIANT].spec;
    bool all = true;
    if (spec->expectations) fprintf(out, "expected\n");
    for (int i = 0; i < spec->expectations; i++) {
        const struct expectation *x = &spec->expectation[i];
        double value = observed(experiment, x->what);
        bool met = !isnan(value) && !(value >= x->below) && !(value <= x->above); /* a missing bound is NaN */
        fprintf(out, "  %s", expectation_names[x->what]);
        print_bound(x, out);
        char why[CELL];
        unjudged(&experiment->side[SIDE_VARIANT], x->what, value, why);
        if (isnan(value))
            fprintf(out, ": not measured, ");
        else
            fprintf(out, ": %.6g, ", value);
        fprintf(out, "%s%s (%s)\n", *why ? "not judged: " : met ? "met" : "FAILED", why, x->source ? x->source : "");
        all &= met || *why;
    }
    return all;
}
