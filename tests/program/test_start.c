/* Unusual states at the start of the program: closed streams, specs from pipes, ignored signals, a parent that has
 * ended, low limits. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "build.h"
#include "tests/support/background_runs.h"
#include "tests/support/made_runs.h"

/* Redirections of the run's streams, and the exit code: output that cannot be written is a failure. */
static const struct {
    const char *closed;
    int code;
} streams[] = {{"<&-", 0}, {"2>&-", 0}, {"<&- 2>&-", 0}, {">&-", 3}, {"<&- >&- 2>&-", 3}};

Test(start, closed_streams_damage_no_result)
{
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        struct cli cli;
        char arguments[256];
        cli_open(&cli);
        snprintf(arguments, sizeof arguments, "--version >version; (\"$REMATCH_BIN\" run small.yaml %s)",
                 streams[i].closed);
        cli_expect(&cli, streams[i].code, arguments);
        cr_expect(folder_count(cli.folder, ".h5") == 2, "%s", streams[i].closed);
        cli_expect(&cli, 0, "compare results/small/*.h5");
        cli_says(&cli, "losses 4/4, gradients 4/4, parameters 4/4");
        cli_close(&cli);
    }
}

/* The ways in which text reaches the command, whose operand it is: C stands for the program and its arguments. */
static const struct {
    const char *shell, *operand;
} ways[] = {{"cat %s | C", "-"},
            {"C <%s", "-"},
            {"cat %s | C", "/dev/stdin"},
            {"{ cat %s | C 3<&0 </dev/null; }", "/dev/fd/3"},
            {"{ mkfifo pipe; cat %s >pipe & C </dev/null; }", "pipe"}};

/* Runs command with the text of the file in each of these ways. */
static void run_by(struct cli *cli, size_t way, const char *file, int code, const char *command)
{
    char shell[128], line[512];
    const char *mark = strstr(ways[way].shell, "%s"), *rest = mark + 2, *program = strstr(ways[way].shell, "C");
    snprintf(shell, sizeof shell, "%.*s%s%s", (int)(mark - ways[way].shell), ways[way].shell, file, rest);
    program = strstr(shell, "C");
    snprintf(line, sizeof line, "--version >version; rm -f pipe; %.*s\"$REMATCH_BIN\" %s %s%s", (int)(program - shell),
             shell, command, ways[way].operand, program + 1);
    cli_expect(cli, code, line);
}

Test(start, a_spec_is_read_from_a_pipe, .timeout = 120)
{
    static const char graph[] = "rematch: 1\nname: chain\nbatch: 2\nstages:\n"
                                "  - {name: a, forward: 5, backward: 10, output: 1MiB, saved: 2MiB, gradient: 1MiB}\n";
    struct cli cli;
    cli_open(&cli);
    cli_file(&cli, "graph.yaml", graph);
    cli_file(&cli, "bad.yaml", "rematch: 1\nname: bad\nbatch: none\n");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        run_by(&cli, i, "small.yaml", 0, "plan");
        cli_says(&cli, "policy manual on");
        run_by(&cli, i, "graph.yaml", 0, "plan --graph");
        cli_says(&cli, "policy store_all on 1 node");
        run_by(&cli, i, "small.yaml", 0, "run");
        cli_says(&cli, "results/small/");
        cli_says(&cli, "verdict   EQUAL IN EVERY BIT\n");
        run_by(&cli, i, "small.yaml", 0, "run sweep.seed=[1,2] --jobs 2");
        cli_says(&cli, "2 of 2: 2 equal");
        run_by(&cli, i, "small.yaml", 2, "run sweep.seed=[1,2] --print-commands");
        cli_complains(&cli, "cannot read standard input or a pipe again");
        run_by(&cli, i, "bad.yaml", 2, "plan");
        cli_complains(&cli, "/dev/stdin:3:8: error: batch: 'none'");
    }
    cli_expect(&cli, 2, "--version >version; \"$REMATCH_BIN\" plan - </dev/zero");
    cli_complains(&cli, "-: is larger than 16777216 bytes");
    cli_expect(&cli, 2, "plan - <&-");
    cli_complains(&cli, "-: cannot be read: ");
    cli_close(&cli);
}

