/* A plan as text. */
#include <string.h>

#include "analysis/plan_summary.h"
#include "base/text.h"
#include "base/units.h"
#include "report/text_table.h"
#include "spec/graph_build.h"

enum { TENSORS_SHOWN = 8, NAMES_SHOWN = 40 };

/* A number in the unit that key ends with. Those of a network without kernels are exact: bytes may be set as a budget,
 * and times, which stand for flops, are in the unit of its file. */
#define NUMBER(plan, key, number) text_number((key), (double)(number), !(plan)->network->backend, (char[UNIT_TEXT]){""})

/* "  label                 412.3 MiB  note"; note "": none. */
static void print_bytes(const struct plan *plan, const char *label, size_t bytes, const char *note, FILE *out)
{
    fprintf(out, "  %-32s %12s%s%s\n", label, NUMBER(plan, "bytes", bytes), *note ? "  " : "", note);
}

/* "25557032 in 161 tensors"; "": of a graph file, which has bytes alone. */
static const char *parameters_text(const struct plan_summary *s, char *text, size_t room)
{
    const int tensors = s->job->graph->parameters;
    snprintf(text, room, "%.0f in %d tensor%s", json_number_at(s->json, "parameters"), tensors, text_plural(tensors));
    return s->job->backend ? text : "";
}

static void print_totals(const struct plan_summary *s, FILE *out)
{
    const struct plan *plan = s->job->plan;
    char op[128], note[192];
    fprintf(out, "\nmemory\n");
    for (int i = 0; i < STATICS; i++)
        if (plan->static_bytes[i])
            print_bytes(plan, i == STATIC_STATE ? "running state" : static_names[i], plan->static_bytes[i],
                        i == STATIC_PARAMETERS ? parameters_text(s, note, sizeof note) : "", out);
    print_bytes(plan, "static", plan_static(plan), "live for the whole run", out);
    snprintf(note, sizeof note, "at op %d, %s", plan->peak_op, plan_op_text(plan, plan->peak_op, op));
    for (int i = 0; i < CATEGORIES; i++)
        if (plan->peak_by_category[i])
            print_bytes(plan, category_names[i], plan->peak_by_category[i], "at the peak", out);
    print_bytes(plan, "live peak", plan->live_peak, note, out);
    if (plan->arena_bytes == plan->arena_bound)
        snprintf(note, sizeof note, "%.4f of the live peak; proven least",
                 (double)plan->arena_bytes / (double)(plan->live_peak + !plan->live_peak));
    else
        snprintf(note, sizeof note, "at most %.4f of the least placement",
                 (double)plan->arena_bytes / (double)plan->arena_bound);
    print_bytes(plan, "arena", plan->arena_bytes, note, out);
    print_bytes(plan, "peak = static + arena", plan_peak(plan), "", out);
    print_bytes(plan, "live peak of store_all", s->store_all_live, "the same kernels, everything stored", out);
    fprintf(out, "  sampled as a line-by-line profiler does, which never sees the peak:\n");
    print_bytes(plan, "  after the forward", plan_sampled_forward(plan), "", out);
    print_bytes(plan, "  after the gradients", plan_static(plan), "", out);
}

static void print_peak(const json_t *peak, bool exact, FILE *out)
{
    json_t *tensors = json_object_get(peak, "tensors");
    json_auto_t *shown = json_array();
    size_t rest = 0;
    fprintf(out, "\nthe peak is set by op %.0f, %s; live there:\n", json_number_at(peak, "number"),
            json_string_at(peak, "op"));
    EACH (tensors, i, row) {
        if (i < TENSORS_SHOWN)
            json_array_append(shown, row);
        else
            rest += (size_t)json_number_at(row, "bytes");
    }
    if (rest)
        ADD(shown, json_pack("{s:o, s:o}", "name", json_sprintf("%zu more", json_array_size(tensors) - TENSORS_SHOWN),
                             "bytes", json_of_unsigned(rest)));
    text_table(shown, "name bytes category", 2, exact, out);
}

