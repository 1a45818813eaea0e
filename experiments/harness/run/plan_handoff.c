#include "run/plan_handoff.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* Then the schedule's text with its end, and the buffers with their places. */
struct heading {
    size_t schedule;
    int buffers;
    size_t arena_bound;
    struct digest hash;
    struct policy_notes notes;
    struct bounds bounds, budget_bounds;
    uint64_t planning_ns;
};

static enum status write_all(int descriptor, const void *data, size_t bytes)
{
    const ssize_t written = write(descriptor, data, bytes);
    return written == (ssize_t)bytes ? ST_OK : fail(ST_FAILED, "no memory for the plan of a run: %s", strerror(errno));
}

enum status plan_handoff_write(const struct job *job, int descriptor)
{
    const struct plan *plan = job->plan;
    const struct heading heading = {.schedule = strlen(plan->schedule) + 1,
                                    .buffers = plan->lowered.buffers,
                                    .arena_bound = plan->arena_bound,
                                    .hash = plan->hash,
                                    .notes = job->notes,
                                    .bounds = job->bounds,
                                    .budget_bounds = job->budget_bounds,
                                    .planning_ns = job->planning_ns};
    TRY(write_all(descriptor, &heading, sizeof heading));
    TRY(write_all(descriptor, plan->schedule, heading.schedule));
    return write_all(descriptor, plan->lowered.buffer, (size_t)heading.buffers * sizeof *plan->lowered.buffer);
}

static enum status read_at(int descriptor, size_t from, void *data, size_t bytes)
{
    return file_read(descriptor, "the plan of this run", from, bytes, data);
}

static enum status build(struct job *job, const struct heading *h, const char *text, const struct buffer *buffer)
{
    region_auto *region = region_create();
    struct schedule schedule;
    const struct plan_options options = job_plan_options(job);
    TRY(schedule_parse(text, region, &schedule));
    job->plan = plan_build(job->network, &schedule, &options);
    if (job->plan->lowered.buffers == h->buffers) plan_move(job->plan, buffer);
    job->plan->arena_bound = h->arena_bound;
    if (digest_equal(job->plan->hash, h->hash)) return ST_OK;
    return fail(ST_FAILED, "the plan of this run is %s here, and %s where it was made", DIGEST_TEXT(job->plan->hash),
                DIGEST_TEXT(h->hash));
}

enum status plan_handoff_take(struct job *job, int descriptor)
{
    region_auto *region = region_create();
    struct heading h;
    TRY(read_at(descriptor, 0, &h, sizeof h));
    char *text = region_array(region, h.schedule, 1);
    struct buffer *buffer = region_array(region, (size_t)h.buffers, sizeof *buffer);
    TRY(read_at(descriptor, sizeof h, text, h.schedule));
    TRY(read_at(descriptor, sizeof h + h.schedule, buffer, (size_t)h.buffers * sizeof *buffer));
    job->notes = h.notes;
    job->bounds = h.bounds;
    job->budget_bounds = h.budget_bounds;
    job->planning_ns = h.planning_ns;
    return build(job, &h, text, buffer);
}
