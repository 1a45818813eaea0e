/* A comparison as text and as JSON. */
#include <math.h>
#include <string.h>

#include "analysis/compare.h"
#include "analysis/json_tree.h"
#include "base/units.h"
#include "console/terminal.h"

/* Prints ", losses 4/4", on a new line where the current one, which ends at *column, has no room; all 0: nothing. */
static void print_count(const char *name, int64_t same, int64_t all, int *column, FILE *out)
{
    enum { INDENT = 10, WIDTH = 79 };
    char text[96];
    const int length = snprintf(text, sizeof text, "%s %lld/%lld", name, (long long)same, (long long)all);
    if (!all) return;
    const bool first = *column == INDENT, fits = *column + 2 + length < WIDTH;
    if (!first) fprintf(out, "%s%*s", fits ? ", " : ",\n", fits ? 0 : INDENT, "");
    *column = (first || !fits ? INDENT : *column + 2) + length;
    fputs(text, out);
}

static void print_counts(const struct comparison *c, FILE *out)
{
    int column = fprintf(out, "equal     ");
    if (c->steps == 0) column += fprintf(out, "no step in common");
    for (int k = 0; k < STEP_COLUMNS; k++)
        print_count(step_column_name((enum step_column)k), c->same[k], c->present[k] ? c->steps : 0, &column, out);
    print_count("evaluations", c->same_evaluations, c->evaluations, &column, out);
    print_count("tensors kept", c->same_tensors, c->tensors, &column, out);
    fputc('\n', out);
}

/* With the values if they fit a line. */
static void print_unlike(const json_t *unlike, FILE *out)
{
    enum { SHOWN = 28 };
    EACH (unlike, i, one) {
        const char *a = json_string_at(one, "a"), *b = json_string_at(one, "b");
        fprintf(out, "%-9s %s", i ? "" : "unlike", json_string_at(one, "name"));
        if (strlen(a) <= SHOWN && strlen(b) <= SHOWN) fprintf(out, ": %s, %s", *a ? a : "none", *b ? b : "none");
        fputc('\n', out);
    }
}

/* A text of each of a list's objects: the first one after first, the others after next. */
static void print_list(const struct comparison *c, const char *list, const char *key, const char *first,
                       const char *next, FILE *out)
{
    EACH (json_object_get(c->json, list), i, one) fprintf(out, "%s%s", i ? next : first, json_string_at(one, key));
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
    if (c->not_finite) fprintf(out, ", not finite in %s", c->not_finite);
    if (c->loss_ulp) fprintf(out, "; the losses are %lld ulp apart", (long long)c->loss_ulp);
    print_list(c, "unlike", "name", "; unlike: ", ", ", out);
}

/* colour: before the words, "": none; next: before every reason but the first. */
static void print_sentence(const struct comparison *c, const char *colour, const char *next, FILE *out)
{
    const enum verdict verdict = comparison_verdict(c);
    if (*colour) terminal_control(out, colour);
    fprintf(out, "%s", verdicts[verdict].text);
    if (*colour) terminal_control(out, "\033[0m");
    if (verdict == VERDICT_DIFFERS) print_difference(c, out);
    if (verdict == VERDICT_EQUAL && c->claim) fprintf(out, ", but %s", c->claim);
    if (verdict == VERDICT_NOT_CAUGHT) fprintf(out, ": equal in every bit, although %s", c->fault);
    if (verdict == VERDICT_UNPROVEN) print_list(c, "reasons", "text", ": ", next, out);
}

void comparison_print_verdict(const struct comparison *c, bool expected, FILE *out)
{
    const enum verdict verdict = expected ? comparison_verdict(c) : VERDICT_DIFFERS;
    print_counts(c, out);
    fprintf(out, "verdict   ");
    print_sentence(c, terminal_colour(out) ? verdicts[verdict].colour : "", "\n          and: ", out);
    fprintf(out, "%s\n", expected ? "" : "; an expectation FAILED");
}

