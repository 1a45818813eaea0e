#include "analysis/policy_grid.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "console/terminal.h"
#include "policies/rivals.h"
#include "search/limits.h"

enum { VALUES_MAX = 64, VALUES_MIN = 4, VALUES_NODES = 1 << 17 };

/* ---- plans ---- */

/* settings: options that set the same plan, each after "policy."; null: the spec's own. */
json_t *trial_json(const struct trial *t)
{
    return OBJECT(KEY("policy", t->policy->name), KEY("settings", t->own ? NULL : t->settings),
                  KEY("own", json_boolean(t->own)), KEY("static_bytes", t->plan.static_bytes),
                  KEY("live_peak_bytes", t->plan.live_peak), KEY("arena_bytes", t->plan.arena),
                  KEY("peak_bytes", t->plan.peak), KEY("slowdown", t->plan.slowdown), KEY("peak_op", t->peak_op));
}

int trial_order(const struct trial *a, const struct trial *b)
{
    if (a->plan.peak != b->plan.peak) return a->plan.peak < b->plan.peak ? -1 : 1;
    return (a->plan.time > b->plan.time) - (a->plan.time < b->plan.time);
}

static void set_plan(struct policy_grid *g, struct trial *trial, const struct plan *plan)
{
    char op[128];
    trial->plan = plan_numbers(plan);
    trial->peak_op = region_text(g->region, "%s", plan_op_text(plan, plan->peak_op, op));
    trial->peak_tensors = plan_peak_text(plan, g->region);
    trial->hash = plan->hash;
}

/* Returns the trial; an earlier one where that is the same. */
static struct trial *add_trial(struct policy_grid *g, const struct policy *policy, const char *settings, bool own,
                               const struct plan *plan)
{
    for (int i = 0; i < g->trials; i++) {
        struct trial *other = &g->trial[i];
        if (other->policy == policy && other->own == own && digest_equal(other->hash, plan->hash)) return other;
    }
    region_grow(g->region, &g->trial, g->trials, sizeof *g->trial);
    g->trial[g->trials] = (struct trial){.policy = policy, .settings = settings, .own = own};
    set_plan(g, &g->trial[g->trials], plan);
    return &g->trial[g->trials++];
}

static void refuse(struct policy_grid *g, const struct policy *policy, const char *why)
{
    region_grow(g->region, &g->refusal, g->refusals, sizeof *g->refusal);
    g->refusal[g->refusals++] = (struct refusal){policy, why};
}

static void note(const struct policy_grid *g, const struct policy *policy, const char *settings)
{
    char text[128];
    snprintf(text, sizeof text, "  planning batch %lld: %s %s", (long long)g->job->graph->batch, policy->name,
             settings);
    terminal_note(g->progress, text);
}

/* Adds one plan; *why: the first reason for which the policy refused its settings (ST_SPEC). Where only the least peak
 * counts, its placement is left for later, unless the policy itself places. */
static enum status plan_settings(struct policy_grid *g, const struct policy *policy,
                                 const struct policy_settings *settings, const char *text, bool own, const char **why)
{
    const bool deferred = g->memory && !policy->fills;
    struct plan_options options = job_plan_options(g->job);
    plan_auto *plan = NULL;
    options.unplaced |= deferred;
    note(g, policy, text);
    enum status status = policy_plan(policy, &(struct policy_input){g->job->network, settings, &options}, &plan);
    if (status == ST_SPEC && !*why) *why = region_text(g->region, "%s", status_message());
    if (status != ST_OK) return status == ST_SPEC ? ST_OK : status;
    if (own && !g->memory) plan_search_placement(plan); /* so the spec's own arena is the one that it runs in */
    struct trial *trial = add_trial(g, policy, text, own, plan);
    trial->deferred = deferred;
    trial->set = *settings;
    return ST_OK;
}

