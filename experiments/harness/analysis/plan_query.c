#include "analysis/plan_query.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "console/terminal.h"
#include "search/budget.h"

typedef enum status finder(struct answer *answer);
typedef void printer(const struct answer *answer, FILE *out);

/* A question: the option that asks it, which of --memory and --slowdown it must and may have, how it is answered. */
struct question {
    enum option option;
    const char *name;
    unsigned must, may;         /* 1 << enum option */
    finder *find;               /* adds to the answer's figures */
    printer *print, *print_csv; /* NULL: it has no such form */
};

/* ---- figures ---- */

/* settings: options that set the same plan, each after "policy."; null: the spec's own. */
static json_t *trial_figures(const struct trial *t)
{
    json_t *one = json_object();
    PUT(one, "policy", t->policy->name);
    PUT(one, "settings", t->own ? NULL : t->settings);
    PUT_FLAG(one, "own", t->own);
    PUT(one, "static_bytes", t->plan.static_bytes);
    PUT(one, "live_peak_bytes", t->plan.live_peak);
    PUT(one, "arena_bytes", t->plan.arena);
    PUT(one, "peak_bytes", t->plan.peak);
    PUT(one, "slowdown", t->plan.slowdown);
    PUT(one, "peak_op", t->peak_op);
    return one;
}

static void add_row(struct answer *a, const struct trial *t)
{
    const size_t own = plan_peak(a->job->plan);
    json_t *one = trial_figures(t);
    PUT(one, "share_percent", a->baseline ? 100 * (double)t->plan.arena / (double)a->baseline : 0.0);
    PUT(one, "change_percent", own ? 100 * ((double)t->plan.peak / (double)own - 1) : 0.0);
    PUT(one, "gap_percent", t->gap);
    PUT_FLAG(one, "pareto", t->best);
    PUT(one, "largest_tensors", t->peak_tensors);
    json_array_append_new(json_object_get(a->figures, "plans"), one);
}

static void add_rows(struct answer *a, const struct trial **row, int rows)
{
    json_t *left_out = json_array();
    PUT(a->figures, "static_bytes", plan_static(a->job->plan));
    PUT(a->figures, "share_of_bytes", a->baseline);
    PUT(a->figures, "plans", json_array());
    for (int i = 0; i < rows; i++) add_row(a, row[i]);
    PUT(a->figures, "front_points", a->grid.points);
    PUT(a->figures, "front_points_left_out", a->grid.left_out);
    for (int i = 0; i < a->grid.refusals; i++) {
        json_t *one = json_object();
        PUT(one, "policy", a->grid.refusal[i].policy->name);
        PUT(one, "why", a->grid.refusal[i].why);
        json_array_append_new(left_out, one);
    }
    PUT(a->figures, "left_out", left_out);
}

/* ---- finding ---- */

int trial_order(const struct trial *a, const struct trial *b)
{
    if (a->plan.peak != b->plan.peak) return a->plan.peak < b->plan.peak ? -1 : 1;
    return (a->plan.time > b->plan.time) - (a->plan.time < b->plan.time);
}

static int by_peak(const void *a, const void *b)
{
    const struct trial *const *x = a, *const *y = b;
    const int order = trial_order(*x, *y);
    return order ? order : *x < *y ? -1 : *x > *y;
}

/* The plans of every policy; *row: room for as many rows. */
static enum status find_all(struct answer *a, const struct trial ***row)
{
    const struct plan_options options = job_plan_options(a->job);
    TRY(policy_grid_all(&a->grid));
    TRY(policy_grid_judge(&a->grid));
    NEW(a->grid.region, *row, (size_t)a->grid.trials);
    return budget_baseline(a->job->network, &options, &a->baseline);
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

/* Of a policy's trials, own: of the spec's as it is, the least peak at most this slowdown; NULL: none. */
static const struct trial *least_of(const struct policy_grid *g, const struct policy *policy, bool own, double slowdown)
{
    const struct trial *least = NULL;
    for (int i = 0; i < g->trials; i++) {
        const struct trial *trial = &g->trial[i];
        if (trial->policy != policy || trial->own != own || trial->plan.slowdown > slowdown) continue;
        if (!least || trial_order(trial, least) < 0) least = trial;
    }
    return least;
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
    if ((least = least_of(&a->grid, a->job->spec->policy, true, a->query->slowdown))) row[rows++] = least;
    for (const struct policy *const *p = policy_table; *p; p++)
        if ((least = least_of(&a->grid, *p, false, a->query->slowdown))) row[rows++] = least;
    qsort(row, (size_t)rows, sizeof *row, by_peak);
    PUT(a->figures, "slowdown", a->query->slowdown);
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
        const struct trial *least = least_of(&a->grid, *p, false, INFINITY),
                           *fastest = fastest_of(&a->grid, *p, plan_peak(plan));
        if (least) row[rows++] = least;
        if (fastest && fastest != least) row[rows++] = fastest;
    }
    PUT(a->figures, "peak_bytes", plan_peak(plan));
    PUT(a->figures, "live_peak_bytes", plan->live_peak);
    PUT(a->figures, "peak_op", plan_op_text(plan, plan->peak_op, op));
    PUT(a->figures, "memory_floor_bytes", a->job->bounds.memory);
    PUT(a->figures, "memory_floor_node", a->job->graph->node[a->job->bounds.memory_node].name);
    add_rows(a, row, rows);
    return ST_OK;
}

