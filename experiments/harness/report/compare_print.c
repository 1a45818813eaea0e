/* A comparison as text and as JSON. */
#include <math.h>
#include <string.h>

#include "analysis/compare.h"
#include "analysis/figures.h"
#include "base/units.h"
#include "console/terminal.h"

static bool counts(const struct comparison *c, int column) { return column != COLUMN_STATE || c->has_state; }

/* "losses 4/4" and so on, a column each; state only where the optimiser has any. */
static void print_counts(const struct comparison *c, FILE *out)
{
    const struct {
        const char *name;
        int64_t same, all;
    } rows[] = {{"evaluations", c->same_evaluations, c->evaluations}, {"tensors kept", c->same_tensors, c->tensors}};
    fprintf(out, "equal     ");
    if (c->steps == 0) fprintf(out, "no step in common");
    for (int k = 0; c->steps && k < STEP_COLUMNS; k++)
        if (counts(c, k))
            fprintf(out, "%s%s %lld/%lld",
                    !k                   ? ""
                    : k == COLUMN_METRIC ? ",\n          "
                                         : ", ",
                    step_column_names[k], (long long)c->same[k], (long long)c->steps);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].all)
            fprintf(out, ",\n          %s %lld/%lld", rows[i].name, (long long)rows[i].same, (long long)rows[i].all);
    fputc('\n', out);
}

/* With the values if they fit a line. */
static void print_asides(const struct comparison *c, FILE *out)
{
    enum { SHOWN = 28 };
    for (int i = 0; i < c->asides; i++) {
        const struct aside *x = &c->aside[i];
        fprintf(out, "%-9s %s", i ? "" : "unlike", x->name);
        if (strlen(x->a) <= SHOWN && strlen(x->b) <= SHOWN)
            fprintf(out, ": %s, %s", *x->a ? x->a : "none", *x->b ? x->b : "none");
        fputc('\n', out);
    }
}

static void print_notes(const struct comparison *c, FILE *out)
{
    for (int i = NOTE_CONTROL; i < REMARKS; i++)
        if (*c->remark[i]) fprintf(out, "note      %s\n", c->remark[i]);
}

/* The words of a verdict, in its colour on a terminal. */
static const struct {
    const char *text, *json, *colour;
} verdicts[VERDICTS] = {
    [VERDICT_EQUAL] = {"EQUAL IN EVERY BIT", "equal", "\033[1;32m"},
    [VERDICT_DIFFERS] = {"DIFFERS", "differs", "\033[1;31m"},
    [VERDICT_NOT_CAUGHT] = {"FAULT NOT CAUGHT", "fault not caught", "\033[1;31m"},
    [VERDICT_UNPROVEN] = {"EQUAL IN EVERY BIT, BUT NOT A PROOF", "unproven", "\033[1;33m"},
};

static void print_difference(const struct comparison *c, FILE *out)
{
    fprintf(out, " at step %lld, %s", (long long)c->first_step, c->first_tensor);
    if (*c->not_finite) fprintf(out, ", not finite in %s", c->not_finite);
    if (c->loss_ulp) fprintf(out, "; the losses are %lld ulp apart", (long long)c->loss_ulp);
    for (int i = 0; i < c->asides; i++) fprintf(out, "%s%s", i ? ", " : "; unlike: ", c->aside[i].name);
}

static void print_reasons(const struct comparison *c, FILE *out)
{
    const char *before = ": ";
    for (int i = 0; i < NOTE_CONTROL; i++) {
        if (!*c->remark[i]) continue;
        fprintf(out, "%s%s", before, c->remark[i]);
        before = "\n          and: ";
    }
}

void comparison_print_verdict(const struct comparison *c, bool expected, FILE *out)
{
    const enum verdict verdict = comparison_verdict(c);
    const bool coloured = terminal_colour(out);
    const char *colour = expected ? verdicts[verdict].colour : verdicts[VERDICT_DIFFERS].colour;
    print_counts(c, out);
    fprintf(out, "verdict   %s%s%s", coloured ? colour : "", verdicts[verdict].text, coloured ? "\033[0m" : "");
    if (verdict == VERDICT_DIFFERS) print_difference(c, out);
    if (verdict == VERDICT_NOT_CAUGHT) fprintf(out, ": equal in every bit, although %s", c->fault);
    if (verdict == VERDICT_UNPROVEN) print_reasons(c, out);
    fprintf(out, "%s\n", expected ? "" : "; an expectation FAILED");
}

static void print_memory(const struct comparison *c, FILE *out)
{
    const struct {
        const char *name;
        uint64_t a, b;
        double ratio;
    } rows[] = {
        {"peak      ", c->a.peak, c->b.peak, c->peak_ratio},
        {"live peak ", c->a.live_peak, c->b.live_peak, c->live_ratio},
        {"high water", c->a.high_water, c->b.high_water,
         c->a.high_water && c->b.high_water ? (double)c->b.high_water / (double)c->a.high_water : (double)NAN},
    };
    char a[UNIT_TEXT], b[UNIT_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fprintf(out, "%s %s -> %s", rows[i].name, bytes_text((double)rows[i].a, a), bytes_text((double)rows[i].b, b));
        if (isfinite(rows[i].ratio)) fprintf(out, "  x%.3f", rows[i].ratio);
        fputc('\n', out);
    }
}