static void print_memory(const json_t *a, const json_t *b, FILE *out)
{
    static const struct {
        const char *name, *key;
    } rows[] = {{"peak      ", "peak_bytes"}, {"live peak ", "live_peak_bytes"}, {"high water", "high_water_bytes"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double x = json_number_at(a, rows[i].key), y = json_number_at(b, rows[i].key);
        fprintf(out, "%s %s -> %s", rows[i].name, BYTES_TEXT(x), BYTES_TEXT(y));
        if (x > 0 && y > 0) fprintf(out, "  x%.3f", y / x);
        fputc('\n', out);
    }
}

/* "1.31 s (1.30 s to 1.35 s)" */
static void print_step(const json_t *side, FILE *out)
{
    fprintf(out, "%s (%s to %s)", DURATION_TEXT(json_number_at(side, "step_median_ns")),
            DURATION_TEXT(json_number_at(side, "step_least_ns")), DURATION_TEXT(json_number_at(side, "step_most_ns")));
}

static void print_time(const struct comparison *c, const json_t *a, const json_t *b, FILE *out)
{
    fprintf(out, "time       ");
    if (!isfinite(c->time_ratio)) {
        fprintf(out, "no step after the first in both: no ratio\n");
        return;
    }
    print_step(a, out);
    fprintf(out, " -> ");
    print_step(b, out);
    fprintf(out, "  x%.3f median of the steps after the first%s\n", c->time_ratio,
            c->side_by_side ? "" : "; not measured side by side");
    if (isfinite(c->best_case_ratio))
        fprintf(out, "best case  %s -> %s  x%.3f each op at its least\n",
                DURATION_TEXT(json_number_at(a, "step_best_case_ns")),
                DURATION_TEXT(json_number_at(b, "step_best_case_ns")), c->best_case_ratio);
}

void comparison_print_numbers(const struct comparison *c, FILE *out)
{
    const json_t *const sides[] = {json_object_get(c->json, "a"), json_object_get(c->json, "b")};
    print_memory(sides[0], sides[1], out);
    print_time(c, sides[0], sides[1], out);
    for (int s = 0; s < 2; s++)
        fprintf(out, "%-9s %s (%s)\n", c->name[s], json_string_at(sides[s], "path"),
                json_string_at(sides[s], "policy"));
    print_unlike(json_object_get(c->json, "unlike"), out);
    print_list(c, "notes", "text", "note      ", "\nnote      ", out);
    if (json_array_size(json_object_get(c->json, "notes"))) fputc('\n', out);
}

static json_t *sentence_of(const struct comparison *c)
{
    freed_auto char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out) print_sentence(c, "", "; and: ", out);
    return out && fclose(out) == 0 ? json_of_text(text) : json_null();
}

json_t *comparison_json(const struct comparison *c)
{
    const enum verdict verdict = comparison_verdict(c);
    json_t *first = json_null();
    if (c->differs)
        first = OBJECT(KEY("step", c->first_step), KEY("tensor", c->first_tensor), KEY("loss_ulp", c->loss_ulp));
    json_t *all = OBJECT(
        KEY("verdict", verdicts[verdict].json), KEY("sentence", sentence_of(c)),
        KEY("equal", json_boolean(!c->differs)), KEY("proven", json_boolean(verdict == VERDICT_EQUAL && !c->claim)),
        KEY("first_difference", first), KEY("fault_not_caught", verdict == VERDICT_NOT_CAUGHT ? c->fault : NULL));
    json_object_update(all, c->json);
    return PUT_ALL(all, KEY("steps", c->steps), KEY("peak_ratio", c->peak_ratio), KEY("live_ratio", c->live_ratio),
                   KEY("time_ratio", c->time_ratio), KEY("best_case_ratio", c->best_case_ratio),
                   KEY("side_by_side", json_boolean(c->side_by_side)));
}
