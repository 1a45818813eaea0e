/* The experiments of a folder with the status of their last runs; the runs of a folder. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/altered_files.h"
#include "tests/support/cli.h"

Test(list, prints_the_status_of_the_last_run)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "list .");
    cli_says(&cli, "small");
    cli_says(&cli, "a small MLP");
    cr_expect(!strstr(cli.out, "results/"), "%s", cli.out);
    cli_expect(&cli, 0, "run small.yaml --only variant --quiet");
    cli_expect(&cli, 0, "list .");
    cli_says(&cli, "completed ");
    cli_says(&cli, ", results/small/");
    json_t *answer = cli_json(&cli, 0, "list . --json"), *all = json_object_get(answer, "experiments");
    cr_assert(json_array_size(all) == 1, "%s", cli.out);
    const json_t *last = json_object_get(json_array_get(all, 0), "last");
    cr_assert(strcmp(json_string_value(json_object_get(last, "status")), "completed") == 0);
    json_decref(answer);

    char path[512];
    snprintf(path, sizeof path, "%s/results/damaged", cli.folder);
    cr_assert(mkdir(path, 0700) == 0);
    cli_run(&cli, "cp results/small/*.h5 results/damaged/last.h5; sed s/small/damaged/ small.yaml >damaged.yaml",
            "list .");
    snprintf(path, sizeof path, "%s/results/damaged/last.h5", cli.folder);
    alter_endless(path);
    cli_expect(&cli, 0, "list ."); /* reading that one ends the process that reads it */
    cli_says(&cli, " unreadable, results/damaged/last.h5\nsmall ");
    cli_says(&cli, " completed ");
    cli_file(&cli, "bad.yaml", "rematch: 1\nname: bad\n");
    cli_run(&cli, "rm damaged.yaml", "list .");
    cr_assert(cli.code == 2);
    cli_says(&cli, "small");
    cli_complains(&cli, "bad.yaml");
    cli_close(&cli);
}

/* The row of the list as JSON whose side, policy and overrides these are. */
static const json_t *find_run(const json_t *all, const char *side, const char *policy, const char *overrides)
{
    size_t i;
    const json_t *one;
    json_array_foreach (all, i, one) {
        if (!strcmp(json_string_value(json_object_get(one, "side")), side) &&
            !strcmp(json_string_value(json_object_get(one, "policy")), policy) &&
            !strcmp(json_string_value(json_object_get(one, "overrides")), overrides))
            return one;
    }
    cr_assert_fail("no %s of %s with '%s'", side, policy, overrides);
    return NULL;
}

static const char *text_of(const json_t *run, const char *key) { return json_string_value(json_object_get(run, key)); }

