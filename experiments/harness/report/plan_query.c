#include "report/commands.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plan_summary.h"
#include "analysis/policy_grid.h"
#include "base/text.h"
#include "base/units.h"
#include "console/terminal.h"
#include "report/text_table.h"
#include "search/budget.h"

struct answer {
    const struct plan_query *query;
    const struct job *job;
    struct policy_grid grid;
    size_t baseline; /* live peak of store_all, relus as written, outputs kept: 100 % of a share */
    json_t *json;    /* as --json has them */
    json_t *notes;   /* texts below the table */
};

/* A question: the option that asks it, which of --memory and --slowdown it must and may have, how it is answered. */
struct question {
    enum option option;
    const char *name;
    unsigned must, may;                                 /* 1 << enum option */
    enum status (*find)(struct answer *answer);         /* adds to the numbers */
    void (*print)(const struct answer *answer, FILE *); /* what precedes the table */
    const char *rows;                                   /* the table's key */
    int indent;
    const char *keys, *csv; /* its columns; as CSV, NULL: no such form */
};

/* ---- the plans of all policies ---- */

static int by_peak(const void *a, const void *b)
{
    const struct trial *const *x = a, *const *y = b;
    const int order = trial_order(*x, *y);
    return order ? order : *x < *y ? -1 : *x > *y;
}

static void add_row(struct answer *a, const struct trial *t)
{
    const size_t own = plan_peak(a->job->plan);
    ADD(json_object_get(a->json, "plans"),
        PUT_ALL(
            trial_json(t), KEY("share_percent", a->baseline ? 100 * (double)t->plan.arena / (double)a->baseline : 0.0),
            KEY("change_percent", own ? 100 * ((double)t->plan.peak / (double)own - 1) : 0.0),
            KEY("gap_percent", t->gap), KEY("pareto", json_boolean(t->best)), KEY("largest_tensors", t->peak_tensors)));
}

static void add_rows(struct answer *a, const struct trial **row, int rows)
{
    const struct policy_grid *g = &a->grid;
    json_t *left_out = json_array();
    char took[UNIT_TEXT];
    PUT_ALL(a->json, KEY("static_bytes", plan_static(a->job->plan)), KEY("share_of_bytes", a->baseline),
            KEY("plans", json_array()));
    for (int i = 0; i < rows; i++) add_row(a, row[i]);
    PUT_ALL(a->json, KEY("front_points", g->points), KEY("front_planning_ms", (double)g->front_ns * 1e-6),
            KEY("front_points_left_out", g->left_out), KEY("left_out", left_out));
    if (g->points)
        json_note(a->notes, "the front of optimal, %d point%s, was found in %s", g->points, text_plural(g->points),
                  duration_text(g->front_ns, took));
    if (g->left_out)
        json_note(a->notes, "of a front of %d points: %d evenly spread, and those with the memory of another plan",
                  g->points, g->points - g->left_out);
    PUT(a->json, "front_approximation", g->approximation);
    if (g->approximation) json_note(a->notes, "the front of optimal is %s", g->approximation);
    for (int i = 0; i < g->refusals; i++) {
        const char *policy = g->refusal[i].policy->name, *why = g->refusal[i].why;
        ADD(left_out, json_pack("{s:s, s:s}", "policy", policy, "why", why));
        json_note(a->notes, "left out: %s, %s", policy, why);
    }
}

/* The plans of every policy; *row: room for as many rows. */
static enum status find_all(struct answer *a, const struct trial ***row)
{
    const struct plan_options options = job_plan_options(a->job);
    TRY(policy_grid_all(&a->grid));
    NEW(a->grid.region, *row, (size_t)a->grid.trials);
    a->baseline = budget_baseline(a->job->network, &options);
    return ST_OK;
}

static enum status find_pareto(struct answer *a)
{
    const struct trial **row;
    TRY(find_all(a, &row));
    for (int i = 0; i < a->grid.trials; i++) row[i] = &a->grid.trial[i];
    qsort(row, (size_t)a->grid.trials, sizeof *row, by_peak);
    add_rows(a, row, a->grid.trials);
    return ST_OK;
}

/* The fastest of a policy's trials whose peak is at most peak. */
static const struct trial *fastest_of(const struct policy_grid *g, const struct policy *policy, size_t peak)
{
    const struct trial *fastest = NULL;
    for (int i = 0; i < g->trials; i++) {
        const struct trial *trial = &g->trial[i];
        if (trial->policy != policy || trial->own || trial->plan.peak > peak) continue;
        if (!fastest || trial->plan.time < fastest->plan.time ||
            (trial->plan.time <= fastest->plan.time && trial->plan.peak < fastest->plan.peak))
            fastest = trial;
    }
    return fastest;
}

static enum status find_min_memory(struct answer *a)
{
    const struct trial **row, *least = NULL;
    int rows = 0;
    TRY(find_all(a, &row));
    if ((least = policy_grid_least(&a->grid, a->job->spec->policy, true, a->query->slowdown))) row[rows++] = least;
    for (const struct policy *const *p = policy_table; *p; p++)
        if ((least = policy_grid_least(&a->grid, *p, false, a->query->slowdown))) row[rows++] = least;
    qsort(row, (size_t)rows, sizeof *row, by_peak);
    PUT(a->json, "slowdown", a->query->slowdown);
    add_rows(a, row, rows);
    return ST_OK;
}

