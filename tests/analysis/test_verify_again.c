/* `rematch verify` runs a file's spec again: the same bits or the first that differ, as far as the run went, and
 * nothing is left of it. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "result/result_read.h"
#include "tests/support/altered_files.h"
#include "tests/support/cli.h"
#include "tests/support/dataset_files.h"
#include "tests/support/made_runs.h"
#include "tests/support/safetensors_files.h"

/* The result of the variant, copied to result.h5. */
static void result_of(struct cli *cli, const char *arguments, char path[300])
{
    char variant[256], from[600];
    cli_expect(cli, 0, arguments);
    const char *last = strstr(cli->out, "\nvariant   results");
    cr_assert(last && sscanf(last, "\nvariant %255s", variant) == 1, "%s", cli->out);
    snprintf(from, sizeof from, "%s/%s", cli->folder, variant);
    snprintf(path, 300, "%.250s/result.h5", cli->folder);
    alter_copy(from, path);
}

Test(verify, runs_the_spec_again_and_removes_its_folder)
{
    static const char *const how[] = {"run small.yaml",
                                      "run small.yaml policy=every rng=mask relu_save=bits eval.every=2",
                                      "run small.yaml policy=optimal optimizer=sgd record.digests=false"};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        struct cli cli;
        char path[300];
        cli_open(&cli);
        result_of(&cli, how[i], path);
        int files = folder_count(cli.folder, "");
        cli_run(&cli, "export TMPDIR=$PWD", "verify result.h5");
        cr_assert(cli.code == 0, "%s\n%s", cli.out, cli.err);
        cli_says(&cli, "plan      right");
        cli_says(&cli, "bounds    right");
        cli_says(&cli, "steps     same bits: losses, gradients, parameters, optimizer and running state of 4 steps");
        cr_assert(folder_count(cli.folder, "") == files);
        cli_expect(&cli, 0, "verify result.h5 --plan-only");
        cr_assert(!strstr(cli.out, "steps"));
        cli_run(&cli, "export TMPDIR=/proc/nowhere", "verify result.h5");
        cr_assert(cli.code == 3 && cli_complaints(&cli) == 1, "%s", cli.err);
        cli_close(&cli);
    }
}

Test(verify, names_the_first_step_and_tensor_that_differ)
{
    struct cli cli;
    char path[300];
    cli_open(&cli);
    result_of(&cli, "run small.yaml", path);
    alter_digest(path, 2, 2);
    alter_text(path, "/provenance/host", "isa", "an older one");
    cli_expect(&cli, 1, "verify result.h5");
    cli_says(&cli, "plan      right");
    cli_says(&cli, "steps     DIFFER: first at step 2, in gradient of two.weight\n");
    cli_says(&cli, "not as it was:\n  isa          an older one, now ");
    cr_assert(!strstr(cli.out, "compiler"));
    json_t *all = cli_json(&cli, 1, "verify result.h5 --json"), *steps = json_object_get(all, "steps");
    const json_t *first = json_object_get(steps, "first_difference");
    cr_assert(json_is_false(json_object_get(all, "right")));
    cr_assert(json_is_true(json_object_get(json_object_get(all, "plan"), "right")));
    cr_assert_str_eq(json_string_value(json_object_get(steps, "found")), "differ");
    cr_assert(json_integer_value(json_object_get(first, "step")) == 2);
    cr_assert_str_eq(json_string_value(json_object_get(first, "tensor")), "gradient of two.weight");
    json_decref(all);
    cli_close(&cli);
}

/* What the file has of its steps is run again, and not one more; what became of the others is said. */
Test(verify, repeats_the_steps_of_a_failed_run)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 3, "run small.yaml --quiet steps=50 optimizer.lr=1e6 lr_schedule=linear");
    cli_run(&cli, "mv results/small/*.part failed.part; rm -r results", "show failed.part --json");
    json_t *shown = json_loads(cli.out, 0, NULL);
    const size_t steps = json_array_size(json_object_get(json_object_get(shown, "steps"), "step"));
    cr_assert(steps > 1 && steps < 50, "%zu steps", steps);
    cli_expect(&cli, 0, "verify failed.part");
    cli_says(&cli, "run       failed: step ");
    cli_says(&cli, "the first node whose output is not finite is ");
    cli_says(&cli, "steps     same bits");
    json_t *all = cli_json(&cli, 0, "verify failed.part --json");
    cr_assert(json_equal(json_object_get(all, "status"), json_object_get(shown, "now")));
    cr_assert(json_integer_value(json_object_get(json_object_get(all, "steps"), "compared")) == (json_int_t)steps);
    json_decref(shown);
    json_decref(all);
    cli_close(&cli);
}

static void check_nothing_left(struct cli *cli, const char *what)
{
    cli_run(cli, "ls -d rematch-verify-* >left 2>/dev/null; cat log >>left; grep -c rematch-verify- left >count",
            "--version");
    cli_run(cli, "exit $(cat count)", "--version");
    cr_assert(cli->code == 0, "%s: %d folders left or named", what, cli->code);
}

/* Whatever ends it: its reader, or a signal before the run, or while the run goes on, which has no end here, or one
 * that ends the run's process. None of its folders is left, or named in what it says. */
