/* Answers as text, for people. */
#include <math.h>
#include <string.h>

#include "overview.h"
#include "query.h"
#include "units.h"

static double share(const struct answer *a, const struct trial *t)
{
    return a->baseline ? 100 * (double)t->arena / (double)a->baseline : 0;
}

static void print_static(const struct answer *a, FILE *out)
{
    char fixed[UNIT_TEXT], baseline[UNIT_TEXT];
    fprintf(out,
            "peak = arena + %s static; shares are of the %s that store_all has live, relus as written, outputs kept\n",
            bytes_text((double)plan_static(a->job->plan), fixed), bytes_text((double)a->baseline, baseline));
}

static void print_trials_head(FILE *out, const char *last)
{
    fprintf(out, "\n  %-10s %-28s %10s %10s %8s %12s %11s%s\n", "policy", "settings", "peak", "arena", "share",
            "time factor", "above bound", last);
}

static void print_trial(const struct answer *a, const struct trial *t, const char *last, FILE *out)
{
    char peak[UNIT_TEXT], arena[UNIT_TEXT];
    fprintf(out, "%c %-10s %-28s %10s %10s %6.1f %% %12.4f %9.1f %%%s%s\n", t->best ? '*' : ' ', t->policy->name,
            t->settings, bytes_text((double)t->peak, peak), bytes_text((double)t->arena, arena), share(a, t),
            t->time_factor, t->gap, *last ? "  " : "", last);
}

static void print_left_out(const struct answer *a, FILE *out)
{
    const struct tries *t = &a->tries;
    if (t->refusals || t->left_out) fputc('\n', out);
    if (t->left_out)
        fprintf(out, "of a front of %d points: %d evenly spread, and those with the memory of another plan\n",
                t->points, t->points - t->left_out);
    for (int i = 0; i < t->refusals; i++)
        fprintf(out, "left out: %s, %s\n", t->refusal[i].policy->name, t->refusal[i].why);
}

void print_pareto(const struct answer *a, FILE *out)
{
    spec_print_head(a->job->spec, out);
    fprintf(out, "what %d plans would take; * none is better in peak or time and as good in the other\n", a->rows);
    print_static(a, out);
    print_trials_head(out, "");
    for (int i = 0; i < a->rows; i++) print_trial(a, a->row[i], "", out);
    print_left_out(a, out);
}

void print_pareto_csv(const struct answer *a, FILE *out)
{
    fputs("policy,settings,own,static_bytes,live_peak_bytes,arena_bytes,peak_bytes,share_percent,time_factor,"
          "gap_percent,pareto,peak_op\n",
          out);
    for (int i = 0; i < a->rows; i++) {
        const struct trial *t = a->row[i];
        fprintf(out, "%s,%s,%d,%zu,%zu,%zu,%zu,%.9g,%.9g,%.9g,%d,%s\n", t->policy->name, t->settings, t->own,
                t->peak - t->arena, t->live_peak, t->arena, t->peak, share(a, t), t->time_factor, t->gap, t->best,
                t->peak_op);
    }
}

/* ---- the largest batch ---- */

static char *next_text(const struct answer *a, const struct batch_row *row, char text[128])
{
    char over[UNIT_TEXT];
    if (!row->fails)
        snprintf(text, 128, "no larger one can be planned");
    else if (row->next)
        snprintf(text, 128, "batch %lld takes %s too much", (long long)row->fails,
                 bytes_text((double)(row->next - a->query->memory), over));
    else
        snprintf(text, 128, "batch %lld %s", (long long)row->fails,
                 row->why == batch_slow ? "is slower than that" : "is refused");
    return text;
}

static void print_batch(const struct answer *a, const struct batch_row *row, FILE *out)
{
    char peak[UNIT_TEXT], arena[UNIT_TEXT], next[128];
    if (!row->fits) {
        fprintf(out, "  %-10s %-28s %8s %10s %10s %12s  %s\n", row->policy->name, row->own ? row->at.settings : "",
                "none", "", "", "", row->why ? row->why : next_text(a, row, next));
        return;
    }
    fprintf(out, "  %-10s %-28s %8lld %10s %10s %12.4f  %s\n", row->policy->name, row->at.settings,
            (long long)row->fits, bytes_text((double)row->at.peak, peak), bytes_text((double)row->at.arena, arena),
            row->at.time_factor, next_text(a, row, next));
}

