/* Complete runs through the program: equality, its controls, and every kind of failure. */
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "build.h"
#include "tests/support/background_runs.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"

/* The path of a file: the text after "baseline  " or "variant  " at the start of a line of the output. */
static void path_of(const struct cli *cli, const char *side, char path[256])
{
    char start[32];
    snprintf(start, sizeof start, "\n%-9s results/", side);
    const char *at = strstr(cli->out, start);
    cr_assert(at != NULL, "no path of the %s in\n%s", side, cli->out);
    cr_assert(sscanf(at + 11, "%255s", path) == 1);
}

/* Compares the two files that the last run named, as JSON. */
static json_t *compare(struct cli *cli, int code)
{
    char a[256], b[256], arguments[600];
    path_of(cli, "baseline", a);
    path_of(cli, "variant", b);
    snprintf(arguments, sizeof arguments, "compare %s %s --json", a, b);
    return cli_json(cli, code, arguments);
}

/* The ratios in the JSON of a comparison follow from its numbers. */
static void check_numbers(const json_t *json)
{
    static const char *const pairs[][2] = {{"peak_bytes", "peak_ratio"},
                                           {"live_peak_bytes", "live_ratio"},
                                           {"step_median_ns", "time_ratio"},
                                           {"step_best_case_ns", "best_case_ratio"}};
    const json_t *a = json_object_get(json, "a"), *b = json_object_get(json, "b");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const double x = json_number_value(json_object_get(a, pairs[i][0])),
                     y = json_number_value(json_object_get(b, pairs[i][0])),
                     ratio = json_number_value(json_object_get(json, pairs[i][1]));
        cr_assert(x > 0 && fabs(y / x - ratio) <= 1e-6 * ratio, "%s %g %g %g", pairs[i][0], x, y, ratio);
    }
    cr_assert_str_eq(json_string_value(json_object_get(a, "policy")), "store_all");
    cr_assert(strstr(json_string_value(json_object_get(b, "path")), "results/small/"));
}

/* 16 inputs; 24, 16 and 4 units with biases. Of policies without settings, the plan also says which recompute nothing.
 */
Test(run, parameters_are_counted_exactly)
{
    struct cli cli;
    cli_open(&cli);
    json_t *plan = cli_json(&cli, 0, "plan small.yaml --json");
    cr_assert(json_integer_value(json_object_get(plan, "parameters")) == 17 * 24 + 25 * 16 + 17 * 4);
    json_decref(plan);
    cli_expect(&cli, 0, "plan small.yaml");
    cli_says(&cli, "  876 in 6 tensors\n");
    cli_says(&cli, "  yes                recomputes nothing\n  every ");
    cli_expect(&cli, 0, "run small.yaml");
    cli_says(&cli, "\n  parameters: 876 in 6 tensors\n");
    cli_close(&cli);
}

Test(run, is_equal_in_every_bit)
{
    static const char *const how[] = {"", "rng=stash memory=dynamic", "rng=mask memory=poison check=recompute",
                                      "policy=sqrt relu_save=bits"};
    struct cli cli;
    cli_open(&cli);
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments, "run small.yaml %s", how[i]);
        cli_expect(&cli, 0, arguments);
        cli_says(&cli, "EQUAL IN EVERY BIT");
        cr_assert((strstr(cli.out, "by the allocator, as predicted at every op") != NULL) == (i == 1), "%s", cli.out);
        cli_says(&cli, "peak, predicted");
        cli_says(&cli, "neither static nor arena");
        cr_assert(strstr(cli.out, "DIFFERS") == NULL);
        json_t *json = compare(&cli, 0);
        cr_assert(json_is_true(json_object_get(json, "equal")));
        cr_assert(json_is_true(json_object_get(json, "side_by_side")));
        cr_assert(json_is_null(json_object_get(json, "first_difference")));
        cr_assert(json_integer_value(json_object_get(json, "steps")) == 4);
        check_numbers(json);
        json_decref(json);
    }
    cr_assert(folder_count(cli.folder, ".part") == 0);
    cli_close(&cli);
}

