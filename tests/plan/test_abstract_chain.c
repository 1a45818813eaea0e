/* Abstract chains: their live bytes at every op, counted by hand, and stages that are refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "backend/abstract_chain.h"
#include "plan/plan.h"

static const struct abstract_stage chain[] = {
    {.forward = 1, .backward = 2, .output = 10, .saved = 3, .gradient = 7, .forward_scratch = 2, .backward_scratch = 5},
    {.forward = 3,
     .backward = 5,
     .output = 20,
     .saved = 4,
     .gradient = 6,
     .forward_scratch = 1,
     .backward_scratch = 8,
     .split = true},
    {.forward = 7, .backward = 11, .output = 30, .saved = 5, .gradient = 9, .backward_scratch = 11},
};

static void check(const char *text, int ops, const size_t *live, double time)
{
    struct network *network;
    struct schedule schedule;
    int at;
    cr_assert(abstract_create(chain, 3, &at, &network) == ST_OK, "%s", status_message());
    cr_assert(schedule_parse(text, network->graph->region, &schedule) == ST_OK);
    struct plan_options options = {.lower = {.drop_dead = true}, .state_per_parameter = 2};
    struct plan *plan = plan_build(network, &schedule, &options);
    cr_assert(plan->lowered.ops == ops, "%s: %d ops", text, plan->lowered.ops);
    for (int i = 0; i < ops; i++) cr_assert(plan->live[i] == live[i], "%s: op %d has %zu live", text, i, plan->live[i]);
    cr_assert(plan_static(plan) == 0);
    cr_assert(plan->time == time);
    plan_destroy(plan);
    abstract_destroy(network);
}

Test(abstract_chain, live_bytes_as_counted_by_hand)
{
    check("F[0,3) B[0,3)", 7,
          (const size_t[]){10 + 3 + 2, 10 + 3 + 20 + 4 + 1, 10 + 3 + 20 + 4 + 30 + 5, 10 + 3 + 20 + 4 + 5 + 9 + 6 + 11,
                           10 + 3 + 4 + 6 + 8, 3 + 4 + 6 + 7 + 8, 3 + 7 + 5},
          29);
    check("F[0,3) B[2,3) F[0,1) B[0,2)", 8,
          (const size_t[]){10 + 2, 10 + 20 + 4 + 1, 20 + 4 + 30 + 5, 20 + 4 + 5 + 9 + 6 + 11, 4 + 6 + 10 + 3 + 2,
                           10 + 3 + 4 + 6 + 8, 3 + 4 + 6 + 7 + 8, 3 + 7 + 5},
          30);
}

Test(abstract_chain, impossible_stages_are_refused)
{
    static const struct {
        struct abstract_stage stage;
        const char *says;
    } bad[] = {{{.output = -1}, "sizes"},
               {{.saved = -5}, "sizes"},
               {{.gradient = INT64_MIN}, "sizes"},
               {{.forward_scratch = INT64_MAX}, "sizes"},
               {{.backward_scratch = (INT64_C(1) << 62) + 1}, "sizes"},
               {{.saved = INT64_C(1) << 61, .gradient = (INT64_C(1) << 61) + 1}, "sizes"},
               {{.forward = -1}, "times"},
               {{.backward = NAN}, "times"},
               {{.forward = INFINITY}, "times"},
               {{.forward = 5e15, .backward = 5e15}, "times"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct abstract_stage stage[] = {chain[0], bad[i].stage};
        struct network *network;
        int at;
        cr_assert(abstract_create(stage, 2, &at, &network) == ST_SPEC && at == 1);
        cr_assert(strstr(status_message(), "stage 2") && strstr(status_message(), bad[i].says), "%s", status_message());
    }
    struct network *network;
    int at;
    cr_assert(abstract_create(chain, 0, &at, &network) == ST_SPEC);
}
