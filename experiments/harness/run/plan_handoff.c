#include "run/plan_handoff.h"

#include <string.h>

/* Then the places of the buffers, and the schedule's text with its end. */
struct heading {
    size_t schedule;
    int buffers;
    size_t arena_bound;
    struct digest hash;
    struct policy_notes notes;
    struct bounds bounds, budget_bounds;
    uint64_t planning_ns;
};

static size_t bytes_of(const struct heading *h)
{
    return sizeof *h + (size_t)h->buffers * sizeof(struct buffer) + h->schedule;
}

struct plan_handoff plan_handoff_of(const struct job *job, struct region *region)
{
    const struct plan *plan = job->plan;
    const struct heading h = {.schedule = strlen(plan->schedule) + 1,
                              .buffers = plan->lowered.buffers,
                              .arena_bound = plan->arena_bound,
                              .hash = plan->hash,
                              .notes = job->notes,
                              .bounds = job->bounds,
                              .budget_bounds = job->budget_bounds,
                              .planning_ns = job->planning_ns};
    char *data = region_array(region, bytes_of(&h), 1);
    memcpy(data, &h, sizeof h);
    memcpy(data + sizeof h, plan->lowered.buffer, (size_t)h.buffers * sizeof *plan->lowered.buffer);
    memcpy(data + bytes_of(&h) - h.schedule, plan->schedule, h.schedule);
    return (struct plan_handoff){data, bytes_of(&h)};
}

enum status plan_handoff_take(struct job *job, const struct plan_handoff *handoff)
{
    region_auto *region = region_create();
    const struct heading *h = handoff->data;
    struct schedule schedule;
    const struct plan_options options = job_plan_options(job);
    if (handoff->bytes < sizeof *h || handoff->bytes != bytes_of(h))
        return fail(ST_FAILED, "the plan of this run is incomplete: %zu bytes", handoff->bytes);
    TRY(schedule_parse((const char *)handoff->data + handoff->bytes - h->schedule, region, &schedule));
    job->notes = h->notes;
    job->bounds = h->bounds;
    job->budget_bounds = h->budget_bounds;
    job->planning_ns = h->planning_ns;
    job->plan = plan_build(job->network, &schedule, &options);
    if (job->plan->lowered.buffers == h->buffers) plan_move(job->plan, (const struct buffer *)(const void *)(h + 1));
    job->plan->arena_bound = h->arena_bound;
    if (digest_equal(job->plan->hash, h->hash)) return ST_OK;
    return fail(ST_FAILED, "the plan of this run is %s here, and %s where it was made", DIGEST_TEXT(job->plan->hash),
                DIGEST_TEXT(h->hash));
}
