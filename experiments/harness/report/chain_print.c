/* Times are in the unit of the file; bytes are printed to the last one, so that they can be asked for as a budget. */
#include "analysis/chain_plan.h"
#include "base/text.h"
#include "base/units.h"
#include "console/columns.h"
#include "report/plan_json.h"

/* Recomputations of each stage, as a row that says what is done with it. */
static struct stage_row stage_row(const struct plan *plan, int stage)
{
    struct stage_row row = {.nodes = 1};
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        row.recomputations += op->kind == OP_FORWARD && op->node == stage && op->recompute;
    }
    row.recomputed = row.recomputations > 0;
    return row;
}

static int64_t scratch(const struct abstract_stage *s)
{
    return s->forward_scratch > s->backward_scratch ? s->forward_scratch : s->backward_scratch;
}

/* What certifies the plan: bounds within its budget, where it has one, else at its live peak. */
static const struct bounds *certificate(const struct chain_plan *c)
{
    return c->budget_bounds.budget ? &c->budget_bounds : &c->bounds;
}

/* ---- text ---- */

static void print_stages(const struct chain_plan *c, FILE *out)
{
    static const struct column column[] = {{"stage", .least = 16},
                                           {"output, B", .right = true},
                                           {"saved, B", .right = true},
                                           {"gradient, B", .right = true, .rank = 3},
                                           {"scratch, B", .right = true, .rank = 4},
                                           {"forward, units", .right = true, .rank = 1},
                                           {"backward, units", .right = true, .rank = 2},
                                           {"action"}};
    struct columns table;
    columns_begin(&table, column, sizeof column / sizeof *column);
    for (int i = 0; i < c->file->stages; i++) {
        const struct abstract_stage *s = &c->file->stage[i];
        const struct stage_row row = stage_row(c->plan, i);
        char action[64];
        columns_cell(&table, "%s", s->name);
        columns_cell(&table, "%lld", (long long)s->output);
        columns_cell(&table, "%lld", (long long)s->saved);
        columns_cell(&table, "%lld", (long long)s->gradient);
        columns_cell(&table, "%lld", (long long)scratch(s));
        columns_cell(&table, "%.10g", s->forward);
        columns_cell(&table, "%.10g", s->backward);
        columns_cell(&table, "%s", stage_action(&row, action));
    }
    columns_print(&table, out);
}

static void print_plan(const struct chain_plan *c, FILE *out)
{
    const struct plan *plan = c->plan;
    const struct bounds *bounds = certificate(c);
    char planned[UNIT_TEXT];
    print_stages(c, out);
    fprintf(out, "\nmemory\n");
    for (int i = 0; i < CATEGORIES; i++)
        if (plan->peak_by_category[i])
            fprintf(out, "  %-32s %16zu B  at the peak\n", category_names[i], plan->peak_by_category[i]);
    fprintf(out, "  %-32s %16zu B\n", "live peak", plan->live_peak);
    fprintf(out, "  %-32s %16zu B\n", "live peak of store_all", c->store_all_live);
    fprintf(out, "  %-32s %16zu B  of any schedule\n", "lower bound", bounds->memory);
    plan_print_peak(plan, c->tensor, c->tensors, out);
    fprintf(out, "\ntime\n  %-32s %16.15g units  of %d recompute%s (%d dead and left out)\n", "recompute",
            plan->time - bounds->floor, plan->recomputations, text_plural(plan->recomputations), plan->lowered.dropped);
    fprintf(out, "  %-32s %16.15g units  %.4f of every pass once; planned in %s\n", "all", plan->time, plan->slowdown,
            duration_text(c->planning_ns, planned));
    fprintf(out, "  %-32s %16.15g units  of any schedule with %zu B; this one is %.2f %% above\n", "lower bound",
            bounds->best, bounds->budget, bounds_gap(bounds, plan->time));
    fprintf(out, "\nword %s\n", plan->schedule);
}

static void print_choices(const struct chain_plan *c, FILE *out)
{
    static const struct column column[] = {{"policy", .least = 16},
                                           {"live peak, B", .right = true},
                                           {"time, units", .right = true},
                                           {"slowdown", .right = true, .rank = 1},
                                           {"recomputations", .right = true, .rank = 2},
                                           {"lower bound, units", .right = true, .rank = 3},
                                           {"above it", .right = true}};
    struct columns table;
    char planned[UNIT_TEXT];
    columns_begin(&table, column, sizeof column / sizeof *column);
    for (int i = 0; i < c->choices; i++) {
        const struct chain_choice *h = &c->choice[i];
        columns_cell(&table, "%s", h->policy);
        columns_cell(&table, "%zu", h->live_peak);
        columns_cell(&table, "%.15g", h->time);
        columns_cell(&table, "%.3f", h->slowdown);
        columns_cell(&table, "%d", h->recomputations);
        columns_cell(&table, "%.15g", h->bounds.best);
        columns_cell(&table, "%.2f %%", bounds_gap(&h->bounds, h->time));
    }
    columns_print(&table, out);
    for (int i = 0; i < c->refusals; i++)
        fprintf(out, "left out: %s, %s\n", c->refusal[i].policy->name, c->refusal[i].why);
    fprintf(out, "the front of optimal has %d points; planned in %s\n", c->optimum->front.count,
            duration_text(c->planning_ns, planned));
}

