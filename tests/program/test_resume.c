/* Runs that go on from their state files: the result file is that of the uninterrupted run but for times and pieces. A
 * run is cut by the internal sub-command, which ends it after so many steps as if it were killed between two. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "result/result_read.h"
#include "tests/support/altered_files.h"
#include "tests/support/background_runs.h"
#include "tests/support/cli.h"
#include "tests/support/h5_contents.h"
#include "tests/support/made_runs.h"

enum { TENSORS = 5, STATE_STEP = 8, CUT_STEP = 13 };

static const char spec[] = "rematch: 1\n"
                           "name: net\n"
                           "model:\n"
                           "  layers:\n"
                           "    - group:\n"
                           "        name: front\n"
                           "        layers:\n"
                           "          - conv: {channels: 4, kernel: 3, padding: 1, activation: relu}\n"
                           "          - dropout: {rate: 0.3}\n"
                           "          - conv: {channels: 4, kernel: 3, padding: 1, bias: false}\n"
                           "          - batch_norm: {name: norm}\n"
                           "          - relu\n"
                           "    - global_avg_pool\n"
                           "    - linear: {name: last, units: classes}\n"
                           "data: {name: synthetic, shape: [6, 6, 2], classes: 4, samples: 60}\n"
                           "batch: 8\n"
                           "seed: 7\n"
                           "lr_schedule: linear\n"
                           "optimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"
                           "policy: {name: manual, groups: [front]}\n"
                           "state_every: 8\n"
                           "results: out\n";

static struct cli cli;

static void set_up(void)
{
    cli_open(&cli);
    cli_file(&cli, "net.yaml", spec);
}

static void tear_down(void) { cli_close(&cli); }

TestSuite(resume, .init = set_up, .fini = tear_down, .timeout = 300);

/* Without git, which takes most of the time. */
static void expect(int code, const char *arguments)
{
    cli_run(&cli, "export PATH=/nowhere", arguments);
    cr_assert(cli.code == code, "rematch %s: exit code %d, expected %d\n%s", arguments, cli.code, code, cli.err);
}

/* The process of a variant, as the program starts it; it ends after so many steps, 0: all, as if it were killed. */
static void train(int steps, const char *overrides)
{
    char arguments[512];
    snprintf(arguments, sizeof arguments, "child-run variant quiet resume %d '' '' net.yaml %s %s 3>/dev/null", steps,
             strstr(overrides, "epochs") ? "" : "steps=20", overrides);
    expect(0, arguments);
}

static void shell(const char *command)
{
    char all[1024];
    snprintf(all, sizeof all, "cd '%s' && %s", cli.folder, command);
    cr_assert(system(all) == 0, "%s", command);
}

/* The file that matches a pattern below the folder of results. */
static char *file_of(const char *pattern, char path[512])
{
    char command[512];
    snprintf(command, sizeof command, "ls '%s'/out/net/%s", cli.folder, pattern);
    FILE *ls = popen(command, "r");
    cr_assert(fgets(path, 512, ls) != NULL, "no %s", pattern);
    pclose(ls);
    path[strcspn(path, "\n")] = 0;
    return path;
}

static void check_same(const char *a, const char *b, const char *of)
{
    char *x = contents_without(a, "pieces"), *y = contents_without(b, "pieces"),
         *difference = x && y ? contents_difference(x, y) : NULL;
    cr_assert(x && y && strlen(x) > 1000 && !difference, "%s: %s", of, difference);
    free(x);
    free(y);
}

/* Every kind of state, and of what is recorded beside the steps. */
static const char *const cases[] = {
    "",
    "optimizer.momentum=0",
    "'optimizer={name: adam, lr: 0.01}'",
    "optimizer.ema=0.9 'lr_schedule={name: cosine, least: 0.1, warmup: 3}' eval.every=5",
    "optimizer.ema=0.9 optimizer.momentum=0 update=fused 'lr_schedule={name: step, every: 7}'",
    "rng=stash",
    "rng=unsafe",
    "rng=mask memory=poison",
    "memory=dynamic eval.every=3",
    "policy=store_all eval.every=13",
    "record.state=true optimizer.ema=0.8 'record.memory_steps=[0, 5, 10, 12, 13, 14]' eval.split=train",
    "record.digests=false epochs=3 eval.every=1",
    "backend=ref data.shuffle=false",
    "state_every=1 record.fsync=2",
};

