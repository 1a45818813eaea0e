/* rematch report: the order of runs, the colours and marks of policies, what expectations say, paper, and large plans.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/browser.h"
#include "tests/support/cli.h"

static const char sweep[] = "run small.yaml --quiet results=r 'sweep={batch: [12, 4, 8], policy: [sqrt, every, chen]}'";

static void run_sweep(struct cli *cli)
{
    cli_open(cli);
    cli_run(cli, "", sweep);
    cr_assert(cli->code == 0 || cli->code == 4, "%s", cli->err);
}

static const json_t *chart_of(const json_t *seen, const char *id)
{
    const json_t *chart = json_object_get(json_object_get(seen, "charts"), id);
    cr_assert(chart != NULL, "there is no chart %s", id);
    return chart;
}

static const char *text_at(const json_t *array, size_t i)
{
    const char *text = json_string_value(json_array_get(array, i));
    return text ? text : "";
}

/* The colour and mark of the set whose label ends so: "#cc79a7 rectRot"; "": there is none. */
static const char *style_of(const json_t *chart, const char *ends)
{
    static char style[64];
    const json_t *labels = json_object_get(chart, "labels");
    *style = '\0';
    for (size_t i = 0; i < json_array_size(labels); i++) {
        const char *label = text_at(labels, i);
        const size_t length = strlen(label), end = strlen(ends);
        if (length >= end && !strcmp(label + length - end, ends))
            snprintf(style, sizeof style, "%s %s", text_at(json_object_get(chart, "paints"), i),
                     text_at(json_object_get(chart, "marks"), i));
    }
    return style;
}

/* The page and the drawings have one colour for a policy, whatever the order of the files. */
Test(report_look, a_policy_has_one_colour_and_mark)
{
    static const char *const policies[] = {"sqrt", "every", "chen"};
    static const char *const orders[] = {"r/small/*.h5", "$(ls -r r/small/*.h5)"};
    struct cli cli;
    browser_require();
    run_sweep(&cli);
    for (int order = 0; order < 2; order++) {
        char arguments[100], command[200];
        snprintf(arguments, sizeof arguments, "report %s -o page.html --figures drawn", orders[order]);
        cli_expect(&cli, 0, arguments);
        json_t *seen = browser_show(&cli, "page.html", 1200);
        for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
            char choice[64];
            snprintf(choice, sizeof choice, "%s", style_of(chart_of(seen, "choices"), policies[i]));
            unsigned red, green, blue;
            cr_expect(strlen(choice) > 8, "%s has no points", policies[i]);
            for (size_t k = 0; k < 2; k++) {
                snprintf(command, sizeof command, "sweep-%zu", k);
                cr_expect_str_eq(style_of(chart_of(seen, command), policies[i]), choice, "%s in chart %s", policies[i],
                                 command);
            }
            for (size_t k = 0; k < i; k++)
                cr_expect(strcmp(choice, style_of(chart_of(seen, "choices"), policies[k])) != 0);
            cr_assert(sscanf(choice, "#%2x%2x%2x", &red, &green, &blue) == 3);
            snprintf(command, sizeof command, "grep -qi 'rgb( *%u, *%u, *%u)' drawn/sweep-1.svg || exit 9", red, green,
                     blue);
            cli_run(&cli, command, "--version");
            cr_expect(cli.code == 0, "%s: %s", policies[i], command);
        }
        json_decref(seen);
    }
    cli_close(&cli);
}

/* Baselines come first, then variants, each by batch as a number and policy, whatever the order of the files. */
Test(report_look, runs_are_in_the_order_of_their_settings)
{
    static const char *const orders[] = {"r/small/*.h5", "$(ls -r r/small/*.h5)", "$(ls -t r/small/*.h5)"};
    struct cli cli;
    run_sweep(&cli);
    for (size_t order = 0; order < sizeof orders / sizeof *orders; order++) {
        char arguments[100];
        snprintf(arguments, sizeof arguments, "report %s -o page.html", orders[order]);
        cli_expect(&cli, 0, arguments);
        cli_run(
            &cli,
            "sed -n 's/.*id=\"data\">//; s/<.script>$//; /^{/p' page.html | grep -o '\"batch\":[0-9]*,\\|\"policy\":"
            "\"[a-z_]*\",\"preparing\\|\"side\":\"[a-z]*\"' | grep -o '[a-z_0-9]*[,\"]*$' | tr -d '\",' | grep -v "
            "preparing | head -36 | tr '\\n' ' ' >order; grep -q '^4 baseline 8 baseline 12 baseline "
            "4 variant 4 variant 4 variant 8 variant 8 variant 8 variant 12 variant ' order || { cat order >&2; "
            "exit 9; }",
            "--version");
        cr_expect(cli.code == 0, "%s", orders[order]);
    }
    cli_close(&cli);
}

