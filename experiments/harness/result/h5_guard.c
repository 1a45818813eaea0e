/* A crash or endless loop of the HDF5 library on a damaged file ends the process with a message that says so.
 * Contract: little but the library runs within a guard; outside of it, every signal has its former handler. */
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "result/h5.h"

enum { SECONDS = 3, STACK = 64 * 1024 };

static const struct {
    int signal;
    const char *what;
} ends[] = {
    {SIGSEGV, "crashes on it"},
    {SIGBUS, "crashes on it"},
    {SIGABRT, "crashes on it"},
    {SIGFPE, "crashes on it"},
    {SIGPROF, "does not finish reading it"},
};
enum { ENDS = sizeof ends / sizeof *ends };

static char stack[STACK]; /* for the handler: a damaged file may make the library recurse until its own is full */
static stack_t stack_before;
static struct sigaction before[ENDS];
static const char *volatile guarded; /* path of the file that is being read */
static int depth;

static void report_end(int signal)
{
    char begin[] = "rematch: ", cause[] = ": cannot read: the HDF5 library ", end[] = ", as on some damaged files\n";
    char *path = (char *)guarded, *what = "";
    for (size_t i = 0; i < ENDS; i++)
        if (ends[i].signal == signal) what = (char *)ends[i].what;
    const struct iovec parts[] = {{begin, sizeof begin - 1},
                                  {path, strlen(path)},
                                  {cause, sizeof cause - 1},
                                  {what, strlen(what)},
                                  {end, sizeof end - 1}};
    const ssize_t written = writev(STDERR_FILENO, parts, 5);
    (void)written;
    _exit(ST_FAILED);
}

static void limit(time_t seconds) { setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL); }

void h5_guard(const struct h5 *h5)
{
    if (!h5->reading || depth++) return;
    guarded = h5->path;
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = STACK}, &stack_before);
    for (size_t i = 0; i < ENDS; i++)
        sigaction(ends[i].signal, &(struct sigaction){.sa_handler = report_end, .sa_flags = SA_ONSTACK}, &before[i]);
    limit(SECONDS);
}

void h5_release(const struct h5 *h5)
{
    if (!h5->reading || --depth) return;
    limit(0);
    for (size_t i = 0; i < ENDS; i++) sigaction(ends[i].signal, &before[i], NULL);
    sigaltstack(&stack_before, NULL);
}
