/* Sweeps through the program: the table and the CSV with the outcome of every point. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli.h"
#include "tests/support/made_runs.h"

/* Lines of a file that contain text. */
static int count_lines(const char *path, const char *text)
{
    char line[2048];
    int lines = 0;
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    while (fgets(line, sizeof line, file)) lines += strstr(line, text) != NULL;
    fclose(file);
    return lines;
}

/* Whether that line, from 0, contains text. */
static bool line_has(const char *path, int number, const char *text)
{
    char line[4096] = "";
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    for (int i = 0; i <= number; i++) cr_assert(fgets(line, sizeof line, file), "%s: line %d", path, i);
    fclose(file);
    return strstr(line, text) != NULL;
}

/* A cell of a CSV file without commas and line breaks in its cells. */
static void csv_field(const char *path, int row, const char *column, char setting[512])
{
    char line[2][2048], *rest = line[0], *value = line[1], *name;
    FILE *file = fopen(path, "r");
    cr_assert(file && fgets(line[0], sizeof line[0], file), "%s", path);
    for (int i = 0; i < row; i++) cr_assert(fgets(line[1], sizeof line[1], file), "%s: row %d", path, row);
    fclose(file);
    while ((name = strsep(&rest, ",\n"))) {
        snprintf(setting, 512, "%s", strsep(&value, ",\n"));
        if (!strcmp(name, column)) return;
    }
    cr_assert_fail("%s: no column %s", path, column);
}

static double csv_number(const char *path, int row, const char *column)
{
    char setting[512], *end;
    csv_field(path, row, column, setting);
    const double number = strtod(setting, &end);
    cr_assert(*setting && !*end, "%s is '%s'", column, setting);
    return number;
}

/* The numbers equal those of the row's files. The folder's name contains a quote, which the CSV doubles. */
Test(sweep, figures_equal_those_of_the_runs)
{
    struct cli cli;
    char path[512], arguments[1200], side[2][512];
    cli_open(&cli);
    cli_run(&cli, "echo 'sweep: {policy: [every, sqrt]}' >>small.yaml", "run small.yaml --quiet 'results=a\"b'");
    cr_assert(cli.code == 0, "%s", cli.err);
    snprintf(path, sizeof path, "%s/a\"b/small/sweep.csv", cli.folder);
    cr_assert(count_lines(path, ",\"a\"\"b/small/") == 2, "a quote is doubled");
    cli_run(&cli, "mv a\\\"b there && sed -i 's/\"\"*//g; s,ab/,there/,g' there/small/sweep.csv", "--version");
    snprintf(path, sizeof path, "%s/there/small/sweep.csv", cli.folder);
    for (int row = 1; row <= 2; row++) {
        csv_field(path, row, "baseline", side[0]), csv_field(path, row, "variant", side[1]);
        snprintf(arguments, sizeof arguments, "compare %s %s --json", side[0], side[1]);
        json_t *compared = cli_json(&cli, 0, arguments);
        snprintf(arguments, sizeof arguments, "show %s --json", side[1]);
        json_t *shown = cli_json(&cli, 0, arguments);
        const json_t *losses = json_object_get(json_object_get(shown, "steps"), "loss");
        const struct {
            const char *column;
            const json_t *said;
        } json[] = {{"peak_ratio", json_object_get(compared, "peak_ratio")},
                    {"live_ratio", json_object_get(compared, "live_ratio")},
                    {"time_ratio", json_object_get(compared, "time_ratio")},
                    {"first_loss", json_array_get(losses, 0)},
                    {"last_loss", json_array_get(losses, 3)},
                    {"arena_bytes", json_object_get(json_object_get(shown, "/plan"), "arena_bytes")},
                    {"live_peak_bytes", json_object_get(json_object_get(shown, "/plan"), "live_peak_bytes")}};
        for (size_t i = 0; i < sizeof json / sizeof *json; i++) {
            const double number = csv_number(path, row, json[i].column), said = json_number_value(json[i].said);
            cr_expect(said > 0 && fabs(number - said) <= 1e-6 * said, "%s is %g, not %g", json[i].column, number, said);
        }
        json_decref(compared), json_decref(shown);
    }
    cli_close(&cli);
}

