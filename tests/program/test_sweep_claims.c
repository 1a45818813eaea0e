/* What a sweep finds in its folder: claims of other processes, special files, states that its points go on from. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/background_runs.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"

static const char swept[] = "echo 'sweep: {seed: [1, 2, 3]}' >>small.yaml";

/* ---- special files ---- */

/* They are refused before anything is run, not waited for, and left as they are. */
Test(sweep_claims, special_files_are_refused, .timeout = 120)
{
    static const char *const names[] = {"sweep.json", "sweep.csv", "sweep.claim"};
    static const char *const options[] = {"", "--jobs 2", "--point 2"};
    static const char *const makes[] = {"mkfifo", "mkdir"};
    for (size_t i = 0; i < 18; i++) {
        struct cli cli;
        char before[512], arguments[128];
        const char *name = names[i % 3];
        cli_open(&cli);
        snprintf(before, sizeof before, "%s; mkdir -p results/small; %s results/small/%s", swept, makes[i / 9], name);
        snprintf(arguments, sizeof arguments, "run small.yaml --quiet %s", options[i / 3 % 3]);
        cli_run(&cli, before, arguments);
        cr_expect(cli.code == 3, "%s as %s: exit code %d\n%s", makes[i / 9], name, cli.code, cli.err);
        snprintf(before, sizeof before, "results/small/%s: ", name);
        cli_complains(&cli, before);
        cr_expect(folder_count(cli.folder, ".h5") == 0 || i / 3 % 3 == 2, "%s", arguments);
        cr_expect(i % 3 == 2 || folder_count(cli.folder, ".claim") == 0, "%s: the claim is left", name);
        snprintf(before, sizeof before, "test -%c results/small/%s", i / 9 ? 'd' : 'p', name);
        cli_run(&cli, before, "--version");
        cr_expect(cli.code == 0, "%s is gone", name);
        cli_close(&cli);
    }
}

/* ---- a holder that is stopped ---- */

static bool waits_for(const struct cli *cli, const char *file, const char *text)
{
    char command[1024];
    snprintf(command, sizeof command, "grep -q -- '%s' '%s/%s'", text, cli->folder, file);
    for (int i = 0; i < 500; i++) {
        if (system(command) == 0) return true;
        usleep(20000);
    }
    return false;
}

/* The other process names the holder, whether the system says EAGAIN or EACCES. It goes on when the holder has ended,
 * and ends with an error if the holder stays as it is. */
Test(sweep_claims, the_holder_of_a_claim_is_named, .timeout = 180)
{
    for (int ends = 0; ends < 2; ends++) {
        struct cli cli;
        char text[512];
        cli_open(&cli);
        cli_run(&cli, swept, "schema");
        const pid_t holder = background_start(&cli, ":", "steps=300000 --point 1");
        cr_assert(waits_for(&cli, "stderr", "^baseline: "));
        kill(holder, SIGSTOP);
        snprintf(text, sizeof text, "export LD_PRELOAD=%s FAILING_HELD=13 ASAN_OPTIONS=%s:verify_asan_link_order=0",
                 getenv("REMATCH_FAILING"), getenv("ASAN_OPTIONS"));
        const pid_t other = background_start(&cli, ends ? "" : text, "steps=300000 --point 1 2>waiting #");
        snprintf(text, sizeof text, "waiting for process %d on .*kill -CONT %d .*kill -9 %d", holder, holder, holder);
        cr_expect(waits_for(&cli, "waiting", text), "%s", text);
        if (ends) {
            kill(holder, SIGKILL);
            cr_expect(waits_for(&cli, "waiting", "^baseline: "), "it does not go on");
            kill(other, SIGKILL);
        }
        cr_expect(background_end(other) == (ends ? -1 : 3));
        snprintf(text, sizeof text, "process %d, which has it, is stopped", holder);
        cr_expect(ends || waits_for(&cli, "waiting", text));
        kill(holder, SIGKILL);
        background_end(holder);
        cli_close(&cli);
    }
}

/* ---- --resume must ---- */

/* A point without a state runs nothing; one with a state goes on, a finished one stays. */
Test(sweep_claims, points_that_must_go_on_need_a_state, .timeout = 180)
{
    static const char *const options[] = {"", " --jobs 2", " --point 1", " --shard 1/2"};
    struct cli cli;
    char arguments[128];
    cli_open(&cli);
    cli_run(&cli, swept, "schema");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        snprintf(arguments, sizeof arguments, "run small.yaml --resume must%s", options[i]);
        cli_expect(&cli, 77, arguments);
        cli_complains(&cli, "--resume must: results/small has no state of this run");
        cr_expect(folder_count(cli.folder, ".h5") + folder_count(cli.folder, ".part") == 0, "%s", arguments);
    }
    cli_expect(&cli, 0, "run small.yaml --print-commands --resume must");
    for (const char *line = cli.out; *line; line = strchr(line, '\n') + 1)
        cr_expect(strstr(line, " --resume must\n") && strstr(line, " --resume must\n") < strchr(line, '\n'), "%s",
                  line);
    for (int jobs = 1; jobs < 3; jobs++) {
        cli_run(&cli, "rm -rf results", "run small.yaml --shard 1/3 --quiet");
        cr_assert(cli.code == 0, "%s", cli.err);
        cli_run(&cli, "export PATH=/nowhere", /* two steps of the second point's variant, as if it were killed then */
                "child-run variant quiet resume 2 '' '' small.yaml state_every=1 seed=2 3>/dev/null");
        cr_assert(cli.code == 0 && folder_count(cli.folder, ".state") == 1, "%s", cli.err);
        snprintf(arguments, sizeof arguments, "run small.yaml --resume must --jobs %d", jobs);
        cli_expect(&cli, 77, arguments);
        cli_says(&cli, "points    3 of 3: 2 equal, 1 refused; 1 of them finished before");
        cli_says(&cli, "point 3 refused (seed=3): --resume must: ");
    }
    cli_close(&cli);
}