/* Places a trial's plan. It was planned before, so there is no reason to refuse it. */
static void place(struct policy_grid *g, struct trial *trial)
{
    plan_auto *plan = NULL;
    if (job_plan(g->job, trial->policy, &trial->set, NULL, &plan) == ST_OK) set_plan(g, trial, plan);
    trial->deferred = false;
}

/* An arena is at least as large as the live peak, so a trial is placed where that is the least of all. */
const struct trial *policy_grid_least(struct policy_grid *g, const struct policy *policy, bool own, double slowdown)
{
    struct trial *least;
    do {
        least = NULL;
        for (int i = 0; i < g->trials; i++) {
            struct trial *trial = &g->trial[i];
            if (trial->policy != policy || trial->own != own || trial->plan.slowdown > slowdown) continue;
            if (!least || trial_order(trial, least) < 0) least = trial;
        }
        if (!least || !least->deferred) return least;
        place(g, least);
    } while (true);
}

/* ---- the values of a key ---- */

struct key_values {
    int count;
    const char *value[VALUES_MAX];
};

/* How many are tried: fewer of a network of thousands of nodes, each of whose plans takes a second. */
static int values_most(const struct policy_grid *g)
{
    const int nodes = g->job->graph->nodes, most = VALUES_NODES / (nodes + 1);
    return most < VALUES_MIN ? VALUES_MIN : most < VALUES_MAX ? most : VALUES_MAX;
}

static void add_value(struct key_values *k, const char *value)
{
    if (k->count < VALUES_MAX) k->value[k->count++] = value;
}

/* Whole numbers from 1 to the number of stages, evenly spread where there are many stages. */
static void stage_values(struct policy_grid *g, struct key_values *k)
{
    const int all = stages_find(g->job->graph, g->region).count, most = values_most(g), count = all < most ? all : most;
    for (int i = 0; i < count; i++)
        add_value(k,
                  region_text(g->region, "%d", all == count ? i + 1 : 1 + (int)((int64_t)(all - 1) * i / (count - 1))));
}

static void unit_values(struct policy_grid *g, struct key_values *k)
{
    if (g->job->graph->groups) add_value(k, policy_unit_names[UNIT_GROUP]);
    add_value(k, policy_unit_names[UNIT_STAGE]);
}

static void budget_values(struct policy_grid *g, struct key_values *k)
{
    add_value(k, g->memory ? region_text(g->region, "%llu", (unsigned long long)g->memory) : "least");
    const int step = values_most(g) < 18 ? 90 / (values_most(g) - 1) : 5;
    for (int percent = 10; !g->memory && percent <= 100; percent += step)
        add_value(k, region_text(g->region, "%d%%", percent));
}

/* Each kind of layer of the network alone, and all that have no parameters. */
static void kind_values(struct policy_grid *g, struct key_values *k)
{
    const struct graph *graph = g->job->graph;
    add_value(k, "weightless");
    for (int i = 0; i < graph->nodes; i++) {
        bool seen = graph->node[i].layer->loss;
        for (int v = 0; v < k->count; v++) seen |= !strcmp(k->value[v], graph->node[i].layer->name);
        if (!seen) add_value(k, graph->node[i].layer->name);
    }
}

/* The search, and fractions of all outputs' bytes. */
static void segment_budget_values(struct policy_grid *g, struct key_values *k)
{
    enum { PARTS = 16 };
    const struct graph *graph = g->job->graph;
    size_t all = 0;
    for (int v = 1; v < graph->values; v++) all += graph->value[v].bytes;
    add_value(k, "search");
    const size_t step = values_most(g) < PARTS ? PARTS / (size_t)values_most(g) : 1;
    for (size_t parts = 2; parts <= PARTS; parts += step) add_value(k, region_text(g->region, "%zu", all / parts + 1));
}