static const char *stop_text(const struct answer *a, const struct batch_row *row)
{
    struct region *region = a->grid.region;
    const long long fails = row->fails;
    char over[UNIT_TEXT];
    if (!row->fits && row->why) return row->why;
    if (!row->fails) return "no larger one can be planned";
    if (!row->next)
        return region_text(region, "batch %lld: %s", fails, row->why == batch_slow ? "too slow" : "refused");
    bytes_text((double)(row->next - a->query->memory), over);
    return region_text(region, "batch %lld: %s too much", fails, over);
}

static json_t *batch_figures(const struct answer *a, const struct batch_row *row)
{
    json_t *one = row->fits ? trial_figures(&row->at) : json_object();
    PUT(one, "policy", row->policy->name);
    PUT_FLAG(one, "own", row->own);
    PUT(one, "largest_batch", row->fits);
    PUT(one, "fails_batch", row->fails ? json_integer(row->fails) : json_null());
    PUT(one, "fails_peak_bytes", row->next ? figure_unsigned(row->next) : json_null());
    PUT(one, "fails_because", row->why);
    PUT(one, "odd_batch", row->odd ? json_integer(row->odd) : json_null());
    PUT(one, "stopped_by", stop_text(a, row));
    return one;
}

static enum status find_max_batch(struct answer *a)
{
    json_t *rows = json_array();
    TRY(batches_find(a->query, a->job, a->grid.region, &a->batches));
    for (int i = 0; i < a->batches.rows; i++) json_array_append_new(rows, batch_figures(a, &a->batches.row[i]));
    PUT(a->figures, "memory_bytes", a->query->memory);
    PUT(a->figures, "slowdown", a->query->slowdown);
    PUT(a->figures, "largest_batch", a->batches.row[0].fits);
    PUT(a->figures, "policies", rows);
    return ST_OK;
}

/* ---- asking ---- */

#define BIT(option) (1u << OPTION_##option)

static const struct question questions[] = {
    {OPTION_PARETO, "--pareto", 0, 0, find_pareto, print_pareto, print_pareto_csv},
    {OPTION_MAX_BATCH, "--max-batch", BIT(MEMORY), BIT(SLOWDOWN), find_max_batch, print_max_batch, NULL},
    {OPTION_MIN_MEMORY, "--min-memory", BIT(SLOWDOWN), 0, find_min_memory, print_min_memory, NULL},
    {OPTION_EXPLAIN, "--explain", 0, 0, find_explain, print_explain, NULL},
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
    if (memory) wrong = text_to_bytes(memory, &query->memory);
    if (memory && !wrong && !query->memory) wrong = "must be greater than 0";
    if (memory && !wrong && isdigit((unsigned char)memory[strlen(memory) - 1])) wrong = "has no unit";
    if (wrong)
        return fail(ST_SPEC, "plan: --memory '%.*s' %s; expected a size with a unit such as 16GB",
                    text_shown(memory, 40), memory, wrong);
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
    *query = (struct plan_query){.question = question, .slowdown = INFINITY};
    if (question && a->given[OPTION_CHAIN]) return fail(ST_SPEC, "plan: %s does not apply to --chain", question->name);
    TRY(check_details(a, question));
    if (a->given[OPTION_JSON] && a->given[OPTION_CSV])
        return fail(ST_SPEC, "plan: --json and --csv are two forms; choose one");
    query->form = a->given[OPTION_CSV] ? OUTPUT_CSV : a->given[OPTION_JSON] ? OUTPUT_JSON : OUTPUT_TEXT;
    if (query->form == OUTPUT_CSV && !(question && question->print_csv))
        return fail(ST_SPEC, "plan: --csv is a form of the answer to --pareto");
    if (question && (a->given[OPTION_OPS] || a->given[OPTION_OUT]))
        return fail(ST_SPEC, "plan: %s is about one plan, %s about many", a->given[OPTION_OPS] ? "--ops" : "--out",
                    question->name);
    return read_values(a, query);
}

enum status plan_query_answer(const struct plan_query *query, const struct job *job, FILE *out)
{
    const struct question *question = query->question;
    struct answer answer = {.query = query, .job = job, .figures = json_object()};
    answer.grid = (struct policy_grid){.region = region_create(), .job = job, .progress = stderr, .slowdown = INFINITY};
    if (question->must & BIT(SLOWDOWN)) answer.grid.slowdown = query->slowdown;
    PUT(answer.figures, "name", job->spec->name);
    PUT(answer.figures, "policy", job->spec->policy->name);
    PUT(answer.figures, "batch", job->spec->batch);
    enum status status = question->find(&answer);
    terminal_note(stderr, "");
    if (status == ST_OK && query->form == OUTPUT_JSON)
        figures_write(json_incref(answer.figures), out);
    else if (status == ST_OK)
        (query->form == OUTPUT_CSV ? question->print_csv : question->print)(&answer, out);
    json_decref(answer.figures);
    region_destroy(answer.grid.region);
    return status;
}
