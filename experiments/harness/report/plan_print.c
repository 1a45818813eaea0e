/* A plan as text: tables for people, in the words of the README. */
#include <stdlib.h>
#include <string.h>

#include "analysis/plan_summary.h"
#include "base/text.h"
#include "base/units.h"
#include "console/columns.h"
#include "result/provenance.h"
#include "search/optimum.h"

enum { TENSORS_SHOWN = 8 };

char *plan_bytes_text(const struct network *network, size_t bytes, char *text)
{
    if (network->backend) return bytes_text((double)bytes, text);
    snprintf(text, UNIT_TEXT, "%zu B", bytes);
    return text;
}

char *plan_flops_text(const struct network *network, double flops, char *text)
{
    if (network->backend) return flops_text(flops, text);
    snprintf(text, UNIT_TEXT, "%.15g", flops);
    return text;
}

static const char *shape_of(const struct plan_summary *o, int value, char *text)
{
    return shape_print(&o->job->graph->value[value].shape, text);
}

/* A node's name without that of its group, which stands before it. */
static const char *within(const char *group, const char *name)
{
    const size_t length = group ? strlen(group) : 0;
    return length && strncmp(name, group, length) == 0 && name[length] == '.' ? name + length + 1 : name;
}

static char *stage_name(const struct plan_summary *o, const struct stage_row *row, char name[128])
{
    const struct node *node = o->job->graph->node;
    snprintf(name, 128, "%s%s%s%s%s", row->group ? row->group : "", row->group ? ": " : "",
             within(row->group, node[row->range.from].name), row->nodes > 1 ? " .. " : "",
             row->nodes > 1 ? within(row->group, node[row->range.to - 1].name) : "");
    return name;
}

static void print_stages(const struct plan_summary *o, FILE *out)
{
    const struct network *network = o->job->network;
    const struct column column[] = {
        {"stage", .least = 24},
        {network->backend ? "output shape" : "gradient", .right = !network->backend, .rank = 2},
        {"output", .right = true},
        {"saved", .right = true},
        {"scratch", .right = true, .rank = 4},
        {"forward", .right = true, .rank = 1},
        {"backward", .right = true, .rank = 3},
        {"action"}};
    struct columns table;
    columns_begin(&table, column, sizeof column / sizeof *column);
    for (int s = 0; s < o->stages; s++) {
        const struct stage_row *row = &o->stage[s];
        char name[128], shape[96], bytes[UNIT_TEXT], flops[UNIT_TEXT], action[64];
        columns_cell(&table, "%s", stage_name(o, row, name));
        if (network->backend)
            columns_cell(&table, "%s", shape_of(o, row->output, shape));
        else
            columns_cell(&table, "%zu B", network->graph->value[row->output].gradient_bytes);
        columns_cell(&table, "%s", plan_bytes_text(network, row->output_bytes, bytes));
        columns_cell(&table, "%s", plan_bytes_text(network, row->saved_bytes, bytes));
        columns_cell(&table, "%s", plan_bytes_text(network, row->scratch_bytes, bytes));
        columns_cell(&table, "%s", plan_flops_text(network, row->forward_flops, flops));
        columns_cell(&table, "%s", plan_flops_text(network, row->backward_flops, flops));
        columns_cell(&table, "%s", stage_action(row, action));
    }
    columns_print(&table, out);
}

static void print_bytes(const struct plan_summary *o, FILE *out, const char *name, size_t bytes, const char *note)
{
    char text[UNIT_TEXT];
    fprintf(out, "  %-32s %12s%s%s\n", name, plan_bytes_text(o->job->network, bytes, text), *note ? "  " : "", note);
}

