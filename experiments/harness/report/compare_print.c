/* A comparison for people and for programs. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "analysis/compare.h"
#include "base/units.h"
#include "console/terminal.h"

static bool counts(const struct comparison *c, int column) { return column != COLUMN_STATE || c->has_state; }

/* "losses 4/4" and so on of what every step has; state only where the optimiser keeps any. */
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

/* Values are printed where they fit a line. */
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
        fprintf(out, "best_case %s -> %s  x%.3f each op at its least\n", duration_text((uint64_t)c->a.best_case_ns, a),
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

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* As in the file. */
static json_t *compared_json(const struct compared *c)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "path", c->path, "policy", c->policy,
                     "steps", (json_int_t)c->steps, "peak_bytes", (json_int_t)c->peak, "live_peak_bytes",
                     (json_int_t)c->live_peak, "high_water_bytes", (json_int_t)c->high_water, "step_median_ns",
                     number(c->median_ns), "step_least_ns", number(c->least_ns), "step_most_ns", number(c->most_ns),
                     "step_best_case_ns", number(c->best_case_ns));
}

static json_t *remarks_json(const struct comparison *c, int from, int to)
{
    json_t *all = json_array();
    for (int i = from; i < to; i++)
        if (*c->remark[i])
            json_array_append_new(all, json_pack("{s:s, s:s}", "name", remark_names[i], "text", c->remark[i]));
    return all;
}

static json_t *asides_json(const struct comparison *c)
{
    json_t *all = json_array();
    for (int i = 0; i < c->asides; i++) {
        const struct aside *x = &c->aside[i];
        json_array_append_new(all, json_pack("{s:s, s:s, s:s}", "name", x->name, "a", x->a, "b", x->b));
    }
    return all;
}

static json_t *verdict_json(const struct comparison *c)
{
    const enum verdict verdict = comparison_verdict(c);
    json_t *first = c->differs ? json_pack("{s:I, s:s, s:I}", "step", (json_int_t)c->first_step, "tensor",
                                           c->first_tensor, "loss_ulp", (json_int_t)c->loss_ulp)
                               : json_null();
    return json_pack("{s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "verdict", verdicts[verdict].json, "equal", c->equal,
                     "proven", verdict == VERDICT_EQUAL, "first_difference", first, "fault_not_caught",
                     verdict == VERDICT_NOT_CAUGHT ? json_string(c->fault) : json_null(), "reasons",
                     remarks_json(c, 0, NOTE_CONTROL), "notes", remarks_json(c, NOTE_CONTROL, REMARKS), "unlike",
                     asides_json(c));
}

/* "losses_equal": how often, by step; null: there is no such thing. */
static void add_counts(json_t *all, const struct comparison *c)
{
    for (int k = 0; k < STEP_COLUMNS; k++) {
        char key[48];
        snprintf(key, sizeof key, "%s_equal", step_column_names[k]);
        for (char *blank = key; (blank = strchr(blank, ' '));) *blank = '_';
        json_object_set_new(all, key, counts(c, k) ? json_integer((json_int_t)c->same[k]) : json_null());
    }
    json_object_set_new(all, "evaluations", json_integer((json_int_t)c->evaluations));
    json_object_set_new(all, "evaluations_equal", json_integer((json_int_t)c->same_evaluations));
    json_object_set_new(all, "tensors", json_integer((json_int_t)c->tensors));
    json_object_set_new(all, "tensors_equal", json_integer((json_int_t)c->same_tensors));
}

void comparison_json(const struct comparison *c, FILE *out)
{
    json_t *all = verdict_json(c);
    json_t *figures = json_pack(
        "{s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:b}", "a", compared_json(&c->a), "b", compared_json(&c->b), "steps",
        (json_int_t)c->steps, "peak_ratio", number(c->peak_ratio), "live_ratio", number(c->live_ratio), "time_ratio",
        number(c->time_ratio), "best_case_ratio", number(c->best_case_ratio), "side_by_side", c->side_by_side);
    add_counts(all, c);
    json_object_update(all, figures);
    json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    fputc('\n', out);
    json_decref(figures);
    json_decref(all);
}