static void check_case(const char *overrides)
{
    char path[512], whole[512], arguments[600];
    train(0, overrides);
    cr_assert(folder_count(cli.folder, ".state") == 0);
    shell("mv out/net/*.h5 whole.h5");
    snprintf(whole, sizeof whole, "%s/whole.h5", cli.folder);
    train(CUT_STEP, overrides);
    cr_assert(folder_count(cli.folder, ".h5.part") == 1 && folder_count(cli.folder, ".h5.state") == 1);
    train(0, overrides);
    check_same(whole, file_of("*.h5", path), overrides);
    cr_assert(folder_count(cli.folder, ".h5") == folder_count(cli.folder, "") - 4, "left beside: %s", overrides);
    snprintf(arguments, sizeof arguments, "verify --plan-only %s", path);
    expect(0, arguments);
    cli_says(&cli, "record    right");
    shell("rm -r out whole.h5");
}

Test(resume, a_run_that_goes_on_leaves_the_file_of_one_that_was_not_interrupted)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(cases[i]);
}

Test(resume, so_does_one_on_a_device)
{
    cli_close(&cli);
    cli_open_on_device(&cli, NULL);
    cli_file(&cli, "net.yaml", spec);
    check_case("backend=cuda");
    check_case("backend=cuda rng=stash record.state=true 'optimizer={name: adam, lr: 0.01}'");
}

/* ---- files that cannot be used ---- */

/* A change to the files of a run, with the variables state and part, and what the program reports. */
static const struct {
    const char *change, *message;
} broken[] = {
    {"write X 0", ".state: not a state file"},
    {"write X 16", ".state: the state of run X"},
    {"write X 50", ".state: damaged: its head"},
    {"truncate -s 0 $state", ".state: ends at offset 0"},
    {"truncate -s -1 $state", ".state: ends at offset"},
    {"printf X >>$state", ".state: damaged: longer than the "},
    {"write XXXX $(($(stat -c %s $state) - 4))", ".state: its running state is not what "},
    {"write XXXX $(($(stat -c %s $state) - 40))", ".state: its optimizer state is not what "},
    {"rm $state; mkdir $state", ".state: is not a plain file"},
    {"truncate -s 100 $part", ".part: "},
    {"cp earlier/out/net/*.part $part", ".state: after 8 steps, of which"},
    {"cp other/out/net/*.part $part", ".part: of run "},
    {"cp other/out/net/*.state $state", ".state: the state of run "},
};

/* Each is one error that names the file, and neither file is changed. */
Test(resume, files_that_cannot_be_used_are_refused_and_left_alone)
{
    char command[1024];
    train(6, "");
    shell("mkdir earlier && mv out earlier");
    train(CUT_STEP, "optimizer.momentum=0");
    shell("mkdir other && mv out other");
    train(CUT_STEP, "");
    shell("cp -r out kept");
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        snprintf(command, sizeof command,
                 "rm -r out && cp -r kept out && state=$(echo out/net/*.state) && part=$(echo out/net/*.part) && "
                 "write() { printf $1 | dd of=$state bs=1 seek=$2 conv=notrunc 2>/dev/null; } && { %s; } && "
                 "rm -rf broken && cp -r out broken",
                 broken[i].change);
        shell(command);
        cli_run(&cli, "export PATH=/nowhere", "run net.yaml steps=20 --only variant --quiet");
        cr_assert(cli.code == 3, "%s: %d\n%s", broken[i].change, cli.code, cli.err);
        cli_complains(&cli, broken[i].message);
        cli_complains(&cli, "; --resume never runs it from the beginning");
        cr_assert(cli_complaints(&cli) == 1, "%s: %s", broken[i].change, cli.err);
        shell("diff -r out broken");
    }
    expect(0, "run net.yaml steps=20 --only variant --quiet --resume never");
    shell("rm -r out && cp -r kept out");
    expect(0, "run net.yaml steps=20 --only variant --quiet --resume must");
}

/* Rows that only the new file needs: the old one and its state are left alone. */
Test(resume, a_file_with_lost_rows_is_refused)
{
    char part[512];
    train(CUT_STEP, "");
    alter_sparse(file_of("*.part", part), "/steps/data_ns", CUT_STEP);
    shell("cp -r out broken");
    expect(3, "run net.yaml steps=20 --only variant --quiet");
    cli_complains(&cli, ".part: /steps/data_ns claims 13 rows; the file stores 0 of them; --resume never runs it");
    shell("diff -r out broken");
    expect(0, "run net.yaml steps=20 --only variant --quiet --resume never");
}

/* A step after the state, whose bits are recorded, is computed again. */
Test(resume, recorded_steps_must_have_the_same_bits_again)
{
    char part[512], message[64];
    for (size_t step = STATE_STEP - 1; step < CUT_STEP; step += 2) {
        train(CUT_STEP, "");
        alter_digest(file_of("*.part", part), step, 2);
        expect(step < STATE_STEP ? 0 : 1, "run net.yaml steps=20 --only variant --quiet");
        snprintf(message, sizeof message, "step %zu has other bits than ", step);
        if (step >= STATE_STEP) cli_complains(&cli, message);
        shell("rm -r out");
    }
}