/* Of each policy the least peak, and the fastest within the peak of the spec's plan. */
static enum status find_explain(struct answer *a)
{
    const struct plan *plan = a->job->plan;
    const struct trial **row;
    char op[128];
    int rows = 0;
    TRY(find_all(a, &row));
    for (const struct policy *const *p = policy_table; *p; p++) {
        const struct trial *least = policy_grid_least(&a->grid, *p, false, INFINITY),
                           *fastest = fastest_of(&a->grid, *p, plan_peak(plan));
        if (least) row[rows++] = least;
        if (fastest && fastest != least) row[rows++] = fastest;
    }
    PUT_ALL(a->json, KEY("peak_bytes", plan_peak(plan)), KEY("live_peak_bytes", plan->live_peak),
            KEY("peak_op", plan_op_text(plan, plan->peak_op, op)), KEY("memory_floor_bytes", a->job->bounds.memory),
            KEY("memory_floor_node", a->job->graph->node[a->job->bounds.memory_node].name));
    add_rows(a, row, rows);
    return ST_OK;
}

static enum status find_max_batch(struct answer *a)
{
    json_t *rows = json_array();
    PUT_ALL(a->json, KEY("memory_bytes", a->query->memory), KEY("slowdown", a->query->slowdown));
    const enum status status =
        largest_batch_find(a->job, a->query->memory, a->query->slowdown, a->grid.region, rows, a->notes);
    PUT_ALL(a->json, KEY("largest_batch", json_incref(json_object_get(json_array_get(rows, 0), "largest_batch"))),
            KEY("policies", rows));
    return status;
}

/* ---- printing ---- */

static void print_static(const struct answer *a, FILE *out)
{
    fprintf(
        out,
        "peak = arena + %s static; shares are of the live peak of store_all, %s, relus as written, outputs kept\n\n",
        BYTES_TEXT(plan_static(a->job->plan)), BYTES_TEXT(a->baseline));
}

static void print_pareto(const struct answer *a, FILE *out)
{
    fprintf(out, "%zu plans; * no other is better in peak or time and as good in the other\n",
            json_array_size(json_object_get(a->json, "plans")));
    print_static(a, out);
}

static void print_max_batch(const struct answer *a, FILE *out)
{
    char memory[UNIT_TEXT];
    fprintf(out, "the largest batch whose planned peak, static and arena, is at most %s",
            exact_bytes_text((size_t)a->query->memory, memory));
    if (isfinite(a->query->slowdown)) fprintf(out, ", with a slowdown of at most %g", a->query->slowdown);
    fprintf(out, "\n\n");
}

static void print_min_memory(const struct answer *a, FILE *out)
{
    fprintf(out, "the least memory with a slowdown of at most %g, by policy\n", a->query->slowdown);
    print_static(a, out);
}

/* What sets the peak, and what would change it. */
static void print_explain(const struct answer *a, FILE *out)
{
    const struct plan *plan = a->job->plan;
    const struct bounds *bounds = &a->job->bounds;
    char op[128];
    fprintf(
        out,
        "policy %s takes %s: %s that no policy changes (parameters, gradients, optimizer and running state, batch), ",
        a->job->spec->policy->name, BYTES_TEXT(plan_peak(plan)), BYTES_TEXT(plan_static(plan)));
    fprintf(out, "and an arena of %s for what is live, at most %s at op %d, %s:\n  %s\n", BYTES_TEXT(plan->arena_bytes),
            BYTES_TEXT(plan->live_peak), plan->peak_op, plan_op_text(plan, plan->peak_op, op),
            plan_peak_text(plan, a->grid.region));
    fprintf(out, "no schedule has less than %s live, which %s needs\n", BYTES_TEXT(bounds->memory),
            a->job->graph->node[bounds->memory_node].name);
    fprintf(out, "\nof each policy the plan of least memory, and the fastest within this peak;\n"
                 "* no plan of any policy is better in peak or time and as good in the other\n\n");
}

static void print_answer(const struct answer *a, FILE *out)
{
    const struct question *question = a->query->question;
    const json_t *rows = json_object_get(a->json, question->rows);
    if (a->query->csv) {
        text_csv(rows, question->csv, out);
        return;
    }
    spec_print_head(a->job->spec, out);
    question->print(a, out);
    text_table(rows, question->keys, question->indent, false, out);
    if (json_array_size(a->notes)) fputc('\n', out);
    text_notes(a->notes, "", out);
}

/* ---- asking ---- */

