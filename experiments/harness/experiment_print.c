/* Measured memory and time of two runs beside the plan's, and the spec's expectations. */
#include <math.h>
#include <stdarg.h>

#include "base/units.h"
#include "experiment.h"
#include "spec/spec_settings.h"

const char *const side_names[SIDES] = {"baseline", "variant"};

__attribute__((format(printf, 3, 4))) static void row(FILE *out, const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(out, "  %-28s ", name);
    vfprintf(out, format, arguments);
    fputc('\n', out);
    va_end(arguments);
}

static void print_categories(const struct plan *plan, FILE *out)
{
    const char *text = "";
    for (int i = 0; i < CATEGORIES; i++) {
        if (plan->peak_by_category[i])
            text = region_text(plan->region, "%s%s%s %s", text, *text ? ", " : "", category_names[i],
                               BYTES_TEXT(plan->peak_by_category[i]));
    }
    row(out, "  made of", "%s", text);
}

/* Memory in use that is neither static nor arena: at the start of the run, and added since. */
static void print_overhead(double over, double before, FILE *out)
{
    row(out, "  overhead", "%s, neither static nor arena: %s at the start, %s%s since", BYTES_TEXT(fmax(over, 0)),
        BYTES_TEXT(before), over < before ? "-" : "", BYTES_TEXT(fabs(over - before)));
}

static void print_memory(const struct side *s, bool verbose, FILE *out)
{
    const struct plan *plan = s->job->plan;
    const struct run_report *r = &s->report;
    const bool dynamic = s->spec->memory == MEMORY_DYNAMIC;
    const double fixed = (double)plan_static(plan), used = (double)r->summary.device_used,
                 high = (double)r->summary.high_water;
    /* memory of our own, without libraries: static and arena; without an arena, static and live peak */
    const double ours = fixed + (double)(dynamic ? plan->live_peak : plan->arena_bytes);
    char peak[UNIT_TEXT], op[128];
    row(out, "static", "%s", BYTES_TEXT(fixed));
    row(out, "live peak, predicted", "%s", BYTES_TEXT(plan->live_peak));
    if (dynamic && r->steps) /* only this allocator counts; a step whose counts differ from the plan fails */
        row(out, "live peak, counted", "%s by the allocator, as predicted at every op",
            BYTES_TEXT(r->summary.numbers.live_peak));
    print_categories(plan, out);
    if (verbose) row(out, "  set by", "%s", plan_op_text(plan, plan->peak_op, op));
    if (verbose) row(out, "  largest tensors", "%s", plan_peak_text(plan, plan->region));
    row(out, "sampled as the source did", "%s after the forward, %s after the gradients; the true peak is %s",
        BYTES_TEXT(plan_sampled_forward(plan)), BYTES_TEXT(fixed), bytes_text(ours, peak));
    row(out, "arena", "%s", dynamic ? "none: memory: dynamic" : BYTES_TEXT(plan->arena_bytes));
    row(out, "peak, predicted", "%s", peak);
    row(out, "process high water", "%s", BYTES_TEXT(high));
    print_overhead(used > 0 ? high : high - ours, (double)r->summary.start_rss, out);
    if (!r->summary.device_used) return;
    row(out, "device memory in use", "%s", BYTES_TEXT(used));
    print_overhead(used - ours, (double)r->summary.device_start, out);
}

static void print_time(const struct side *s, FILE *out)
{
    const struct job *job = s->job;
    const struct run_report *r = &s->report;
    char miss[64], least[64];
    row(out, "step", "%s%s", DURATION_TEXT(r->step_ns), r->steps > 1 ? ", median after the first" : ", the only one");
    if (r->best_case_ns) row(out, "  best case", "%s, each op at its least", DURATION_TEXT(r->best_case_ns));
    if (!job->costs) {
        row(out, "  predicted", "x%.3f of every pass once, by flops", job->plan->slowdown);
        return;
    }
    const double predicted = costs_predict(job->costs, job->plan);
    costs_miss(predicted, (double)r->best_case_ns, "the best case", least);
    row(out, "  predicted", "%s by measured costs, %s%s%s", DURATION_TEXT(predicted),
        costs_miss(predicted, (double)r->step_ns, "measured", miss), *least ? ", " : "", least);
}

/* Of the first steps and the last. */
static void print_losses(const struct run_report *r, FILE *out)
{
    fprintf(out, "  %-28s", "loss");
    for (int i = 0; i < REPORT_LOSSES && i < r->steps; i++) fprintf(out, " %.9g", (double)r->loss[i]);
    if (r->steps > REPORT_LOSSES) fprintf(out, " ... %.9g", (double)r->last_loss);
    if (!isnan(r->accuracy)) fprintf(out, "; accuracy %.2f %%", 100 * (double)r->accuracy);
    fputc('\n', out);
}

void experiment_print_side(const struct side *side, const char *name, bool verbose, FILE *out)
{
    fprintf(out, "\n%s (policy %s)\n", name, side->spec->policy->name);
    print_memory(side, verbose, out);
    print_time(side, out);
    print_losses(&side->report, out);
}

