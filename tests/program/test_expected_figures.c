/* Expectations of a spec: bounds, and the overrides with which they are still judged. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"
#include "tests/support/cli.h"

/* The last loss and the peaks of the file in the folder. */
static void json_of(struct cli *cli, const char *folder, double json_member[2])
{
    char before[256];
    snprintf(before, sizeof before, "file=$(ls %s/small/*.h5)", folder);
    cli_run(cli, before, "show \"$file\" --json");
    json_t *shown = json_loads(cli->out, 0, NULL);
    const json_t *plan = json_object_get(shown, "/plan"),
                 *loss = json_object_get(json_object_get(shown, "steps"), "loss");
    cr_assert(cli->code == 0 && json_array_size(loss), "%s%s", cli->out, cli->err);
    json_member[0] = json_number_value(json_object_get(plan, "live_peak_bytes"));
    json_member[1] = json_number_value(json_array_get(loss, json_array_size(loss) - 1));
    json_decref(shown);
}

/* A number is judged exactly if the override does not change it. */
Test(expect, figures_are_judged_unless_overrides_change_them)
{
    static const struct {
        const char *argument;
        bool live, loss; /* changed */
    } cases[] = {{"", false, false},
                 {"steps=7", false, true},
                 {"epochs=1", false, true},
                 {"seed=8", false, true},
                 {"optimizer.lr=0.2", false, true},
                 {"check=recompute", false, false},
                 {"memory=poison", false, false},
                 {"policy=store_all", true, false},
                 {"batch=4", true, true}};
    struct cli cli;
    double own[2];
    cli_open(&cli);
    cli_run(&cli,
            "echo 'expect: [{what: live_ratio, below: 0.01, source: a}, {what: loss, below: 0.01, source: b}]' "
            ">>small.yaml",
            "run small.yaml --only variant --quiet results=own");
    json_of(&cli, "own", own);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool changed[] = {cases[i].live, cases[i].loss};
        static const char *const lines[] = {"  live_ratio below 0.01: ", "  loss below 0.01: "};
        char arguments[256], folder[16];
        double now[2];
        snprintf(folder, sizeof folder, "r%zu", i);
        snprintf(arguments, sizeof arguments, "run small.yaml --quiet results=%s %s", folder, cases[i].argument);
        cli_expect(&cli, cases[i].live && cases[i].loss ? 0 : 1, arguments);
        char *said = strdup(cli.out);
        snprintf(arguments, sizeof arguments, "run small.yaml --only variant --quiet results=%sv %s", folder,
                 cases[i].argument);
        cli_expect(&cli, 0, arguments);
        strcat(folder, "v");
        json_of(&cli, folder, now);
        for (int k = 0; k < 2; k++) {
            const char *line = strstr(said, lines[k]), *end = line ? strchr(line, '\n') : NULL;
            cr_assert(end, "%s", said);
            const char *unjudged = strstr(line, "not judged: ");
            cr_expect(changed[k] == (unjudged && unjudged < end), "%s: %s", cases[i].argument, said);
            cr_expect(changed[k] == (own[k] != now[k]), "%s: %.9g, %.9g", cases[i].argument, own[k], now[k]);
        }
        free(said);
    }
    cli_close(&cli);
}

Test(expect, figures_that_a_shorter_run_does_not_measure_are_not_judged)
{
    struct cli cli;
    cli_open(&cli);
    cli_run(&cli, "echo 'expect: [{what: time_ratio, below: 1e-9, source: a dream}]' >>small.yaml",
            "run small.yaml --quiet steps=1");
    cr_assert(cli.code == 0, "%s", cli.out);
    cli_says(&cli, "time_ratio below 1e-09: not measured, not judged: the spec was overridden (a dream)");
    cli_close(&cli);
}

/* Other programs change times; bytes and losses they do not. */
Test(expect, times_that_miss_in_a_disturbed_run_are_not_judged)
{
    static const struct {
        enum expectation_what what;
        double ratio;
        bool disturbed;
        enum judgement judgement;
    } cases[] = {{EXPECT_TIME_RATIO, 1.9, false, MET},       {EXPECT_TIME_RATIO, 2.1, false, UNMET},
                 {EXPECT_TIME_RATIO, 2.1, true, NOT_JUDGED}, {EXPECT_TIME_RATIO, 1.9, true, MET},
                 {EXPECT_TIME_RATIO, NAN, false, UNMET},     {EXPECT_PEAK_RATIO, 1.9, true, MET},
                 {EXPECT_PEAK_RATIO, 2.1, true, UNMET},      {EXPECT_LIVE_RATIO, 2.1, true, UNMET}};
    static const struct spec spec;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double r = cases[i].ratio;
        const struct experiment experiment = {
            .comparison = {.peak_ratio = r, .live_ratio = r, .time_ratio = r, .disturbed = cases[i].disturbed}};
        const struct expectation below = {.what = cases[i].what, .below = 2, .above = NAN};
        char text[EXPECTATION_TEXT];
        cr_expect(experiment_expectation(&experiment, &spec, &below, text) == cases[i].judgement, "%zu: %s", i, text);
        cr_expect(!strstr(text, "the processors did not work for it all the time") ==
                      (cases[i].judgement != NOT_JUDGED),
                  "%s", text);
    }
}

/* Bounds are exclusive; beside itself, a baseline has byte ratios of 1 and proves nothing. */
Test(expect, figures_are_bounds)
{
    static const struct {
        const char *expect;
        int code;
        const char *says;
    } cases[] = {{"{what: live_ratio, below: 1, source: us}", 1, "live_ratio below 1: 1, FAILED (us)"},
                 {"{what: live_ratio, above: 1, source: us}", 1, "live_ratio above 1: 1, FAILED (us)"},
                 {"{what: peak_ratio, below: 1.001, above: 0.999, source: us}", 4,
                  "peak_ratio below 1.001 above 0.999: 1, met (us)"},
                 {"{what: accuracy, above: 0, source: us}", 1, "accuracy above 0: not measured, FAILED (us)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli cli;
        char before[256];
        cli_open(&cli);
        snprintf(before, sizeof before,
                 "sed -i 's/^policy.*/policy: store_all/' small.yaml; echo 'expect: [%s]' >>small.yaml",
                 cases[i].expect);
        cli_run(&cli, before, "run small.yaml --quiet");
        cr_expect(cli.code == cases[i].code, "%s: %d\n%s", cases[i].expect, cli.code, cli.out);
        cli_says(&cli, cases[i].says);
        cli_close(&cli);
    }
}