/* By key, of whichever policy; a key that is not listed keeps its preset. */
static const struct range_row {
    const char *key;
    void (*values)(struct policy_grid *g, struct key_values *k);
} key_ranges[] = {
    {"segments", stage_values},
    {"slots", stage_values},
    {"unit", unit_values},
    {"budget", budget_values},
    {"kinds", kind_values},
    {"segment_budget", segment_budget_values},
    {NULL, NULL},
};

/* Plans with all values of the keys from key on; text: the values of those before. */
static enum status plan_values(struct policy_grid *g, const struct policy *policy, const struct setting *key,
                               struct policy_settings *settings, const char *text, const char **why)
{
    const struct range_row *row = key_ranges;
    struct key_values k = {0};
    if (!key->key) return plan_settings(g, policy, settings, text, false, why);
    while (row->key && strcmp(row->key, key->key)) row++;
    if (!row->key && key->preset) return plan_values(g, policy, key + 1, settings, text, why);
    if (!row->key) {
        *why = region_text(g->region, "policy.%s must be set", key->key);
        return ST_OK;
    }
    row->values(g, &k);
    for (int i = 0; i < k.count; i++) {
        const char *longer = region_text(g->region, "%s%s%s=%s", text, *text ? " " : "", key->key, k.value[i]);
        TRY(setting_set(key, settings, k.value[i], g->region));
        TRY(plan_values(g, policy, key + 1, settings, longer, why));
    }
    return ST_OK;
}

/* ---- the front of `optimal` ---- */

/* The plan of the fastest schedule in so many arena bytes. */
static void plan_arena(struct policy_grid *g, const struct policy *policy, struct pool *pool, size_t arena)
{
    const struct selection found = pool_select(pool, arena);
    if (!found.member) return;
    plan_auto *plan = pool_plan(pool, found.member);
    if (plan->slowdown <= g->slowdown)
        add_trial(g, policy, region_text(g->region, "budget=%zu", plan_static(plan) + arena), false, plan);
}

/* Points with as much memory as the other policies' trials: without them a point that is left out could make such a
 * trial seem better than the front. */
static void plan_beside(struct policy_grid *g, const struct policy *policy, struct pool *pool)
{
    const int trials = g->trials;
    for (int i = 0; i < trials; i++) {
        bool seen = g->trial[i].policy == policy;
        for (int j = 0; j < i && !seen; j++) seen = g->trial[j].plan.arena == g->trial[i].plan.arena;
        if (!seen) plan_arena(g, policy, pool, g->trial[i].plan.arena);
    }
}

/* Points from the smallest up, or some of them evenly spread. With a slowdown only those that keep it, for as long as
 * their live peak, which no arena undercuts, is below the least arena so far. */
static void plan_points(struct policy_grid *g, const struct policy *policy, struct pool *pool)
{
    const struct member *const *origin;
    const struct front front = pool_front(pool, g->region, &origin);
    const double noise = 1e-9, slowest = front.point[front.count - 1].time * g->slowdown * (1 + noise);
    const bool all = isinf(g->slowdown);
    const int count = all && front.count > values_most(g) ? values_most(g) : front.count;
    size_t least = SIZE_MAX;
    g->points = front.count;
    g->left_out = front.count - count;
    for (int k = 0; k < count; k++) {
        int point = count < front.count ? (int)((int64_t)(front.count - 1) * k / (count - 1)) : k;
        char at[32];
        if (front.point[point].peak >= least) break;
        if (front.point[point].time > slowest) continue;
        snprintf(at, sizeof at, "point %d of %d", k + 1, count);
        note(g, policy, at);
        const size_t arena = pool_arena(pool, origin[point]);
        plan_arena(g, policy, pool, arena);
        if (!all && arena < least) least = arena;
    }
    if (g->left_out) plan_beside(g, policy, pool);
}