/* Each run's row says what its file says, and of a variant how it compares with the baseline of its kind. */
Test(list, prints_a_row_for_each_run_of_a_folder)
{
    static const struct {
        const char *arguments, *overrides, *of_baseline, *verdict;
        int code;
    } runs[] = {{"", "", "", "equal", 0},
                {"batch=4", "batch: 8 -> 4", "batch: 8 -> 4", "equal", 0},
                {"rng=unsafe", "rng: counter -> unsafe", "rng: counter -> stash", "DIFFERS", 1},
                {"rng=mask", "rng: counter -> mask", "rng: counter -> mask", "equal", 0}};
    enum { RUNS = sizeof runs / sizeof *runs };
    struct cli cli;
    char arguments[1200];
    cli_open(&cli);
    for (int i = 0; i < RUNS; i++) {
        snprintf(arguments, sizeof arguments, "run small.yaml --quiet %s", runs[i].arguments);
        cli_expect(&cli, runs[i].code, arguments);
    }
    cli_expect(&cli, 0, "run small.yaml --quiet --only variant steps=3");
    cli_expect(&cli, 4, "run small.yaml --quiet batch=2 policy.name=segments policy.segments=1");
    json_t *answer = cli_json(&cli, 0, "list results --json"), *all = json_object_get(answer, "runs");
    cr_assert(json_array_size(all) == 2 * RUNS + 3);
    size_t i, unproven = 0;
    const json_t *one;
    json_array_foreach (all, i, one)
        unproven += !strcmp(text_of(one, "policy"), "segments") && !strcmp(text_of(one, "verdict"), "unproven");
    cr_expect(unproven == 1, "a plan that recomputes nothing proves nothing");
    for (i = 0; i < RUNS; i++) {
        const json_t *variant = find_run(all, "variant", "manual", runs[i].overrides);
        cr_expect(!strcmp(text_of(variant, "verdict"), runs[i].verdict), "%s: %s", runs[i].arguments,
                  text_of(variant, "verdict"));
        const json_t *baseline = find_run(all, "baseline", "store_all", runs[i].of_baseline);
        cr_expect(!strcmp(text_of(variant, "baseline"), text_of(baseline, "file")), "%s", runs[i].arguments);
        cr_expect(!strcmp(text_of(baseline, "verdict"), "-") && !*text_of(baseline, "baseline"));
        snprintf(arguments, sizeof arguments, "show %s --json", text_of(variant, "file"));
        json_t *shown = cli_json(&cli, 0, arguments);
        const json_t *plan = json_object_get(shown, "/plan");
        cr_expect(json_equal(json_object_get(plan, "peak_bytes"), json_object_get(variant, "peak_bytes")));
        cr_expect(!strcmp(text_of(variant, "batch"), i == 1 ? "4" : "8"));
        cr_expect(json_integer_value(json_object_get(variant, "steps")) == 4);
        cr_expect(!strcmp(text_of(variant, "status"), "completed") && !strcmp(text_of(variant, "experiment"), "small"));
        json_decref(shown);
    }
    cr_expect(!strcmp(text_of(find_run(all, "variant", "manual", "steps: 4 -> 3"), "verdict"), "-"), "no baseline");
    json_decref(answer);
    cr_assert(cli_on_screen(&cli, 80, "", "list results") == 0 && strstr(cli.out, "DIFFERS"), "%s", cli.out);
    cli_close(&cli);
}

/* Files that cannot be read are rows with the reason, and do not end the table. */
Test(list, goes_on_after_a_broken_file)
{
    struct cli cli;
    char path[512];
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --quiet");
    cli_run(&cli,
            "cd results/small; file=$(ls *.h5 | head -1); cp $file a.h5; head -c 3000 $file >b.h5; echo text >c.h5; "
            "cp $file d.h5.part; mkdir e.h5; ln -s nowhere f.h5; mkfifo g.h5; cd ../..",
            "--version");
    snprintf(path, sizeof path, "%s/results/small/a.h5", cli.folder);
    alter_endless(path);
    json_t *answer = cli_json(&cli, 0, "list results --json"), *all = json_object_get(answer, "runs");
    size_t i, unreadable = 0, read = 0;
    const json_t *one;
    cr_assert(json_array_size(all) == 9, "%s", cli.out);
    json_array_foreach (all, i, one) {
        const char *reason = text_of(one, "reason");
        const bool broken = !strcmp(text_of(one, "status"), "unreadable");
        cr_expect(broken == (reason && strstr(reason, text_of(one, "file"))), "%s", text_of(one, "file"));
        unreadable += broken;
        read += !broken;
    }
    cr_expect(unreadable == 6 && read == 3, "%s", cli.out);
    json_decref(answer);
    cli_expect(&cli, 0, "list results");
    cli_says(&cli, "results/small/c.h5: ");
    cli_says(&cli, "  equal");
    cli_close(&cli);
}

/* The first line of out that begins with a text, cut there. */
static const char *line_of(const struct cli *cli, const char *begins)
{
    static char line[300];
    const char *at = cli->out;
    while (at && strncmp(at, begins, strlen(begins)) != 0) at = (at = strchr(at, '\n')) ? at + 1 : NULL;
    snprintf(line, sizeof line, "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
    return line;
}

static int times(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text++) count++;
    return count;
}

