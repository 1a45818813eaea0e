/* Words: reading and printing, and what makes one valid. */
#include <criterion/criterion.h>
#include <string.h>

#include "plan/schedule.h"

static struct region *region;

static void begin(void) { cr_assert((region = region_create()) != NULL); }
static void end(void) { region_destroy(region); }

TestSuite(schedule, .init = begin, .fini = end);

Test(schedule, prints_what_it_reads)
{
    static const struct {
        const char *text, *canonical;
    } cases[] = {
        {"", ""},
        {"F[0,9) B[6,9) F[3,6) B[3,6) F[0,3) B[0,3)", "F[0,9) B[6,9) F[3,6) B[3,6) F[0,3) B[0,3)"},
        {"  F[0,2)\n\tB[0,2) # all\n", "F[0,2) B[0,2)"},
        {"# nothing\n# but this: F[0,1)\nF[0,16777216)", "F[0,16777216)"},
        {"F[0,2)F[2,4)B[2,4)B[0,2)", "F[0,4) B[0,4)"},                  /* continues the last step */
        {"F[0,2) F[0,2) F[3,4) F[2,3)", "F[0,2) F[0,2) F[3,4) F[2,3)"}, /* does not */
        {"B[0,2) B[2,4)", "B[0,2) B[2,4)"},
        {"F[0,2)/0 F[2,4)/0 F[0,2)/1F[2,4)", "F[0,4)/0 F[0,2)/1 F[2,4)"}, /* of one slice each */
        {"B[2,4)/3 B[0,2)/3 B[0,2)/03", "B[0,4)/3 B[0,2)/3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct schedule schedule;
        cr_assert(schedule_parse(cases[i].text, region, &schedule) == ST_OK, "%s", status_message());
        const char *text = schedule_print(&schedule, region);
        cr_expect(!strcmp(text, cases[i].canonical), "'%s' became '%s'", cases[i].text, text);
    }
}

Test(schedule, a_long_word_survives_the_round_trip)
{
    struct schedule schedule = schedule_empty(region), again;
    for (int i = 0; i < 5000; i++) schedule_append(&schedule, i % 3 ? STEP_FORWARD : STEP_BACKWARD, i % 7, 10 + i);
    schedule_append(&schedule, STEP_FORWARD, 4, 4);
    cr_assert(schedule.steps == 5000);
    cr_assert(schedule_parse(schedule_print(&schedule, region), region, &again) == ST_OK);
    cr_assert(again.steps == schedule.steps &&
              !memcmp(again.step, schedule.step, schedule.steps * sizeof *schedule.step));
}

Test(schedule, what_cannot_be_read_names_the_step)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"F[0,2) G[0,2)", "step 2 of the schedule, 'G[0,2)'"},
        {"F(0,2)", "step 1 of the schedule, 'F(0,2)'"},
        {"F[0,2) B[0,2", "step 2 of the schedule, 'B[0,2'"},
        {"F[,2)", "step 1"},
        {"F[0,)", "step 1"},
        {"F[-1,2)", "step 1"},
        {"F[0;2)", "step 1"},
        {"F[2,2)", "step 1"},
        {"F[3,2)", "expected F[from,to), B[from,to) or P[node,node+1)"},
        {"F[0,2) B[0,2):bit", "step 2 of the schedule, 'B[0,2):bit'"},
        {"F[0,2):bits", "step 1 of the schedule, 'F[0,2):bits'"},
        {"F[0,16777217)", "step 1"},
        {"F[0,99999999999999999999)", "step 1"},
        {"F[0,2)x", "step 2 of the schedule, 'x'"},
        {"F[0, 2)", "step 1"},
        {"F", "step 1"},
        {"F[0,2)/", "step 1 of the schedule, 'F[0,2)/'"},
        {"F[0,2)/-1", "step 1 of the schedule, 'F[0,2)/-1'"},
        {"F[0,2)/a", "step 1 of the schedule, 'F[0,2)/a'"},
        {"F[0,2)/0/1", "step 2 of the schedule, '/1'"},
        {"F[0,2) /1", "step 2 of the schedule, '/1'"},
        {"F[0,2)/16777217", "step 1"},
        {"F[0,2) B[0,2)/1:bits", "of one slice with /slice behind it"},
        {"F[0,2) B[0,2):bits", "what relus keep is set by relu_save alone"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct schedule schedule;
        cr_expect(schedule_parse(cases[i].text, region, &schedule) == ST_SPEC, "'%s' was read", cases[i].text);
        cr_expect(strstr(status_message(), cases[i].message), "'%s': %s", cases[i].text, status_message());
    }
}