static void print_totals(const struct plan_summary *o, FILE *out)
{
    const struct plan *plan = o->job->plan;
    char op[128], note[192];
    fprintf(out, "\nmemory\n");
    for (int i = 0; i < STATICS; i++)
        if (plan->static_bytes[i]) print_bytes(o, out, static_names[i], plan->static_bytes[i], "");
    print_bytes(o, out, "static", plan_static(plan), "live for the whole run");
    snprintf(note, sizeof note, "at op %d, %s", plan->peak_op, plan_op_text(plan, plan->peak_op, op));
    for (int i = 0; i < CATEGORIES; i++)
        if (plan->peak_by_category[i]) print_bytes(o, out, category_names[i], plan->peak_by_category[i], "at the peak");
    print_bytes(o, out, "live peak", plan->live_peak, note);
    snprintf(note, sizeof note, "%.3f of the live peak",
             (double)plan->arena_bytes / (double)(plan->live_peak + !plan->live_peak));
    print_bytes(o, out, "arena", plan->arena_bytes, note);
    print_bytes(o, out, "peak = static + arena", plan_peak(plan), "");
    if (o->job->backend && o->job->backend->packing)
        print_bytes(o, out, "library's own, at most", o->job->backend->packing,
                    "packed operands within a product; in no figure above");
    print_bytes(o, out, "live peak of store_all", o->store_all_live, "the same kernels, everything stored");
    fprintf(out, "  sampled as a line-by-line profiler does, which never sees the peak:\n");
    print_bytes(o, out, "  after the forward", plan_sampled_forward(plan), "");
    print_bytes(o, out, "  after the gradients", plan_sampled_gradients(plan), "");
}

void plan_print_peak(const struct plan *plan, const struct tensor_row *tensor, int tensors, FILE *out)
{
    static const struct column column[] = {{"", .least = 32}, {"", .right = true}, {""}};
    const int shown = tensors < TENSORS_SHOWN ? tensors : TENSORS_SHOWN;
    struct columns table;
    char text[128], bytes[UNIT_TEXT];
    size_t rest = 0;
    fprintf(out, "\nthe peak is set by op %d, %s; alive there:\n", plan->peak_op,
            plan_op_text(plan, plan->peak_op, text));
    columns_begin(&table, column, sizeof column / sizeof *column);
    table.indent = 2;
    for (int i = 0; i < shown; i++) {
        columns_cell(&table, "%s", plan_buffer_text(plan, tensor[i].buffer, text));
        columns_cell(&table, "%s", plan_bytes_text(plan->network, tensor[i].bytes, bytes));
        columns_cell(&table, "%s", category_names[plan->lowered.buffer[tensor[i].buffer].category]);
    }
    for (int i = shown; i < tensors; i++) rest += tensor[i].bytes;
    if (shown < tensors) {
        columns_cell(&table, "%d more", tensors - shown);
        columns_cell(&table, "%s", plan_bytes_text(plan->network, rest, bytes));
    }
    columns_print(&table, out);
}

/* Only where costs were measured; and where that was. */
static void print_prediction(const struct plan_summary *o, FILE *out)
{
    const struct costs *c = o->job->costs;
    char all[UNIT_TEXT], nodes[UNIT_TEXT], digest[33];
    if (!c) return;
    const char *where = costs_where(c, o->job->graph->region);
    fprintf(out, "  a step is predicted to take %s, its nodes %s of it\n",
            duration_text((uint64_t)costs_predict(c, o->job->plan), all),
            duration_text((uint64_t)o->job->plan->time, nodes));
    fprintf(out, "  costs of %s (%.16s): %s%s\n", c->path, digest_print(c->digest, digest), where ? where : "",
            costs_here(c, o->job->backend) ? "" : "; not as here: the prediction is theirs");
}