/* Only where costs were measured; and where that was. */
static void print_prediction(const struct plan_summary *s, FILE *out)
{
    const struct costs *c = s->job->costs;
    if (!c) return;
    fprintf(out, "  a step is predicted to take %s, its nodes %s of it\n",
            DURATION_TEXT(costs_predict(c, s->job->plan)), DURATION_TEXT(s->job->plan->time));
    fprintf(out, "  costs of %s (run %s): %s%s\n", c->path, c->run_id, c->where,
            c->here ? "" : "; not as here: the prediction is theirs");
}

static void print_time(const struct plan_summary *s, FILE *out)
{
    const struct job *job = s->job;
    const struct plan *plan = job->plan;
    const char *planning = DURATION_TEXT(job->planning_ns);
    fprintf(out, "\ntime\n  forward %s, backward %s, recompute %s in %d recomputation%s (%d dead and left out)\n",
            NUMBER(plan, "flops", plan->forward_flops), NUMBER(plan, "flops", plan->backward_flops),
            NUMBER(plan, "flops", plan->recompute_flops), plan->recomputations, text_plural(plan->recomputations),
            plan->lowered.dropped);
    if (job->backend)
        fprintf(out, "  slowdown %.4f by %s; kernels prepared in %s, planned in %s\n", plan->slowdown,
                job->costs ? "measured costs" : "flops", DURATION_TEXT(job->preparing_ns), planning);
    else
        fprintf(out, "  slowdown %.4f, %.15g in all; planned in %s\n", plan->slowdown, plan->time, planning);
    print_prediction(s, out);
}

/* Which of the bounds is the best one; and, in slices, what it is about. */
static const char *bound_scope(const struct bounds *bounds, bool sliced)
{
    if (!sliced || bounds->best <= bounds->floor) return "";
    return bounds->of_slice ? " of one slice alone" : " beside layers that compute the whole batch";
}

static const char *bound_name(const struct bounds *bounds)
{
    if (bounds->best <= bounds->floor) return "every pass once";
    if (bounds->best <= bounds->knapsack) return "knapsack";
    return bounds->best <= bounds->closure ? "closure" : "binomial";
}

static void print_bound(const struct plan *plan, const char *name, const struct bounds *bounds, FILE *out)
{
    char above[64];
    double gap = bounds_gap(bounds, plan->time);
    snprintf(above, sizeof above, "this plan is %.1f %% above", gap);
    fprintf(out, "  %-32s %12.3f  %s%s; %s\n", name, bounds_slowdown(bounds, bounds->best), bound_name(bounds),
            bound_scope(bounds, plan->network->slice), gap > 0 ? above : "this plan meets it");
}

static void print_placing(const struct plan_summary *s, FILE *out)
{
    const struct policy_notes *notes = &s->job->notes;
    if (notes->tries > 1)
        fprintf(out, "  %d schedules were placed until an arena kept the budget, which adds %.4f to the slowdown\n",
                notes->tries, bounds_slowdown(&s->job->bounds, notes->lost));
    if (notes->tries && notes->live_peak != s->job->plan->live_peak)
        fprintf(out, "  the policy promised a live peak of %s; it is %s\n",
                NUMBER(s->job->plan, "bytes", notes->live_peak),
                NUMBER(s->job->plan, "bytes", s->job->plan->live_peak));
}

/* What no schedule can beat, how far above it this plan is, and what placing it cost. */
static void print_bounds(const struct plan_summary *s, FILE *out)
{
    const struct job *job = s->job;
    const struct bounds *own = &job->bounds, *budget = &job->budget_bounds;
    char name[64], note[192], above[64] = "this plan meets it";
    if (job->plan->live_peak > own->memory)
        snprintf(above, sizeof above, "this plan takes %.2f times that",
                 (double)job->plan->live_peak / (double)own->memory);
    fprintf(out, "\nlower bounds on every schedule\n");
    snprintf(note, sizeof note, "%s needs it; %s", job->graph->node[own->memory_node].name, above);
    print_bytes(job->plan, "live peak", own->memory, note, out);
    print_bound(job->plan, "slowdown at this live peak", own, out);
    snprintf(name, sizeof name, "slowdown, %s arena", NUMBER(job->plan, "bytes", budget->budget));
    if (budget->budget) print_bound(job->plan, name, budget, out);
    print_placing(s, out);
    if (*job->notes.found) fprintf(out, "\npolicy %s: %s\n", job->spec->policy->name, job->notes.found);
}