/* A fused update in parts beside a separate one, which has none; parts without a fused update are an error. */
Test(run, a_fused_update_in_parts_equals_a_separate_one)
{
    struct cli cli;
    cli_open(&cli);
    cli_file(
        &cli, "parts.yaml",
        "rematch: 1\nname: parts\nmodel: {layers: [flatten, {linear: {units: 256}}, relu, {linear: {units: 256}}, "
        "{linear: {units: classes}}]}\ndata: {name: synthetic, shape: [16, 16, 1], classes: 4}\nbatch: 8\nsteps: 2\n"
        "optimizer: {name: adam, lr: 0.01}\nbackend: ref\nupdate: fused\nupdate_part: 64KiB\npolicy: sqrt\n");
    cli_expect(&cli, 0, "run parts.yaml baseline.update=separate");
    cli_says(&cli, "EQUAL IN EVERY BIT");
    cli_expect(&cli, 2, "run parts.yaml update=separate");
    cli_complains(&cli, "update_part: requires update: fused");
    cli_close(&cli);
}

/* Deliberate faults, and the step at which each must show. */
static const struct {
    const char *arguments;
    int step;
} controls[] = {
    {"rng=unsafe", 0},
    {"fault.kind=skip_recompute fault.node=one fault.step=1", 1},
    {"fault.kind=stale_read fault.node=drop fault.step=2", 2},
    {"fault.kind=mask_bit fault.node=drop fault.step=3", 3},
    {"rng=mask fault.kind=mask_bit fault.node=drop fault.step=2", 2},
};

Test(run, deliberate_faults_are_caught)
{
    struct cli cli;
    cli_open(&cli);
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments, "run small.yaml %s", controls[i].arguments);
        cli_expect(&cli, 1, arguments);
        cli_says(&cli, "DIFFERS at step");
        json_t *json = compare(&cli, 1);
        const json_t *first = json_object_get(json, "first_difference");
        cr_assert(json_integer_value(json_object_get(first, "step")) == controls[i].step, "%s", cli.out);
        cr_assert(json_is_string(json_object_get(first, "tensor")));
        json_decref(json);
    }
    cli_close(&cli);
}

/* The network of small.yaml with a batch_norm in place of its dropout. */
static const char normalise[] = "sed 's/dropout:.*/batch_norm: {name: norm}/' small.yaml >norm.yaml";

/* Statistics that a recomputation moves again change neither losses nor gradients. */
Test(run, running_state_that_moves_twice_a_step_is_caught)
{
    struct cli cli;
    cli_open(&cli);
    cli_run(&cli, normalise, "run norm.yaml check=recompute");
    cr_assert(cli.code == 0, "%s\n%s", cli.out, cli.err);
    cli_says(&cli, "running state 4/4");
    cli_expect(&cli, 1, "run norm.yaml commit=every");
    cli_says(&cli, "DIFFERS at step 0, norm.running_mean");
    json_t *json = compare(&cli, 1);
    cr_assert(json_integer_value(json_object_get(json, "running_state_equal")) == 0);
    cr_assert(json_integer_value(json_object_get(json, "losses_equal")) == 4);
    cr_assert(json_integer_value(json_object_get(json, "gradients_equal")) == 4);
    json_decref(json);
    cli_expect(&cli, 2, "run norm.yaml commit=every policy=store_all");
    cli_complains(&cli, "commit: every, but the plan recomputes no node with running state");
    cli_run(&cli, "sed -i 's/name: norm/&, momentum: 0/' norm.yaml", "run norm.yaml commit=every");
    cr_assert(cli.code == 1, "%d\n%s", cli.code, cli.err);
    cli_says(&cli, "FAULT NOT CAUGHT");
    cli_close(&cli);
}

Test(run, a_failed_check_of_recomputation_names_step_and_node)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 1, "run small.yaml --quiet rng=unsafe check=recompute");
    cli_complains(&cli, "at step 0 the recomputation of node 'drop'");
    cli_close(&cli);
}

Test(run, a_fault_is_refused_in_a_baseline)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 2, "run small.yaml --quiet baseline.fault.kind=mask_bit");
    cr_assert(folder_count(cli.folder, ".h5") == 0);
    cli_close(&cli);
}

