#include "cli.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device_mirror.h"
#include "made_runs.h"
#include "terminal_screen.h"

enum { COMMAND = 4096 };

static const char small[] = "rematch: 1\n"
                            "name: small\n"
                            "title: a small MLP\n"
                            "model:\n"
                            "  layers:\n"
                            "    - flatten\n"
                            "    - group:\n"
                            "        name: front\n"
                            "        layers:\n"
                            "          - linear: {name: one, units: 24, activation: relu}\n"
                            "          - dropout: {name: drop, rate: 0.25}\n"
                            "          - linear: {name: two, units: 16, activation: relu}\n"
                            "    - linear: {name: three, units: classes}\n"
                            "data: {name: synthetic, shape: [4, 4, 1], classes: 4, samples: 50}\n"
                            "batch: 8\n"
                            "steps: 4\n"
                            "seed: 7\n"
                            "backend: {name: ref, threads: 1}\n"
                            "optimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"
                            "policy: {name: manual, groups: [front]}\n";

const char *cli_program(void)
{
    const char *program = getenv("REMATCH_BIN");
    cr_assert(program != NULL, "REMATCH_BIN must name the program; make test sets it");
    return program;
}

void cli_file(const struct cli *cli, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", cli->folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "%s", path);
}

void cli_open(struct cli *cli)
{
    memset(cli, 0, sizeof *cli);
    folder_make(cli->folder);
    cli_file(cli, "small.yaml", small);
}

void cli_open_on_device(struct cli *cli, const char *device)
{
    const char *stand_in = getenv("REMATCH_HOST_DEVICE_BIN");
    if (device_is_real()) {
        if (device != NULL && strcmp(device, "absent") != 0) cr_skip_test("for the stand-in alone (%s)", device);
        if (device != NULL) setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
    } else {
        if (stand_in == NULL || *stand_in == '\0') cr_skip_test("REMATCH_HOST_DEVICE_BIN names no program");
        setenv("REMATCH_BIN", stand_in, 1);
        setenv("REMATCH_HOST_DEVICE", device != NULL ? device : "", 1);
    }
    cli_open(cli);
}

void cli_close(struct cli *cli)
{
    folder_remove(cli->folder);
    free(cli->out);
    free(cli->err);
}

/* All of a file, as text. */
static char *read_file(const struct cli *cli, const char *name)
{
    char path[512], *text = NULL;
    size_t room = 0;
    snprintf(path, sizeof path, "%s/%s", cli->folder, name);
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    if (getdelim(&text, &room, '\0', file) < 0) {
        free(text);
        text = calloc(1, 1);
    }
    fclose(file);
    return text;
}

static void shell_command(const struct cli *cli, const char *before, const char *arguments, const char *to,
                          char command[COMMAND])
{
    int length = snprintf(command, COMMAND, "cd '%s' && { %s; }; '%s' %s %s", cli->folder, *before ? before : ":",
                          cli_program(), arguments, to);
    cr_assert(length > 0 && length < COMMAND);
}

static int code_of(int state) { return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state); }

void cli_run(struct cli *cli, const char *before, const char *arguments)
{
    char command[COMMAND];
    free(cli->out);
    free(cli->err);
    shell_command(cli, before, arguments, ">stdout 2>stderr", command);
    cli->code = code_of(system(command)); /* the shell itself says 128 + n for a signal */
    cli->out = read_file(cli, "stdout");
    cli->err = read_file(cli, "stderr");
}

int cli_on_screen(struct cli *cli, int columns, const char *before, const char *arguments)
{
    char command[COMMAND];
    int master, state, over;
    free(cli->out);
    free(cli->err);
    shell_command(cli, before, arguments, "", command);
    const pid_t child = screen_fork(columns, &master);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    char *sent = screen_read(master);
    cr_assert(waitpid(child, &state, 0) == child);
    cli->code = code_of(state);
    cli->out = screen_show(sent, columns ? columns : 80, &over);
    cli->err = calloc(1, 1);
    free(sent);
    return over;
}

void cli_expect(struct cli *cli, int code, const char *arguments)
{
    cli_run(cli, "", arguments);
    cr_assert(cli->code == code, "rematch %s: exit code %d, expected %d\n%s\n%s", arguments, cli->code, code, cli->out,
              cli->err);
}

json_t *cli_json(struct cli *cli, int code, const char *arguments)
{
    json_error_t error;
    cli_expect(cli, code, arguments);
    json_t *json = json_loads(cli->out, JSON_REJECT_DUPLICATES, &error);
    cr_assert(json != NULL, "%s\n%s", error.text, cli->out);
    return json;
}

void cli_says(const struct cli *cli, const char *text)
{
    cr_assert(strstr(cli->out, text) != NULL, "'%s' is not in\n%s", text, cli->out);
}

void cli_complains(const struct cli *cli, const char *text)
{
    cr_assert(strstr(cli->err, text) != NULL, "'%s' is not in\n%s", text, cli->err);
}

int cli_complaints(const struct cli *cli)
{
    int lines = 0;
    for (const char *c = cli->err; *c; c++) lines += *c == '\n';
    return lines;
}

int cli_repeats(const struct cli *cli, const char *text)
{
    int times = 0;
    for (const char *at = cli->err; (at = strstr(at, text)); at++) times++;
    return times;
}
