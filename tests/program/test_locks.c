/* File systems without locks (preload/failing.c): a run says what is wrong and what to do, or runs without on request.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/background_runs.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"

static const int errors[] = {1, 5, 13, 22, 37, 38, 95, 524};
enum { ERRORS = sizeof errors / sizeof *errors };

static const char *const commands[] = {
    "run small.yaml --quiet",
    "run small.yaml --quiet sweep={seed:\\ [1,2]}",
    "run small.yaml --quiet sweep={seed:\\ [1,2]} --jobs 2",
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void failing(char before[1024], int lock, int look, const char *more)
{
    snprintf(before, 1024,
             "%s; export LD_PRELOAD=%s FAILING_LOCK=%d FAILING_LOOK=%d ASAN_OPTIONS=%s:verify_asan_link_order=0", more,
             getenv("REMATCH_FAILING"), lock, look, getenv("ASAN_OPTIONS"));
}

Test(locks, a_file_system_without_them_is_named, .timeout = 120)
{
    for (size_t i = 0; i < ERRORS * COMMANDS; i++) {
        struct cli cli;
        char before[1024], named[32];
        cli_open(&cli);
        failing(before, errors[i / COMMANDS], errors[i / COMMANDS], ":");
        snprintf(named, sizeof named, "(errno %d)", errors[i / COMMANDS]);
        cli_run(&cli, before, commands[i % COMMANDS]);
        cr_assert(cli.code == 3, "%s %s: exit code %d\n%s", commands[i % COMMANDS], named, cli.code, cli.err);
        cli_complains(&cli, named);
        cli_complains(&cli, "HDF5_USE_FILE_LOCKING=FALSE");
        cr_expect(strstr(cli.err, "another process") == NULL, "%s", cli.err);
        cr_expect(folder_count(cli.folder, ".new") + folder_count(cli.folder, ".part") == 0);
        cli_close(&cli);
    }
}

/* The spellings of the HDF5 library; others change nothing. */
Test(locks, runs_go_on_without_them_on_request, .timeout = 120)
{
    static const struct {
        const char *value;
        int code;
    } values[] = {{"FALSE", 0}, {"0", 0}, {"TRUE", 3}, {"1", 3}, {"", 3}, {"BEST_EFFORT", 3}};
    for (size_t i = 0; i < ERRORS * COMMANDS + sizeof values / sizeof *values; i++) {
        const bool all = i < ERRORS * COMMANDS;
        const int error = all ? errors[i / COMMANDS] : 37, value = all ? 0 : (int)(i - ERRORS * COMMANDS);
        struct cli cli;
        char before[1024], more[64];
        cli_open(&cli);
        snprintf(more, sizeof more, "export HDF5_USE_FILE_LOCKING=%s", values[value].value);
        failing(before, error, error, more);
        cli_run(&cli, before, commands[all ? i % COMMANDS : 0]);
        cr_assert(cli.code == values[value].code, "%s, errno %d: exit code %d\n%s", more, error, cli.code, cli.err);
        cr_assert(cli.code || folder_count(cli.folder, ".h5") >= 2);
        cr_assert(folder_count(cli.folder, ".part") + folder_count(cli.folder, ".claim") == 0);
        cli_close(&cli);
    }
}

/* A lock that a process has is respected in any case. A file whose lock cannot be asked
 * for is not free. */
Test(locks, a_file_that_another_process_writes_is_left_alone, .timeout = 120)
{
    static const struct {
        int lock, look;
        const char *more, *says;
    } cases[] = {
        {0, 0, ":", "another process is writing it"},
        {0, 0, "export HDF5_USE_FILE_LOCKING=FALSE", "another process is writing it"},
        {13, 0, "export HDF5_USE_FILE_LOCKING=FALSE", "another process is writing it"},
        {0, 38, ":", ".part: cannot be locked: Function not implemented (errno 38)"},
        {13, 38, ":", "(errno 13)"},
    };
    struct cli cli;
    char path[512], before[1024];
    cli_open(&cli);
    const pid_t pid = background_long_run(&cli, "");
    cr_assert(background_result(&cli, ".part", path));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        failing(before, cases[i].lock, cases[i].look, cases[i].more);
        cli_run(&cli, before, "run small.yaml steps=100000000 lr_schedule=linear --only baseline");
        cr_expect(cli.code == 3, "case %zu: exit code %d\n%s", i, cli.code, cli.err);
        cli_complains(&cli, cases[i].says);
        cr_expect(folder_count(cli.folder, ".part") == 1, "case %zu", i);
    }
    snprintf(before, sizeof before, "show %s", path);
    cli_expect(&cli, 0, before);
    cr_expect(strstr(cli.out, "died") == NULL, "%s", cli.out);
    char look[1024];
    failing(look, 38, 38, ":");
    cli_run(&cli, look, before);
    cr_expect(cli.code == 0 && strstr(cli.out, "running, or died after"), "%s", cli.out);
    kill(pid, SIGKILL);
    background_end(pid);
    cli_close(&cli);
}
