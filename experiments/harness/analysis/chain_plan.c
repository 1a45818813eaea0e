#include "analysis/chain_plan.h"

#include "search/budget.h"

enum { FRONT_ROWS = 12 };

static struct plan_options plan_options(const struct chain_file *file)
{
    return (struct plan_options){.lower = {.drop_dead = file->drop_dead}, .unplaced = true};
}

static enum status plan_schedule(const struct chain_plan *c, const struct policy *policy,
                                 const struct policy_settings *settings, struct plan **plan)
{
    struct region *region = region_create();
    if (!region) return fail(ST_FAILED, "out of memory for a plan");
    struct schedule schedule = schedule_empty(region);
    const struct plan_options options = plan_options(c->file);
    struct policy_settings told = *settings;
    told.plan = &options;
    enum status status = policy_schedule(policy, c->network, &told, region, &schedule);
    if (status == ST_OK) status = plan_build(c->network, &schedule, &options, plan);
    region_destroy(region);
    return status;
}

static enum status plan_point(const struct chain_plan *c, int point, struct plan **plan)
{
    struct region *region = region_create();
    if (!region) return fail(ST_FAILED, "out of memory for a plan");
    struct schedule schedule = schedule_empty(region);
    const struct plan_options options = plan_options(c->file);
    enum status status = optimum_schedule(c->optimum, point, &schedule);
    if (status == ST_OK) status = plan_build(c->network, &schedule, &options, plan);
    region_destroy(region);
    return status;
}

/* Counts a plan and destroys it. */
static enum status add_choice(struct chain_plan *c, const char *policy, bool front, struct plan *plan)
{
    struct chain_choice *choice = &c->choice[c->choices++];
    *choice = (struct chain_choice){.policy = policy,
                                    .front = front,
                                    .live_peak = plan->live_peak,
                                    .time = plan->time,
                                    .slowdown = plan->slowdown,
                                    .recomputations = plan->recomputations};
    plan_destroy(plan);
    return bounds_find(c->network, choice->live_peak, &choice->bounds);
}

static enum status refuse(struct chain_plan *c, const struct policy *policy, const char *why)
{
    if (!why) return ST_FAILED;
    c->refusal[c->refusals++] = (struct refusal){policy, why};
    return ST_OK;
}

/* With presets alone; `optimal` is there as its front. */
static enum status add_policy(struct chain_plan *c, const struct policy *policy)
{
    struct policy_settings settings = {0};
    struct plan *plan;
    if (policy == policy_find("optimal")) return ST_OK;
    for (const struct setting *f = policy->keys; f && f->key; f++)
        if (!f->preset) return refuse(c, policy, region_text(c->region, "policy.%s is not set", f->key));
    TRY(setting_defaults(policy->keys, &settings, c->region));
    enum status status = plan_schedule(c, policy, &settings, &plan);
    if (status == ST_SPEC) return refuse(c, policy, region_text(c->region, "%s", status_message()));
    TRY(status);
    return add_choice(c, policy->name, false, plan);
}

/* Points at equal distances in the front, its ends among them. */
static enum status add_front(struct chain_plan *c)
{
    const int count = c->optimum->front.count, rows = count < FRONT_ROWS ? count : FRONT_ROWS;
    for (int row = 0; row < rows; row++) {
        struct plan *plan;
        TRY(plan_point(c, rows > 1 ? row * (count - 1) / (rows - 1) : 0, &plan));
        TRY(add_choice(c, "optimal", true, plan));
    }
    return ST_OK;
}

static enum status plan_all(struct chain_plan *c)
{
    size_t policies = 0;
    while (policy_table[policies]) policies++;
    NEW(c->region, c->choice, policies + FRONT_ROWS);
    NEW(c->region, c->refusal, policies);
    for (size_t i = 0; i < policies; i++) TRY(add_policy(c, policy_table[i]));
    TRY(optimum_solve(c->network, RNG_COUNTER, &c->optimum));
    return add_front(c);
}

static enum status plan_one(struct chain_plan *c)
{
    TRY(plan_schedule(c, c->file->policy, &c->file->settings, &c->plan));
    const struct plan_options options = plan_options(c->file);
    TRY(plan_bounds(c->plan, c->file->policy, &c->file->settings, &options, &c->bounds, &c->budget_bounds));
    return plan_tensors(c->plan, c->region, &c->tensor, &c->tensors);
}

static enum status create(struct chain_plan *c)
{
    const struct plan_options options = plan_options(c->file);
    TRY(abstract_create(c->file->stage, c->file->stages, &c->network));
    TRY(budget_baseline(c->network, &options, &c->store_all_live));
    const uint64_t start = clock_now_ns();
    TRY((c->file->policy ? plan_one : plan_all)(c));
    c->planning_ns = clock_now_ns() - start;
    return ST_OK;
}

enum status chain_plan_create(const struct chain_file *file, struct chain_plan **plan)
{
    *plan = NULL;
    struct region *region = region_create();
    struct chain_plan *c = region ? region_array(region, 1, sizeof *c) : NULL;
    if (!c) {
        region_destroy(region);
        return fail(ST_FAILED, "out of memory for a plan");
    }
    c->region = region;
    c->file = file;
    enum status status = create(c);
    if (status == ST_OK)
        *plan = c;
    else
        chain_plan_destroy(c);
    return status;
}

void chain_plan_destroy(struct chain_plan *plan)
{
    if (!plan) return;
    optimum_destroy(plan->optimum);
    plan_destroy(plan->plan);
    abstract_destroy(plan->network);
    region_destroy(plan->region);
}