void chain_plan_print(const struct chain_plan *plan, bool ops, FILE *out)
{
    const struct chain_file *file = plan->file;
    fprintf(out, "%s%s%s\n", file->name, file->title ? ": " : "", file->title ? file->title : "");
    for (int i = 0; i < file->overrides; i++) fprintf(out, "override %s\n", file->override[i]);
    fprintf(out, "policy %s on a chain of %d stages; times are in the file's unit\n\n",
            file->policy ? file->policy->name : "not set, so all", file->stages);
    (file->policy ? print_plan : print_choices)(plan, out);
    if (ops && plan->plan) plan_print_ops(plan->plan, out);
}

/* ---- JSON ---- */

static json_t *integer(size_t value) { return json_integer((json_int_t)value); }

static void add_bound(const struct bounds *bounds, double time, json_t *all)
{
    json_object_set_new(all, "lower_bound", json_real(bounds->best));
    json_object_set_new(all, "gap_percent", json_real(bounds_gap(bounds, time)));
}

static json_t *stages_json(const struct chain_plan *c)
{
    json_t *stages = json_array();
    for (int i = 0; i < c->file->stages; i++) {
        const struct abstract_stage *s = &c->file->stage[i];
        const struct stage_row row = stage_row(c->plan, i);
        char action[64];
        json_t *one = json_object();
        json_object_set_new(one, "first", json_string(s->name));
        json_object_set_new(one, "last", json_string(s->name));
        json_object_set_new(one, "output_bytes", json_integer(s->output));
        json_object_set_new(one, "saved_bytes", json_integer(s->saved));
        json_object_set_new(one, "gradient_bytes", json_integer(s->gradient));
        json_object_set_new(one, "scratch_bytes", json_integer(scratch(s)));
        json_object_set_new(one, "forward", json_real(s->forward));
        json_object_set_new(one, "backward", json_real(s->backward));
        json_object_set_new(one, "recomputations", json_integer(row.recomputations));
        json_object_set_new(one, "action", json_string(stage_action(&row, action)));
        json_array_append_new(stages, one);
    }
    return stages;
}

static void plan_json(const struct chain_plan *c, bool ops, json_t *all)
{
    json_object_set_new(all, "policy", json_string(c->file->policy->name));
    plan_figures_json(c->plan, all);
    add_bound(certificate(c), c->plan->time, all);
    json_object_set_new(all, "bounds", plan_bounds_json(&c->bounds, c->plan));
    json_object_set_new(all, "budget_bounds",
                        c->budget_bounds.budget ? plan_bounds_json(&c->budget_bounds, c->plan) : json_null());
    json_object_set_new(all, "peak", plan_peak_json(c->plan, c->tensor, c->tensors));
    json_object_set_new(all, "table", stages_json(c));
    if (ops) json_object_set_new(all, "ops", plan_ops_json(c->plan));
}

static void choices_json(const struct chain_plan *c, json_t *all)
{
    const struct front *front = &c->optimum->front;
    json_t *choices = json_array(), *points = json_array(), *left_out = json_array();
    for (int i = 0; i < c->choices; i++) {
        const struct chain_choice *h = &c->choice[i];
        json_t *one = json_object();
        json_object_set_new(one, "policy", json_string(h->policy));
        json_object_set_new(one, "live_peak_bytes", integer(h->live_peak));
        json_object_set_new(one, "peak_bytes", integer(h->live_peak));
        json_object_set_new(one, "time", json_real(h->time));
        json_object_set_new(one, "slowdown", json_real(h->slowdown));
        json_object_set_new(one, "recomputations", json_integer(h->recomputations));
        add_bound(&h->bounds, h->time, one);
        json_array_append_new(choices, one);
    }
    for (int i = 0; i < front->count; i++)
        json_array_append_new(points, json_pack("{s:I, s:f}", "peak_bytes", (json_int_t)front->point[i].peak, "time",
                                                front->point[i].time));
    for (int i = 0; i < c->refusals; i++)
        json_array_append_new(left_out,
                              json_pack("{s:s, s:s}", "policy", c->refusal[i].policy->name, "why", c->refusal[i].why));
    json_object_set_new(all, "choices", choices);
    json_object_set_new(all, "left_out", left_out);
    json_object_set_new(all, "front", points);
}

void chain_plan_json(const struct chain_plan *plan, bool ops, FILE *out)
{
    json_t *all = json_object();
    json_object_set_new(all, "name", json_string(plan->file->name));
    if (plan->plan)
        plan_json(plan, ops, all);
    else
        choices_json(plan, all);
    json_object_set_new(all, "stages", json_integer(plan->file->stages));
    json_object_set_new(all, "store_all_live_peak_bytes", integer(plan->store_all_live));
    json_object_set_new(all, "planning_ms", json_real((double)plan->planning_ns * 1e-6));
    json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    fputc('\n', out);
    json_decref(all);
}
