#include "analysis/policy_grid.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "console/terminal.h"
#include "policies/rivals.h"

enum { VALUES_MAX = 64, KEYS_MAX = 8 };

/* ---- a plan becomes a trial ---- */

static enum status grow(struct policy_grid *t)
{
    if (t->trials < t->room) return ST_OK;
    struct trial *trial;
    int room = t->room ? 2 * t->room : 64;
    NEW(t->region, trial, (size_t)room);
    if (t->trials) memcpy(trial, t->trial, (size_t)t->trials * sizeof *trial);
    t->trial = trial;
    t->room = room;
    return ST_OK;
}

static enum status add_trial(struct policy_grid *t, const struct policy *policy, const char *settings, bool own,
                             const struct plan *plan)
{
    char op[128];
    for (int i = 0; i < t->trials; i++) {
        const struct trial *other = &t->trial[i];
        if (other->policy == policy && other->own == own && !memcmp(&other->hash, &plan->hash, sizeof plan->hash))
            return ST_OK;
    }
    TRY(grow(t));
    struct trial *trial = &t->trial[t->trials];
    *trial = (struct trial){
        .policy = policy,
        .settings = settings,
        .own = own,
        .live_peak = plan->live_peak,
        .arena = plan->arena_bytes,
        .peak = plan_peak(plan),
        .time = plan->time,
        .slowdown = plan->slowdown,
        .peak_op = region_text(t->region, "%s", plan_op_text(plan, plan->peak_op, op)),
        .peak_tensors = plan_peak_text(plan, t->region),
        .hash = plan->hash,
    };
    t->trials++;
    return ST_OK;
}

static void note(const struct policy_grid *t, const struct policy *policy, const char *settings)
{
    char text[128];
    snprintf(text, sizeof text, "  planning batch %lld: %s %s", (long long)t->job->graph->batch, policy->name,
             settings);
    terminal_note(t->watch, text);
}

/* One plan; what the policy refuses (ST_SPEC) is kept as the reason, should it refuse everything. */
static enum status try_settings(struct policy_grid *t, const struct policy *policy,
                                const struct policy_settings *settings, const char *text, bool own, const char **why)
{
    struct plan *plan;
    note(t, policy, text);
    enum status status = job_plan(t->job, policy, settings, &plan);
    if (status == ST_SPEC) {
        if (!*why) *why = region_text(t->region, "%s", status_message());
        return *why ? ST_OK : ST_FAILED;
    }
    TRY(status);
    status = add_trial(t, policy, text, own, plan);
    plan_destroy(plan);
    return status;
}

/* ---- the values that a key is tried with ---- */

/* Whole numbers from 1 to most, not more of them than are of use. */
static enum status count_up(struct policy_grid *t, int most, const char **value, int *values)
{
    for (int i = 0; i < VALUES_MAX; i++) {
        int number = most <= VALUES_MAX ? i + 1 : 1 + (int)((int64_t)(most - 1) * i / (VALUES_MAX - 1));
        if (number > most) break;
        if (!(value[(*values)++] = region_text(t->region, "%d", number))) return ST_FAILED;
    }
    return ST_OK;
}

static enum status stage_values(struct policy_grid *t, const char **value, int *values)
{
    struct node_ranges stages;
    TRY(stages_find(t->job->graph, t->region, &stages));
    return count_up(t, stages.count, value, values);
}

static enum status unit_values(struct policy_grid *t, const char **value, int *values)
{
    if (t->job->graph->groups) value[(*values)++] = policy_unit_names[UNIT_GROUP];
    value[(*values)++] = policy_unit_names[UNIT_STAGE];
    return ST_OK;
}

static enum status budget_values(struct policy_grid *t, const char **value, int *values)
{
    static const char *const shares[] = {"least", "10%", "15%", "20%", "25%", "30%", "35%", "40%", "45%", "50%",
                                         "55%",   "60%", "65%", "70%", "75%", "80%", "85%", "90%", "95%", "100%"};
    for (size_t i = 0; !t->memory && i < sizeof shares / sizeof *shares; i++) value[(*values)++] = shares[i];
    if (t->memory && !(value[(*values)++] = region_text(t->region, "%llu", (unsigned long long)t->memory)))
        return ST_FAILED;
    return ST_OK;
}

