/* The fastest schedule that an integer programme finds within a budget, and what that proves: the formulation of Jain
 * et al., "Checkmate", 2020, over a step as it is lowered here (search/step_program.h), solved by a program that is
 * installed. First without the rows of single recomputations: what that proves holds for every schedule. Where its
 * solution does not fit the budget, with them. Unless it is solved to optimality the plan depends on the machine's
 * speed. */
#include <math.h>
#include <stdio.h>

#include "policies/policy.h"
#include "search/budget.h"
#include "search/closure_bound.h"
#include "search/solver.h"
#include "search/step_program.h"

enum { NODES_MAX = 128, TRIES = 4 };

struct milp_settings {
    const char *budget;
    double time_limit;
};
POLICY_SETTINGS_FIT(struct milp_settings);

struct milp_search {
    const struct network *network;
    const struct plan_options *options;
    const struct milp_settings *settings;
    struct region *region;
    size_t limit;      /* of the arena */
    double floor;      /* time of every pass once */
    double bound;      /* of every schedule, as far as proven */
    double ordered;    /* the same of the ordered programme's schedules */
    bool stopped;      /* a search was: it might have found more */
    bool undivided;    /* the batch has slices, which the programme does not: its proof is about others' schedules */
    struct plan *plan; /* NULL: none keeps the limit */
    struct schedule schedule;
};

/* Places the sequence's schedule; returns the bytes above the limit. */
static size_t take(struct milp_search *s, const struct step_model *model, struct sequence *sequence)
{
    struct schedule schedule = schedule_empty(s->region);
    sequence_evaluate(model, sequence, s->limit);
    sequence_schedule(model, sequence, &schedule);
    struct plan *plan = plan_build(s->network, &schedule, s->options);
    budget_keep(plan, s->limit);
    const size_t arena = plan->arena_bytes;
    plan_destroy(arena > s->limit ? plan : s->plan);
    if (arena > s->limit) return arena - s->limit;
    s->plan = plan;
    s->schedule = schedule;
    return 0;
}

/* Solves the programme for limit bytes; *over: of its schedule's arena, SIZE_MAX: it has none. */
static enum status solve(struct milp_search *s, const struct step_model *model, size_t limit, bool ordered,
                         const char *folder, size_t *over)
{
    struct step_program program;
    struct solver_answer answer;
    bool fits;
    *over = SIZE_MAX;
    TRY(step_program_write(model, limit, ordered, region_text(s->region, "%s/model.lp", folder), s->region, &program,
                           &fits));
    if (!fits && limit == s->limit) s->bound = INFINITY;
    if (!fits) return ST_OK;
    TRY(solver_run(folder, s->settings->time_limit, s->region, &answer));
    const double bound = model->floor * (1 + fmax(0, answer.bound) / step_program_floor);
    if (limit == s->limit) *(ordered ? &s->ordered : &s->bound) = answer.infeasible ? INFINITY : bound;
    s->stopped |= !answer.optimal && !answer.infeasible;
    if (!answer.solution) return ST_OK;
    struct sequence sequence = step_program_read(&program, answer.solution, s->region);
    *over = take(s, model, &sequence);
    return ST_OK;
}

/* A schedule whose placement takes more than its live peak is followed by one for fewer bytes. */
static enum status search(struct milp_search *s, const char *folder)
{
    const struct step_model model = step_model_create(s->network, &s->options->lower, s->region);
    size_t limit = s->limit, over;
    s->floor = model.floor;
    TRY(solve(s, &model, limit, false, folder, &over));
    s->bound = fmax(s->bound, model.floor + closure_bound(&model, NULL, limit));
    for (int i = 0; i < TRIES && !s->plan && isfinite(s->bound); i++) {
        TRY(solve(s, &model, limit, true, folder, &over));
        if (over >= limit) break;
        limit -= over;
    }
    return ST_OK;
}

static enum status search_folder(struct milp_search *s)
{
    char *folder;
    TRY(solver_folder(s->region, &folder));
    const enum status status = search(s, folder);
    solver_remove(folder);
    return status;
}

