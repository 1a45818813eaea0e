#include "run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "console/report_error.h"
#include "job/thread_waiting.h"
#include "run/job_plans.h"
#include "run/signals.h"
#include "spec/spec_load.h"

enum { REPORT_FD = 3 };

const char child_command[] = "child-run";
static const char *const roles[] = {"variant", "baseline"}, *const voices[] = {"loud", "quiet"};

/* ---- the parent ---- */

/* A signal that reaches a whole group of processes may come twice within this time; that is one wish. */
static const uint64_t same_wish_ns = 500000000;

/* Waits for the child's end and passes signals to stop on to it. The child has a group of its own, so that a terminal's
 * Ctrl-C reaches it only through here. *wish: the first of them, 0: none. */
static int wait_for(pid_t pid, int *wish)
{
    sigset_t set = signals_of_stop();
    sigaddset(&set, SIGCHLD);
    uint64_t asked = 0;
    int state;
    for (;;) {
        pid_t ended = waitpid(pid, &state, WNOHANG);
        if (ended == pid) return state;
        if (ended < 0 && errno != EINTR) return -1;
        /* For a second: a thread of a library's that does not block SIGCHLD could have taken it before this. */
        int signal = sigtimedwait(&set, NULL, &(struct timespec){.tv_sec = 1});
        uint64_t now = clock_now_ns();
        if (signal <= 0 || signal == SIGCHLD || (asked && now - asked < same_wish_ns)) continue;
        kill(pid, asked ? SIGKILL : signal);
        if (!asked) fprintf(stderr, "\nstopping after this step; once more to stop at once\n");
        if (!asked) *wish = signal;
        asked = now;
    }
}

void child_name_invocation(void)
{
    char name[64];
    snprintf(name, sizeof name, "%ld-%llu", (long)getpid(), (unsigned long long)clock_now_ns());
    setenv("REMATCH_INVOCATION", name, true);
}

static enum status spawn(const struct child *child, int write_end, pid_t *pid)
{
    const char **arguments = calloc((size_t)child->overrides + 9, sizeof *arguments);
    char steps[32], parent[32], planned[33] = "";
    if (!arguments) return fail(ST_FAILED, "out of memory");
    int n = 0;
    arguments[n++] = "rematch";
    arguments[n++] = child_command;
    arguments[n++] = roles[child->baseline];
    arguments[n++] = voices[child->quiet];
    snprintf(steps, sizeof steps, "%lld", (long long)child->steps);
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    if (child->resolved) digest_print(digest_bytes(child->resolved, strlen(child->resolved)), planned);
    arguments[n++] = steps;
    arguments[n++] = planned;
    arguments[n++] = parent;
    arguments[n++] = child->spec;
    for (int i = 0; i < child->overrides; i++) arguments[n++] = child->override[i];

    waiting_choose();
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, write_end, REPORT_FD);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    int error = posix_spawn(pid, "/proc/self/exe", &files, &attributes, (char *const *)arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free(arguments);
    return error ? fail(ST_FAILED, "a process for the run cannot be started: %s", strerror(error)) : ST_OK;
}

/* The last report in the pipe; a child that died early left none. */
static void read_reports(int read_end, struct run_report *report)
{
    struct run_report one;
    while (read(read_end, &one, sizeof one) == (ssize_t)sizeof one) *report = one;
}

static enum status run(const struct child *child, struct run_report *report, int *state, int *wish)
{
    int ends[2];
    pid_t pid = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return fail(ST_FAILED, "no pipe to a run: %s", strerror(errno));
    enum status status = spawn(child, ends[1], &pid);
    close(ends[1]);
    if (status == ST_OK) {
        *state = wait_for(pid, wish);
        read_reports(ends[0], report);
    }
    close(ends[0]);
    return status;
}

/* How far it came, and where what was done so far lies. */
static void tell_rest(const struct run_report *report, bool passing)
{
    if (report->stopped)
        fprintf(stderr, "rematch: interrupted by SIG%s after %lld step%s\n", sigabbrev_np(report->stopped),
                (long long)report->steps, text_plural(report->steps));
    if (!*report->path || report->finished || passing) return;
    char part[REPORT_PATH + 8];
    snprintf(part, sizeof part, "%s.part", report->path);
    if (access(part, R_OK) == 0) fprintf(stderr, "the committed steps are in %s\n", part);
}

