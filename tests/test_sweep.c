/* Sweeps through the program: their table and their CSV, of what became of every point. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "runs.h"

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

/* A field of a CSV by its column, from a file of rows in which no field holds a comma or a line break. */
static void csv_field(const char *path, int row, const char *column, char field[512])
{
    char line[2][2048], *rest = line[0], *value = line[1], *name;
    FILE *file = fopen(path, "r");
    cr_assert(file && fgets(line[0], sizeof line[0], file), "%s", path);
    for (int i = 0; i < row; i++) cr_assert(fgets(line[1], sizeof line[1], file), "%s: row %d", path, row);
    fclose(file);
    while ((name = strsep(&rest, ",\n"))) {
        snprintf(field, 512, "%s", strsep(&value, ",\n"));
        if (!strcmp(name, column)) return;
    }
    cr_assert_fail("%s: no column %s", path, column);
}

static double csv_number(const char *path, int row, const char *column)
{
    char field[512], *end;
    csv_field(path, row, column, field);
    const double number = strtod(field, &end);
    cr_assert(*field && !*end, "%s is '%s'", column, field);
    return number;
}

/* What the files of a row's runs say. The folder's name has a quote in it, which is doubled there. */
Test(sweep, figures_are_those_of_the_runs)
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
        } figures[] = {{"peak_ratio", json_object_get(compared, "peak_ratio")},
                       {"live_ratio", json_object_get(compared, "live_ratio")},
                       {"time_ratio", json_object_get(compared, "time_ratio")},
                       {"first_loss", json_array_get(losses, 0)},
                       {"last_loss", json_array_get(losses, 3)},
                       {"arena_bytes", json_object_get(json_object_get(shown, "/plan"), "arena_bytes")},
                       {"live_peak_bytes", json_object_get(json_object_get(shown, "/plan"), "live_peak_bytes")}};
        for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
            const double number = csv_number(path, row, figures[i].column), said = json_number_value(figures[i].said);
            cr_expect(said > 0 && fabs(number - said) <= 1e-6 * said, "%s is %g, not %g", figures[i].column, number,
                      said);
        }
        json_decref(compared), json_decref(shown);
    }
    cli_close(&cli);
}

Test(sweep, is_a_table_and_a_csv)
{
    struct cli cli;
    char path[512];
    cli_open(&cli);
    cli_run(&cli, "echo 'sweep: {policy: [store_all, sqrt], rng: [counter, mask]}' >>small.yaml", "run small.yaml");
    cr_assert(cli.code == 0, "%s\n%s", cli.out, cli.err);
    cli_says(&cli, "policy");
    cli_says(&cli, "sqrt");
    snprintf(path, sizeof path, "%s/results/small/sweep.csv", cli.folder);
    cr_assert(count_lines(path, "") == 5 && count_lines(path, "\",equal,0,") == 4, "%s", cli.out);
    cr_assert(count_lines(path, ",\"results/small/") == 4, "paths are quoted, as values are");
    cr_assert(folder_count(cli.folder, ".h5") == 6, "two baselines and four variants");
    cr_assert(cli_repeats(&cli, "baseline: ") == 2, "points of one baseline share it:\n%s", cli.err);

    cli_expect(&cli, 0, "run small.yaml rng=mask --quiet");
    cr_assert(count_lines(path, "") == 3, "a key that is set is not swept:\n%s", cli.out);
    cli_expect(&cli, 0, "run small.yaml rng=mask --quiet steps=1");
    cr_assert(!strstr(cli.out, "nan") && strstr(cli.out, " - ") && !count_lines(path, "nan"), "%s", cli.out);
    cli_expect(&cli, 3, "run small.yaml rng=mask --quiet steps=50 optimizer.lr=1e6");
    cr_assert(!strstr(cli.out, "nan") && !strstr(cli.out, "0.000"), "%s", cli.out);
    cr_assert(count_lines(path, "\",failed,3,") == 2 && !count_lines(path, "nan"), "%s", cli.out);
    cli_expect(&cli, 0, "run small.yaml rng=mask policy=sqrt steps=1");
    cli_says(&cli, "variant : baseline  no step after the first in both: no ratio; predicted by flops ");
    cli_run(&cli, "sed -i 's/^sweep.*/sweep: {policy: [every, sqrt]}/' small.yaml",
            "run small.yaml --quiet rng=unsafe");
    cr_assert(cli.code == 1 && count_lines(path, "\",DIFFERS,1,") == 2, "%d\n%s", cli.code, cli.out);
    cr_assert(count_lines(path, ",0,0,\"gradient of ") == 2, "since when, and which tensor");
    cli_says(&cli, "  at step 0, gradient of ");
    cli_expect(&cli, 0, "run small.yaml --quiet rng=counter data.classes=1");
    cli_says(&cli, "  degenerate: proves nothing");
    cr_assert(count_lines(path, ",1,,\"\",\"results/") == 2, "%s", cli.out);
    cli_expect(&cli, 2, "run small.yaml --only variant");
    cli_close(&cli);
}

/* All of them are refused before anything runs, and the table says so. */
Test(sweep, of_what_does_not_fit_is_a_table_too)
{
    struct cli cli;
    char path[512];
    cli_open(&cli);
    cli_run(&cli, "echo 'sweep: {rng: [counter, mask]}' >>small.yaml",
            "run small.yaml batch=100000 data.samples=1000000 data.shape=[1024,1024,16]");
    cr_assert(cli.code == 3 && !strstr(cli.err, "sweep.csv"), "%d\n%s", cli.code, cli.err);
    snprintf(path, sizeof path, "%s/results/small/sweep.csv", cli.folder);
    cr_assert(count_lines(path, "") == 3 && count_lines(path, "\",failed,3,") == 2, "%s", cli.out);
    cli_close(&cli);
}

Test(sweep, tells_of_its_data_once)
{
    struct cli cli;
    cli_open(&cli);
    cr_assert(setenv("REMATCH_DATA", "/nowhere", 1) == 0);
    cli_run(&cli, "echo 'sweep: {policy: [every, sqrt]}' >>small.yaml",
            "run small.yaml \"data={name: tweets, max_length: 8}\" optimizer.lr=1e-6");
    cr_assert(cli.code == 0, "%s", cli.err);
    const char *at = strstr(cli.err, "SYNTHETIC");
    cr_assert(at && !strstr(at + 1, "SYNTHETIC"), "%s", cli.err);
    cli_close(&cli);
}
