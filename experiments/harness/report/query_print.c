/* Answers to questions about plans, as text and as CSV. */
#include <math.h>

#include "analysis/plan_query.h"
#include "analysis/plan_summary.h"
#include "base/units.h"
#include "report/figures_text.h"

static void print_static(const struct answer *a, FILE *out)
{
    char fixed[UNIT_TEXT], baseline[UNIT_TEXT];
    fprintf(
        out,
        "peak = arena + %s static; shares are of the live peak of store_all, %s, relus as written, outputs kept\n\n",
        bytes_text((double)plan_static(a->job->plan), fixed), bytes_text((double)a->baseline, baseline));
}

/* The plans, and what was not planned. */
static void print_plans(const struct answer *a, const char *keys, FILE *out)
{
    const struct policy_grid *g = &a->grid;
    figures_table(json_object_get(a->figures, "plans"), keys, 0, false, out);
    if (g->refusals || g->left_out) fputc('\n', out);
    if (g->left_out)
        fprintf(out, "of a front of %d points: %d evenly spread, and those with the memory of another plan\n",
                g->points, g->points - g->left_out);
    for (int i = 0; i < g->refusals; i++)
        fprintf(out, "left out: %s, %s\n", g->refusal[i].policy->name, g->refusal[i].why);
}

void print_pareto(const struct answer *a, FILE *out)
{
    spec_print_head(a->job->spec, out);
    fprintf(out, "%zu plans; * no other is better in peak or time and as good in the other\n",
            json_array_size(json_object_get(a->figures, "plans")));
    print_static(a, out);
    print_plans(a, "pareto policy settings peak_bytes arena_bytes share_percent slowdown gap_percent", out);
}

void print_pareto_csv(const struct answer *a, FILE *out)
{
    figures_csv(json_object_get(a->figures, "plans"),
                "policy settings own static_bytes live_peak_bytes arena_bytes peak_bytes share_percent slowdown "
                "gap_percent pareto peak_op",
                out);
}

static void print_batch_notes(const struct answer *a, FILE *out)
{
    const struct dataset *data = a->job->dataset;
    const struct batch_row *own = &a->batches.row[0];
    char peak[UNIT_TEXT];
    if (own->fits)
        fprintf(out, "\nat batch %lld the spec's peak of %s is set by %s, with\n  %s\n", (long long)own->fits,
                bytes_text((double)own->at.plan.peak, peak), own->at.peak_op, own->at.peak_tensors);
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
        fprintf(out, "note: slowdowns are by flops: the measured costs are those of batch %lld\n",
                (long long)a->job->spec->batch);
    fprintf(out, "note: the process and its libraries need memory besides\n");
}

void print_max_batch(const struct answer *a, FILE *out)
{
    char memory[UNIT_TEXT];
    spec_print_head(a->job->spec, out);
    fprintf(out, "the largest batch whose planned peak, static and arena, is at most %s",
            exact_bytes_text((size_t)a->query->memory, memory));
    if (isfinite(a->query->slowdown)) fprintf(out, ", with a slowdown of at most %g", a->query->slowdown);
    fprintf(out, "\n\n");
    figures_table(json_object_get(a->figures, "policies"),
                  "policy settings largest_batch peak_bytes arena_bytes slowdown stopped_by", 2, false, out);
    print_batch_notes(a, out);
}

void print_min_memory(const struct answer *a, FILE *out)
{
    spec_print_head(a->job->spec, out);
    fprintf(out, "the least memory with a slowdown of at most %g, by policy\n", a->query->slowdown);
    print_static(a, out);
    print_plans(a, "pareto policy settings peak_bytes arena_bytes share_percent slowdown gap_percent peak_op", out);
}

/* What sets the peak, and what would change it. */
void print_explain(const struct answer *a, FILE *out)
{
    const struct plan *plan = a->job->plan;
    const struct bounds *bounds = &a->job->bounds;
    char peak[UNIT_TEXT], fixed[UNIT_TEXT], arena[UNIT_TEXT], live[UNIT_TEXT], floor[UNIT_TEXT], op[128];
    spec_print_head(a->job->spec, out);
    fprintf(out, "policy %s takes %s: %s that no policy changes (parameters, gradients, optimizer, inputs), ",
            a->job->spec->policy->name, bytes_text((double)plan_peak(plan), peak),
            bytes_text((double)plan_static(plan), fixed));
    fprintf(out, "and an arena of %s for what is live, at most %s at op %d, %s:\n  %s\n",
            bytes_text((double)plan->arena_bytes, arena), bytes_text((double)plan->live_peak, live), plan->peak_op,
            plan_op_text(plan, plan->peak_op, op), plan_peak_text(plan, a->grid.region));
    fprintf(out, "no schedule has less than %s live, which %s requires alone\n",
            bytes_text((double)bounds->memory, floor), a->job->graph->node[bounds->memory_node].name);
    fprintf(out, "\nof each policy the plan of least memory, and the fastest within this peak;\n"
                 "* no plan of any policy is better in peak or time and as good in the other\n\n");
    print_plans(a, "pareto policy settings peak_bytes change_percent slowdown peak_op largest_tensors", out);
}