static void print_names(const json_t *names, const char *label, FILE *out)
{
    const size_t count = json_array_size(names), shown = count > NAMES_SHOWN + 1 ? NAMES_SHOWN : count;
    for (size_t i = 0; i < shown; i++)
        fprintf(out, "%s%s", i ? ", " : label, json_string_value(json_array_get(names, i)));
    if (shown < count) fprintf(out, " and %zu more", count - shown);
    if (count) fputc('\n', out);
}

void spec_print_head(const struct spec *spec, FILE *out)
{
    const bool titled = strcmp(spec->title, spec->name) != 0;
    fprintf(out, "%s%s%s\n", spec->name, titled ? ": " : "", titled ? spec->title : "");
    for (int i = 0; i < spec->overrides; i++) fprintf(out, "override %s\n", spec->override[i]);
}

static void print_head(const struct plan_summary *s, FILE *out)
{
    const struct spec *spec = s->job->spec;
    const struct backend *backend = s->job->backend;
    char shape[96];
    spec_print_head(spec, out);
    if (!backend)
        fprintf(out, "policy %s on %.0f nodes in %.0f stages; times are in the file's unit\n\n", spec->policy->name,
                json_number_at(s->json, "nodes"), json_number_at(s->json, "stages"));
    if (spec->graph && spec->graph->mapping) fprintf(out, "%s\n\n", spec->graph->mapping);
    if (!backend) return;
    fprintf(out,
            "policy %s on %d nodes in %.0f stages; batch %lld of %s; backend %s, %s%s%s, %s, %lld thread%s%s%s\n\n",
            spec->policy->name, s->job->graph->nodes, json_number_at(s->json, "stages"), (long long)spec->batch,
            shape_print(&s->job->graph->value[0].shape, shape), spec->backend, backend->device ? backend->device : "",
            backend->device ? ", " : "", backend->libraries ? backend->libraries : "no library",
            backend->isa ? backend->isa : "any isa", (long long)backend->options.threads,
            text_plural(backend->options.threads), backend->convolutions ? ", " : "",
            backend->convolutions ? backend->convolutions : "");
}

/* Which layers compute a slice at a time is a rule (model/slicing.h); so the plan says, and the rule. */
static void print_slices(const json_t *all, FILE *out)
{
    const double slices = json_number_at(all, "slices");
    const json_t *whole = json_object_get(all, "whole_layers");
    if (slices < 2) return;
    fprintf(out, "every layer computes %.0f slices of %.0f samples\n", slices, json_number_at(all, "batch") / slices);
    print_names(whole, "  except, at once: ", out);
    if (json_array_size(whole))
        fprintf(out,
                "  (linear over %d MiB, under %d rows a slice; slices: 1; a weight that a later layer shares; sum, "
                "flatten of these)\n",
                SLICING_WEIGHT_BYTES >> 20, SLICING_FEW_ROWS);
    fputc('\n', out);
}

/* The rows of the loss that are computed together with the layer before it. */
static void print_chunks(const json_t *all, FILE *out)
{
    const json_t *loss = json_object_get(all, "chunked_loss");
    if (loss)
        fprintf(out, "layer %s is computed with its loss in chunks of %.0f rows, of %.0f\n\n",
                json_string_at(loss, "layer"), json_number_at(loss, "chunk_rows"), json_number_at(loss, "rows"));
}