Test(run, a_loss_that_is_not_finite_ends_the_run)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 3, "run small.yaml --quiet steps=50 optimizer.lr=1e6");
    cli_complains(&cli, "step ");
    cli_complains(&cli, "the first node whose output is not finite is ");
    cli_complains(&cli, ".h5.part");
    cr_assert(cli_complaints(&cli) == 2, "%s", cli.err);
    cr_assert(folder_count(cli.folder, ".h5") == 0 && folder_count(cli.folder, ".part") == 1);
    cli_close(&cli);
}

Test(run, missing_data_is_a_missing_prerequisite)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 77, "run small.yaml data=cifar10 data.path=nowhere");
    cli_complains(&cli, "nowhere");
    cr_assert(cli_complaints(&cli) == 1, "%s", cli.err);
    cli_close(&cli);
}

Test(run, a_run_that_does_not_fit_is_refused_before_allocation)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 3, "run small.yaml batch=100000 data.samples=1000000 data.shape=[1024,1024,16]");
    cli_complains(&cli, "memory: the baseline");
    cli_complains(&cli, "no policy's plan fits; the smallest is policy ");
    cr_assert(cli_complaints(&cli) == 1, "%s", cli.err);
    if (strcmp(BUILD_VARIANT, "san") != 0) { /* a sanitizer needs terabytes of address space */
        cli_run(&cli, "ulimit -v 400000",
                "run small.yaml --quiet batch=10000 data.samples=10000 data.shape=[64,64,16]");
        cr_assert(cli.code == 3, "%d\n%s", cli.code, cli.err);
        cli_complains(&cli, "RLIMIT_AS");
    }
    cr_assert(folder_count(cli.folder, ".h5") + folder_count(cli.folder, ".part") == 0);
    cli_close(&cli);
}

Test(run, results_that_cannot_be_written_fail)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 3, "run small.yaml --quiet results=small.yaml");
    cli_complains(&cli, "small.yaml");
    cr_assert(cli_complaints(&cli) == 1, "%s", cli.err);
    cli_run(&cli, "ulimit -f 400", "run small.yaml --quiet steps=2000"); /* as on a full disk, the file cannot grow */
    cr_assert(cli.code == 3, "%d\n%s", cli.code, cli.err);
    cli_complains(&cli, "File too large");
    cr_assert(folder_count(cli.folder, ".h5") == 0);
    cli_close(&cli);
}

Test(run, a_signal_stops_the_run_and_keeps_committed_steps)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    signal(SIGHUP, SIG_DFL); /* under nohup it would stay ignored */
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct cli cli;
        char path[512], arguments[600];
        cli_open(&cli);
        pid_t pid = background_long_run(&cli, "");
        kill(-pid, signals[i]); /* to the whole group, as a terminal does */
        cr_assert(background_end(pid) == 128 + signals[i]);
        cr_assert(background_said(&cli, "the committed steps are in results/small/.*.part"));
        cr_assert(background_result(&cli, ".part", path) && folder_count(cli.folder, ".h5") == 0);
        snprintf(arguments, sizeof arguments, "show %s", path);
        cli_expect(&cli, 0, arguments);
        cli_says(&cli, "interrupted");
        snprintf(arguments, sizeof arguments, "verify %s", path); /* which runs only the committed steps */
        cli_expect(&cli, 0, arguments);
        cli_says(&cli, "run       interrupted\nplan      right");
        cli_says(&cli, "steps     same bits");
        cli_close(&cli);
    }
}

/* In a step that never ends, because its process is stopped: the first signal waits for it, a later one does not. A
 * signal soon after the first counts as the same one, so it is repeated until the program ends. */