static enum status by_values(struct policy_grid *t, const char **value, int *values)
{
    (void)t;
    value[(*values)++] = "count";
    value[(*values)++] = "bytes";
    return ST_OK;
}

/* Each kind of layer that the network has alone, and all that have no parameters. */
static enum status kind_values(struct policy_grid *t, const char **value, int *values)
{
    const struct graph *graph = t->job->graph;
    value[(*values)++] = "weightless";
    for (int i = 0; i < graph->nodes && *values < VALUES_MAX; i++) {
        bool seen = graph->node[i].layer->loss;
        for (int v = 0; v < *values; v++) seen |= !strcmp(value[v], graph->node[i].layer->name);
        if (!seen) value[(*values)++] = graph->node[i].layer->name;
    }
    return ST_OK;
}

/* Whole fractions of all outputs' bytes, besides the search. */
static enum status segment_budget_values(struct policy_grid *t, const char **value, int *values)
{
    enum { PARTS = 16 };
    const struct graph *graph = t->job->graph;
    size_t all = 0;
    for (int v = 1; v < graph->values; v++) all += graph->value[v].bytes;
    value[(*values)++] = "search";
    for (int parts = 2; parts <= PARTS; parts++)
        if (!(value[(*values)++] = region_text(t->region, "%zu", all / (size_t)parts + 1))) return ST_FAILED;
    return ST_OK;
}

/* By key, whichever policy has it; a key that is not here keeps its preset. */
static const struct range_row {
    const char *key;
    enum status (*values)(struct policy_grid *t, const char **value, int *values);
} key_ranges[] = {
    {"segments", stage_values},
    {"slots", stage_values},
    {"unit", unit_values},
    {"budget", budget_values},
    {"by", by_values},
    {"kinds", kind_values},
    {"segment_budget", segment_budget_values},
    {NULL, NULL},
};

/* ---- every combination ---- */

struct grid {
    int keys;
    const struct setting *key[KEYS_MAX];
    const char *value[KEYS_MAX][VALUES_MAX];
    int values[KEYS_MAX], at[KEYS_MAX];
    const char *missing; /* a key that only a person can set */
};

static enum status lay_out(struct policy_grid *t, const struct policy *policy, struct grid *grid)
{
    *grid = (struct grid){0};
    for (const struct setting *f = policy->keys; f && f->key; f++) {
        const struct range_row *row = key_ranges;
        while (row->key && strcmp(row->key, f->key)) row++;
        if (!row->key && !f->preset) grid->missing = f->key;
        if (!row->key || grid->keys == KEYS_MAX) continue;
        grid->key[grid->keys] = f;
        TRY(row->values(t, grid->value[grid->keys], &grid->values[grid->keys]));
        grid->keys++;
    }
    return ST_OK;
}

/* The next combination, the last key's values first; false: that was all. */
static bool step(struct grid *grid)
{
    for (int k = grid->keys - 1; k >= 0; k--) {
        if (++grid->at[k] < grid->values[k]) return true;
        grid->at[k] = 0;
    }
    return false;
}

static enum status try_grid(struct policy_grid *t, const struct policy *policy, const char **why)
{
    struct grid grid;
    TRY(lay_out(t, policy, &grid));
    if (grid.missing) {
        *why = region_text(t->region, "policy.%s must be set", grid.missing);
        return *why ? ST_OK : ST_FAILED;
    }
    do {
        struct policy_settings settings = {0};
        const char *text = "";
        TRY(setting_defaults(policy->keys, &settings, t->region));
        for (int k = 0; k < grid.keys && text; k++) {
            const char *value = grid.value[k][grid.at[k]];
            TRY(setting_set(grid.key[k], &settings, value, t->region));
            text = region_text(t->region, "%s%s%s=%s", text, *text ? " " : "", grid.key[k]->key, value);
        }
        TRY(try_settings(t, policy, &settings, text, false, why));
    } while (step(&grid));
    return ST_OK;
}