Test(sweep, prints_a_table_and_writes_a_csv)
{
    struct cli cli;
    char path[512];
    cli_open(&cli);
    cli_run(&cli, "echo 'sweep: {policy: [store_all, sqrt], rng: [counter, mask]}' >>small.yaml", "run small.yaml");
    cr_assert(cli.code == 0, "%s\n%s", cli.out, cli.err);
    cli_says(&cli, "policy");
    cli_says(&cli, "sqrt");
    snprintf(path, sizeof path, "%s/results/small/sweep.csv", cli.folder);
    cr_assert(count_lines(path, "") == 5 && count_lines(path, ",equal,0,") == 4, "%s", cli.out);
    cr_assert(count_lines(path, ",results/small/") == 4, "%s", cli.out);
    cr_assert(folder_count(cli.folder, ".h5") == 6, "two baselines and four variants");
    cr_assert(cli_repeats(&cli, "baseline: policy") == 2, "points of one baseline share it:\n%s", cli.err);

    cli_expect(&cli, 0, "run small.yaml rng=mask --quiet");
    cr_assert(count_lines(path, "") == 3, "a key that is set is not swept:\n%s", cli.out);
    cli_expect(&cli, 0, "run small.yaml rng=mask --quiet steps=1");
    cr_assert(!strstr(cli.out, "nan") && strstr(cli.out, " - ") && !count_lines(path, "nan"), "%s", cli.out);
    cli_expect(&cli, 3, "run small.yaml rng=mask --quiet steps=50 optimizer.lr=1e6");
    cr_assert(!strstr(cli.out, "nan") && !strstr(cli.out, "0.000"), "%s", cli.out);
    cr_assert(count_lines(path, ",failed,3,") == 2 && !count_lines(path, "nan"), "%s", cli.out);
    cli_expect(&cli, 0, "run small.yaml rng=mask policy=sqrt steps=1");
    cli_says(&cli, "variant : baseline  no step after the first in both: no ratio; predicted by flops ");
    cli_run(&cli, "sed -i 's/^sweep.*/sweep: {policy: [every, sqrt]}/' small.yaml",
            "run small.yaml --quiet rng=unsafe");
    cr_assert(cli.code == 1 && count_lines(path, ",DIFFERS,1,") == 2, "%d\n%s", cli.code, cli.out);
    cr_assert(count_lines(path, ",,0,gradient of ") == 2, "since when, and which tensor");
    cli_says(&cli, "  at step 0, gradient of ");
    cli_expect(&cli, 4, "run small.yaml --quiet rng=counter data.classes=1");
    cli_says(&cli, "no proof: the loss of step 0 is 0; every gradient of step 0 is zero; ");
    cr_assert(count_lines(path, ",loss all_gradients_zero zero_gradients,,,,,results/") == 2, "%s", cli.out);
    cli_expect(&cli, 2, "run small.yaml --only variant");
    cli_close(&cli);
}

/* Each point has the baseline whose statistics move once a step. */
Test(sweep, a_point_that_must_differ_stands_beside_one_that_must_not)
{
    struct cli cli;
    char path[512];
    cli_open(&cli);
    cli_run(&cli,
            "sed -i 's/dropout:.*/batch_norm: {name: norm}/' small.yaml; "
            "echo 'sweep: {policy: [every, {name: selective, kinds: [norm]}], commit: [once, every]}' >>small.yaml",
            "run small.yaml --quiet");
    snprintf(path, sizeof path, "%s/results/small/sweep.csv", cli.folder);
    cr_assert(cli.code == 1 && count_lines(path, ",equal,0,") == 2 && count_lines(path, ",DIFFERS,1,") == 2, "%d\n%s",
              cli.code, cli.out);
    cr_assert(count_lines(path, ",,0,norm.running_mean") == 2, "since when, and which tensor");
    cr_assert(folder_count(cli.folder, ".h5") == 5, "one baseline");
    cli_close(&cli);
}

static const struct {
    const char *sweep, *arguments;
    int code, points;
    const char *outcome[4], *reason[4]; /* of each point; NULL: it ran */
} mixed[] = {
    {"policy: [{name: optimal, budget: 1KB}, every]", "", 2, 2, {"refused,2", "equal,0"}, {"policy.budget: 1000 B: "}},
    {"policy: [every, {name: optimal, budget: 1KB}]", "", 2, 2, {"equal,0", "refused,2"}, {NULL, "policy.budget: "}},
    {"batch: [8, 1048576]",
     "data={name:\\ synthetic,samples:\\ 1048576,shape:\\ [64,64,16],classes:\\ 4}",
     3,
     2,
     {"equal,0", "refused,3"},
     {NULL, "memory: the "}},
    {"batch: [60, 8, 50]", "", 2, 3, {"refused,2", "equal,0", "equal,0"}, {"batch: 60 is more than the 50 "}},
    {"model: [{layers: [flatten, linear: {units: classes}, layernorm, {max_pool: {kernel: 2}}]}, here.yaml]",
     "policy=every",
     2,
     2,
     {"refused,2", "equal,0"},
     {"layer 'max_pool1': expects an image "}},
    {"optimizer.lr: [1e6, 0.1]", "steps=50", 3, 2, {"failed,3", "equal,0"}, {"baseline: failed: step "}},
    {"rng: [unsafe, counter], batch: [60, 8]",
     "",
     2,
     4,
     {"refused,2", "DIFFERS,1", "refused,2", "equal,0"},
     {"batch: 60", NULL, "batch: 60"}},
    {"rng: [unsafe, counter]", "", 1, 2, {"DIFFERS,1", "equal,0"}, {NULL}},
};

/* A point that cannot run does not stop the others, one by one or two at a time: each row has its outcome, the output
 * its reason, and the exit code is that of the worst point. */
