#include "search/solver.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

enum { FILE_MAX = 1 << 28, GRACE = 5 };

static const char name[] = "cbc";

/* Whether a folder of PATH has it. */
bool solver_found(void)
{
    const char *at = getenv("PATH");
    while (at && *at) {
        const int length = (int)strcspn(at, ":");
        char path[4096];
        snprintf(path, sizeof path, "%.*s/%s", length, at, name);
        if (access(path, X_OK) == 0) return true;
        at += length;
        at += strspn(at, ":");
    }
    return false;
}

static const char *const files[] = {"model.lp", "solution.txt", "log.txt"};

static char *path_of(const char *folder, const char *file, struct region *region)
{
    return region_text(region, "%s/%s", folder, file);
}

enum status solver_folder(struct region *region, char **folder)
{
    const char *root = getenv("TMPDIR");
    *folder = region_text(region, "%s/rematch-milp-XXXXXX", root && *root ? root : P_tmpdir);
    return mkdtemp(*folder) ? ST_OK : fail(ST_FAILED, "%s: %s", *folder, strerror(errno));
}

void solver_remove(const char *folder)
{
    struct region *region = region_create();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(path_of(folder, files[i], region));
    rmdir(folder);
    region_destroy(region);
}

/* Becomes the solver, in a process group of its own: a terminal's Ctrl-C reaches the parent alone. It ends with its
 * parent. */
static void become(const char *folder, const char *seconds, const sigset_t *before)
{
    const char *const arguments[] = {name,    "model.lp", "timeMode", "elapsed",      "sec",
                                     seconds, "solve",    "solution", "solution.txt", NULL};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, before, NULL);
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC), moved = chdir(folder);
    const int log = open("log.txt", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (!moved && in >= 0 && log >= 0 && dup2(in, 0) == 0 && dup2(log, 1) == 1 && dup2(log, 2) == 2)
        execvp(name, (char *const *)arguments);
    _exit(127);
}

/* Waits for its end: interrupts it a while after the time it was given, then kills it. *stop: a stop signal that ended
 * the wait, 0: none. Returns the state of waitpid(). */
static int wait_for(pid_t pid, double seconds, const sigset_t *signals, int *stop)
{
    struct timespec now, start;
    int state = 0, sent = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (waitpid(pid, &state, WNOHANG) == 0) {
        const int signal = sigtimedwait(signals, NULL, &(struct timespec){.tv_nsec = 200000000});
        clock_gettime(CLOCK_MONOTONIC, &now);
        const double late = (double)(now.tv_sec - start.tv_sec) - seconds * 1.1 - GRACE;
        if (signal > 0 && signal != SIGCHLD) *stop = signal;
        if (*stop || late > GRACE)
            kill(-pid, SIGKILL);
        else if (late > 0 && !sent++)
            kill(-pid, SIGINT); /* it then writes what it has */
    }
    return state;
}

/* SIGCHLD and the stop signals that are not ignored. */
static sigset_t signals_of_wait(void)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction now;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        if (sigaction(stops[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&set, stops[i]);
    return set;
}

static enum status run(const char *folder, double seconds, int *state)
{
    char limit[32];
    const sigset_t signals = signals_of_wait();
    sigset_t before;
    int stop = 0;
    snprintf(limit, sizeof limit, "%.3f", seconds);
    fflush(NULL);
    sigprocmask(SIG_BLOCK, &signals, &before);
    const pid_t pid = fork();
    if (pid == 0) become(folder, limit, &before);
    const int error = errno;
    if (pid > 0) *state = wait_for(pid, seconds, &signals, &stop);
    if (stop) solver_remove(folder);
    if (stop) raise(stop);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) return fail(ST_FAILED, "%s cannot be started: %s", name, strerror(error));
    return stop ? fail(ST_FAILED, "%s was stopped by signal %d", name, stop) : ST_OK;
}

/* The number behind the last occurrence of a word; -INFINITY: there is none. */
static double number_after(const char *text, const char *word)
{
    double number = -INFINITY;
    while ((text = strstr(text, word))) {
        char *end;
        text += strlen(word);
        const double found = strtod(text, &end);
        if (end > text && isfinite(found)) number = found;
    }
    return number;
}

/* The first line of the solution's file says how the search ended. */
static enum status read_answer(const char *folder, struct region *region, struct solver_answer *answer)
{
    char *solution, *log, head[160] = "";
    *answer = (struct solver_answer){.bound = -INFINITY};
    TRY(file_read_text(path_of(folder, "log.txt", region), FILE_MAX, region, &log));
    if (file_read_text(path_of(folder, "solution.txt", region), FILE_MAX, region, &solution) != ST_OK || !*solution)
        return fail(ST_FAILED, "%s left no answer", name);
    snprintf(head, sizeof head, "%s", solution);
    answer->infeasible = strstr(head, "nfeasible") != NULL;
    answer->optimal = !answer->infeasible && strstr(head, "Optimal");
    answer->bound = number_after(log, "\nLower bound:"); /* of a search that did not end */
    if (answer->optimal && !isfinite(answer->bound)) answer->bound = number_after(head, "objective value");
    if (!answer->infeasible && !strstr(head, "no integer solution")) answer->solution = solution;
    return ST_OK;
}

enum status solver_run(const char *folder, double seconds, struct region *region, struct solver_answer *answer)
{
    int state = 0;
    if (!solver_found())
        return fail(ST_MISSING, "the policy milp needs the program cbc: install Debian's package coinor-cbc");
    TRY(run(folder, seconds, &state));
    if (WIFSIGNALED(state))
        return fail(ST_FAILED, "%s was ended by signal %d (%s)", name, WTERMSIG(state), strsignal(WTERMSIG(state)));
    if (WEXITSTATUS(state) == 127) return fail(ST_FAILED, "%s cannot be run", name);
    return read_answer(folder, region, answer);
}