/* Keys that differ come first, what all share is said once, and a run's name is whole where other texts are cut. */
Test(list, shows_what_differs)
{
    static const struct {
        const char *sweep, *begins, *shared; /* shared: in the line of what all have */
    } cases[] = {
        {"seed: [1, 2]", "seed  ", "batch 8"},
        {"batch: [2, 4], seed: [1, 2]", "batch  seed  ", "data.samples 44"},
        {"policy.groups: [[front], [front]], optimizer.lr: [0.1, 0.2]", "policy.groups  optimizer.lr  ", "batch 8"},
        {"policy: [every, sqrt]", "policy  ", "batch 8"},
    };
    struct cli cli;
    char arguments[300];
    cli_open(&cli);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(arguments, sizeof arguments, "run small.yaml --quiet data.samples=44 results=r%zu 'sweep={%s}'", i,
                 cases[i].sweep);
        cli_run(&cli, "", arguments);
        cr_assert(cli.code == 0 || cli.code == 4, "%s", cli.err);
        snprintf(arguments, sizeof arguments, "list r%zu/small --json", i);
        json_t *answer = cli_json(&cli, 0, arguments), *run;
        for (int columns = 0; columns < 2; columns++) {
            size_t k;
            snprintf(arguments, sizeof arguments, "list r%zu/small", i);
            cr_assert(cli_on_screen(&cli, columns ? 80 : 300, "", arguments) == 0);
            cr_expect(columns || *line_of(&cli, cases[i].begins), "%s: %s", cases[i].sweep, cli.out);
            cr_expect(strstr(line_of(&cli, "all        "), cases[i].shared), "%s: %s", cases[i].sweep, cli.out);
            cr_expect(times(cli.out, "data.samples") == 1, "%s", cli.out);
            json_array_foreach (json_object_get(answer, "runs"), k, run) {
                snprintf(arguments, sizeof arguments, "  %s  ", text_of(run, "run"));
                cr_expect(strstr(cli.out, arguments), "%s is not in\n%s", text_of(run, "run"), cli.out);
            }
        }
        json_decref(answer);
    }
    cli_close(&cli);
}

/* Five lines come first. */
Test(list, show_begins_with_what_a_person_asks)
{
    static const char *const heads[] = {"what       ", "verdict    ", "peak       ", "step       ", "where      "};
    static const struct {
        const char *run, *pick, *what, *verdict;
        int code;
    } cases[] = {
        {"run small.yaml --quiet results=a", "a/small", "variant of policy manual, batch 8, 4 steps, completed",
         "equal to its baseline in every bit: a/small/", 0},
        {"run small.yaml --quiet results=b rng=unsafe", "b/small", "variant of policy manual",
         "DIFFERS from its baseline, rematch compare says where: b/small/", 1},
        {"run small.yaml --quiet results=c --only variant", "c/small", "variant of policy manual",
         "none: its folder has no baseline", 0},
        {"plan small.yaml --out d.h5", ".", "plan of policy manual", "none: a plan", 0},
    };
    struct cli cli;
    char arguments[300];
    cli_open(&cli);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_expect(&cli, cases[i].code, cases[i].run);
        snprintf(arguments, sizeof arguments,
                 "show $(ls %s/*.h5 | while read f; do "
                 "'%s' show $f | grep -q 'what .*of policy manual' && echo $f && break; done)",
                 cases[i].pick, cli_program());
        cli_expect(&cli, 0, arguments);
        const char *line = cli.out;
        for (size_t k = 0; k < sizeof heads / sizeof *heads; k++) {
            cr_expect(strncmp(line, heads[k], strlen(heads[k])) == 0, "line %zu: %.60s", k + 1, line);
            line = strchr(line, '\n') + 1;
        }
        cr_expect(*line == '\n');
        cli_says(&cli, cases[i].what);
        cli_says(&cli, cases[i].verdict);
    }
    cli_close(&cli);
}
