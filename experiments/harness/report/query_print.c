/* Answers as text, for people. */
#include <math.h>
#include <string.h>

#include "analysis/plan_query.h"
#include "analysis/plan_summary.h"
#include "base/units.h"
#include "console/columns.h"

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

/* peaks: with what sets each peak. */
static void print_trials(const struct answer *a, bool peaks, FILE *out)
{
    static const struct column column[] = {{"  policy"},
                                           {"settings", .least = 16},
                                           {"peak", .right = true},
                                           {"arena", .right = true, .rank = 2},
                                           {"share", .right = true, .rank = 4},
                                           {"slowdown", .right = true},
                                           {"above bound", .right = true, .rank = 1},
                                           {"peak set by", .rank = 3}};
    struct columns table;
    fputc('\n', out);
    columns_begin(&table, column, sizeof column / sizeof *column - !peaks);
    for (int i = 0; i < a->rows; i++) {
        const struct trial *t = a->row[i];
        char bytes[UNIT_TEXT];
        columns_cell(&table, "%c %s", t->best ? '*' : ' ', t->policy->name);
        columns_cell(&table, "%s", t->settings);
        columns_cell(&table, "%s", bytes_text((double)t->peak, bytes));
        columns_cell(&table, "%s", bytes_text((double)t->arena, bytes));
        columns_cell(&table, "%.1f %%", share(a, t));
        columns_cell(&table, "%.4f", t->slowdown);
        columns_cell(&table, "%.1f %%", t->gap);
        if (peaks) columns_cell(&table, "%s", t->peak_op);
    }
    columns_print(&table, out);
}

static void print_left_out(const struct answer *a, FILE *out)
{
    const struct policy_grid *t = &a->tries;
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
    print_trials(a, false, out);
    print_left_out(a, out);
}

void print_pareto_csv(const struct answer *a, FILE *out)
{
    fputs("policy,settings,own,static_bytes,live_peak_bytes,arena_bytes,peak_bytes,share_percent,slowdown,"
          "gap_percent,pareto,peak_op\n",
          out);
    for (int i = 0; i < a->rows; i++) {
        const struct trial *t = a->row[i];
        fprintf(out, "%s,%s,%d,%zu,%zu,%zu,%zu,%.9g,%.9g,%.9g,%d,%s\n", t->policy->name, t->settings, t->own,
                t->peak - t->arena, t->live_peak, t->arena, t->peak, share(a, t), t->slowdown, t->gap, t->best,
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
        snprintf(text, 128, "batch %lld: %s too much", (long long)row->fails,
                 bytes_text((double)(row->next - a->query->memory), over));
    else
        snprintf(text, 128, "batch %lld: %s", (long long)row->fails,
                 row->why == batch_slow ? "slower than that" : "refused");
    return text;
}

static void add_batch(const struct answer *a, const struct batch_row *row, struct columns *table)
{
    char bytes[UNIT_TEXT], next[128];
    columns_cell(table, "%s", row->policy->name);
    columns_cell(table, "%s", row->fits || row->own ? row->at.settings : "");
    if (row->fits) {
        columns_cell(table, "%lld", (long long)row->fits);
        columns_cell(table, "%s", bytes_text((double)row->at.peak, bytes));
        columns_cell(table, "%s", bytes_text((double)row->at.arena, bytes));
        columns_cell(table, "%.4f", row->at.slowdown);
    } else {
        columns_cell(table, "none");
        for (int i = 0; i < 3; i++) columns_cell(table, "%s", "");
    }
    columns_cell(table, "%s", !row->fits && row->why ? row->why : next_text(a, row, next));
}

static void print_batches(const struct answer *a, FILE *out)
{
    static const struct column column[] = {{"policy"},
                                           {"settings", .least = 20},
                                           {"batch", .right = true},
                                           {"peak", .right = true},
                                           {"arena", .right = true, .rank = 2},
                                           {"slowdown", .right = true, .rank = 1},
                                           {"what stops it", .least = 26}};
    struct columns table;
    columns_begin(&table, column, sizeof column / sizeof *column);
    table.indent = 2;
    for (int i = 0; i < a->batches.rows; i++) add_batch(a, &a->batches.row[i], &table);
    columns_print(&table, out);
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
    if (isfinite(a->query->slowdown)) fprintf(out, ", with a slowdown of at most %g", a->query->slowdown);
    fprintf(out, "\n\n");
    print_batches(a, out);
    print_batch_notes(a, out);
}

/* ---- the least memory ---- */

void print_min_memory(const struct answer *a, FILE *out)
{
    spec_print_head(a->job->spec, out);
    fprintf(out, "the least memory with a slowdown of at most %g, by policy\n", a->query->slowdown);
    print_static(a, out);
    print_trials(a, true, out);
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
    fprintf(out, "policy %s takes %s: %s that no policy changes (parameters, gradients, optimizer, inputs), ",
            a->job->spec->policy->name, bytes_text((double)plan_peak(plan), peak),
            bytes_text((double)plan_static(plan), fixed));
    fprintf(out, "and an arena of %s for what is live, at most %s at op %d, %s:\n",
            bytes_text((double)plan->arena_bytes, arena), bytes_text((double)plan->live_peak, live), plan->peak_op,
            plan_op_text(plan, plan->peak_op, op));
    for (int i = 0; i < a->tries.trials; i++)
        if (a->tries.trial[i].own) fprintf(out, "  %s\n", a->tries.trial[i].peak_tensors);
    fprintf(out, "no schedule has less than %s live, which %s needs alone\n", bytes_text((double)bounds->memory, floor),
            a->job->graph->node[bounds->memory_node].name);
}

static void print_changes(const struct answer *a, FILE *out)
{
    static const struct column column[] = {{"  policy"},
                                           {"settings", .least = 22},
                                           {"peak", .right = true},
                                           {"change", .right = true, .rank = 1},
                                           {"slowdown", .right = true},
                                           {"peak set by", .least = 14},
                                           {"largest tensors there", .rank = 2}};
    struct columns table;
    columns_begin(&table, column, sizeof column / sizeof *column);
    for (int i = 0; i < a->rows; i++) {
        const struct trial *t = a->row[i];
        char text[UNIT_TEXT];
        columns_cell(&table, "%c %s", t->best ? '*' : ' ', t->policy->name);
        columns_cell(&table, "%s", t->settings);
        columns_cell(&table, "%s", bytes_text((double)t->peak, text));
        columns_cell(&table, "%s", change_text(t->peak, plan_peak(a->job->plan), text));
        columns_cell(&table, "%.4f", t->slowdown);
        columns_cell(&table, "%s", t->peak_op);
        columns_cell(&table, "%s", t->peak_tensors);
    }
    columns_print(&table, out);
}

void print_explain(const struct answer *a, FILE *out)
{
    spec_print_head(a->job->spec, out);
    print_why(a, out);
    fprintf(out, "\nwhat each policy would change: the least it can do with, and its fastest within this peak;\n"
                 "* no plan of any policy is better in peak or time and as good in the other\n\n");
    print_changes(a, out);
    print_left_out(a, out);
}