static void print_time(const struct plan_summary *o, FILE *out)
{
    const struct plan *plan = o->job->plan;
    char a[UNIT_TEXT], b[UNIT_TEXT], c[UNIT_TEXT], d[UNIT_TEXT], e[UNIT_TEXT];
    fprintf(out, "\ntime\n  forward %s, backward %s, recompute %s in %d recompute%s (%d dead and left out)\n",
            plan_flops_text(plan->network, plan->forward_flops, a),
            plan_flops_text(plan->network, plan->backward_flops, b),
            plan_flops_text(plan->network, plan->recompute_flops, c), plan->recomputations,
            text_plural(plan->recomputations), plan->lowered.dropped);
    duration_text(o->job->planning_ns, e);
    if (o->job->backend)
        fprintf(out, "  slowdown %.3f by %s; kernels prepared in %s, planned in %s\n", plan->slowdown,
                o->job->costs ? "measured costs" : "flops", duration_text(o->job->preparing_ns, d), e);
    else
        fprintf(out, "  slowdown %.4f, %.15g in all; planned in %s\n", plan->slowdown, plan->time, e);
    print_prediction(o, out);
}

/* Which of the bounds is the best one. */
static const char *bound_name(const struct bounds *bounds)
{
    if (bounds->best <= bounds->floor) return "every pass once";
    return bounds->knapsack >= bounds->binomial ? "knapsack" : "binomial";
}

static void print_bound(FILE *out, const char *name, const struct bounds *bounds, double time)
{
    char above[64];
    double gap = bounds_gap(bounds, time);
    snprintf(above, sizeof above, "this plan is %.1f %% above", gap);
    fprintf(out, "  %-32s %12.3f  %s; %s\n", name, bounds_slowdown(bounds, bounds->best), bound_name(bounds),
            gap > 0 ? above : "this plan meets it");
}

static void print_placing(const struct plan_summary *o, FILE *out)
{
    const struct policy_notes *notes = &o->job->notes;
    char a[UNIT_TEXT], b[UNIT_TEXT];
    if (notes->tries > 1)
        fprintf(out, "  %d schedules were placed until an arena kept the budget, which adds %.4f to the slowdown\n",
                notes->tries, bounds_slowdown(&o->job->bounds, notes->lost));
    if (notes->tries && notes->live_peak != o->job->plan->live_peak)
        fprintf(out, "  the policy promised a live peak of %s; it is %s\n",
                plan_bytes_text(o->job->network, notes->live_peak, a),
                plan_bytes_text(o->job->network, o->job->plan->live_peak, b));
}

/* What no schedule can beat, how far above it this plan is, and what placing it cost. */
static void print_bounds(const struct plan_summary *o, FILE *out)
{
    const struct job *job = o->job;
    const struct bounds *own = &job->bounds, *budget = &job->budget_bounds;
    char name[64], bytes[UNIT_TEXT], note[192], above[64] = "this plan meets it";
    if (job->plan->live_peak > own->memory)
        snprintf(above, sizeof above, "this plan takes %.2f times that",
                 (double)job->plan->live_peak / (double)own->memory);
    fprintf(out, "\nlower bounds on every schedule\n");
    snprintf(note, sizeof note, "%s alone; %s", job->graph->node[own->memory_node].name, above);
    print_bytes(o, out, "live peak", own->memory, note);
    print_bound(out, "slowdown at this live peak", own, job->plan->time);
    snprintf(name, sizeof name, "slowdown, %s arena", plan_bytes_text(job->network, budget->budget, bytes));
    if (budget->budget) print_bound(out, name, budget, job->plan->time);
    print_placing(o, out);
    if (*job->notes.found) fprintf(out, "\npolicy %s: %s\n", job->spec->policy->name, job->notes.found);
}

/* What the planner chose, where it had the choice; and which relus come after their pools. */
static void print_relus(const struct plan_summary *o, FILE *out)
{
    const struct network *network = o->job->plan->network;
    int after = 0;
    for (int i = 0; i < network->graph->nodes; i++) {
        const struct node *node = &network->graph->node[i];
        if (node->relu_of_input) fprintf(out, "%s%s", after++ ? ", " : "relus taken after their pools: ", node->name);
    }
    if (after) fprintf(out, "\n");
    for (int bits = 0; bits < 2; bits++) {
        int printed = 0;
        for (int i = 0; i < network->graph->nodes; i++)
            if (network_relu_open(network, i) && bits == (network->binding[i].footprint.saved > 0))
                fprintf(out, "%s%s",
                        printed++ ? ", "
                        : bits    ? "relus keep bits: "
                                  : "relus keep outputs: ",
                        network->graph->node[i].name);
        if (printed) fprintf(out, "\n");
    }
}