Test(report_look, expectations_are_met_or_not)
{
    struct cli cli;
    browser_require();
    cli_open(&cli);
    cli_run(
        &cli,
        "echo 'expect: [{what: live_ratio, below: 9, source: one}, {what: live_ratio, above: 9, source: two}, {what: "
        "accuracy, above: 0, source: three}]' >>small.yaml",
        "run small.yaml --quiet");
    cli_run(&cli, "", "report results/small/*.h5");
    json_t *seen = browser_show(&cli, "report.html", 1000);
    const char *text = json_string_value(json_object_get(seen, "text"));
    cr_expect(text && strstr(text, "\tmet\tone") && strstr(text, "\tNOT MET\ttwo") &&
                  strstr(text, "\tnot measured\tthree"),
              "%s", text);
    json_decref(seen);
    cli_run(&cli, "rm -r results", "run small.yaml --quiet policy=sqrt");
    cli_expect(&cli, 0, "report results/small/*.h5");
    seen = browser_show(&cli, "report.html", 1000);
    text = json_string_value(json_object_get(seen, "text"));
    cr_expect(text && strstr(text, "met, but policy was overridden"), "%s", text);
    json_decref(seen);
    cli_close(&cli);
}

/* On paper a heading and what comes below it are on one page, wherever pages end. */
Test(report_look, no_heading_ends_a_page, .timeout = 600)
{
    enum { PLACES = 8, PIXELS = 130 };
    static const char *const pairs[][2] = {{"Live memory over the ops", "live memory, "},
                                           {"Losses", "variant, "},
                                           {"What each node keeps", "Recomputed"},
                                           {"Time against memory", "slowdown (1"},
                                           {"Provenance", "Created"}};
    struct cli cli;
    browser_require();
    if (system("command -v pdftotext >/dev/null") != 0) cr_skip_test("pdftotext is not installed");
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --quiet");
    cli_expect(&cli, 0, "report results/small/*.h5");
    for (int place = 0; place < PLACES; place++) {
        char command[900];
        snprintf(
            command, sizeof command,
            "sed 's|<main |<div style=\"height:%dpx\"></div><main |' report.html >moved.html; HOME=$PWD chromium "
            "--headless --no-sandbox --disable-gpu --user-data-dir=profile --virtual-time-budget=8000 "
            "--no-pdf-header-footer --print-to-pdf=moved.pdf file://$PWD/moved.html 2>/dev/null; rm -f page-*; "
            "for p in 1 2 3 4 5 6; do pdftotext -f $p -l $p -layout moved.pdf page-$p 2>/dev/null; done; ls page-1",
            place * PIXELS);
        cli_run(&cli, command, "--version");
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            snprintf(command, sizeof command,
                     "for p in page-*; do grep -q '^ *%s' $p || continue; sed -n '/^ *%s/,$p' $p | grep -q '%s' || "
                     "{ tail -5 $p >&2; exit 9; }; done",
                     pairs[i][0], pairs[i][0], pairs[i][1]);
            cli_run(&cli, command, "--version");
            cr_expect(cli.code == 0, "%d pixels down '%s' ends a page", place * PIXELS, pairs[i][0]);
        }
    }
    cli_close(&cli);
}

/* Of thousands of ops those with the most and the least bytes of each part are there, and the page says so. */
Test(report_look, a_large_plan_is_a_small_page, .timeout = 300)
{
    enum { LAYERS = 3000, BYTES = 3000000 };
    struct cli cli;
    char path[512], says[100];
    browser_require();
    cli_open(&cli);
    snprintf(path, sizeof path, "%s/deep.yaml", cli.folder);
    FILE *out = fopen(path, "w");
    cr_assert(out &&
              fprintf(out,
                      "rematch: 1\nname: deep\nmodel:\n  layers:\n    - flatten\n    - repeat: {times: %d, name: "
                      "b, layers: [{linear: {units: 4, activation: relu}}]}\n    - linear: {units: classes}\n"
                      "data: {name: synthetic, shape: [4, 4, 1], classes: 4, samples: 50}\nbatch: 8\nsteps: 2\n"
                      "backend: {name: ref, threads: 1}\noptimizer: {name: sgd, lr: 0.1}\n",
                      LAYERS) > 0 &&
              fclose(out) == 0);
    cli_expect(&cli, 0, "plan deep.yaml policy=store_all --out a.h5");
    json_t *plan = cli_json(&cli, 0, "plan deep.yaml policy=sqrt --ops --json --out b.h5"), *op;
    cli_expect(&cli, 0, "report a.h5 b.h5 -o page.html");
    snprintf(says, sizeof says, "test $(stat -c %%s page.html) -lt %d || exit 9", BYTES);
    cli_run(&cli, says, "--version");
    cr_expect(cli.code == 0, "the page has more than %d bytes", BYTES);
    json_t *seen = browser_show(&cli, "page.html", 1200), *set;
    const json_t *data = json_object_get(chart_of(seen, "memory-1"), "data");
    double most = 0, planned = 0;
    size_t i, k, ops = json_array_size(json_object_get(plan, "ops"));
    json_t *point;
    json_array_foreach (data, i, set)
        json_array_foreach (set, k, point) {
            const double y = json_number_value(json_array_get(point, 1));
            if (i && y > most) most = y;
        }
    json_array_foreach (json_object_get(plan, "ops"), i, op) {
        const double live = json_number_value(json_object_get(op, "live_bytes"));
        if (live > planned) planned = live;
    }
    cr_expect(planned > 0 && most == planned / 1024, "the page has a peak of %g KiB, the plan of %g", most,
              planned / 1024);
    snprintf(says, sizeof says, "of %zu ops are drawn: ", ops);
    const char *text = json_string_value(json_object_get(seen, "text"));
    cr_expect(text && strstr(text, says) && strstr(text, "Of 3003 nodes the 2000 that keep"), "%.2000s", text);
    json_decref(seen);
    json_decref(plan);
    cli_close(&cli);
}

