/* Measured times that may mislead are said at the verdict, on the page of a report and in a bundle; altered files. */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare.h"
#include "tests/support/altered_files.h"
#include "tests/support/cli.h"

enum { MS = 1000000 };

/* In ms: best-case steps, time of the processors and of the run after its set-up, with two threads. */
static const struct {
    double planned[2]; /* time of the plans */
    uint64_t best[2], worked[2], wall;
    const char *says; /* NULL: nothing */
} cases[] = {
    {{100, 130}, {100, 130}, {190, 200}, 100, NULL},
    {{100, 130}, {100, 96}, {190, 200}, 100, NULL},
    {{100, 130}, {100, 259}, {190, 200}, 100, NULL},
    {{100, 130}, {0, 47}, {190, 200}, 100, NULL}, /* not known */
    {{100, 130}, {100, 94}, {190, 200}, 100, "the best case of variant is x0.940 of that of baseline, planned x1.300"},
    {{100, 130}, {100, 47}, {190, 200}, 100, "the best case of variant is x0.470"},
    {{100, 130},
     {100, 1940},
     {190, 200},
     100,
     "the best case of variant is x19.400 of that of baseline, planned x1.300"},
    {{130, 100}, {94, 100}, {190, 200}, 100, "the best case of baseline is x0.940 of that of variant, planned x1.300"},
    {{100, 130}, {100, 130}, {100, 200}, 100, "the processors worked 50 % of the time of baseline's 2 threads"},
    {{100, 130}, {100, 130}, {200, 600}, 100, "the processors worked 300 % of the time of variant's 2 threads"},
    {{100, 130}, {100, 130}, {0, 0}, 100, NULL}, /* an older file */
};

static void alter(const char *path, int side, size_t i)
{
    alter_real(path, "/plan", "time", cases[i].planned[side]);
    alter_number(path, "/summary", "step_best_case_ns", cases[i].best[side] * MS);
    alter_number(path, "/summary", "processor_ns", cases[i].worked[side] * MS);
    alter_number(path, "/summary", "setup_ns", 7 * MS);
    alter_number(path, "/summary", "wall_ns", (7 + cases[i].wall) * MS);
    alter_number(path, "/provenance/host", "threads", 2);
}

static void run(struct cli *cli, const char *arguments, int code)
{
    cli_run(cli, "", arguments);
    cr_assert(cli->code == code, "%s: %d\n%s", arguments, cli->code, cli->err);
}

/* Whether the shell command finds the text. */
static bool finds(const struct cli *cli, const char *command, const char *text)
{
    char line[1024];
    snprintf(line, sizeof line, "cd '%s' && %s | grep -q -F \"%s\"", cli->folder, command, text);
    return system(line) == 0;
}

/* A ratio of times is judged by expectations, unless the processors worked less than the threads ask for. */
static void check_comparison(const char *a, const char *b, size_t i)
{
    struct comparison c;
    cr_assert(compare_files(a, b, &c) == ST_OK);
    cr_expect(c.disturbed == (cases[i].says && strstr(cases[i].says, "the processors worked 50 %")), "case %zu", i);
    json_decref(c.json);
}

Test(time_doubts, are_said_wherever_times_are)
{
    struct cli cli;
    glob_t found;
    char pattern[400], path[2][600], arguments[1300];
    cli_open(&cli);
    run(&cli, "run small.yaml --quiet --only baseline results=a", 0);
    run(&cli, "run small.yaml --quiet --only variant results=b", 0);
    for (int s = 0; s < 2; s++) {
        snprintf(pattern, sizeof pattern, "%s/%s/small/*.h5", cli.folder, s ? "b" : "a");
        cr_assert(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1);
        snprintf(path[s], 600, "%s", found.gl_pathv[0]);
        globfree(&found);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *says = cases[i].says ? cases[i].says : "may mislead";
        const bool expected = cases[i].says != NULL;
        for (int s = 0; s < 2; s++) alter(path[s], s, i);
        check_comparison(path[0], path[1], i);
        check_comparison(path[1], path[0], i);
        snprintf(arguments, sizeof arguments, "compare %s %s", path[0], path[1]);
        run(&cli, arguments, 4); /* the plans are altered, too */
        cr_expect((strstr(cli.out, says) != NULL) == expected, "case %zu: %s", i, cli.out);
        snprintf(arguments, sizeof arguments, "compare %s %s", path[1], path[0]);
        run(&cli, arguments, 4); /* the plans are altered, too */
        cr_expect((strstr(cli.out, says) != NULL) == expected, "case %zu: %s", i, cli.out);
        snprintf(arguments, sizeof arguments, "report %s %s -o page.html", path[0], path[1]);
        run(&cli, arguments, 0);
        cr_expect(finds(&cli, "cat page.html", says) == expected, "case %zu", i);
        snprintf(arguments, sizeof arguments, "bundle %s %s -o x.tar.zst", path[0], path[1]);
        run(&cli, arguments, 0);
        cr_expect(finds(&cli, "tar --zstd -xOf x.tar.zst rematch-bundle/README.md", expected ? "may mislead" : says) ==
                      expected,
                  "case %zu", i);
    }
    cli_close(&cli);
}
