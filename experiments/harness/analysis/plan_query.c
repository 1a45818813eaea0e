#include "analysis/plan_query.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "console/terminal.h"
#include "search/budget.h"

typedef enum status finder(struct answer *answer);
typedef void printer(const struct answer *answer, FILE *out);

/* A question: the option that asks it, which of --memory and --slowdown it must and may have, how it is answered. */
struct question {
    enum option option;
    const char *name;
    unsigned must, may; /* 1 << enum option */
    finder *find;
    printer *print[3]; /* by enum output_format; NULL: there is none */
};

/* ---- finding ---- */

static int by_peak(const void *a, const void *b)
{
    const struct trial *x = *(const struct trial *const *)a, *y = *(const struct trial *const *)b;
    if (x->peak != y->peak) return x->peak < y->peak ? -1 : 1;
    if (x->time < y->time || x->time > y->time) return x->time < y->time ? -1 : 1;
    return x < y ? -1 : x > y;
}

static enum status find_all(struct answer *a)
{
    const struct plan_options options = job_plan_options(a->job);
    TRY(policy_grid_all(&a->tries));
    TRY(policy_grid_judge(&a->tries));
    TRY(budget_baseline(a->job->network, &options, &a->baseline));
    NEW(a->tries.region, a->row, (size_t)a->tries.trials);
    return ST_OK;
}

static void sort_rows(struct answer *a) { qsort(a->row, (size_t)a->rows, sizeof *a->row, by_peak); }

static enum status find_pareto(struct answer *a)
{
    TRY(find_all(a));
    for (int i = 0; i < a->tries.trials; i++) a->row[a->rows++] = &a->tries.trial[i];
    sort_rows(a);
    return ST_OK;
}

/* The least peak of those trials of a policy, its own setting apart, that take at most a slowdown and at least as
 * fast where peaks are equal; NULL: none. */
static const struct trial *least_of(const struct policy_grid *t, const struct policy *policy, bool own, double slowdown)
{
    const struct trial *least = NULL;
    for (int i = 0; i < t->trials; i++) {
        const struct trial *trial = &t->trial[i];
        if (trial->policy != policy || trial->own != own || trial->slowdown > slowdown) continue;
        if (!least || by_peak(&trial, &least) < 0) least = trial;
    }
    return least;
}

/* The fastest of a policy's trials whose peak is at most peak. */
static const struct trial *fastest_of(const struct policy_grid *t, const struct policy *policy, size_t peak)
{
    const struct trial *fastest = NULL;
    for (int i = 0; i < t->trials; i++) {
        const struct trial *trial = &t->trial[i];
        if (trial->policy != policy || trial->own || trial->peak > peak) continue;
        if (!fastest || trial->time < fastest->time || (trial->time <= fastest->time && trial->peak < fastest->peak))
            fastest = trial;
    }
    return fastest;
}

static void add_row(struct answer *a, const struct trial *trial)
{
    for (int i = 0; i < a->rows; i++)
        if (a->row[i] == trial) return;
    if (trial) a->row[a->rows++] = trial;
}

static enum status find_min_memory(struct answer *a)
{
    TRY(find_all(a));
    add_row(a, least_of(&a->tries, a->job->spec->policy, true, a->query->slowdown));
    for (const struct policy *const *p = policy_table; *p; p++)
        add_row(a, least_of(&a->tries, *p, false, a->query->slowdown));
    sort_rows(a);
    return ST_OK;
}

/* Of each policy the least it can do with, and the fastest with what the spec's plan takes. */
static enum status find_explain(struct answer *a)
{
    TRY(find_all(a));
    for (const struct policy *const *p = policy_table; *p; p++) {
        add_row(a, least_of(&a->tries, *p, false, INFINITY));
        add_row(a, fastest_of(&a->tries, *p, plan_peak(a->job->plan)));
    }
    return ST_OK;
}

static enum status find_max_batch(struct answer *a)
{
    return batches_find(a->query, a->job, a->tries.region, &a->batches);
}

/* ---- asking ---- */

#define BIT(option) (1u << OPTION_##option)

static const struct question questions[] = {
    {OPTION_PARETO, "--pareto", 0, 0, find_pareto, {print_pareto, print_pareto_csv, json_pareto}},
    {OPTION_MAX_BATCH,
     "--max-batch",
     BIT(MEMORY),
     BIT(SLOWDOWN),
     find_max_batch,
     {print_max_batch, NULL, json_max_batch}},
    {OPTION_MIN_MEMORY, "--min-memory", BIT(SLOWDOWN), 0, find_min_memory, {print_min_memory, NULL, json_min_memory}},
    {OPTION_EXPLAIN, "--explain", 0, 0, find_explain, {print_explain, NULL, json_explain}},
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
    if (memory && !wrong && !query->memory) wrong = "is nothing";
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
            return fail(ST_SPEC, "plan: %s says nothing %s%s; see rematch plan --help", details[i].name,
                        question ? "to " : "without a question", question ? question->name : "");
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
    if (query->form == OUTPUT_CSV && !(question && question->print[OUTPUT_CSV]))
        return fail(ST_SPEC, "plan: --csv is a form of the answer to --pareto");
    if (question && (a->given[OPTION_OPS] || a->given[OPTION_OUT]))
        return fail(ST_SPEC, "plan: %s is about one plan, %s about many", a->given[OPTION_OPS] ? "--ops" : "--out",
                    question->name);
    return read_values(a, query);
}

enum status plan_query_answer(const struct plan_query *query, const struct job *job, FILE *out)
{
    struct answer answer = {.query = query, .job = job};
    struct region *region = region_create();
    if (!region) return fail(ST_FAILED, "out of memory for an answer");
    answer.tries = (struct policy_grid){.region = region, .job = job, .watch = stderr, .slowdown = INFINITY};
    if (query->question->must & BIT(SLOWDOWN)) answer.tries.slowdown = query->slowdown;
    enum status status = query->question->find(&answer);
    terminal_note(stderr, "");
    if (status == ST_OK) query->question->print[query->form](&answer, out);
    region_destroy(region);
    return status;
}