Test(verify, removes_its_folder_on_a_signal, .timeout = 240)
{
    static const struct {
        const char *when, *kill; /* until this is there; how it ends */
        int code;
    } ends[] = {{"rematch-verify-*/small/*.part", "kill -INT $pid", 130},
                {"rematch-verify-*/small/*.part", "kill -TERM $pid", 143},
                {"rematch-verify-*/small/*.part", "kill -HUP $pid", 129},
                {"rematch-verify-*/small/*.part", "kill -KILL $(pgrep -P $(pgrep -P $pid))", 137},
                {"rematch-verify-*", "kill -INT $pid", 130},
                {"rematch-verify-*/small", "kill -TERM $pid", 143}};
    struct cli cli;
    char path[300], before[1024], *endless = NULL;
    signal(SIGHUP, SIG_DFL); /* under nohup it would be left as it is */
    cli_open(&cli);
    result_of(&cli, "run small.yaml", path);
    snprintf(before, sizeof before, "export TMPDIR=$PWD; touch log; '%s' verify result.h5 | :", cli_program());
    cli_run(&cli, before, "--version");
    check_nothing_left(&cli, "a reader that ends");

    struct result *r;
    cr_assert(result_open(path, &r) == ST_OK);
    const char *spec = h5_read_text(&r->h5, "/spec/resolved", r->region), *steps = strstr(spec, "steps: 4\n");
    cr_assert(steps && asprintf(&endless, "%.*ssteps: 100000000\n%s", (int)(steps - spec), spec, steps + 9) > 0);
    result_close(r);
    alter_array_text(path, "/spec/resolved", endless);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(before, sizeof before,
                 "export TMPDIR=$PWD; timeout 60 '%s' verify result.h5 >log 2>&1 & pid=$!; until "
                 "ls -d %s >/dev/null 2>&1 || ! kill -0 $pid; do sleep 0.01; done; %s; wait $pid; echo $? >code",
                 cli_program(), ends[i].when, ends[i].kill);
        cli_run(&cli, before, "--version");
        cli_run(&cli, "exit $(cat code)", "--version");
        cr_assert(cli.code == ends[i].code, "%s at %s: exit code %d", ends[i].kill, ends[i].when, cli.code);
        check_nothing_left(&cli, ends[i].kill);
    }
    free(endless);
    cli_close(&cli);
}

/* A file of fewer steps than its spec has is not what the spec gives, though every step of it is. */
Test(verify, counts_the_steps)
{
    struct cli cli;
    struct result *r;
    char path[300], text[4096];
    cli_open(&cli);
    result_of(&cli, "run small.yaml", path);
    cr_assert(result_open(path, &r) == ST_OK, "%s", status_message());
    snprintf(text, sizeof text, "%s", h5_read_text(&r->h5, "/spec/resolved", r->region));
    result_close(r);
    char *steps = strstr(text, "\nsteps: 4\n");
    cr_assert(steps != NULL, "%s", text);
    steps[strlen("\nsteps: ")] = '5';
    alter_array_text(path, "/spec/resolved", text);
    cli_expect(&cli, 1, "verify result.h5");
    cli_says(&cli, "steps     DIFFER: 4 in the file; its spec has 5\n");
    cli_close(&cli);
}

static void write_weights(const struct cli *cli, float base)
{
    static struct safetensors_writer writer;
    char path[300];
    snprintf(path, sizeof path, "%.250s/w.safetensors", cli->folder);
    writer = (struct safetensors_writer){.length = 0};
    safetensors_add(&writer, "one.bias", "24", base);
    safetensors_finish(&writer, path);
}

Test(verify, names_initial_values_that_differ)
{
    struct cli cli;
    char path[300];
    cli_open(&cli);
    write_weights(&cli, 0);
    result_of(&cli, "run small.yaml model.init.file=w.safetensors model.init.missing=init", path);
    cli_expect(&cli, 0, "verify result.h5");
    write_weights(&cli, 1);
    cli_expect(&cli, 1, "verify result.h5");
    cli_says(&cli, "steps     DIFFER: first at step 0, in loss\nnot as it was:\n  sha256       ");
    cli_close(&cli);
}

Test(verify, names_a_missing_prerequisite)
{
    struct cli cli;
    char path[300], spec[2048];
    cli_open(&cli);
    snprintf(spec, sizeof spec,
             "rematch: 1\nname: hand\nmodel: {layers: [flatten, linear: {units: classes}]}\n"
             "data: {name: cifar10, path: data}\nbatch: 2\nsteps: 2\nbackend: {name: ref, threads: 1}\n");
    cli_file(&cli, "hand.yaml", spec);
    snprintf(spec, sizeof spec, "cp -r '%s' data", hand_made_folder());
    cli_run(&cli, spec, "run hand.yaml --only variant");
    cr_assert(cli.code == 0, "%s", cli.err);
    result_of(&cli, "run hand.yaml --only variant", path);
    cli_run(&cli, "rm -r data; unset REMATCH_DATA", "verify result.h5");
    cr_assert(cli.code == 77, "exit code %d\n%s\n%s", cli.code, cli.out, cli.err);
    cli_says(&cli, "steps     not run again: exit code 77\nit was written with:\n");
    cli_says(&cli, "  isa          ");
    cli_says(&cli, "  digest_xxh3  ");
    cli_says(&cli, "bounds    not judged: ");
    cli_close(&cli);
}