/* Of four nodes. */
Test(schedule, validity)
{
    static const struct {
        const char *text, *message; /* NULL: valid */
        bool evaluate;
    } cases[] = {
        {"F[0,4) B[0,4)", NULL, false},
        {"F[0,4) B[2,4) F[0,2) B[0,2)", NULL, false},
        {"F[0,2) F[0,1) F[2,4) B[3,4) F[1,4) B[0,3)", NULL, false}, /* recomputations may be anywhere */
        {"F[0,3) F[1,4) B[0,4)", NULL, false},                      /* and run on into first forwards */
        {"F[0,4) B[0,4) F[0,4)", NULL, false},
        {"F[0,4) P[3,4) F[2,3) B[3,4) P[2,3) B[0,3)", NULL, false},
        {"F[0,4) P[3,4) P[3,4) B[0,4)", "step 3 of the schedule runs half a backward of node 3; expected one", false},
        {"F[0,4) B[3,4) P[1,3) B[0,3)", "step 3 of the schedule runs half a backward of node 1; expected one", false},
        {"F[0,4) P[2,3) B[0,4)", "step 2 of the schedule runs node 2 backward, but the next one due is node 3", false},
        {"F[0,4) P[3,4) F[0,1)", "the schedule ends before node 3 has run backward", false},
        {"P[3,4) F[0,4) B[0,4)", "step 1 of the schedule runs node 3 backward before its forward", false},
        {"F[0,4) P[3,4)", "step 2 of the schedule runs backward in an evaluation", true},
        {"F[0,4)", NULL, true},
        {"", "the schedule ends before node 0 has run forward", false},
        {"F[0,3) B[0,3)", "step 2 of the schedule runs node 2 backward, but the next one due is node 3", false},
        {"F[0,3)", "the schedule ends before node 3 has run forward", true},
        {"F[1,4) F[0,1) B[0,4)", "step 1 of the schedule runs node 1 forward, but node 0 has not run", false},
        {"F[0,2) F[3,4) F[2,3) B[0,4)", "step 2 of the schedule runs node 3 forward, but node 2 has not run", false},
        {"F[0,5) B[0,5)", "step 1 of the schedule: [0,5) is not a range of the network's 4 nodes", false},
        {"F[0,4) B[0,2)", "step 2 of the schedule runs node 1 backward, but the next one due is node 3", false},
        {"F[0,4) B[2,4) B[1,4)", "step 3 of the schedule runs node 3 backward, but the next one due is node 1", false},
        {"F[0,4) B[2,4) B[0,1)", "step 3 of the schedule runs node 0 backward, but the next one due is node 1", false},
        {"F[0,4) B[0,4) B[0,4)", "step 3 of the schedule runs node 3 backward, but every node has run backward", false},
        {"F[0,4) B[1,4)", "the schedule ends before node 0 has run backward", false},
        {"F[0,3) B[3,4) F[3,4) B[0,3)", "step 2 of the schedule runs node 3 backward before its forward", false},
        {"F[0,4) B[0,4)", "step 2 of the schedule runs backward in an evaluation", true},
        {"F[0,4)/0 B[0,4)/0", "step 1 of the schedule: slice 0; expected none, the batch is not divided", false},
        {"F[0,4) B[0,4)/1", "step 2 of the schedule: slice 1; expected none, the batch is not divided", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct schedule schedule;
        cr_assert(schedule_parse(cases[i].text, region, &schedule) == ST_OK, "%s", status_message());
        enum status status = schedule_check(&schedule, &(struct slicing){4, 1, NULL}, cases[i].evaluate);
        cr_expect(status == (cases[i].message ? ST_SPEC : ST_OK), "'%s': status %d", cases[i].text, (int)status);
        cr_expect(!cases[i].message || strstr(status_message(), cases[i].message), "'%s': %s", cases[i].text,
                  status_message());
    }
}

/* Of four nodes and three slices; whole: node 2 computes the whole batch. */
static const struct {
    const char *text, *message; /* NULL: valid */
    bool whole, evaluate;
} of_slices[] = {
    {"F[0,4) B[0,4)", NULL, false, false},
    {"F[0,4)/0 B[0,4)/0 F[0,4)/1 B[0,4)/1 F[0,4)/2 B[0,4)/2", NULL, false, false},
    {"F[0,4)/0 F[0,4) B[0,4)", NULL, false, false}, /* a recomputation of slice 0 */
    {"F[0,4)/0 F[0,2)/0 F[0,4)/1 F[0,4)/2 F[1,3)/1 B[2,4) B[0,2)/0 B[1,2)/1 B[1,2)/2 B[0,1)/1 B[0,1)/2", NULL, false,
     false},
    {"F[0,4) P[3,4)/0 P[3,4)/1 F[2,3)/0 B[3,4)/0 P[3,4)/2 B[3,4)/1 B[3,4)/2 B[0,3)", NULL, false, false},
    {"F[0,4)/0 F[0,4)/1 F[0,4)/2", NULL, false, true},
    {"F[0,2)/0 F[0,2)/1 F[0,2)/2 F[2,3) F[3,4)/0 B[3,4)/0 F[3,4)/1 B[3,4)/1 F[3,4)/2 B[3,4)/2 B[0,3)", NULL, true,
     false},
    {"F[0,4)/0 B[0,4)/0 F[0,4)/3 B[0,4)/3", "step 3 of the schedule: slice 3; expected one of 0..2", false, false},
    {"F[0,4)/0 F[0,5)/1", "step 2 of the schedule: [0,5) is not a range", false, false},
    {"F[0,4)/1", "step 1 of the schedule runs node 0 for slice 1 forward for the first time, but not yet", false,
     false},
    {"F[0,2)/0 F[0,4)/1", "step 2 of the schedule runs node 2 for slice 1 forward for the first time", false, false},
    {"F[0,4)/0 F[1,4)/1", "step 2 of the schedule runs node 1 for slice 1 forward, but node 0 has not run", false,
     false},
    {"F[0,4)/0 F[2,4)", "step 2 of the schedule runs node 2 for slice 1 forward, but node 0 has not run", false, false},
    {"F[0,4) B[0,4)/1", "step 2 of the schedule runs node 3 for slice 1 backward, but not yet for the slice before",
     false, false},
    {"F[0,4) B[0,4)/2 B[0,4)/1 B[0,4)/0", "step 2 of the schedule runs node 3 for slice 2 backward, but not yet", false,
     false},
    {"F[0,4) B[2,4)/0 B[0,4)/1", "step 3 of the schedule runs node 1 for slice 1 backward, but not yet", false, false},
    {"F[0,4)/0 B[0,4)/0 B[0,4)/1", "step 3 of the schedule runs node 3 for slice 1 backward before its forward", false,
     false},
    {"F[0,4)/0 B[0,4)", "step 2 of the schedule runs node 3 for slice 1 backward before its forward", false, false},
    {"F[0,4) B[3,4)/0 B[0,3)", "step 3 of the schedule runs node 2 for slice 1 backward, but the next one due is",
     false, false},
    {"F[0,4) B[0,4)/0 B[0,4)/0", "step 3 of the schedule runs node 3 for slice 0 backward, but every node has", false,
     false},
    {"F[0,4) B[0,4)/0 B[0,4)", "step 3 of the schedule runs node 3 for slice 0 backward, but every node has", false,
     false},
    {"F[0,4)/0 F[0,4)/1 B[0,4)/0 B[0,4)/1", "the schedule ends before node 0 has run forward for slice 2", false,
     false},
    {"", "the schedule ends before node 0 has run forward for slice 0", false, false},
    {"F[0,4) B[0,4)/0 B[0,4)/1", "the schedule ends before node 3 has run backward for slice 2", false, false},
    {"F[0,4) P[3,4)/0 P[3,4)/0", "step 3 of the schedule runs half a backward of node 3 for slice 0; expected one",
     false, false},
    {"F[0,4) P[3,4)/1", "step 2 of the schedule runs node 3 for slice 1 backward, but not yet for the slice before",
     false, false},
    {"F[0,4)/0 F[0,4)/1 F[0,4)/2 B[3,4)/0", "step 4 of the schedule runs backward in an evaluation", false, true},
    {"F[0,3)/0", "step 1 of the schedule runs node 2 for slice 0; expected no slice, the node computes the whole", true,
     false},
    {"F[0,4) B[2,4)/0", "step 2 of the schedule runs node 2 for slice 0; expected no slice", true, false},
    {"F[0,2)/0 F[0,2)/1 F[2,4)", "step 3 of the schedule runs node 2 for slice 2 forward, but node 0 has not", true,
     false},
    {"F[0,4) B[3,4)/0 B[3,4)/1 B[2,3)", "runs node 2 for slice 2 backward, but the next one due is node 3", true,
     false},
};

Test(schedule, validity_of_slices)
{
    static const bool none[4] = {0}, third[4] = {false, false, true, false};
    for (size_t i = 0; i < sizeof of_slices / sizeof *of_slices; i++) {
        struct schedule schedule;
        const struct slicing slicing = {4, 3, of_slices[i].whole ? third : none};
        cr_assert(schedule_parse(of_slices[i].text, region, &schedule) == ST_OK, "%s", status_message());
        const enum status status = schedule_check(&schedule, &slicing, of_slices[i].evaluate);
        cr_expect(status == (of_slices[i].message ? ST_SPEC : ST_OK), "'%s': status %d: %s", of_slices[i].text,
                  (int)status, status == ST_OK ? "" : status_message());
        cr_expect(!of_slices[i].message || strstr(status_message(), of_slices[i].message), "'%s': %s",
                  of_slices[i].text, status_message());
    }
}

Test(schedule, too_many_steps_are_refused)
{
    enum { NODES = 1 << 20, ONCE = 30 };
    struct schedule schedule = schedule_empty(region);
    schedule_append(&schedule, STEP_FORWARD, 0, NODES);
    for (int i = 0; i < ONCE; i++) schedule_append(&schedule, STEP_FORWARD, 0, NODES);
    schedule_append(&schedule, STEP_BACKWARD, 0, NODES);
    cr_assert(schedule_check(&schedule, &(struct slicing){NODES, 1, NULL}, false) == ST_OK, "%s", status_message());
    for (int i = 0; i < 2 * ONCE; i++) schedule_append(&schedule, STEP_FORWARD, 0, NODES);
    cr_assert(schedule_check(&schedule, &(struct slicing){NODES, 1, NULL}, false) == ST_SPEC &&
              strstr(status_message(), "more than can be planned"));
}