void experiment_print(const struct experiment *experiment, bool verbose, FILE *out)
{
    const struct comparison *c = &experiment->comparison;
    const struct plan *base = experiment->side[SIDE_BASELINE].job->plan,
                      *plan = experiment->side[SIDE_VARIANT].job->plan;
    const struct costs *measured = experiment->side[SIDE_VARIANT].job->costs;
    const double ratio =
        measured ? costs_predict(measured, plan) / costs_predict(experiment->side[SIDE_BASELINE].job->costs, base)
                 : plan->time / base->time;
    char miss[64], least[64];
    for (int i = 0; i < SIDES; i++) experiment_print_side(&experiment->side[i], side_names[i], verbose, out);
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

/* Why an expectation is not judged, NULL: it is. With other data the losses differ, but not bytes and times. A run
 * shortened by an override may not measure a number. Waiting for processors excuses a ratio of times that misses. */
static const char *unjudged(const struct experiment *experiment, const struct spec *spec, int what, double value,
                            bool met)
{
    const struct side *side = &experiment->side[SIDE_VARIANT];
    const bool of_data = what == EXPECT_ACCURACY || what == EXPECT_LOSS;
    if (spec->changed[what]) return region_text(spec->region, "%s was overridden", spec->changed[what]);
    if (of_data && side->job->dataset->kind != spec->data) return "other data stand in";
    if (what == EXPECT_TIME_RATIO && !met && experiment->comparison.disturbed)
        return "the processors did not work for it all the time";
    return isnan(value) && spec->overrides ? "the spec was overridden" : NULL;
}

enum judgement experiment_expectation(const struct experiment *experiment, const struct spec *spec,
                                      const struct expectation *x, char text[EXPECTATION_TEXT])
{
    const double value = observed(experiment, x->what);
    const bool met = !isnan(value) && !(value >= x->below) && !(value <= x->above); /* a missing bound is NaN */
    const char *why = unjudged(experiment, spec, x->what, value, met);
    char below[32] = "", above[32] = "", found[32] = "not measured";
    if (!isnan(x->below)) snprintf(below, sizeof below, " below %g", x->below);
    if (!isnan(x->above)) snprintf(above, sizeof above, " above %g", x->above);
    if (!isnan(value)) snprintf(found, sizeof found, "%.6g", value);
    snprintf(text, EXPECTATION_TEXT, "%s%s%s: %s, %s%s (%s)", expectation_names[x->what], below, above, found,
             why   ? "not judged: "
             : met ? "met"
                   : "FAILED",
             why ? why : "", x->source ? x->source : "");
    return why ? NOT_JUDGED : met ? MET : UNMET;
}

/* out NULL: prints nothing. */
bool experiment_expectations(const struct experiment *experiment, FILE *out)
{
    const struct spec *spec = experiment->side[SIDE_VARIANT].spec;
    bool all = true;
    if (spec->expectations && out) fprintf(out, "expected\n");
    for (int i = 0; i < spec->expectations; i++) {
        char text[EXPECTATION_TEXT];
        all &= experiment_expectation(experiment, spec, &spec->expectation[i], text) != UNMET;
        if (out) fprintf(out, "  %s\n", text);
    }
    return all;
}

static json_t *side_json(const struct side *side)
{
    const struct run_report *r = &side->report;
    const struct plan *plan = side->job->plan;
    if (!*r->path) return json_null();
    const char *path = region_text(side->spec->region, "%s%s", r->path, r->finished ? "" : ".part");
    return OBJECT(
        KEY("file", json_of_plain(path)), KEY("policy", side->spec->policy->name),
        KEY("finished", json_boolean(r->finished)), KEY("steps", r->steps), KEY("peak_bytes", plan_peak(plan)),
        KEY("live_peak_bytes", plan->live_peak), KEY("slowdown", plan->slowdown), KEY("step_ns", r->step_ns),
        KEY("step_best_case_ns", r->best_case_ns), KEY("last_loss", r->last_loss), KEY("accuracy", r->accuracy));
}

static json_t *json_of_expectations(const struct experiment *e, const struct expectation *x)
{
    static const char *const judgements[] = {[NOT_JUDGED] = "not judged", [MET] = "met", [UNMET] = "not met"};
    char text[EXPECTATION_TEXT];
    const enum judgement judgement = experiment_expectation(e, e->side[SIDE_VARIANT].spec, x, text);
    return OBJECT(KEY("what", expectation_names[x->what]), KEY("above", x->above), KEY("below", x->below),
                  KEY("found", observed(e, x->what)), KEY("judgement", judgements[judgement]), KEY("source", x->source),
                  KEY("text", text));
}

json_t *experiment_json(const struct experiment *e, int code)
{
    const struct spec *spec = e->side[SIDE_VARIANT].spec;
    json_t *expected = json_array();
    const bool whole = e->compared && e->side[SIDE_VARIANT].report.finished;
    for (int i = 0; i < spec->expectations && whole; i++) ADD(expected, json_of_expectations(e, &spec->expectation[i]));
    return OBJECT(
        KEY("experiment", spec->name), KEY("exit_code", code), KEY("baseline", side_json(&e->side[SIDE_BASELINE])),
        KEY("variant", side_json(&e->side[SIDE_VARIANT])),
        KEY("comparison", e->compared ? comparison_json(&e->comparison) : json_null()), KEY("expectations", expected));
}