/* ---- the whole front of one that has it from one solve ---- */

/* The plan of the budget that arena bytes and what is static make, as the policy itself finds it. */
static enum status try_arena(struct policy_grid *t, const struct policy *policy, const struct optimum *optimum,
                             size_t arena)
{
    const struct plan_options options = job_plan_options(t->job);
    struct budgeted found;
    struct plan *plan;
    TRY(budget_find(optimum, arena, &options, &found));
    if (found.point < 0) return ST_OK;
    TRY(budget_place(optimum, found.point, &options, &plan));
    enum status status = ST_OK;
    if (plan->slowdown <= t->slowdown)
        status = add_trial(t, policy, region_text(t->region, "budget=%zu", plan_static(plan) + arena), false, plan);
    plan_destroy(plan);
    return status;
}

static enum status arena_of(const struct policy_grid *t, const struct optimum *optimum, int point, size_t *arena)
{
    const struct plan_options options = job_plan_options(t->job);
    struct plan *plan;
    TRY(budget_place(optimum, point, &options, &plan));
    *arena = plan->arena_bytes;
    plan_destroy(plan);
    return ST_OK;
}

/* Points with as much memory as the other trials have: what is left out would else let them look better than it. */
static enum status try_beside(struct policy_grid *t, const struct policy *policy, const struct optimum *optimum)
{
    const int trials = t->trials;
    for (int i = 0; i < trials; i++) {
        bool seen = t->trial[i].policy == policy;
        for (int j = 0; j < i && !seen; j++) seen = t->trial[j].arena == t->trial[i].arena;
        if (!seen) TRY(try_arena(t, policy, optimum, t->trial[i].arena));
    }
    return ST_OK;
}

/* Points from the smallest up, or some of them evenly spread. With a slowdown only those that keep it, for as long as
 * their live peak, which no arena undercuts, is below the least arena so far. */
static enum status try_points(struct policy_grid *t, const struct policy *policy, const struct optimum *optimum)
{
    const struct front *front = &optimum->front;
    const double noise = 1e-9, slowest = front->point[front->count - 1].time * t->slowdown * (1 + noise);
    const bool all = isinf(t->slowdown);
    const int count = all && front->count > VALUES_MAX ? VALUES_MAX : front->count;
    size_t least = SIZE_MAX;
    t->points = front->count;
    t->left_out = front->count - count;
    for (int k = 0; k < count; k++) {
        int point = count < front->count ? (int)((int64_t)(front->count - 1) * k / (count - 1)) : k;
        size_t arena;
        char at[32];
        if (front->point[point].peak >= least) break;
        if (front->point[point].time > slowest) continue;
        snprintf(at, sizeof at, "point %d of %d", k + 1, count);
        note(t, policy, at);
        TRY(arena_of(t, optimum, point, &arena));
        TRY(try_arena(t, policy, optimum, arena));
        if (!all && arena < least) least = arena;
    }
    return t->left_out ? try_beside(t, policy, optimum) : ST_OK;
}

static enum status try_front(struct policy_grid *t, const struct policy *policy, const char **why)
{
    struct optimum *optimum;
    if (t->memory) return try_grid(t, policy, why);
    note(t, policy, "");
    TRY(rivals_solve(t->job->network, (enum rng_mode)t->job->spec->rng, &optimum));
    enum status status = try_points(t, policy, optimum);
    optimum_destroy(optimum);
    return status;
}

/* Policies that are not tried value by value. */
static const struct special_row {
    const char *policy;
    enum status (*tries)(struct policy_grid *t, const struct policy *policy, const char **why);
} specials[] = {
    {"optimal", try_front}, {NULL, try_grid}, /* every other one */
};