Test(start, an_ignored_sigchld_does_not_lose_the_child)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "--version >version; env --ignore-signal=CHLD \"$REMATCH_BIN\" run small.yaml");
    cli_says(&cli, "EQUAL IN EVERY BIT");
    cli_expect(&cli, 1,
               "--version >version; env --ignore-signal=CHLD \"$REMATCH_BIN\" run small.yaml --quiet rng=unsafe");
    cli_close(&cli);
}

/* Of the program and of its child, which trains. */
Test(start, signals_that_are_ignored_stay_ignored, .timeout = 300)
{
    static const struct {
        const char *name;
        int ignored, heeded;
    } signals[] = {
        {"HUP", SIGHUP, SIGINT}, {"INT", SIGINT, SIGTERM}, {"TERM", SIGTERM, SIGINT}, {"QUIT", SIGQUIT, SIGTERM}};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct cli cli;
        char before[64];
        long steps;
        cli_open(&cli);
        snprintf(before, sizeof before, "trap '' %s", signals[i].name);
        pid_t pid = background_long_run(&cli, before);
        kill(pid, signals[i].ignored);
        background_signal(pid, signals[i].name);
        steps = background_steps(&cli);
        for (int k = 0; k < 500 && background_steps(&cli) < steps + 10; k++) usleep(20000);
        kill(pid, signals[i].heeded);
        const int code = background_end(pid);
        cr_expect(code == 128 + signals[i].heeded, "SIG%s is ignored: exit code %d", signals[i].name, code);
        cli_close(&cli);
    }
}

/* The kernel ends the child with its parent, unless the parent ended before the child asked for that. */
Test(start, a_run_whose_parent_has_ended_does_not_start)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 3, "child-run variant quiet begin 0 '' $(sh -c 'echo $$') small.yaml 3>/dev/null");
    cli_complains(&cli, "the program that started this run has ended");
    cr_assert(cli_complaints(&cli) == 1 && folder_count(cli.folder, "") == 3, "%s", cli.err);
    cli_close(&cli);
}

static void require_limits(struct cli *cli)
{
    if (!strcmp(BUILD_VARIANT, "san")) cr_skip_test("a sanitizer needs terabytes of address space");
    cli_open(cli);
}

/* OpenMP ends a program in which it can create no thread by exit(1), which would mean that the runs differ. */
Test(start, threads_that_cannot_be_created_are_a_failure)
{
    static const char *const arguments[] = {
        "run small.yaml backend.threads=2",
        "run small.yaml backend.threads=2 'sweep={seed: [1, 2]}'",
        "plan small.yaml backend.threads=3",
    };
    struct cli cli;
    require_limits(&cli);
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        cli_run(&cli, "ulimit -v 4000000; export OMP_STACKSIZE=8G", arguments[i]);
        cr_expect(cli.code == 3, "%s: exit code %d\n%s", arguments[i], cli.code, cli.err);
        cli_complains(&cli, "rematch: a library ended the program");
        cr_expect(folder_count(cli.folder, ".part") == 0);
    }
    cli_close(&cli);
}

/* As a library may that gets no memory. */
Test(start, a_crash_below_a_limit_of_memory_is_a_failure, .timeout = 300)
{
    struct cli cli;
    require_limits(&cli);
    const pid_t pid = background_long_run(&cli, "ulimit -v 4000000");
    background_signal(pid, "SEGV");
    cr_expect(background_end(pid) == 3);
    cr_expect(background_said(&cli, "crashed (signal 11), as libraries do that get no memory: ulimit -v"));
    for (int kib = 100000; kib <= 140000; kib += 2000) {
        char before[64];
        snprintf(before, sizeof before, "ulimit -v %d; rm -rf results", kib);
        cli_run(&cli, before, "run small.yaml --quiet backend.name=cpu backend.threads=2");
        if (cli.code == 77) break;
        /* 127, 134: the libraries cannot be loaded or initialised */
        cr_expect(cli.code == 0 || cli.code == 3 || cli.code == 127 || cli.code == 134, "%s: exit code %d\n%s", before,
                  cli.code, cli.err);
    }
    cli_close(&cli);
}
