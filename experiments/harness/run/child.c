#include "run/child.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "console/terminal.h"
#include "job/thread_waiting.h"
#include "run/job_plans.h"
#include "run/signals.h"
#include "run/state_file.h"
#include "spec/spec.h"

enum { REPORT_FD = 3, PLAN_FD = 4 };

const char child_command[] = "child-run";
static const char *const roles[] = {"variant", "baseline"};

/* Its value begins with the number of the process that named the invocation. */
static const char invocation_variable[] = "REMATCH_INVOCATION";
/* What is done with states: of a run whose files are temporary nothing. */
static const char *const states[] = {"begin", "resume", "temporary"};

/* ---- the parent ---- */

/* A signal sent to a group of processes may arrive twice within this time; it counts once. */
static const uint64_t same_signal_ns = 500000000;

/* Waits for the child's end and forwards stop signals to it: the child is in a process group of its own, so that a
 * terminal's Ctrl-C reaches only the parent. *stop: the first of these signals (after SIGUSR1 the next), 0: none. */
static int wait_for(pid_t pid, int *stop)
{
    sigset_t set = signals_of_stop();
    sigaddset(&set, SIGCHLD);
    uint64_t sent = 0;
    int state;
    for (;;) {
        pid_t ended = waitpid(pid, &state, WNOHANG);
        if (ended == pid) return state;
        if (ended < 0 && errno != EINTR) return -1;
        /* At most a second: a library's thread that does not block SIGCHLD may have received it. */
        int signal = sigtimedwait(&set, NULL, &(struct timespec){.tv_sec = 1});
        uint64_t now = clock_now_ns();
        if (signal <= 0 || signal == SIGCHLD || (sent && now - sent < same_signal_ns)) continue;
        /* a time limit is announced by SIGUSR1, and then kept by SIGTERM: not yet once more */
        const bool again = sent && (*stop != SIGUSR1 || signal == SIGUSR1);
        kill(pid, again ? SIGKILL : signal);
        if (!sent) fprintf(stderr, "\nstopping after this step; once more to stop at once\n");
        if (!again) *stop = signal;
        sent = now;
    }
}

void child_name_invocation(void)
{
    char name[64];
    const char *given = getenv(invocation_variable);
    if (given && strtol(given, NULL, 10) == (long)getppid()) return;
    snprintf(name, sizeof name, "%ld-%llu", (long)getpid(), (unsigned long long)clock_now_ns());
    setenv(invocation_variable, name, true);
}

const char *child_invocation(void) { return getenv(invocation_variable); }

static enum status spawn(const struct child *child, int report, int plan, pid_t *pid)
{
    char steps[32], parent[32], planned[33] = "";
    snprintf(steps, sizeof steps, "%lld", (long long)child->steps);
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    const char *resolved = child->planned ? child->planned->spec->resolved : NULL;
    if (resolved) digest_print(digest_bytes(resolved, strlen(resolved)), planned);
    const char *loud = child->quiet ? "quiet" : "verbose", *state = states[child->temporary ? 2 : child->resume];
    const char *const own[] = {"rematch", child_command, roles[child->baseline], loud, state, steps, planned,
                               parent,    child->spec};
    enum { OWN = sizeof own / sizeof *own };
    freed_auto const char **arguments = allocate((size_t)child->overrides + OWN + 1, sizeof *arguments);
    memcpy(arguments, own, sizeof own);
    for (int i = 0; i < child->overrides; i++) arguments[OWN + i] = child->override[i];

    waiting_choose();
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, report, REPORT_FD);
    if (resolved) posix_spawn_file_actions_adddup2(&files, plan, PLAN_FD);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    int error = posix_spawn(pid, "/proc/self/exe", &files, &attributes, (char *const *)arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error ? fail(ST_FAILED, "a process for the run cannot be started: %s", strerror(error)) : ST_OK;
}

static enum status write_plan(const struct job *job, int descriptor)
{
    region_auto *region = region_create();
    const struct plan_handoff handoff = plan_handoff_of(job, region);
    const ssize_t written = write(descriptor, handoff.data, handoff.bytes);
    if (written == (ssize_t)handoff.bytes) return ST_OK;
    return fail(ST_FAILED, "no memory for the plan of a run: %s", strerror(errno));
}

/* A child that died early wrote no report. */
static enum status run(const struct child *child, struct run_report *report, int *state, int *stop)
{
    pid_t pid = 0;
    descriptor_auto int memory = memfd_create("report", MFD_CLOEXEC), plan = memfd_create("plan", MFD_CLOEXEC);
    if (memory < 0 || plan < 0) return fail(ST_FAILED, "no memory for the report of a run: %s", strerror(errno));
    if (child->planned) TRY(write_plan(child->planned, plan));
    TRY(spawn(child, memory, plan, &pid));
    *state = wait_for(pid, stop);
    if (pread(memory, report, sizeof *report, 0) != (ssize_t)sizeof *report) *report = (struct run_report){0};
    return ST_OK;
}

