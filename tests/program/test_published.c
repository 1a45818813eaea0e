/* make publish-NAME refuses runs that had overrides; make table-NAME prints one's own numbers beside the published. */
#include <criterion/criterion.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cli.h"

/* A recipe of run_tables.py, by which it reads the newest run of an experiment: here of small.yaml under its name. */
#define NAME   "vgg16-cifar10"
#define CSV    "results/published/" NAME ".csv"
#define RECIPE "/usr/bin/python3 -B experiments/plans/run_tables.py " NAME

/* The exit code of a shell command in the folder; text: what it printed on both streams. */
static int shell(const struct cli *cli, const char *command, char text[8192])
{
    char line[2048];
    snprintf(line, sizeof line, "cd '%s' && { %s; } 2>&1", cli->folder, command);
    FILE *out = popen(line, "r");
    cr_assert(out);
    text[fread(text, 1, 8191, out)] = '\0';
    const int state = pclose(out);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

static void open_recipe(struct cli *cli)
{
    char here[512], command[1200], text[8192];
    cr_assert(getcwd(here, sizeof here));
    cli_open(cli);
    snprintf(command, sizeof command,
             "mkdir -p experiments/plans results/published && cp '%s'/experiments/plans/*.py experiments/plans && "
             "sed 's/^name: small/name: " NAME "/' small.yaml >experiments/" NAME ".yaml",
             here);
    cr_assert(shell(cli, command, text) == 0, "%s", text);
}

Test(published, runs_with_overrides_are_refused)
{
    struct cli cli;
    char text[8192], csv[8192], file[256];
    open_recipe(&cli);
    cr_expect(shell(&cli, "PUBLISH=yes " RECIPE, text) == 1 && strstr(text, "has no run of both sides"), "%s", text);
    cli_expect(&cli, 0, "run " NAME " --quiet");
    cr_assert(shell(&cli, "PUBLISH=yes " RECIPE, text) == 0, "%s", text);
    cr_assert(shell(&cli, "cat " CSV, csv) == 0, "%s", csv);
    cr_expect(strstr(csv, "# command: make exp-" NAME "; make publish-" NAME "\n"), "%s", csv);

    cli_expect(&cli, 0, "run " NAME " --quiet batch=4 steps=3");
    cr_assert(sscanf(strstr(cli.out, "baseline "), "baseline %255s", file) == 1, "%s", cli.out);
    cr_expect(shell(&cli, "PUBLISH=yes " RECIPE, text) == 1, "%s", text);
    cr_expect(strstr(text, file) && strstr(text, " is a run with batch=4"), "%s", text);
    cr_assert(shell(&cli, "cat " CSV, text) == 0 && !strcmp(text, csv), "%s", text);
    static const char known[] = "PUBLISH=yes PYTHONPATH=experiments/plans /usr/bin/python3 -B -c \"import runs, sys, "
                                "run_tables; sys.argv = ['', '" NAME "']; runs.GIVEN['" NAME "'] = {'batch=4', %s}; "
                                "run_tables.main()\"";
    char command[1024];
    snprintf(command, sizeof command, known, "'steps=2'");
    cr_expect(shell(&cli, command, text) == 1 && strstr(text, " is a run with steps=3"), "%s", text);
    snprintf(command, sizeof command, known, "'steps'"); /* any value */
    cr_expect(shell(&cli, command, text) == 0, "%s", text);
    cr_assert(shell(&cli, "cat " CSV, text) == 0 && strstr(text, "make exp-" NAME " ARGS=\"batch=4 steps=3\""), "%s",
              text);

    cli_expect(&cli, 0, "run " NAME " --quiet");
    cr_expect(shell(&cli, "PUBLISH=yes " RECIPE, text) == 0, "%s", text);
    cli_close(&cli);
}

Test(published, a_table_stands_beside_it_and_changes_nothing)
{
    static const char published[] = "# command: make x\n# commit: 1234\n# machine: theirs\n# date: 2026-01-01\n"
                                    ",live peak,peak,planned slowdown,best-case step\n"
                                    "store_all,1.0 MiB,1.0 MiB,1,no step\n"
                                    "\"five segments, all recomputed\",1.0 MiB (50.0 %),1.0 MiB,1,1.0 ms (x1.000)\n"
                                    "another,2.0 MiB,,1.500,\n";
    struct cli cli;
    char text[8192], expected[128];
    open_recipe(&cli);
    cli_file(&cli, CSV, published);
    cr_expect(shell(&cli, "BESIDE=yes " RECIPE, text) == 0, "%s", text); /* without any run */
    cr_expect(strstr(text, "left out: results/" NAME "/ has no run") && strstr(text, "another"), "%s", text);
    cli_expect(&cli, 0, "run " NAME " --quiet steps=3");
    json_t *plan = cli_json(&cli, 0, "plan " NAME " --alone --json");
    const double slowdown = json_number_value(json_object_get(plan, "slowdown"));
    cr_assert(slowdown > 1.001);
    json_decref(plan);
    cr_assert(shell(&cli, "ls -lR --full-time . >before; BESIDE=yes " RECIPE, text) == 0, "%s", text);
    static const char with[] = "make exp-" NAME " ARGS=\"steps=3\"";
    const char *const says[] = {with, "machine: theirs", " here ", " published ", "another", "differs"};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) cr_expect(strstr(text, says[i]), "%s\n%s", says[i], text);
    /* the slowdown is printed with three digits */
    snprintf(expected, sizeof expected, "%+.1f %%",
             100 * (strtod((snprintf(expected, 32, "%.3f", slowdown), expected), NULL) - 1));
    const char *deviation = strstr(strstr(text, "five segments"), "deviation");
    cr_expect(deviation && strstr(deviation, expected), "%s is not in\n%s", expected, text);
    cr_expect(
        shell(&cli,
              "ls -lR --full-time . | grep -v ' \\(before\\|\\.\\)$' >after; grep -v ' \\(before\\|\\.\\)$' before | "
              "diff - after | grep '\\.csv\\|\\.h5\\|\\.md'",
              text) == 1,
        "%s", text);
    cr_assert(shell(&cli, "cat " CSV, text) == 0 && !strcmp(text, published), "%s", text);
    cli_close(&cli);
}