/* "1.31 s (1.30 s to 1.35 s)" */
static void print_step(const struct compared *c, FILE *out)
{
    char median[UNIT_TEXT], least[UNIT_TEXT], most[UNIT_TEXT];
    fprintf(out, "%s (%s to %s)", duration_text((uint64_t)c->median_ns, median),
            duration_text((uint64_t)c->least_ns, least), duration_text((uint64_t)c->most_ns, most));
}

static void print_time(const struct comparison *c, FILE *out)
{
    char a[UNIT_TEXT], b[UNIT_TEXT];
    fprintf(out, "time       ");
    if (!isfinite(c->time_ratio)) {
        fprintf(out, "no step after the first in both: no ratio\n");
        return;
    }
    print_step(&c->a, out);
    fprintf(out, " -> ");
    print_step(&c->b, out);
    fprintf(out, "  x%.3f median of the steps after the first%s\n", c->time_ratio,
            c->side_by_side ? "" : "; not measured side by side");
    if (isfinite(c->best_case_ratio))
        fprintf(out, "best case  %s -> %s  x%.3f each op at its least\n", duration_text((uint64_t)c->a.best_case_ns, a),
                duration_text((uint64_t)c->b.best_case_ns, b), c->best_case_ratio);
}

void comparison_print_figures(const struct comparison *c, FILE *out)
{
    const struct compared *const sides[] = {&c->a, &c->b};
    print_memory(c, out);
    print_time(c, out);
    for (int s = 0; s < 2; s++) fprintf(out, "%-9s %s (%s)\n", sides[s]->name, sides[s]->path, sides[s]->policy);
    print_asides(c, out);
    print_notes(c, out);
}

/* As in the file. */
static json_t *compared_figures(const struct compared *c)
{
    json_t *all = json_object();
    PUT(all, "path", c->path);
    PUT(all, "policy", c->policy);
    PUT(all, "steps", c->steps);
    PUT(all, "peak_bytes", c->peak);
    PUT(all, "live_peak_bytes", c->live_peak);
    PUT(all, "high_water_bytes", c->high_water);
    PUT(all, "step_median_ns", c->median_ns);
    PUT(all, "step_least_ns", c->least_ns);
    PUT(all, "step_most_ns", c->most_ns);
    PUT(all, "step_best_case_ns", c->best_case_ns);
    return all;
}

static json_t *remark_figures(const struct comparison *c, int from, int to)
{
    json_t *all = json_array();
    for (int i = from; i < to; i++)
        if (*c->remark[i])
            json_array_append_new(all,
                                  json_pack("{s:s, s:s}", "name", remark_name((enum remark)i), "text", c->remark[i]));
    return all;
}

static json_t *aside_figures(const struct comparison *c)
{
    json_t *all = json_array();
    for (int i = 0; i < c->asides; i++) {
        const struct aside *x = &c->aside[i];
        json_array_append_new(all, json_pack("{s:s, s:s, s:s}", "name", x->name, "a", x->a, "b", x->b));
    }
    return all;
}

/* "losses_equal": at how many steps; null: the runs have no such column. */
static void add_counts(json_t *all, const struct comparison *c)
{
    for (int k = 0; k < STEP_COLUMNS; k++) {
        char key[48];
        snprintf(key, sizeof key, "%s_equal", step_column_names[k]);
        for (char *blank = key; (blank = strchr(blank, ' '));) *blank = '_';
        PUT(all, key, counts(c, k) ? json_integer(c->same[k]) : json_null());
    }
    PUT(all, "evaluations", c->evaluations);
    PUT(all, "evaluations_equal", c->same_evaluations);
    PUT(all, "tensors", c->tensors);
    PUT(all, "tensors_equal", c->same_tensors);
}

void comparison_json(const struct comparison *c, FILE *out)
{
    const enum verdict verdict = comparison_verdict(c);
    json_t *all = json_object(), *first = c->differs ? json_object() : json_null();
    if (c->differs) {
        PUT(first, "step", c->first_step);
        PUT(first, "tensor", c->first_tensor);
        PUT(first, "loss_ulp", c->loss_ulp);
    }
    PUT(all, "verdict", verdicts[verdict].json);
    PUT_FLAG(all, "equal", c->equal);
    PUT_FLAG(all, "proven", verdict == VERDICT_EQUAL);
    PUT(all, "first_difference", first);
    PUT(all, "fault_not_caught", verdict == VERDICT_NOT_CAUGHT ? c->fault : NULL);
    PUT(all, "reasons", remark_figures(c, 0, NOTE_CONTROL));
    PUT(all, "notes", remark_figures(c, NOTE_CONTROL, REMARKS));
    PUT(all, "unlike", aside_figures(c));
    add_counts(all, c);
    PUT(all, "a", compared_figures(&c->a));
    PUT(all, "b", compared_figures(&c->b));
    PUT(all, "steps", c->steps);
    PUT(all, "peak_ratio", c->peak_ratio);
    PUT(all, "live_ratio", c->live_ratio);
    PUT(all, "time_ratio", c->time_ratio);
    PUT(all, "best_case_ratio", c->best_case_ratio);
    PUT_FLAG(all, "side_by_side", c->side_by_side);
    figures_write(all, out);
}