Test(sweep, a_point_that_cannot_run_does_not_stop_the_others)
{
    for (size_t run = 0; run < 2 * sizeof mixed / sizeof *mixed; run++) {
        const size_t i = run / 2;
        struct cli cli;
        char before[512], arguments[512], path[512], text[512];
        cli_open(&cli);
        cli_file(&cli, "here.yaml", "[flatten, linear: {units: 9, activation: relu}, linear: {units: classes}]\n");
        snprintf(before, sizeof before, "echo 'sweep: {%s}' >>small.yaml", mixed[i].sweep);
        snprintf(arguments, sizeof arguments, "run small.yaml --quiet %s%s", mixed[i].arguments,
                 run % 2 ? " --jobs 2" : "");
        cli_run(&cli, before, arguments);
        cr_assert(cli.code == mixed[i].code, "%s: %d\n%s\n%s", mixed[i].sweep, cli.code, cli.out, cli.err);
        snprintf(path, sizeof path, "%s/results/small/sweep.csv", cli.folder);
        cr_assert(count_lines(path, "") == mixed[i].points + 1, "%s", mixed[i].sweep);
        for (int p = 0; p < mixed[i].points; p++) {
            const char *reason = mixed[i].reason[p], *outcome = mixed[i].outcome[p];
            snprintf(text, sizeof text, ",%s,", outcome);
            cr_expect(line_has(path, p + 1, text), "%s: point %d: no %s", mixed[i].sweep, p + 1, text);
            cr_expect(line_has(path, p + 1, reason ? reason : ",,"), "%s: point %d: no reason", mixed[i].sweep, p + 1);
            snprintf(text, sizeof text, "point %d %.*s (", p + 1, (int)strcspn(outcome, ","), outcome);
            cr_expect(!reason == !strstr(cli.out, text), "%s: %s", text, cli.out);
            if (reason) cli_says(&cli, reason);
        }
        cli_close(&cli);
    }
}

/* Points are refused before the first one runs; an invalid value refuses the whole sweep. */
Test(sweep, points_are_planned_before_the_first_runs)
{
    struct cli cli;
    cli_open(&cli);
    cli_run(&cli, "echo 'sweep: {batch: [8, 60]}' >>small.yaml", "run small.yaml");
    cr_assert(cli.code == 2, "%s", cli.err);
    const char *planning = strstr(cli.err, "planning point 1 of 2: batch=8\n");
    const char *refused = strstr(cli.err, "point 2 of 2 cannot run: batch=60\n");
    const char *first = strstr(cli.err, "\npoint 1 of 2: batch=8\n");
    cr_assert(planning && refused && first && planning < refused && refused < first, "%s", cli.err);
    cr_assert(cli_repeats(&cli, "point 2 of 2") == 1, "%s", cli.err);
    cli_run(&cli, "sed -i 's/^sweep.*/sweep: {batch: [8, 0]}/' small.yaml; rm -r results", "run small.yaml");
    cr_assert(cli.code == 2 && !strstr(cli.err, "planning"), "%s", cli.err);
    cr_assert(folder_count(cli.folder, ".csv") == 0, "nothing was run");
    cli_close(&cli);
}

/* All points are refused before any runs; the table shows them. */
Test(sweep, points_that_do_not_fit_are_in_the_table)
{
    struct cli cli;
    char path[512];
    cli_open(&cli);
    cli_run(&cli, "echo 'sweep: {rng: [counter, mask]}' >>small.yaml",
            "run small.yaml batch=100000 data.samples=1000000 data.shape=[1024,1024,16]");
    cr_assert(cli.code == 3 && !strstr(cli.err, "sweep.csv"), "%d\n%s", cli.code, cli.err);
    snprintf(path, sizeof path, "%s/results/small/sweep.csv", cli.folder);
    cr_assert(count_lines(path, "") == 3 && count_lines(path, ",refused,3,") == 2, "%s", cli.out);
    cli_close(&cli);
}

/* While planning, a terminal shows one line, which disappears. */
Test(sweep, is_readable_at_80_columns)
{
    struct cli cli;
    cli_open(&cli);
    cr_assert(cli_on_screen(&cli, 80, "echo 'sweep: {policy: [every, sqrt], batch: [8, 60]}' >>small.yaml",
                            "run small.yaml") == 0,
              "%s", cli.out);
    cr_assert(cli.code == 2 && !strstr(cli.out, "planning point"), "%s", cli.out);
    cli_says(&cli, "\nrematch: batch: 60 is more than the 50 ");
    cli_says(&cli, "\npolicy  batch  bits ");
    cli_close(&cli);
}

Test(sweep, warns_about_its_data_once)
{
    struct cli cli;
    cli_open(&cli);
    cr_assert(setenv("REMATCH_DATA", "/nowhere", 1) == 0);
    cli_run(&cli, "echo 'sweep: {policy: [every, sqrt]}' >>small.yaml",
            "run small.yaml \"data={name: tweets, max_length: 8}\" optimizer.lr=1e-6 "
            "'model={layers: [embedding: {vocabulary: 9000, positions: 8, units: 2}, gelu, layernorm, gelu, select, "
            "linear: {units: 3}]}'");
    cr_assert(cli.code == 0, "%s", cli.err);
    const char *at = strstr(cli.err, "SYNTHETIC");
    cr_assert(at && !strstr(at + 1, "SYNTHETIC"), "%s", cli.err);
    cli_close(&cli);
}
