/* Each policy's schedules against those by hand, and what it refuses. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policies/policy.h"
#include "tests/support/planned_networks.h"
#include "tests/support/policy_text.h"

/* Nine nodes and a loss: dense layers (their backward reads x) in groups of three, a to c, except node 4, whose
 * backward reads its saved tensors and nothing else. */
static void begin(struct sketch *s)
{
    static const struct footprint dense = {.reads = {READS_X, 0}, .split = true};
    static const struct footprint pool = {.saved = 300, .reads = {0, READS_SAVED}};
    static const char *const names[] = {"a", "b", "c"};
    sketch_begin(s, 1024);
    for (int i = 0, v = 0; i < 9; i++) {
        if (i % 3 == 0) cr_assert(graph_group_begin(s->graph, names[i / 3]) == ST_OK);
        v = sketch_add(s, &(struct sketch_node){{v, -1}, 1024, i != 4, false, i == 4 ? pool : dense});
        if (i % 3 == 2) graph_group_end(s->graph);
        if (i == 8) sketch_finish(s, v);
    }
}

static const struct {
    const char *policy, *settings;
    const char *schedule; /* or the message of what is refused */
} cases[] = {
    {"store_all", "", "F[0,10) B[0,10)"},
    /* units: three groups and the loss; the last one takes the rest and is kept */
    {"segments", "segments=3 keep_saved=false", "F[0,10) B[6,10) F[3,6) B[3,6) F[0,3) B[0,3)"},
    {"segments", "segments=3 keep_saved=false keep_last=false", "F[0,10) F[6,10) B[6,10) F[3,6) B[3,6) F[0,3) B[0,3)"},
    {"segments", "segments=2 keep_saved=false", "F[0,10) B[6,10) F[0,6) B[0,6)"},
    {"segments", "segments=1 keep_saved=false", "F[0,10) B[0,10)"},
    {"segments", "segments=0", "F[0,10) B[0,10)"},
    /* only nodes whose y is needed, as late as it is */
    {"segments", "segments=3", "F[0,10) B[6,10) F[3,5) B[3,6) F[0,2) B[0,3)"},
    {"segments", "segments=5 unit=stage keep_saved=false",
     "F[0,10) B[8,10) F[6,8) B[6,8) F[4,6) B[4,6) F[2,4) B[2,4) F[0,2) B[0,2)"},
    /* ten stages: floor(10 / 4) units each, and four in the last, which is kept */
    {"segments", "segments=4 unit=stage keep_saved=false", "F[0,10) B[6,10) F[4,6) B[4,6) F[2,4) B[2,4) F[0,2) B[0,2)"},
    {"segments", "segments=5", "policy.segments: 5 segments of 4 units; expected 0..4"},
    {"sqrt", "keep_saved=false", "F[0,10) B[6,10) F[0,6) B[0,6)"},
    {"sqrt", "keep_saved=false unit=stage", "F[0,10) B[6,10) F[3,6) B[3,6) F[0,3) B[0,3)"},
    /* every value counts 1024 bytes but node 4's own, which a backward reads as any other: three nodes a segment */
    {"chen", "segment_budget=2KiB keep_saved=false", "F[0,10) B[9,10) F[6,9) B[6,9) F[3,6) B[3,6) F[0,3) B[0,3)"},
    {"chen", "segment_budget=5119 keep_saved=false keep_last=false", "F[0,10) F[5,10) B[5,10) F[0,5) B[0,5)"},
    {"chen", "segment_budget=5KiB keep_saved=false keep_last=false", "F[0,10) F[6,10) B[6,10) F[0,6) B[0,6)"},
    {"chen", "segment_budget=1GiB", "F[0,10) B[0,10)"},
    {"chen", "segment_budget=lots", "policy.segment_budget: 'lots' is not a size; expected bytes such as 64MiB"},
    /* four units, the loss among them: t(4,1) = 6 advances, t(4,2) = 4, and a forward before each backward */
    {"revolve", "slots=1 keep_saved=false", "F[0,10) B[9,10) F[0,9) B[6,9) F[0,6) B[3,6) F[0,3) B[0,3)"},
    {"revolve", "slots=2 keep_saved=false", "F[0,10) B[9,10) F[6,9) B[6,9) F[0,6) B[3,6) F[0,3) B[0,3)"},
    {"revolve", "slots=0 keep_saved=false", "F[0,10) B[9,10) F[6,9) B[6,9) F[0,6) B[3,6) F[0,3) B[0,3)"},
    {"revolve", "slots=2", "F[0,10) B[9,10) F[6,8) B[6,9) F[0,5) B[3,6) F[0,2) B[0,3)"},
    {"revolve", "slots=1", "F[0,10) B[9,10) F[0,8) B[6,9) F[0,5) B[3,6) F[0,2) B[0,3)"},
    {"revolve", "slots=9 keep_saved=false", "F[0,10) B[9,10) F[6,9) B[6,9) F[3,6) B[3,6) F[0,3) B[0,3)"},
    {"every", "keep_saved=false", "F[0,10) F[9,10) B[9,10) F[6,9) B[6,9) F[3,6) B[3,6) F[0,3) B[0,3)"},
    {"every", "", "F[0,10) B[9,10) F[6,8) B[6,9) F[3,5) B[3,6) F[0,2) B[0,3)"},
    {"manual", "groups=a,b keep_saved=false", "F[0,10) B[6,10) F[3,6) B[3,6) F[0,3) B[0,3)"},
    {"manual", "groups=c keep_saved=false", "F[0,10) B[9,10) F[6,9) B[0,9)"},
    {"manual", "groups=d", "the model has no group 'd'"},
    {"manual", "groups=a,a", "'a' and 'a' overlap"},
    {"manual", "", "must be set, and not both"},
    {"manual", "schedule=/nowhere groups=c", "must be set, and not both"},
    {"manual", "schedule=/nowhere", "policy.schedule: /nowhere: No such file"},
    /* 100 % is 9728 bytes at the loss's backward: y of 0 to 2 and 4 to 8, the saved tensors of 4 and a gradient; 90 %
     * is one y too few, and of equal ones the oldest is the cheapest */
    {"dtr", "budget=100%", "F[0,10) B[0,10)"},
    {"dtr", "budget=90%", "F[0,10) B[2,10) F[0,1) B[0,2)"},
    {"dtr", "budget=1", "dtr found no schedule that keeps it"},
    {"dtr", "budget=1%", "dtr found no schedule that keeps it"},
};

