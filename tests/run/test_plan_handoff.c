/* The plan that a process is given to run, in place of searching for it. */
#include <criterion/criterion.h>
#include <string.h>

#include "run/job_plans.h"
#include "tests/support/made_runs.h"
#include "tests/support/spec_text.h"

TestSuite(plan_handoff, .init = spec_text_begin, .fini = spec_text_end);

static void forget_plan(struct fake *f)
{
    plan_destroy(f->job.plan);
    f->job.plan = NULL;
}

Test(plan_handoff, gives_the_plan_and_all_that_planning_found)
{
    for (const struct net *net = nets; net->name; net++) {
        struct fake from, to;
        fake_open(&from, net, ".");
        from.job.notes = (struct policy_notes){.live_peak = 5, .tries = 2, .lost = 0.5, .found = "as a search says"};
        from.job.bounds = (struct bounds){.budget = 7, .best = 1.25};
        from.job.budget_bounds = (struct bounds){.budget = 9, .best = 1.5};
        from.job.planning_ns = 123456789;
        struct buffer *last = &from.job.plan->lowered.buffer[from.job.plan->lowered.buffers - 1];
        last->offset += from.job.plan->arena_bytes; /* a place that no search gives */
        plan_move(from.job.plan, from.job.plan->lowered.buffer);
        const struct plan_handoff handoff = plan_handoff_of(&from.job, from.job.graph->region);
        fake_open(&to, net, ".");
        forget_plan(&to);
        cr_assert(plan_handoff_take(&to.job, &handoff) == ST_OK, "%s: %s", net->name, status_message());
        cr_expect(digest_equal(to.job.plan->hash, from.job.plan->hash));
        cr_expect(to.job.plan->arena_bytes == from.job.plan->arena_bytes);
        cr_expect(to.job.plan->arena_bound == from.job.plan->arena_bound);
        cr_expect_str_eq(to.job.plan->schedule, from.job.plan->schedule);
        cr_expect(!memcmp(&to.job.notes, &from.job.notes, sizeof to.job.notes));
        cr_expect(!memcmp(&to.job.bounds, &from.job.bounds, sizeof to.job.bounds));
        cr_expect(!memcmp(&to.job.budget_bounds, &from.job.budget_bounds, sizeof to.job.bounds));
        cr_expect(to.job.planning_ns == from.job.planning_ns);
        fake_close(&from);
        fake_close(&to);
    }
}

Test(plan_handoff, another_networks_plan_is_refused)
{
    struct fake from, to;
    fake_open(&from, &nets[0], ".");
    struct plan_handoff handoff = plan_handoff_of(&from.job, from.job.graph->region);
    fake_open(&to, &nets[0], ".");
    forget_plan(&to);
    to.job.network->binding[0].footprint.forward_scratch += 4096; /* other kernels */
    cr_expect(plan_handoff_take(&to.job, &handoff) == ST_FAILED && strstr(status_message(), " where it was made"), "%s",
              status_message());
    forget_plan(&to);
    for (handoff.bytes--; handoff.bytes > 40; handoff.bytes /= 2)
        cr_expect(plan_handoff_take(&to.job, &handoff) == ST_FAILED && !to.job.plan, "%zu", handoff.bytes);
    fake_close(&from);
    fake_close(&to);
}

/* A policy that plans nothing shows that it is not asked. */
Test(plan_handoff, no_policy_is_asked_again)
{
    struct spec *given = load_well(MINIMAL, "policy=store_all", false),
                *fails = load_well(MINIMAL, "policy.name=optimal policy.budget=1", false);
    struct job *job, *planned = NULL;
    cr_assert(job_create(fails, &planned) == ST_SPEC && planned == NULL);
    cr_assert(job_create(given, &job) == ST_OK, "%s", status_message());
    const struct plan_handoff handoff = plan_handoff_of(job, job->graph->region);
    cr_assert(job_create_planned(fails, &handoff, &planned) == ST_OK, "%s", status_message());
    cr_expect(digest_equal(planned->plan->hash, job->plan->hash));
    cr_expect(planned->planning_ns == job->planning_ns);
    job_destroy(planned);
    job_destroy(job);
    spec_destroy(given);
    spec_destroy(fails);
}