/* A run of small.yaml without end, once it has recorded some steps. */
/* A list, a file and a report mark it, and no run that was not resumed. */
Test(resume, a_resumed_run_is_marked)
{
    static const struct {
        int cut;
        const char *list, *show;
    } runs[] = {{0, "", ""}, {CUT_STEP, "yes", ", resumed 1 time\n"}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        char path[512], arguments[700];
        if (runs[i].cut) train(runs[i].cut, "");
        train(0, "");
        file_of("*.h5", path);
        expect(0, "list out");
        cr_expect((strstr(cli.out, "resumed") != NULL) == (*runs[i].list != 0) && strstr(cli.out, runs[i].list), "%s",
                  cli.out);
        json_t *answer = cli_json(&cli, 0, "list out --json");
        const json_t *run = json_array_get(json_object_get(answer, "runs"), 0);
        cr_expect(json_integer_value(json_object_get(run, "pieces")) == (runs[i].cut ? 2 : 1));
        json_decref(answer);
        snprintf(arguments, sizeof arguments, "show %s", path);
        expect(0, arguments);
        cr_expect((strstr(cli.out, ", resumed ") != NULL) == (runs[i].cut > 0) && strstr(cli.out, runs[i].show), "%s",
                  cli.out);
        snprintf(arguments, sizeof arguments, "report %s -o page.html", path);
        expect(0, arguments);
        snprintf(arguments, sizeof arguments, "grep -q '\"resumed\":%d' page.html", runs[i].cut ? 1 : 0);
        shell(arguments);
        shell("rm -r out");
    }
}

static pid_t start_long(const char *overrides, long steps)
{
    const pid_t pid = background_start(&cli, "", overrides);
    for (int k = 0; k < 3000 && background_steps(&cli) < steps; k++) usleep(20000);
    return pid;
}

/* A step follows the state of a run that was stopped, and is computed again by the process that goes on: so a machine
 * that does not repeat the bits is found before it adds any. */
Test(resume, a_stopped_run_computes_a_recorded_step_again)
{
    static const struct {
        int signal;
        const char *overrides;
    } stops[] = {{SIGTERM, ""}, {SIGINT, " state_every=1"}, {SIGINT, " state_every=1000000"}};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        char overrides[128], path[512], arguments[256];
        struct result *result;
        snprintf(overrides, sizeof overrides, "--only variant steps=100000000%s", stops[i].overrides);
        const pid_t pid = start_long(overrides, 3);
        kill(pid, stops[i].signal);
        cr_assert(background_end(pid) == 128 + stops[i].signal);
        cr_assert(folder_count(cli.folder, ".h5.state") == 1, "%s", stops[i].overrides);
        cr_assert(background_result(&cli, ".part", path) && result_open(path, &result) == ST_OK);
        const size_t steps = result->steps;
        result_close(result);
        alter_digest(path, steps - 1, 2);
        snprintf(arguments, sizeof arguments, "run small.yaml --quiet %s", overrides);
        expect(1, arguments);
        snprintf(arguments, sizeof arguments, "step %zu has other bits than ", steps - 1);
        cli_complains(&cli, arguments);
        shell("rm -r results");
    }
}

/* Wherever it was killed, as at a state after every step. */
Test(resume, so_does_a_killed_run)
{
    enum { KILLS = 5 };
    for (int i = 0; i <= KILLS; i++) {
        const pid_t pid = start_long("--only variant steps=100000000 state_every=1", 4 * (i + 1));
        for (int k = 0; i && k < 3000 && !background_said(&cli, "goes on after"); k++) usleep(20000);
        cr_assert(background_said(&cli, "variant: goes on after ") == (i > 0));
        cr_assert(!background_said(&cli, "no recorded step"), "kill %d", i);
        background_signal(pid, i < KILLS ? "KILL" : "INT");
        cr_assert(background_end(pid) == 128 + (i < KILLS ? SIGKILL : SIGINT));
    }
}

/* ---- what a command does with what is there ---- */