Test(policies, schedules_match_those_by_hand)
{
    struct sketch s;
    begin(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct schedule schedule = schedule_empty(s.graph->region);
        enum status status = policy_text_emit(s.network, cases[i].policy, cases[i].settings, &schedule);
        const char *found = status == ST_OK ? schedule_print(&schedule, s.graph->region) : status_message();
        bool same = status == ST_OK ? !strcmp(found, cases[i].schedule) : strstr(found, cases[i].schedule) != NULL;
        cr_expect(same && (status == ST_OK || status == ST_SPEC), "case %zu, %s: %s\nexpected %s", i, cases[i].policy,
                  found, cases[i].schedule);
        cr_expect(status != ST_OK ||
                      schedule_check(&schedule, &(struct slicing){s.graph->nodes, 1, NULL}, false) == ST_OK,
                  "%s", status_message());
    }
    sketch_end(&s);
}

Test(policies, manual_reads_a_schedule_file)
{
    static const char text[] = "F[0,10) # everything\nB[5,10) F[4,5) B[0,5)\n";
    char path[] = P_tmpdir "/rematch-schedule-XXXXXX", settings[64];
    int file = mkstemp(path);
    cr_assert(file >= 0 && write(file, text, sizeof text - 1) == (ssize_t)sizeof text - 1 && close(file) == 0);
    struct sketch s;
    begin(&s);
    struct schedule schedule = schedule_empty(s.graph->region);
    snprintf(settings, sizeof settings, "schedule=%s", path);
    cr_expect(policy_text_emit(s.network, "manual", settings, &schedule) == ST_OK, "%s", status_message());
    cr_expect(!strcmp(schedule_print(&schedule, s.graph->region), "F[0,10) B[5,10) F[4,5) B[0,5)"));
    unlink(path);
    sketch_end(&s);
}

Test(policies, are_found_by_name)
{
    for (const struct policy *const *policy = policy_table; *policy; policy++)
        cr_assert(policy_find((*policy)->name) == *policy, "%s", (*policy)->name);
    cr_assert(policy_find("recompute") == NULL);
}