/* relus: what they keep in all schedules that the proof is about. */
static void note(const struct milp_search *s, const char *relus, struct policy_notes *notes)
{
    const double noise = 1e-9;
    const char *class = s->undivided ? "the undivided batch" : "any class";
    char stopped[48] = "", bound[96];
    const bool ordered = s->ordered > s->bound && s->plan->time <= s->ordered * (1 + noise);
    if (s->stopped) snprintf(stopped, sizeof stopped, "stopped after %g s; ", s->settings->time_limit);
    snprintf(bound, sizeof bound, "proven the fastest of %s", class);
    if (s->plan->time > s->bound * (1 + noise))
        snprintf(bound, sizeof bound, "no schedule of %s has a slowdown below %.4f", class, s->bound / s->floor);
    snprintf(notes->found, sizeof notes->found, "%s%s%s%s", stopped,
             ordered ? "proven the fastest of its formulation; " : "", bound, relus);
    notes->live_peak = s->plan->live_peak;
    notes->tries = 1;
}

static enum status refuse(const struct milp_search *s)
{
    if (s->stopped)
        return fail(ST_SPEC, "policy.budget: %s: milp found no schedule that keeps it in %g s (time_limit)",
                    s->settings->budget, s->settings->time_limit);
    return fail(ST_SPEC, "policy.budget: %s: no schedule%s%s keeps it", s->settings->budget,
                s->undivided ? " of the undivided batch" : "", isfinite(s->bound) ? " that milp finds" : "");
}

/* Open relus keep sign bits; where that does not keep the budget, what the network has them keep. */
static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct milp_settings *settings = (const void *)input->settings;
    static const char *const relus[] = {"", " whose relus keep their outputs", " whose relus keep sign bits"};
    const struct network *network =
        input->network->slice ? network_unsliced(input->network, schedule->region) : input->network;
    const bool open = network_any_relu_open(network);
    int kept = 0;
    struct milp_search s = {.options = policy_plan_options(input),
                            .settings = settings,
                            .region = schedule->region,
                            .undivided = network != input->network};
    struct budget budget;
    enum status status = ST_OK;
    TRY(settings->budget ? budget_parse(settings->budget, &budget) : ST_OK);
    if (!settings->budget || budget.kind == BUDGET_LEAST)
        return fail(ST_SPEC, "policy.budget: milp needs bytes such as 6GB, or a share of store_all such as 64%%");
    if (network->graph->nodes > NODES_MAX)
        return fail(ST_SPEC, "policy: milp takes networks of at most %d nodes; this one has %d", NODES_MAX,
                    network->graph->nodes);
    s.limit = budget_room(network, &budget, s.options);
    for (int bits = open; bits >= 0 && !s.plan && status == ST_OK; bits--) {
        s.network = bits ? policy_keep_sign_bits(network, s.region) : network;
        s.bound = s.ordered = 0;
        status = search_folder(&s);
        kept = open + bits;
        if (s.plan && bits) policy_state_sign_bits(network, &s.schedule);
    }
    if (status == ST_OK && !s.plan) status = refuse(&s);
    if (status == ST_OK && s.plan->time < s.bound * (1 - 1e-6))
        status = fail(ST_FAILED, "policy: the solver's bound, %g, is above the time of its schedule, %g: it is wrong",
                      s.bound, s.plan->time);
    if (status == ST_OK) schedule_append_all(schedule, &s.schedule);
    if (status == ST_OK && input->notes) note(&s, relus[kept], input->notes);
    plan_destroy(s.plan);
    return status;
}

static const struct setting keys[] = {
    POLICY_SETTING_BUDGET(struct milp_settings, NULL),
    {"time_limit", SETTING_REAL, offsetof(struct milp_settings, time_limit), 0.1, 1e6, "60", NULL,
     "seconds for each programme, of which two are solved as a rule; plans that are not proven depend on it"},
    {.key = NULL}};

const struct policy policy_milp = {.name = "milp",
                                   .doc = "the fastest schedule of an integer programme, and what that proves",
                                   .keys = keys,
                                   .emit = emit,
                                   .chooses_relus = true,
                                   .takes_slices = true,
                                   .solves = true};