static const struct question questions[] = {
    {OPTION_PARETO, "--pareto", 0, 0, find_pareto, print_pareto, "plans", 0,
     "pareto policy settings peak_bytes arena_bytes share_percent slowdown gap_percent",
     "policy settings own static_bytes live_peak_bytes arena_bytes peak_bytes share_percent slowdown gap_percent "
     "pareto peak_op"},
    {OPTION_MAX_BATCH, "--max-batch", BIT(MEMORY), BIT(SLOWDOWN), find_max_batch, print_max_batch, "policies", 2,
     "policy settings largest_batch peak_bytes arena_bytes slowdown stopped_by", NULL},
    {OPTION_MIN_MEMORY, "--min-memory", BIT(SLOWDOWN), 0, find_min_memory, print_min_memory, "plans", 0,
     "pareto policy settings peak_bytes arena_bytes share_percent slowdown gap_percent peak_op", NULL},
    {OPTION_EXPLAIN, "--explain", 0, 0, find_explain, print_explain, "plans", 0,
     "pareto policy settings peak_bytes change_percent slowdown peak_op largest_tensors", NULL},
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

/* Options that qualify a question. */
static const struct {
    enum option option;
    const char *name, *example;
} details[] = {{OPTION_MEMORY, "--memory", "16GB"}, {OPTION_SLOWDOWN, "--slowdown", "1.1"}};

static enum status read_values(const struct arguments *a, struct plan_query *query)
{
    const char *memory = a->value[OPTION_MEMORY], *slowdown = a->value[OPTION_SLOWDOWN], *wrong = NULL;
    char suggestion[TEXT_SUGGESTION];
    if (memory) wrong = text_to_bytes(memory, &query->memory);
    if (memory && !wrong && !query->memory) wrong = "must be greater than 0";
    if (memory && !wrong && isdigit((unsigned char)memory[strlen(memory) - 1])) wrong = "has no unit";
    if (wrong)
        return fail(ST_SPEC, "plan: --memory '%.*s' %s%s; expected a size with a unit such as 16GB",
                    text_shown(memory, 40), memory, wrong, text_size_suggestion(memory, suggestion));
    if (slowdown) wrong = text_to_real(slowdown, &query->slowdown);
    if (slowdown && !wrong && query->slowdown < 1)
        wrong = "is less than 1, and no schedule is faster than every pass once";
    if (wrong)
        return fail(ST_SPEC, "plan: --slowdown '%.*s' %s; expected a slowdown such as 1.1", text_shown(slowdown, 40),
                    slowdown, wrong);
    return ST_OK;
}

static enum status check_details(const struct arguments *a, const struct question *question)
{
    for (size_t i = 0; i < sizeof details / sizeof *details; i++) {
        const unsigned bit = 1u << details[i].option;
        const bool given = a->given[details[i].option];
        if (given && !(question && (question->must | question->may) & bit))
            return fail(ST_SPEC, "plan: %s does not apply%s%s; see rematch plan --help", details[i].name,
                        question ? " to " : " without a question", question ? question->name : "");
        if (!given && question && question->must & bit)
            return fail(ST_SPEC, "plan: %s needs %s, such as %s %s", question->name, details[i].name, details[i].name,
                        details[i].example);
    }
    return ST_OK;
}

enum status plan_query_read(const struct arguments *arguments, struct plan_query *query)
{
    const struct arguments *a = arguments;
    const struct question *question = NULL;
    for (int i = 0; i < QUESTIONS; i++) {
        if (!a->given[questions[i].option]) continue;
        if (question)
            return fail(ST_SPEC, "plan: %s and %s are two questions; ask one", question->name, questions[i].name);
        question = &questions[i];
    }
    *query = (struct plan_query){
        .question = question, .json = a->given[OPTION_JSON], .csv = a->given[OPTION_CSV], .slowdown = INFINITY};
    TRY(check_details(a, question));
    if (query->json && query->csv) return fail(ST_SPEC, "plan: --json and --csv are two forms; choose one");
    if (query->csv && !(question && question->csv))
        return fail(ST_SPEC, "plan: --csv is a form of the answer to --pareto");
    if (question && (a->given[OPTION_OPS] || a->given[OPTION_ALONE] || a->given[OPTION_OUT]))
        return fail(ST_SPEC, "plan: %s is about one plan, %s about many",
                    a->given[OPTION_OPS]     ? "--ops"
                    : a->given[OPTION_ALONE] ? "--alone"
                                             : "--out",
                    question->name);
    return read_values(a, query);
}

enum status plan_query_answer(const struct plan_query *query, const struct job *job, FILE *out)
{
    region_auto *region = region_create();
    json_auto_t *json = json_object(), *notes = json_array();
    struct answer a = {.query = query, .job = job, .json = json, .notes = notes};
    a.grid = (struct policy_grid){.region = region, .job = job, .progress = stderr, .slowdown = INFINITY};
    if (query->question->must & BIT(SLOWDOWN)) a.grid.slowdown = query->slowdown;
    PUT_ALL(a.json, KEY("name", job->spec->name), KEY("policy", job->spec->policy->name),
            KEY("batch", job->spec->batch));
    const enum status status = query->question->find(&a);
    terminal_note(stderr, "");
    TRY(status);
    if (query->json)
        json_answer(json_incref(json), region_text(region, "plan-%s", query->question->name + 2), out);
    else
        print_answer(&a, out);
    return ST_OK;
}