/* Of cells as tables have them, by hand. */
Test(published, deviations_are_those_of_the_numbers)
{
    static const struct {
        const char *own, *published, *deviation;
    } cases[] = {
        {"1.5", "1", "+50.0 %"},
        {"3", "4", "-25.0 %"},
        {"1", "1", "+0.0 %"},
        {"x1.100", "x1.000", "+10.0 %"},
        {"512.0 MiB", "1.00 GiB", "-50.0 %"},
        {"3.00 GiB (75.0 %)", "2.00 GiB (50.0 %)", "+50.0 %, +50.0 %"},
        {"900.0 ms (x0.900)", "1.00 s (x1.000)", "-10.0 %, -10.0 %"},
        {"69, 192 MiB", "69, 96 MiB", "+0.0 %, +100.0 %"},
        {"1,100 steps", "1,000 steps", "+10.0 %"},
        {"10.00 s (+2.5 %)", "20.00 s (-3.0 %)", "-50.0 %"}, /* a deviation has none */
        {"equal in every bit", "equal in every bit", ""},
        {"equal in every bit", "DIFFERS", "differs"},
        {"loss of fc2.weight", "loss of fc2.weight", ""},
        {"loss of fc2.weight", "loss of fc3.weight", "differs"},
        {"1.00 s", "1.00 GiB", "differs"},
        {"1.5", "0", ""},
        {"", "", ""},
        {"", "1.5", "differs"},
    };
    struct cli cli;
    char text[8192], command[512];
    open_recipe(&cli);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(command, sizeof command,
                 "cd experiments/plans && /usr/bin/python3 -B -c \"import sys; from deviation import deviation; "
                 "print(deviation(*sys.argv[1:]), end='')\" '%s' '%s'",
                 cases[i].own, cases[i].published);
        cr_expect(shell(&cli, command, text) == 0 && !strcmp(text, cases[i].deviation), "'%s', '%s': '%s', not '%s'",
                  cases[i].own, cases[i].published, text, cases[i].deviation);
    }
    cli_close(&cli);
}

/* What make runs; ARGS would say nothing of what is published. */
Test(published, make_has_a_rule_for_each)
{
    static const struct {
        const char *target, *runs, *not_run;
    } rules[] = {{"publish-vgg16-relus", "PUBLISH=yes REMATCH_BIN=", "BESIDE"},
                 {"publish-vgg16-relus", "run_tables.py vgg16-relus\nawk -f experiments/tables.awk", "BESIDE"},
                 {"publish-binomial", "experiments/plans/binomial.py\nawk", "run_tables"},
                 {"table-vgg16-relus", "BESIDE=yes REMATCH_BIN=", "PUBLISH"},
                 {"table-vgg16-relus", "run_tables.py vgg16-relus", "EXPERIMENTS.md"},
                 {"table-binomial", "experiments/plans/binomial.py", "EXPERIMENTS.md"},
                 {"exp-binomial", "experiments/plans/binomial.py", "PUBLISH"}};
    char *program = strdup(cli_program()), command[1024], text[8192];
    const char *build = dirname(program);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (int args = 0; args < 2; args++) {
            snprintf(command, sizeof command,
                     "env -u MAKEFLAGS make %s -o all -o '%s/has-exp-plans' DEPS=no BUILD='%s' %s %s 2>&1",
                     args ? "" : "-n", build, build, rules[i].target, args ? "ARGS=batch=2" : "");
            FILE *made = popen(command, "r");
            cr_assert(made);
            text[fread(text, 1, sizeof text - 1, made)] = '\0';
            const int state = pclose(made);
            if (args)
                cr_expect(WEXITSTATUS(state) == 2 && strstr(text, ": takes no ARGS") && !strstr(text, "python3"), "%s",
                          text);
            else
                cr_expect(state == 0 && strstr(text, rules[i].runs) && !strstr(text, rules[i].not_run), "%s:\n%s",
                          rules[i].target, text);
        }
    free(program);
}