Test(run, a_second_signal_ends_the_run_at_once)
{
    struct cli cli;
    char path[512], arguments[600];
    int state = 0, tries = 0;
    cli_open(&cli);
    pid_t pid = background_long_run(&cli, "");
    background_signal(pid, "STOP");
    for (; waitpid(pid, &state, WNOHANG) == 0 && tries < 3000; tries++) {
        kill(-pid, SIGINT);
        usleep(20000);
    }
    if (tries == 3000) kill(-pid, SIGKILL);
    cr_assert(WIFEXITED(state) && WEXITSTATUS(state) == 128 + SIGINT, "state %x after %d signals", (unsigned)state,
              tries);
    cr_assert(tries > 1 && background_said(&cli, "stopped at once, within a step"));
    cr_assert(background_result(&cli, ".part", path));
    snprintf(arguments, sizeof arguments, "show %s", path);
    cli_expect(&cli, 0, arguments);
    cli_says(&cli, "died after");
    cli_close(&cli);
}

/* A signal during the baseline's only step, which then ends normally: the variant does not start. The process is
 * stopped while the signal arrives; its step takes half a second. Its file shows whether it was stopped within the
 * step; if it was stopped earlier, the test tries again. */
Test(run, a_signal_in_the_last_step_stops_the_next_run)
{
    bool ended = false;
    for (int tries = 0; tries < 5 && !ended; tries++) {
        struct cli cli;
        char path[512];
        cli_open(&cli);
        pid_t pid = background_start(&cli, "", "steps=1 batch=4000 data.samples=4000 'data.shape=[64, 64, 1]'");
        for (int i = 0; i < 3000 && !background_result(&cli, ".part", path); i++) usleep(5000);
        usleep(100000);
        background_signal(pid, "STOP");
        const bool through = folder_count(cli.folder, ".h5") > 0;
        kill(pid, SIGTERM);
        for (int i = 0; i < 3000 && !background_said(&cli, "stopping after this step"); i++) usleep(5000);
        background_signal(pid, "CONT");
        cr_assert(background_end(pid) == 128 + SIGTERM);
        cr_assert(background_said(&cli, "^baseline: ") && (through || !background_said(&cli, "^variant: ")));
        ended = !through && folder_count(cli.folder, ".h5") == 1 && background_said(&cli, "step 0  1/1");
        cli_close(&cli);
    }
    cr_assert(ended, "the signal never came within the step");
}

Test(run, a_killed_run_keeps_its_steps)
{
    struct cli cli;
    char path[512], arguments[600];
    cli_open(&cli);
    pid_t pid = background_long_run(&cli, "");
    background_signal(pid, "KILL");
    cr_assert(background_end(pid) == 128 + SIGKILL);
    cr_assert(background_result(&cli, ".part", path));
    snprintf(arguments, sizeof arguments, "show %s", path);
    cli_expect(&cli, 0, arguments);
    cli_says(&cli, "died after");
    cli_close(&cli);
}

/* At once, not after its step, which may never end and which nothing else could stop. */
Test(run, training_ends_with_the_program_that_started_it)
{
    struct cli cli;
    char command[256], path[512], arguments[600];
    long training = 0;
    cli_open(&cli);
    pid_t pid = background_long_run(&cli, "");
    snprintf(command, sizeof command, "ps -o pid= --ppid %ld", (long)pid);
    FILE *ps = popen(command, "r");
    cr_assert(fscanf(ps, "%ld", &training) == 1 && training > 0);
    pclose(ps);
    kill(pid, SIGKILL);
    background_end(pid);
    snprintf(command, sizeof command, "ps -o stat= -p %ld | grep -qv Z", training);
    bool runs = true;
    for (int i = 0; i < 500 && runs; i++) usleep(20000), runs = system(command) == 0;
    if (runs) kill((pid_t)training, SIGKILL);
    cr_assert(!runs && background_result(&cli, ".part", path));
    snprintf(arguments, sizeof arguments, "show %s", path);
    cli_expect(&cli, 0, arguments);
    cli_says(&cli, "died after");
    cli_close(&cli);
}

/* A run must not differ from its plan if the file was changed in between. */
Test(run, a_spec_changed_after_planning_is_refused)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 2, "child-run variant quiet begin 0 0123456789abcdef0123456789abcdef '' small.yaml");
    cli_complains(&cli, "small.yaml: it, or its model file, has changed since it was planned");
    cr_assert(cli_complaints(&cli) == 1 && folder_count(cli.folder, ".part") == 0, "%s", cli.err);
    cli_close(&cli);
}

