/* Following a run of another process: every committed step, until the run ends, however it ends. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/background_runs.h"

/* The steps printed are 0, 1, 2 ... with the losses that the file has now; returns how many. */
static size_t check_steps(struct cli *cli, const char *followed, const char *path)
{
    char arguments[600];
    size_t count = 0;
    snprintf(arguments, sizeof arguments, "show '%s' --json", path);
    json_t *all = cli_json(cli, 0, arguments), *loss = json_object_get(json_object_get(all, "steps"), "loss");
    for (const char *line = followed; (line = strstr(line, "\n  step ")); line++, count++) {
        unsigned step;
        double printed;
        cr_assert(sscanf(line, " step %u %*s loss %lf", &step, &printed) == 2 && step == count, "%.80s", line);
        cr_assert((float)printed == (float)json_real_value(json_array_get(loss, count)), "%.80s", line);
    }
    cr_expect(count == json_array_size(loss), "%zu of %zu steps", count, json_array_size(loss));
    json_decref(all);
    return count;
}

/* How a run of many steps ends: by a signal to the parent or to the process that trains; what following it says then,
 * and its exit code. */
static const struct {
    const char *options;
    int to_parent;
    const char *to_child, *says;
} ends[] = {
    {"show --follow '%s'", SIGINT, NULL, "interrupted"},
    {"show --follow '%s'", 0, "KILL", "died after "},
    {"run small.yaml steps=100000000 lr_schedule=linear --follow", SIGTERM, NULL, "interrupted"},
};

Test(follow, a_run_is_followed_to_its_end, .timeout = 240)
{
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct cli cli;
        char path[512], arguments[700], command[1500], *text = NULL;
        size_t room = 0;
        cli_open(&cli);
        const pid_t pid = background_long_run(&cli, "");
        cr_assert(background_result(&cli, ".part", path));
        const long before = background_steps(&cli);
        snprintf(arguments, sizeof arguments, ends[i].options, path);
        snprintf(command, sizeof command, "cd '%s' && '%s' %s 2>&1", cli.folder, cli_program(), arguments);
        FILE *follow = popen(command, "r");
        for (int k = 0; k < 500 && background_steps(&cli) < before + 100; k++) usleep(20000);
        if (ends[i].to_parent) kill(pid, ends[i].to_parent);
        if (ends[i].to_child) background_signal(pid, ends[i].to_child);
        background_end(pid);
        cr_assert(getdelim(&text, &room, '\0', follow) > 0);
        const int state = pclose(follow);
        cr_expect(check_steps(&cli, text, path) >= 100);
        cr_expect(strstr(text, ends[i].says), "no '%s' in the end of\n%s", ends[i].says,
                  strlen(text) > 400 ? text + strlen(text) - 400 : text);
        cr_expect(WIFEXITED(state) && WEXITSTATUS(state) == 3, "%s: %d", arguments, state);
        free(text);
        cli_close(&cli);
    }
}

static double seconds_of(const char *end)
{
    double value = 0;
    char unit[8] = "";
    while (end[-1] != ' ' || end[-2] != ' ') end--;
    cr_assert(sscanf(end, "%lf %7[a-z]", &value, unit) == 2, "%.40s", end);
    return value * (strcmp(unit, "min") == 0 ? 60 : strcmp(unit, "s") == 0 ? 1 : strcmp(unit, "ms") == 0 ? 1e-3 : 1e-6);
}

/* The time left after the first step is that of so many such steps, whatever the later ones took. */
static void check_estimate(const char *line, double steps)
{
    const double each = seconds_of(strstr(line, "  live peak")), left = seconds_of(strstr(line, " left\n"));
    cr_assert(left > each * steps * 0.6 && left < each * steps * 2, "%.100s", line + 1);
}

Test(follow, a_complete_run_is_printed_by_either_name)
{
    static const char *const names[] = {"$(ls results/small/*.h5)", "$(ls results/small/*.h5).part"};
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --quiet --only variant");
    for (size_t i = 0; i < 2; i++) {
        char arguments[64];
        snprintf(arguments, sizeof arguments, "show --follow %s", names[i]);
        cli_expect(&cli, 0, arguments);
        cli_says(&cli, "\n  step 3  4/4  loss ");
        cli_says(&cli, "\ncompleted\n");
        cr_expect(cli_on_screen(&cli, 60, "", arguments) == 0 && cli.code == 0);
        cli_says(&cli, "  step 3  4/4  loss ");
    }
    cli_expect(&cli, 0, "run small.yaml --quiet --only variant steps=2000 name=long");
    cli_expect(&cli, 0, "show --follow $(ls results/long/*.h5)");
    check_estimate(strstr(cli.out, "\n  step 0 "), 1999);
    cli_expect(&cli, 2, "run small.yaml --follow");
    cli_complains(&cli, "no run of small is being written in results/small");
    cli_expect(&cli, 2, "show --follow nothing.h5");
    cli_complains(&cli, "nothing.h5: cannot read: No such file");
    cli_expect(&cli, 2, "show --follow --json nothing.h5");
    cli_complains(&cli, "expected one of --provenance, --json, --csv and --follow at most");
    cli_close(&cli);
}