enum status child_run(const struct child *child, struct run_report *report, int *code)
{
    sigset_t held = signals_of_stop(), before;
    int state = 0, wish = 0;
    *report = (struct run_report){0};
    sigaddset(&held, SIGCHLD);
    sigprocmask(SIG_BLOCK, &held, &before);
    fflush(NULL);
    enum status status = run(child, report, &state, &wish);
    if (!wish) sigprocmask(SIG_SETMASK, &before, NULL); /* else one more signal would cut off what is told of the end */
    TRY(status);
    /* a wish to stop is granted even where the child had nothing left to do: nothing may follow it */
    *code = wish ? 128 + wish : WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
    if (WIFSIGNALED(state) && wish)
        fprintf(stderr, "rematch: stopped at once, within a step\n");
    else if (WIFSIGNALED(state))
        fprintf(stderr, "rematch: the %s run was ended by signal %d (%s)\n", roles[child->baseline], WTERMSIG(state),
                strsignal(WTERMSIG(state)));
    if (*code != 0) tell_rest(report, child->passing);
    return ST_OK;
}

/* ---- the child ---- */

static void tell_parent(void *self, const struct run_report *report)
{
    *(struct run_report *)self = *report;
    ssize_t written = write(REPORT_FD, report, sizeof *report); /* fits a pipe twice over; a parent gone is no error */
    (void)written;
}

static int word_in(const char *word, const char *const *words)
{
    return strcmp(word, words[0]) == 0 ? 0 : strcmp(word, words[1]) == 0 ? 1 : -1;
}

/* A file may be edited while the run before goes on. */
static enum status check_planned(const struct spec *spec, const char *planned)
{
    char now[33];
    if (!*planned || !strcmp(digest_print(digest_bytes(spec->resolved, strlen(spec->resolved)), now), planned))
        return ST_OK;
    return fail(ST_SPEC, "%s: it, or its model file, is not as it was planned", spec->path);
}

static int train_spec(struct spec *spec, const char *role, bool quiet, int64_t steps)
{
    struct run_report last = {0};
    struct report_listener parent = {tell_parent, &last};
    struct job *job = NULL;
    enum status status = job_create(spec, &job);
    if (status == ST_OK) status = training_run(job, role, quiet, steps, &parent);
    int stopped = status == ST_OK ? last.stopped : 0;
    job_destroy(job);
    if (report_error(status) != ST_OK) return (int)status;
    return stopped ? 128 + stopped : 0;
}

/* From here on the process ends with its parent: no one else could stop it, and it may hold a device. A parent that
 * ended before this call is noticed by its number; "": any will do. */
static enum status end_with(const char *parent)
{
    char now[32];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(now, sizeof now, "%ld", (long)getppid());
    return !*parent || strcmp(now, parent) == 0 ? ST_OK
                                                : fail(ST_FAILED, "the program that started this run has ended");
}

int child_main(int count, const char *const *arguments)
{
    int baseline = count >= 6 ? word_in(arguments[0], roles) : -1;
    int quiet = count >= 6 ? word_in(arguments[1], voices) : -1;
    if (baseline < 0 || quiet < 0) {
        fprintf(stderr, "rematch: %s is started by rematch run, not by hand\n", child_command);
        return ST_SPEC;
    }
    if (report_error(end_with(arguments[4])) != ST_OK) return ST_FAILED;
    signals_hold();
    const int64_t steps = strtoll(arguments[2], NULL, 10);
    struct spec *spec = NULL;
    enum status status = spec_load(arguments[5], count - 6, arguments + 6, &spec);
    struct spec *side = spec && baseline ? spec->baseline : spec;
    if (status == ST_OK) status = report_error(check_planned(side, arguments[3]));
    int code = status == ST_OK ? train_spec(side, roles[baseline], quiet, steps) : (int)status;
    spec_destroy(spec);
    return code;
}