Test(run, a_single_side_compares_nothing)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --only variant");
    cr_assert(strstr(cli.out, "verdict") == NULL);
    cr_assert(folder_count(cli.folder, ".h5") == 1);
    cli_expect(&cli, 0, "run small.yaml --only=baseline --quiet");
    cr_assert(folder_count(cli.folder, ".h5") == 2);
    cr_assert(*cli.err == '\0');
    cli_close(&cli);
}

/* The number after text in the output. */
static double number_after(const struct cli *cli, const char *text)
{
    const char *at = strstr(cli->err, text);
    cr_assert(at != NULL, "no '%s' in\n%s", text, cli->err);
    return strtod(at + strlen(text), NULL);
}

/* One batch holds all training samples, without dropout and learning: evaluation must report the loss of training. It
 * follows every so many steps, and the last one. */
Test(run, evaluation_equals_training_on_the_same_samples)
{
    struct cli cli;
    cli_open(&cli);
    cli_run(&cli, "sed -i 's/rate: 0.25/rate: 0/' small.yaml",
            "run small.yaml --only variant optimizer.lr=0 batch=50 steps=1 eval.split=train");
    cr_assert(cli.code == 0, "%s", cli.err);
    const double loss = number_after(&cli, "1/1  loss "), evaluated = number_after(&cli, "training loss ");
    cr_assert(loss > 1 && fabs(evaluated - loss) < 1e-5 * loss, "%g, but %g", evaluated, loss);
    cli_expect(&cli, 0, "run small.yaml --only variant steps=5 'eval={split: train, every: 2}'");
    cr_assert(cli_repeats(&cli, "  after ") == 3, "%s", cli.err);
    cli_complains(&cli, "after 2 steps");
    cli_complains(&cli, "after 4 steps");
    cli_complains(&cli, "after 5 steps");
    cli_expect(&cli, 0, "run small.yaml --only variant steps= epochs=2"); /* of 6 batches of 8, of 50 samples */
    cli_complains(&cli, "step 11  12/12  loss ");
    cli_close(&cli);
}

Test(run, evaluation_counts_every_sample_once)
{
    struct cli cli;
    double accuracy[3], loss[3];
    static const char *const batches[] = {"10", "8", "49"}; /* of 50 samples: none left over, 2, 1 */
    cli_open(&cli);
    for (int i = 0; i < 3; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments,
                 "run small.yaml --only variant optimizer.lr=0 steps=1 eval.split=test batch=%s", batches[i]);
        cli_expect(&cli, 0, arguments);
        loss[i] = number_after(&cli, "test loss ");
        accuracy[i] = number_after(&cli, "accuracy ");
        cr_assert(accuracy[i] == accuracy[0] && loss[i] > loss[0] - 1e-4 && loss[i] < loss[0] + 1e-4, "%s: %g %g",
                  batches[i], loss[i], accuracy[i]);
    }
    cli_close(&cli);
}

/* Settings that are allowed, but without an effect here, are said, and only there. */
Test(run, settings_without_an_effect_are_said)
{
    static const struct {
        const char *overrides, *says; /* NULL: nothing */
    } cases[] = {{"", NULL},
                 {"optimizer.lr=0", "warning: optimizer.lr: 0: no step changes a parameter"},
                 {"update=fused", NULL},
                 {"update=fused update_part=4MiB", "warning: update_part: 4.00 MiB: no gradient is divided; "},
                 {"update=fused update_part=64KiB", "warning: update_part: 64.0 KiB: no gradient is divided; "},
                 {"update=fused update_part=64KiB data.shape='[64, 64, 1]'", NULL}};
    static const char *const commands[] = {"plan small.yaml", "run small.yaml --quiet steps=1"};
    struct cli cli;
    cli_open(&cli);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 2; k++) {
            char arguments[256];
            snprintf(arguments, sizeof arguments, "%s %s", commands[k], cases[i].overrides);
            cli_expect(&cli, 0, arguments);
            cr_expect(cases[i].says ? strstr(cli.err, cases[i].says) && cli_complaints(&cli) == 1 : !*cli.err, "%s: %s",
                      arguments, cli.err);
        }
    cli_close(&cli);
}