static void print_batch_notes(const struct answer *a, FILE *out)
{
    const struct dataset *data = a->job->dataset;
    const struct batch_row *own = &a->batches.row[0];
    char peak[UNIT_TEXT];
    if (own->fits)
        fprintf(out, "\nat batch %lld the spec's peak of %s is set by %s, with\n  %s\n", (long long)own->fits,
                bytes_text((double)own->at.peak, peak), own->at.peak_op, own->at.peak_tensors);
    for (int i = 0; i < a->batches.rows; i++) {
        const struct batch_row *row = &a->batches.row[i];
        if (row->odd)
            fprintf(out, "note: the peak of %s does not always grow with the batch: %lld does not fit, %lld does\n",
                    row->policy->name, (long long)row->odd, (long long)row->fits);
    }
    if (data->kind->sized && own->fits > data->count[SPLIT_TRAIN])
        fprintf(out, "note: data set %s has only %lld training samples\n", data->kind->name,
                (long long)data->count[SPLIT_TRAIN]);
    if (a->job->costs)
        fprintf(out, "note: time factors are by flops: the measured costs are those of batch %lld\n",
                (long long)a->job->spec->batch);
    fprintf(out, "note: what the process and its libraries need comes on top\n");
}

void print_max_batch(const struct answer *a, FILE *out)
{
    char memory[UNIT_TEXT];
    spec_print_head(a->job->spec, out);
    fprintf(out, "the largest batch whose planned peak, static and arena, is at most %s",
            exact_bytes_text((size_t)a->query->memory, memory));
    if (isfinite(a->query->slowdown)) fprintf(out, ",\nwith a time factor of at most %g", a->query->slowdown);
    fprintf(out, "\n\n  %-10s %-28s %8s %10s %10s %12s  %s\n", "policy", "settings", "batch", "peak", "arena",
            "time factor", "what stops it");
    for (int i = 0; i < a->batches.rows; i++) print_batch(a, &a->batches.row[i], out);
    print_batch_notes(a, out);
}

/* ---- the least memory ---- */

void print_min_memory(const struct answer *a, FILE *out)
{
    spec_print_head(a->job->spec, out);
    fprintf(out, "the least memory with a time factor of at most %g, by policy\n", a->query->slowdown);
    print_static(a, out);
    print_trials_head(out, "  peak set by");
    for (int i = 0; i < a->rows; i++) print_trial(a, a->row[i], a->row[i]->peak_op, out);
    print_left_out(a, out);
}

/* ---- what sets the peak, and what would change it ---- */

/* "-31.2 %" */
static char *change_text(size_t now, size_t before, char text[UNIT_TEXT])
{
    if (now == before) return strcpy(text, "same");
    snprintf(text, UNIT_TEXT, "%+.1f %%", before ? 100 * ((double)now / (double)before - 1) : 0);
    return text;
}

static void print_why(const struct answer *a, FILE *out)
{
    const struct plan *plan = a->job->plan;
    const struct bounds *bounds = &a->job->bounds;
    char peak[UNIT_TEXT], fixed[UNIT_TEXT], arena[UNIT_TEXT], live[UNIT_TEXT], floor[UNIT_TEXT], op[128];
    fprintf(out, "policy %s takes %s: %s that no policy changes (parameters, gradients, optimizer, inputs), and\n",
            a->job->spec->policy->name, bytes_text((double)plan_peak(plan), peak),
            bytes_text((double)plan_static(plan), fixed));
    fprintf(out, "an arena of %s for what is live, at most %s at op %d, %s:\n",
            bytes_text((double)plan->arena_bytes, arena), bytes_text((double)plan->live_peak, live), plan->peak_op,
            plan_op_text(plan, plan->peak_op, op));
    for (int i = 0; i < a->tries.trials; i++)
        if (a->tries.trial[i].own) fprintf(out, "  %s\n", a->tries.trial[i].peak_tensors);
    fprintf(out, "no schedule has less than %s live, which %s needs alone\n", bytes_text((double)bounds->memory, floor),
            a->job->graph->node[bounds->memory_node].name);
}

void print_explain(const struct answer *a, FILE *out)
{
    char peak[UNIT_TEXT], change[UNIT_TEXT];
    spec_print_head(a->job->spec, out);
    print_why(a, out);
    fprintf(out, "\nwhat each policy would change: the least it can do with, and its fastest within this peak;\n"
                 "* no plan of any policy is better in peak or time and as good in the other\n\n");
    fprintf(out, "  %-10s %-28s %10s %9s %12s  %s\n", "policy", "settings", "peak", "change", "time factor",
            "its peak is set by");
    for (int i = 0; i < a->rows; i++) {
        const struct trial *t = a->row[i];
        fprintf(out, "%c %-10s %-28s %10s %9s %12.4f  %s: %s\n", t->best ? '*' : ' ', t->policy->name, t->settings,
                bytes_text((double)t->peak, peak), change_text(t->peak, plan_peak(a->job->plan), change),
                t->time_factor, t->peak_op, t->peak_tensors);
    }
    print_left_out(a, out);
}