/* None of these plans is placed. */
static void print_choices(const struct plan_summary *s, bool exact, FILE *out)
{
    const json_t *choices = json_object_get(s->json, "choices"), *front = json_object_get(s->json, "front");
    if (json_array_size(choices) < 2) return;
    fprintf(out, "\npolicies that require no setting%s\n",
            exact ? "" : "; the peak is the live one and what is static");
    text_table(choices,
               exact ? "policy live_peak_bytes time slowdown gap_percent remark"
                     : "policy live_peak_bytes peak_bytes slowdown fits remark",
               2, exact, out);
    if (front) fprintf(out, "  the front of optimal has %zu points\n", json_array_size(front));
    if (json_string_at(s->json, "front_approximation"))
        fprintf(out, "  and is %s\n", json_string_at(s->json, "front_approximation"));
    if (s->job->graph->nodes > json_number_at(s->json, "choices_nodes_max"))
        fprintf(out, "  policies that search for a budget are listed for up to %.0f nodes\n",
                json_number_at(s->json, "choices_nodes_max"));
}

void plan_summary_print(const struct plan_summary *summary, FILE *out)
{
    const json_t *all = summary->json;
    const bool exact = !summary->job->backend;
    print_head(summary, out);
    print_slices(all, out);
    print_chunks(all, out);
    text_table(json_object_get(all, "table"),
               exact ? "stage gradient_bytes output_bytes saved_bytes scratch_bytes forward_time backward_time action"
                     : "stage shape output_bytes saved_bytes scratch_bytes forward_flops backward_flops action",
               0, exact, out);
    print_totals(summary, out);
    print_peak(json_object_get(all, "peak"), exact, out);
    print_time(summary, out);
    print_bounds(summary, out);
    fputs("\nschedule ", out);
    text_schedule(json_string_at(all, "schedule"), out);
    fputc('\n', out);
    print_names(json_object_get(all, "relus_after_pools"), "relus taken after their pools: ", out);
    print_names(json_object_get(all, "pools_in_convs"), "convolutions that compute their pools: ", out);
    print_names(json_object_get(all, "relu_bits"), "relus that save sign bits: ", out);
    print_choices(summary, exact, out);
    if (!exact)
        fprintf(out, "\n%s this machine: needs %s of the %s that %s leaves\n",
                plan_summary_fits(summary) ? "fits" : "does not fit", BYTES_TEXT(plan_peak(summary->job->plan)),
                BYTES_TEXT(summary->machine.bytes), summary->machine.limit);
    text_notes(json_object_get(all, "notes"), "note: ", out);
    text_notes(json_object_get(all, "slow_nodes"), "warning: slow reference implementation: ", out);
}

void plan_print_ops(const struct plan *plan, FILE *out)
{
    json_auto_t *ops = json_of_ops(plan);
    fputc('\n', out);
    text_table(ops, "number live_bytes op saves sets_peak", 0, !plan->network->backend, out);
}

void plan_summary_print_pair(const struct plan_summary *baseline, const struct plan_summary *variant, FILE *out)
{
    const struct plan_summary *const sides[] = {baseline, variant};
    json_auto_t *rows = json_array();
    for (int i = 0; i < 2; i++) {
        json_t *row = json_copy(sides[i]->json);
        PUT_ALL(row, KEY("planned", i ? "variant" : "baseline"),
                KEY("peak_op", json_string_at(json_object_get(row, "peak"), "op")),
                KEY("gap_percent", json_number_at(json_object_get(row, "bounds"), "gap_percent")));
        ADD(rows, row);
    }
    text_table(rows, "planned policy static_bytes live_peak_bytes arena_bytes peak_bytes slowdown gap_percent peak_op",
               2, false, out);
    char text[64];
    fprintf(out, "  parameters: %s\n", parameters_text(variant, text, sizeof text));
    text_notes(json_object_get(variant->json, "notes"), "note: ", out);
    const size_t slow = json_array_size(json_object_get(variant->json, "slow_nodes"));
    if (slow)
        fprintf(out, "warning: %zu node%s on a slow reference implementation; rematch plan names them\n", slow,
                text_plural((int64_t)slow));
    fputc('\n', out);
}
