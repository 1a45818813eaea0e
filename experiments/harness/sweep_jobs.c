/* Several points at a time: each is a process of its own, whose plan says how much memory it needs. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "console/terminal.h"
#include "run/signals.h"
#include "sweep.h"

struct jobs {
    struct sweep *sweep;
    pid_t *pid; /* by point; 0: it does not run */
    int next, running, signal;
    uint64_t used; /* bytes that the running points need */
    bool noted;    /* that the next point waits for memory */
};

/* The arguments that run a point; ended by NULL. */
static const char **arguments_of(const struct sweep *s, int point)
{
    const struct request *q = s->request;
    const char **argument;
    int n = 0;
    NEW(s->region, argument, (size_t)q->overrides + 10);
    argument[n++] = program_invocation_name;
    argument[n++] = "run";
    argument[n++] = q->spec;
    for (int i = 0; i < q->overrides; i++) argument[n++] = q->override[i];
    argument[n++] = "--point";
    argument[n++] = region_text(s->region, "%d", point + 1);
    argument[n++] = "--quiet";
    if (q->force) argument[n++] = "--force";
    if (q->resume != RESUME_AUTO) {
        argument[n++] = "--resume";
        argument[n++] = q->resume == RESUME_MUST ? "must" : "never";
    }
    return argument;
}

void sweep_jobs_print(const struct sweep *s, FILE *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+%@";
    for (int i = 0; i < s->points; i++) {
        if (!s->point[i].own) continue;
        for (const char **argument = arguments_of(s, i); *argument; argument++) {
            const bool bare = **argument && strspn(*argument, plain) == strlen(*argument);
            if (!bare) fputc('\'', out);
            for (const char *c = *argument; *c; c++) fprintf(out, *c == '\'' ? "'\\%c'" : "%c", *c);
            fprintf(out, "%s%c", bare ? "" : "'", argument[1] ? ' ' : '\n');
        }
    }
}

/* Between fork() and execv(), only what a signal handler may call. It ends with its parent, as a run does. */
static void become(const char **argument, pid_t parent, const sigset_t *mask)
{
    const int nowhere = open("/dev/null", O_WRONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0 &&
        sigprocmask(SIG_SETMASK, mask, NULL) == 0)
        execv("/proc/self/exe", (char *const *)argument);
    _exit(ST_FAILED);
}

static void start(struct jobs *j, const sigset_t *mask)
{
    struct sweep *s = j->sweep;
    const pid_t parent = getpid();
    const char **argument = arguments_of(s, j->next);
    fflush(NULL);
    j->pid[j->next] = fork();
    if (j->pid[j->next] == 0) become(argument, parent, mask);
    if (j->pid[j->next] < 0) {
        const char *why = region_text(s->region, "its process cannot be started: %s", strerror(errno));
        j->pid[j->next] = 0;
        sweep_give_up(s, j->next, "failed", ST_FAILED, why);
    } else {
        s->point[j->next].elsewhere = true;
        j->used += s->point[j->next].need;
        j->running++;
    }
    j->noted = false;
    j->next++;
}

/* Beside what runs, which may not have taken its memory yet; and of what is left now. The first is left to itself. */
static bool fits(struct jobs *j)
{
    const struct sweep *s = j->sweep;
    const uint64_t need = s->point[j->next].need;
    char text[2][UNIT_TEXT];
    if (!j->running) return true;
    if (j->running >= s->request->jobs) return false;
    const bool fits =
        need <= s->memory && j->used <= s->memory - need && (s->device || need <= machine_memory("").bytes);
    if (!fits && !j->noted)
        fprintf(stderr, "point %d of %d waits for memory: it needs %s, those that run %s\n", j->next + 1, s->points,
                bytes_text((double)need, text[0]), bytes_text((double)j->used, text[1]));
    j->noted |= !fits;
    return fits;
}

/* The point's row is in the index, unless its process died. */
static void ended(struct jobs *j, int point, int state)
{
    struct sweep *s = j->sweep;
    struct point *p = &s->point[point];
    const int code = WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
    j->pid[point] = 0;
    j->running--;
    j->used -= p->need;
    p->code = code;
    p->ran = true;
    report_error(sweep_index_update(s));
    const json_t *row = json_array_get(s->rows, (size_t)point);
    const char *outcome = json_string_at(row, "outcome");
    if (!strcmp(outcome, "not run")) {
        sweep_give_up(s, point, code > 128 ? "stopped" : "failed", code, region_text(s->region, "exit code %d", code));
        p->elsewhere = false;
    }
    fprintf(stderr, "point %d of %d: %s\n", point + 1, s->points, p->elsewhere ? outcome : p->outcome);
}

/* Waits for the end of a process, a signal, or a second; forwards a stop signal to all, and a second one as SIGKILL. */
static void wait_for_any(struct jobs *j)
{
    sigset_t set = signals_of_stop();
    sigaddset(&set, SIGCHLD);
    for (int i = 0; i < j->next; i++) {
        int state;
        if (j->pid[i] && waitpid(j->pid[i], &state, WNOHANG) == j->pid[i]) {
            ended(j, i, state);
            return;
        }
    }
    const int signal = sigtimedwait(&set, NULL, &(struct timespec){.tv_sec = 1});
    if (signal <= 0 || signal == SIGCHLD) return;
    for (int i = 0; i < j->next; i++)
        if (j->pid[i]) kill(j->pid[i], j->signal ? SIGKILL : signal);
    if (!j->signal) fprintf(stderr, "\nstopping after these steps; once more to stop at once\n");
    j->signal = signal;
}

static void warn(const struct sweep *s)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t threads = 0;
    for (int i = 0; i < s->points; i++)
        if (s->point[i].threads > threads) threads = s->point[i].threads;
    if ((uint64_t)s->request->jobs * threads > (uint64_t)cores)
        fprintf(stderr,
                "warning: %lld points at a time with %llu threads each share %ld processors, so times mean little; "
                "backend.threads sets another number, with which bits can be others\n",
                (long long)s->request->jobs, (unsigned long long)threads, cores);
}

int sweep_jobs_run(struct sweep *s)
{
    struct jobs j = {.sweep = s};
    const sigset_t before = signals_block(SIGCHLD);
    NEW(s->region, j.pid, (size_t)s->points);
    warn(s);
    while (j.running || (j.next < s->points && !j.signal)) {
        while (j.next < s->points && (!s->point[j.next].own || s->point[j.next].ran)) j.next++;
        if (j.next < s->points && !j.signal && fits(&j))
            start(&j, &before);
        else if (j.running)
            wait_for_any(&j);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return j.signal ? 128 + j.signal : 0;
}