/* What else could be done, and what of it this machine holds. A network without kernels is not placed. */
static void print_choices(const struct plan_summary *o, FILE *out)
{
    const bool placed = o->job->backend;
    const struct column column[] = {{"policy"},
                                    {"live peak", .right = true},
                                    {placed ? "peak" : "time", .right = true},
                                    {"slowdown", .right = true},
                                    {""}};
    struct columns table;
    if (o->choices < 2) return;
    fprintf(out, "\npolicies that need nothing set\n");
    columns_begin(&table, column, sizeof column / sizeof *column);
    table.indent = 2;
    for (int i = 0; i < o->choices; i++) {
        const struct choice_row *c = &o->choice[i];
        char bytes[UNIT_TEXT];
        columns_cell(&table, "%s", c->policy->name);
        columns_cell(&table, "%s", plan_bytes_text(o->job->network, c->live_peak, bytes));
        if (placed)
            columns_cell(&table, "%s", bytes_text((double)c->peak, bytes));
        else
            columns_cell(&table, "%.15g", c->time);
        columns_cell(&table, "%.3f", c->slowdown);
        if (placed)
            columns_cell(&table, "%s", c->peak <= o->machine.bytes ? "" : "does not fit this machine");
        else
            columns_cell(&table, "%.2f %% above the bound", c->gap);
    }
    columns_print(&table, out);
    if (o->optimum) fprintf(out, "  the front of optimal has %d points\n", o->optimum->front.count);
}

static void print_notes(const struct plan_summary *o, FILE *out)
{
    char a[UNIT_TEXT], b[UNIT_TEXT];
    bool fits = o->needed <= o->machine.bytes;
    if (o->job->backend)
        fprintf(out, "\n%s: needs %s of the %s that %s leaves\n",
                fits ? "fits this machine" : "does not fit this machine", bytes_text((double)o->needed, a),
                bytes_text((double)o->machine.bytes, b), o->machine.limit);
    for (int i = 0; i < o->reasons; i++) fprintf(out, "note: %s\n", o->reason[i]);
    for (int i = 0; i < o->slow; i++)
        fprintf(out, "warning: %s runs on a reference implementation, which is slow: %s\n",
                o->job->graph->node[o->slow_node[i]].name,
                o->job->network->binding[o->slow_node[i]].footprint.implementation);
}

void spec_print_head(const struct spec *spec, FILE *out)
{
    const bool titled = strcmp(spec->title, spec->name) != 0;
    fprintf(out, "%s%s%s\n", spec->name, titled ? ": " : "", titled ? spec->title : "");
    for (int i = 0; i < spec->overrides; i++) fprintf(out, "override %s\n", spec->override[i]);
}

static void print_head(const struct plan_summary *o, FILE *out)
{
    const struct spec *spec = o->job->spec;
    const struct backend *backend = o->job->backend;
    char shape[96];
    spec_print_head(spec, out);
    if (!backend) {
        fprintf(out, "policy %s on a chain of %d stages; times are in the file's unit\n\n", spec->policy->name,
                o->stages);
        return;
    }
    fprintf(out, "policy %s on %d nodes in %d stages; batch %lld of %s; backend %s, %s%s%s, %s, %lld thread%s\n\n",
            spec->policy->name, o->job->graph->nodes, o->stages, (long long)spec->batch, shape_of(o, 0, shape),
            spec->backend, backend->device ? backend->device : "", backend->device ? ", " : "",
            backend->libraries ? backend->libraries : "no library", backend->isa ? backend->isa : "any isa",
            (long long)backend->options.threads, text_plural(backend->options.threads));
}