static void plan_front(struct policy_grid *g, const struct policy *policy)
{
    const int stages = stages_find(g->job->graph, g->region).count;
    const struct plan_options options = job_plan_options(g->job);
    if (stages > CHAIN_FRONT_STAGES) {
        refuse(g, policy,
               region_text(g->region, "its front is found for up to %d stages only; this network has %d",
                           CHAIN_FRONT_STAGES, stages));
        return;
    }
    note(g, policy, "");
    const uint64_t start = clock_now_ns();
    struct pool *pool = rivals_front(g->job->network, &options);
    g->front_ns = clock_now_ns() - start;
    const char *approximation = pool_approximation(pool);
    g->approximation = approximation ? region_text(g->region, "%s", approximation) : NULL;
    plan_points(g, policy, pool);
    pool_destroy(pool);
}

/* ---- all ---- */

bool policy_grid_has_front(const struct policy *policy) { return policy == policy_find("optimal"); }

enum status policy_grid_policy(struct policy_grid *grid, const struct policy *policy)
{
    const int before = grid->trials;
    const char *why = NULL;
    if (policy_grid_has_front(policy) && !grid->memory) return plan_front(grid, policy), ST_OK;
    if (policy->needs_slices && !grid->job->network->slice) return ST_OK;
    struct policy_settings settings = policy_defaults(policy, grid->region);
    TRY(plan_values(grid, policy, policy->keys, &settings, "", &why));
    if (grid->trials == before && why) refuse(grid, policy, why);
    return ST_OK;
}

enum status policy_grid_own(struct policy_grid *grid)
{
    const struct spec *spec = grid->job->spec;
    const struct plan *plan = grid->job->plan;
    const char *why = NULL;
    if (spec->plan && plan->network->graph == grid->job->graph)
        add_trial(grid, spec->policy, "as its plan file has it", true, plan);
    else if (spec->plan)
        why = "a plan file is of one batch";
    else
        TRY(plan_settings(grid, spec->policy, &spec->policy_settings, "as the spec sets it", true, &why));
    if (why) refuse(grid, spec->policy, why);
    return ST_OK;
}

/* The front comes last: it has points beside the other policies' trials. */
enum status policy_grid_all(struct policy_grid *grid)
{
    TRY(policy_grid_own(grid));
    for (int front = 0; front < 2; front++)
        for (const struct policy *const *p = policy_table; *p; p++)
            if (policy_grid_has_front(*p) == front) TRY(policy_grid_policy(grid, *p));
    for (int i = 0; i < grid->trials; i++) {
        struct trial *trial = &grid->trial[i];
        const struct bounds bounds = bounds_find(grid->job->network, trial->plan.live_peak);
        trial->gap = bounds_gap(&bounds, trial->plan.time);
        trial->best = true;
        for (int j = 0; j < grid->trials; j++) {
            const struct plan_numbers *a = &grid->trial[j].plan, *b = &trial->plan;
            const bool better = a->peak < b->peak || a->time < b->time;
            trial->best &= !(better && a->peak <= b->peak && a->time <= b->time);
        }
    }
    return ST_OK;
}

enum status policy_grid_smallest(const struct job *job, uint64_t bytes, char text[SMALLEST_TEXT])
{
    /* a front has one plan here, that of its least peak at any slowdown; INFINITY would ask for all of it */
    region_auto *region = region_create();
    struct policy_grid grid = {.region = region, .job = job, .slowdown = DBL_MAX};
    const struct trial *least = NULL;
    *text = '\0';
    TRY(policy_grid_all(&grid));
    for (int i = 0; i < grid.trials; i++)
        if (!least || grid.trial[i].plan.peak < least->plan.peak) least = &grid.trial[i];
    if (least)
        snprintf(text, SMALLEST_TEXT, "%s is policy %s%s%s, %s",
                 least->plan.peak <= bytes ? "the smallest plan that fits" : "no policy's plan fits; the smallest",
                 least->policy->name, *least->settings ? ", " : "", least->settings, BYTES_TEXT(least->plan.peak));
    return ST_OK;
}
