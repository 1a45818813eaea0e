/* The integer programme of a step, as a script solves it, against `optimal` where that is proven. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli.h"

/* Two shortcuts within each other. */
static const char graph[] =
    "rematch: 1\nname: nested\nbatch: 1\nplaced: true\nnodes:\n"
    "  - {name: a, forward: 3, backward: 6, output: 40, saved: 0, gradient: 40, reads: [y]}\n"
    "  - {name: b, inputs: a, forward: 5, backward: 9, output: 60, saved: 0, gradient: 60, reads: [x, y]}\n"
    "  - {name: c, inputs: b, forward: 2, backward: 4, output: 80, saved: 0, gradient: 80, reads: [y]}\n"
    "  - {name: d, inputs: [c, a], forward: 7, backward: 13, output: 50, saved: 0, gradient: 50, reads: [x]}\n"
    "  - {name: e, inputs: d, forward: 4, backward: 8, output: 70, saved: 0, gradient: 70, reads: [x, y]}\n"
    "  - {name: f, inputs: e, forward: 1, backward: 2, output: 30, saved: 0, gradient: 30, reads: [x]}\n"
    "  - {name: loss, inputs: [f, b], forward: 1, backward: 1, output: 1, saved: 0, gradient: 1, reads: [x]}\n";

static int ask(const char *command, char *text, size_t room)
{
    FILE *out = popen(command, "r");
    cr_assert(out);
    text[fread(text, 1, room - 1, out)] = '\0';
    const int state = pclose(out);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

Test(integer_programme, proves_what_the_beam_proves, .timeout = 300)
{
    struct cli cli;
    char command[1024], text[8192];
    int settled = 0;
    cli_open(&cli);
    cli_file(&cli, "nested.yaml", graph);
    for (int percent = 60; percent <= 100; percent += 10) {
        snprintf(command, sizeof command,
                 "/usr/bin/python3 -B experiments/plans/integer_programme.py %d%% --graph '%s/nested.yaml' 2>&1",
                 percent, cli.folder);
        const int code = ask(command, text, sizeof text);
        if (code == 77 || code == 127) cr_skip_test("python3 with HiGHS, or CBC, is not installed");
        snprintf(command, sizeof command, "plan --graph nested.yaml 'policy={name: optimal, budget: %d%%}' --json",
                 percent);
        cli_run(&cli, "", command);
        if (cli.code) {
            cr_expect(code == 1 && strstr(text, "no schedule"), "%d %%: %s", percent, text);
            continue;
        }
        char proven[64];
        json_t *plan = json_loads(cli.out, 0, NULL);
        cr_assert(plan, "%s", cli.out);
        snprintf(proven, sizeof proven, "x%.4f, proven the fastest of any class",
                 json_number_value(json_object_get(plan, "slowdown")));
        cr_expect(code == 0 && strstr(text, proven), "%d %%: %s, expected %s", percent, text, proven);
        json_decref(plan);
        settled++;
    }
    cr_assert(settled > 1, "%d budgets", settled);
    cli_close(&cli);
}
