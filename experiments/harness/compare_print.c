/* A comparison for people and for programs. */
#include <jansson.h>
#include <math.h>

#include "compare.h"
#include "units.h"

static void print_verdict(const struct comparison *c, FILE *out)
{
    if (c->equal)
        fprintf(out, "verdict   EQUAL IN EVERY BIT");
    else
        fprintf(out, "verdict   DIFFERS at step %lld, %s", (long long)c->first_step, c->first_tensor);
    if (c->differs && c->loss_ulp) fprintf(out, "; the losses are %lld ulp apart", (long long)c->loss_ulp);
    fprintf(out,
            "\n          equal: losses %lld/%lld, gradients %lld/%lld, parameters %lld/%lld, state %lld/%lld steps\n",
            (long long)c->losses_equal, (long long)c->steps, (long long)c->gradients_equal, (long long)c->steps,
            (long long)c->parameters_equal, (long long)c->steps, (long long)c->state_equal, (long long)c->steps);
    if (c->degenerate)
        fprintf(out, "          degenerate: proves nothing (a loss, or every gradient of a step, is 0)\n");
    if (c->a.steps != c->b.steps)
        fprintf(out, "          A has %lld steps, B %lld; only the common ones are compared\n", (long long)c->a.steps,
                (long long)c->b.steps);
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
    if (isfinite(c->undisturbed_ratio))
        fprintf(out, "undisturbed %s -> %s  x%.3f each op at its least\n",
                duration_text((uint64_t)c->a.undisturbed_ns, a), duration_text((uint64_t)c->b.undisturbed_ns, b),
                c->undisturbed_ratio);
}

void comparison_print(const struct comparison *comparison, FILE *out)
{
    fprintf(out, "A         %s (%s)\nB         %s (%s)\n", comparison->a.path, comparison->a.policy, comparison->b.path,
            comparison->b.policy);
    print_verdict(comparison, out);
    print_memory(comparison, out);
    print_time(comparison, out);
}

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* As in the file. */
static json_t *compared_json(const struct compared *c)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "path", c->path, "policy", c->policy,
                     "steps", (json_int_t)c->steps, "peak_bytes", (json_int_t)c->peak, "live_peak_bytes",
                     (json_int_t)c->live_peak, "high_water_bytes", (json_int_t)c->high_water, "step_median_ns",
                     number(c->median_ns), "step_least_ns", number(c->least_ns), "step_most_ns", number(c->most_ns),
                     "step_undisturbed_ns", number(c->undisturbed_ns));
}

void comparison_json(const struct comparison *c, FILE *out)
{
    json_t *first = c->differs ? json_pack("{s:I, s:s, s:I}", "step", (json_int_t)c->first_step, "tensor",
                                           c->first_tensor, "loss_ulp", (json_int_t)c->loss_ulp)
                               : json_null();
    json_t *all =
        json_pack("{s:o, s:o, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:b}", "a",
                  compared_json(&c->a), "b", compared_json(&c->b), "equal", c->equal, "degenerate", c->degenerate,
                  "steps", (json_int_t)c->steps, "losses_equal", (json_int_t)c->losses_equal, "gradients_equal",
                  (json_int_t)c->gradients_equal, "parameters_equal", (json_int_t)c->parameters_equal, "state_equal",
                  (json_int_t)c->state_equal, "first_difference", first, "peak_ratio", number(c->peak_ratio),
                  "live_ratio", number(c->live_ratio), "time_ratio", number(c->time_ratio), "undisturbed_ratio",
                  number(c->undisturbed_ratio), "side_by_side", c->side_by_side);
    if (all) json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    fputc('\n', out);
    json_decref(all);
}