static const struct special_row *row_of(const struct policy *policy)
{
    const struct special_row *row = specials;
    while (row->policy && strcmp(row->policy, policy->name)) row++;
    return row;
}

/* ---- */

static enum status refuse(struct policy_grid *t, const struct policy *policy, const char *why)
{
    size_t policies = 0;
    while (policy_table[policies]) policies++;
    if (!t->refusal) NEW(t->region, t->refusal, policies + 1);
    t->refusal[t->refusals++] = (struct refusal){policy, why};
    return ST_OK;
}

enum status policy_grid_policy(struct policy_grid *tries, const struct policy *policy)
{
    const int before = tries->trials;
    const char *why = NULL;
    TRY(row_of(policy)->tries(tries, policy, &why));
    return tries->trials == before && why ? refuse(tries, policy, why) : ST_OK;
}

enum status policy_grid_own(struct policy_grid *tries)
{
    const struct spec *spec = tries->job->spec;
    const struct plan *plan = tries->job->plan;
    const char *why = NULL;
    if (spec->plan && plan->network->graph == tries->job->graph)
        return add_trial(tries, spec->policy, "as its plan file has it", true, plan);
    if (spec->plan) return refuse(tries, spec->policy, "a plan file is of one batch");
    TRY(try_settings(tries, spec->policy, &spec->policy_settings, "as the spec sets it", true, &why));
    return why ? refuse(tries, spec->policy, why) : ST_OK;
}

enum status policy_grid_all(struct policy_grid *tries)
{
    TRY(policy_grid_own(tries));
    for (int special = 0; special < 2; special++) /* those last, which look at what the others take */
        for (const struct policy *const *p = policy_table; *p; p++)
            if ((row_of(*p)->policy != NULL) == special) TRY(policy_grid_policy(tries, *p));
    return ST_OK;
}

/* Whether a is no worse than b in both, and better in one. */
static bool beats(const struct trial *a, const struct trial *b)
{
    return a->peak <= b->peak && a->time <= b->time && (a->peak < b->peak || a->time < b->time);
}

enum status policy_grid_judge(struct policy_grid *tries)
{
    for (int i = 0; i < tries->trials; i++) {
        struct trial *trial = &tries->trial[i];
        struct bounds bounds;
        TRY(bounds_find(tries->job->network, trial->live_peak, &bounds));
        trial->gap = bounds_gap(&bounds, trial->time);
        trial->best = true;
        for (int j = 0; j < tries->trials && trial->best; j++) trial->best = !beats(&tries->trial[j], trial);
    }
    return ST_OK;
}

void policy_grid_forget(struct policy_grid *tries) { tries->trials = tries->refusals = 0; }

/* A front is asked for its least peak, at any slowdown; all of it is asked for by INFINITY. */
static enum status smallest(struct policy_grid *tries, const struct trial **least)
{
    TRY(policy_grid_own(tries));
    TRY(policy_grid_all(tries));
    *least = NULL;
    for (int i = 0; i < tries->trials; i++)
        if (!*least || tries->trial[i].peak < (*least)->peak) *least = &tries->trial[i];
    return ST_OK;
}

enum status policy_grid_smallest(const struct job *job, uint64_t bytes, char text[SMALLEST_TEXT])
{
    struct policy_grid tries = {.region = region_create(), .job = job, .slowdown = DBL_MAX};
    const struct trial *least = NULL;
    char need[UNIT_TEXT];
    if (!tries.region) return fail(ST_FAILED, "out of memory for plans");
    enum status status = smallest(&tries, &least);
    *text = '\0';
    if (status == ST_OK && least)
        snprintf(text, SMALLEST_TEXT, "%s is policy %s%s%s, %s",
                 least->peak <= bytes ? "the smallest plan that fits" : "no policy's plan fits; the smallest",
                 least->policy->name, *least->settings ? ", " : "", least->settings,
                 bytes_text((double)least->peak, need));
    region_destroy(tries.region);
    return status;
}