Test(resume, a_complete_baseline_is_not_run_again_where_the_variant_goes_on)
{
    expect(77, "run net.yaml steps=20 --resume must");
    cli_complains(&cli, "--resume must: out/net has no state of this run");
    expect(0, "run net.yaml steps=20 --only baseline --quiet");
    train(CUT_STEP, "");
    expect(77, "run net.yaml steps=20 --resume must seed=8");
    expect(77, "run net.yaml steps=20 --resume must --only baseline");
    expect(0, "run net.yaml steps=20 --resume must");
    cli_complains(&cli, "baseline: complete, out/net/");
    cli_complains(&cli, "variant: goes on after 8 of 20 steps");
    cli_says(&cli, "EQUAL IN EVERY BIT");
    expect(0, "run net.yaml steps=20");
    cr_assert(!strstr(cli.err, "complete") && !strstr(cli.err, "goes on"), "%s", cli.err);
    train(3, ""); /* before its first state */
    expect(0, "run net.yaml steps=20");
    cli_complains(&cli, "baseline: complete, out/net/");
    cr_assert(!strstr(cli.err, "goes on"), "%s", cli.err);
    train(CUT_STEP, "");
    expect(0, "run net.yaml steps=20 --resume never");
    cr_assert(!strstr(cli.err, "complete") && !strstr(cli.err, "goes on"), "%s", cli.err);
}

/* A state belongs to the file that it was written beside. */
Test(resume, a_new_run_does_not_take_an_old_state)
{
    train(CUT_STEP, "");
    shell("rm out/net/*.part");
    train(3, "");
    cr_assert(folder_count(cli.folder, ".h5.part") == 1 && folder_count(cli.folder, ".h5.state") == 0);
    train(0, "");
}

/* The control has the id of its baseline. */
Test(resume, a_control_goes_on_beside_its_baseline)
{
    expect(0, "run net.yaml steps=20 --only baseline --quiet policy=store_all");
    train(CUT_STEP, "policy=store_all");
    expect(4, "run net.yaml steps=20 policy=store_all");
    cli_complains(&cli, "baseline: complete, out/net/");
    cli_complains(&cli, "variant: goes on after 8 of 20 steps");
    cr_assert(folder_count(cli.folder, ".h5") == 2 && folder_count(cli.folder, "-repeat.h5") == 1);
}

/* As a batch system announces its time limit, without the key: the state is that after the last step. */
Test(resume, a_time_limit_leaves_a_state)
{
    static const struct {
        int signal;
        const char *overrides;
        int states;
    } stops[] = {{SIGTERM, "", 1}, {SIGUSR1, "", 1}, {SIGINT, "", 0}, {SIGINT, "state_every=1000000", 1}};
    char path[512];
    signal(SIGHUP, SIG_DFL);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        char overrides[128];
        snprintf(overrides, sizeof overrides, "steps=100000000 %s", stops[i].overrides);
        const pid_t pid = background_start(&cli, "", overrides);
        for (int k = 0; k < 3000 && background_steps(&cli) == 0; k++) usleep(20000);
        kill(pid, stops[i].signal);
        cr_assert(background_end(pid) == 128 + stops[i].signal);
        cr_assert(folder_count(cli.folder, ".h5.state") == stops[i].states, "%s", stops[i].overrides);
        cr_assert(background_said(&cli, "the same command goes on from its state") == stops[i].states);
        struct result *result;
        cr_assert(background_result(&cli, ".part", path) && result_open(path, &result) == ST_OK);
        snprintf(overrides, sizeof overrides, "goes on after %zu of ", result->steps - 1); /* one is computed again */
        result_close(result);
        if (stops[i].states) {
            snprintf(path, sizeof path, "steps=100000000 %s", stops[i].overrides);
            const pid_t again = background_start(&cli, "", path);
            for (int k = 0; k < 3000 && !background_said(&cli, overrides); k++) usleep(20000);
            cr_assert(background_said(&cli, overrides), "%s", overrides);
            kill(again, SIGINT);
            cr_assert(background_end(again) == 128 + SIGINT);
        }
        shell("rm -r results");
    }
}

/* The state is larger than the file may be, as on a full disk: the run ends well, and reports it once. */
Test(resume, a_state_that_cannot_be_written_ends_no_run)
{
    cli_file(&cli, "wide.yaml",
             "rematch: 1\nname: wide\nmodel: {layers: [flatten, linear: {units: 20000}, linear: {units: classes}]}\n"
             "data: {name: synthetic, shape: [4, 4, 1], classes: 4}\nbatch: 8\nsteps: 20\nstate_every: 2\n"
             "optimizer: {name: sgd, lr: 0.1}\npolicy: {name: store_all}\n");
    cli_run(&cli, "ulimit -f 1600", "run wide.yaml --only variant");
    cr_assert(cli.code == 0, "%d\n%s", cli.code, cli.err);
    cli_complains(&cli, ".state: cannot write: File too large; training is not affected, there is no state yet\n");
    cr_assert(cli_repeats(&cli, "cannot write") == 1, "%s", cli.err);
    cr_assert(folder_count(cli.folder, ".h5") == 1 && folder_count(cli.folder, "state.new") == 0);
}