void plan_summary_print(const struct plan_summary *overview, FILE *out)
{
    print_head(overview, out);
    print_stages(overview, out);
    print_totals(overview, out);
    plan_print_peak(overview->job->plan, overview->tensor, overview->tensors, out);
    print_time(overview, out);
    print_bounds(overview, out);
    fprintf(out, "\nword %s\n", overview->job->plan->schedule);
    print_relus(overview, out);
    print_choices(overview, out);
    print_notes(overview, out);
}

void plan_print_ops(const struct plan *plan, FILE *out)
{
    static const struct column column[] = {
        {"number", .right = true}, {"live", .right = true}, {"op", .least = 24}, {""}, {""}};
    struct columns table;
    fputc('\n', out);
    columns_begin(&table, column, sizeof column / sizeof *column);
    for (int i = 0; i < plan->lowered.ops; i++) {
        char live[UNIT_TEXT], op[128];
        columns_cell(&table, "%d", i);
        columns_cell(&table, "%s", plan_bytes_text(plan->network, plan->live[i], live));
        columns_cell(&table, "%s", plan_op_text(plan, i, op));
        columns_cell(&table, "%s", plan->lowered.op[i].save ? "saving" : "");
        columns_cell(&table, "%s", i == plan->peak_op ? "<- peak" : "");
    }
    columns_print(&table, out);
}

static void pair_row(struct columns *table, const char *name, const char *a, const char *b)
{
    columns_cell(table, "%s", name);
    columns_cell(table, "%s", a);
    columns_cell(table, "%s", b);
}

void plan_summary_print_pair(const struct plan_summary *baseline, const struct plan_summary *variant, FILE *out)
{
    static const struct column column[] = {{"planned"}, {"baseline", .least = 16}, {"variant", .least = 16}};
    const struct plan_summary *side[2] = {baseline, variant};
    struct columns table;
    char fixed[2][UNIT_TEXT], live[2][UNIT_TEXT], arena[2][UNIT_TEXT], peak[2][UNIT_TEXT], op[2][128],
        step[2][UNIT_TEXT], factor[2][UNIT_TEXT], gap[2][UNIT_TEXT];
    for (int i = 0; i < 2; i++) {
        const struct plan *plan = side[i]->job->plan;
        bytes_text((double)plan_static(plan), fixed[i]);
        bytes_text((double)plan->live_peak, live[i]);
        bytes_text((double)plan->arena_bytes, arena[i]);
        bytes_text((double)plan_peak(plan), peak[i]);
        plan_op_text(plan, plan->peak_op, op[i]);
        snprintf(factor[i], sizeof factor[i], "%.3f", plan->slowdown);
        if (side[i]->job->costs) duration_text((uint64_t)costs_predict(side[i]->job->costs, plan), step[i]);
        snprintf(gap[i], sizeof gap[i], "%.1f %%", bounds_gap(&side[i]->job->bounds, plan->time));
    }
    columns_begin(&table, column, sizeof column / sizeof *column);
    table.indent = 2;
    pair_row(&table, "policy", baseline->job->spec->policy->name, variant->job->spec->policy->name);
    pair_row(&table, "static", fixed[0], fixed[1]);
    pair_row(&table, "live peak", live[0], live[1]);
    pair_row(&table, "  set by", op[0], op[1]);
    pair_row(&table, "arena", arena[0], arena[1]);
    pair_row(&table, "peak = static + arena", peak[0], peak[1]);
    pair_row(&table, "slowdown", factor[0], factor[1]);
    if (baseline->job->costs) pair_row(&table, "  a step, predicted", step[0], step[1]);
    pair_row(&table, "  above the lower bound", gap[0], gap[1]);
    columns_print(&table, out);
}