/* How many steps were done, and where they are. */
static void print_progress(const struct run_report *report, bool temporary)
{
    if (report->stopped)
        fprintf(stderr, "rematch: interrupted by SIG%s after %lld step%s\n", sigabbrev_np(report->stopped),
                (long long)report->steps, text_plural(report->steps));
    if (!*report->path || report->finished || temporary) return;
    char part[REPORT_PATH + 8];
    snprintf(part, sizeof part, "%s.part", report->path);
    if (access(part, R_OK) != 0) return;
    fprintf(stderr, "the committed steps are in %s%s\n", part,
            state_file_exists(report->path) ? "; the same command goes on from its state" : "");
}

enum status child_run(const struct child *child, struct run_report *report, int *code)
{
    const sigset_t before = signals_block(SIGCHLD);
    int state = 0, stop = 0;
    *report = (struct run_report){0};
    fflush(NULL);
    enum status status = run(child, report, &state, &stop);
    if (!stop)
        sigprocmask(SIG_SETMASK, &before,
                    NULL); /* else another signal could end this process before its messages are out */
    TRY(status);
    /* after a stop signal nothing else runs, even if the child had already finished */
    *code = stop ? 128 + stop : WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
    if (WIFSIGNALED(state) && stop)
        fprintf(stderr, "rematch: stopped at once, within a step\n");
    else if (WIFSIGNALED(state))
        fprintf(stderr, "rematch: the %s run was ended by signal %d (%s)\n", roles[child->baseline], WTERMSIG(state),
                strsignal(WTERMSIG(state)));
    if (*code != 0) print_progress(report, child->temporary);
    return ST_OK;
}

/* ---- the child ---- */

/* A file may be edited during an earlier run. */
static enum status check_planned(const struct spec *spec, const char *planned)
{
    if (!*planned || !strcmp(DIGEST_TEXT(digest_bytes(spec->resolved, strlen(spec->resolved))), planned)) return ST_OK;
    return fail(ST_SPEC, "%s: it, or its model file, has changed since it was planned", spec->path);
}

/* Lets the system end this process with its parent: nothing else would stop it, and it may hold a device. If the parent
 * already ended, its process id differs; "": any parent. */
static enum status end_with(const char *parent)
{
    char now[32];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(now, sizeof now, "%ld", (long)getppid());
    return !*parent || strcmp(now, parent) == 0 ? ST_OK
                                                : fail(ST_FAILED, "the program that started this run has ended");
}

/* With the plan of the parent. */
static enum status create_planned(struct spec *spec, struct job **job)
{
    region_auto *region = region_create();
    struct stat about;
    if (fstat(PLAN_FD, &about) != 0) return fail(ST_FAILED, "the plan of this run cannot be read: %s", strerror(errno));
    char *data = region_array(region, (size_t)about.st_size + 1, 1);
    TRY(file_read(PLAN_FD, "the plan of this run", 0, (size_t)about.st_size, data));
    return job_create_planned(spec, &(struct plan_handoff){data, (size_t)about.st_size}, job);
}

int child_main(int count, const char *const *arguments)
{
    enum { ROLE, QUIET, STATES, STEPS, PLANNED, PARENT, SPEC, COUNT };
    const bool baseline = count >= COUNT && strcmp(arguments[ROLE], roles[true]) == 0;
    if (count < COUNT || (!baseline && strcmp(arguments[ROLE], roles[false]) != 0)) {
        fprintf(stderr, "rematch: %s is started by rematch run, not by hand\n", child_command);
        return ST_SPEC;
    }
    if (report_error(end_with(arguments[PARENT])) != ST_OK) return ST_FAILED;
    (void)signals_block(0);
    const struct training_options options = {.variant = roles[baseline],
                                             .quiet = strcmp(arguments[QUIET], "quiet") == 0,
                                             .resume = strcmp(arguments[STATES], states[1]) == 0,
                                             .temporary = strcmp(arguments[STATES], states[2]) == 0,
                                             .steps = strtoll(arguments[STEPS], NULL, 10),
                                             .descriptor = REPORT_FD};
    spec_auto *spec = NULL;
    job_auto *job = NULL;
    int stopped = 0;
    enum status status = spec_load(arguments[SPEC], count - COUNT, arguments + COUNT, &spec);
    if (status == ST_OK) {
        struct spec *side = baseline ? spec->baseline : spec;
        status = check_planned(side, arguments[PLANNED]);
        if (status == ST_OK) status = *arguments[PLANNED] ? create_planned(side, &job) : job_create(side, &job);
        if (status == ST_OK) status = training_run(job, &options, &stopped);
    }
    return report_error(status) == ST_OK && stopped ? 128 + stopped : (int)status;
}