/* Of thousands of steps a part is drawn, with the least and the greatest loss of all. */
Test(report_look, a_long_series_keeps_its_extremes)
{
    enum { STEPS = 3000, MOST = 1000 };
    struct cli cli;
    browser_require();
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --quiet steps=3000 optimizer.lr=0.5");
    cli_run(&cli, "file=$(ls results/small/*.h5 | head -1)", "show $file --json");
    json_t *file = json_loads(cli.out, 0, NULL), *loss, *point;
    const json_t *losses = json_object_get(json_object_get(file, "steps"), "loss");
    cli_expect(&cli, 0, "report results/small/*.h5");
    json_t *seen = browser_show(&cli, "report.html", 1000);
    const json_t *drawn = json_array_get(json_object_get(chart_of(seen, "losses"), "data"), 0);
    double range[2][2] = {{1e9, -1e9}, {1e9, -1e9}};
    size_t i;
    cr_assert(json_array_size(losses) == STEPS);
    json_array_foreach (losses, i, loss) {
        const double x = json_number_value(loss);
        range[0][0] = x < range[0][0] ? x : range[0][0];
        range[0][1] = x > range[0][1] ? x : range[0][1];
    }
    json_array_foreach (drawn, i, point) {
        const double x = json_number_value(json_array_get(point, 1));
        range[1][0] = x < range[1][0] ? x : range[1][0];
        range[1][1] = x > range[1][1] ? x : range[1][1];
    }
    cr_expect(json_array_size(drawn) <= MOST && json_array_size(drawn) > MOST / 4, "%zu points",
              json_array_size(drawn));
    cr_expect(range[0][0] == range[1][0] && range[0][1] == range[1][1], "%g to %g, expected %g to %g", range[1][0],
              range[1][1], range[0][0], range[0][1]);
    const char *text = json_string_value(json_object_get(seen, "text"));
    cr_expect(text && strstr(text, "of 3000 steps are drawn: "), "%.2000s", text);
    json_decref(file);
    json_decref(seen);
    cli_close(&cli);
}

/* As wide as it is asked for; with a title, the runs marked, and no digest of a plan. */
Test(report_look, figures_are_for_papers)
{
    static const struct {
        const char *options;
        int width;
    } cases[] = {{"", 980}, {"--width double", 980}, {"--width single", 476}};
    static const char *const names[] = {"memory", "losses", "policies"};
    struct cli cli;
    char command[600];
    if (system("command -v gnuplot >/dev/null") != 0) cr_skip_test("gnuplot is not installed");
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --quiet");
    json_t *plan = cli_json(&cli, 0, "plan small.yaml --json");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(command, sizeof command, "report results/small/*.h5 --figures drawn %s", cases[i].options);
        cli_expect(&cli, 0, command);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            snprintf(command, sizeof command,
                     "f=drawn/%s.svg; grep -q 'viewBox=\"0 0 %d ' $f && grep -q 'a small MLP: ' $f && ! grep -q "
                     "'%.16s' $f || exit 9",
                     names[k], cases[i].width, json_string_value(json_object_get(plan, "hash")));
            cli_run(&cli, command, "--version");
            cr_expect(cli.code == 0, "%s %s", cases[i].options, names[k]);
        }
        cli_run(&cli, "grep -q 'runs of this report' drawn/policies.svg || exit 9", "--version");
        cr_expect(cli.code == 0, "%s", cases[i].options);
    }
    json_decref(plan);
    cli_expect(&cli, 2, "report results/small/*.h5 --width single");
    cli_complains(&cli, "--width is of figures");
    cli_expect(&cli, 2, "report results/small/*.h5 --figures drawn --width wide");
    cli_close(&cli);
}
