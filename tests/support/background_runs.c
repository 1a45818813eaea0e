#include "background_runs.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool background_result(const struct cli *cli, const char *tail, char path[512])
{
    char command[1024];
    snprintf(command, sizeof command, "find '%s/results' -name '*%s' 2>/dev/null", cli->folder, tail);
    FILE *find = popen(command, "r");
    bool found = fgets(path, 512, find) != NULL;
    pclose(find);
    path[strcspn(path, "\n")] = '\0';
    return found;
}

pid_t background_start(const struct cli *cli, const char *before, const char *overrides)
{
    char command[1024];
    pid_t pid;
    snprintf(command, sizeof command, "cd '%s' && { %s; }; exec '%s' run small.yaml %s >/dev/null 2>stderr",
             cli->folder, *before ? before : ":", cli_program(), overrides);
    const char *const words[] = {"sh", "-c", command, NULL};
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    cr_assert(posix_spawn(&pid, "/bin/sh", NULL, &attributes, (char *const *)words, environ) == 0);
    posix_spawnattr_destroy(&attributes);
    return pid;
}

long background_steps(const struct cli *cli)
{
    char path[512], command[1600];
    long steps = 0;
    if (!background_result(cli, ".part", path)) return 0;
    snprintf(command, sizeof command, "'%s' show '%s' 2>/dev/null | sed -n 's,^/steps: ,,p'", cli_program(), path);
    FILE *show = popen(command, "r");
    const bool read = fscanf(show, "%ld", &steps) == 1;
    pclose(show);
    return read ? steps : 0;
}

pid_t background_long_run(const struct cli *cli, const char *before)
{
    /* with this learning rate, each step depends on the length of the run */
    pid_t pid = background_start(cli, before, "steps=100000000 lr_schedule=linear");
    for (int i = 0; i < 3000; i++) {
        usleep(20000);
        if (background_steps(cli) > 0) return pid;
    }
    kill(-pid, SIGKILL);
    cr_assert_fail("no step within a minute");
    return -1;
}

int background_end(pid_t pid)
{
    int state = 0;
    for (int i = 0; i < 3000; i++) {
        if (waitpid(pid, &state, WNOHANG) == pid) return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
        usleep(20000);
    }
    kill(-pid, SIGKILL);
    cr_assert_fail("it does not end");
    return -1;
}

bool background_said(const struct cli *cli, const char *text)
{
    char command[512];
    snprintf(command, sizeof command, "grep -q '%s' '%s/stderr'", text, cli->folder);
    return system(command) == 0;
}

void background_signal(pid_t pid, const char *signal)
{
    char command[256];
    snprintf(command, sizeof command,
             "child=$(ps -o pid= --ppid %ld) && kill -%s $child && "
             "{ [ %s != STOP ] || until ps -o stat= -p $child | grep -q T; do sleep 0.02; done; }",
             (long)pid, signal, signal);
    cr_assert(system(command) == 0);
}
