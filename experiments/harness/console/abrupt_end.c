#include "console/abrupt_end.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/status.h"

static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT};
enum { CRASHES = sizeof crashes / sizeof *crashes, STACK = 16 * 1024 };

static char stack[STACK];
static bool watching;

/* Reached from exit(), but not from the end of main(). */
static void report_exit(int status, void *nothing)
{
    (void)nothing;
    if (!watching || status != EXIT_FAILURE) return;
    fflush(NULL);
    fprintf(stderr,
            "rematch: a library ended the program, for the reason above. Where threads cannot be created, "
            "backend.threads sets fewer of them; ulimit -u, ulimit -v and the control group's pids.max limit them\n");
    fflush(NULL);
    _exit(ST_FAILED);
}

static void report_crash(int signal)
{
    static const char text[] = "rematch: crashed (signal ";
    static const char rest[] = "), as libraries do that get no memory: ulimit -v or -d limits this process\n";
    const char digits[] = {(char)('0' + signal / 10), (char)('0' + signal % 10)};
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    written += write(STDERR_FILENO, digits + (signal < 10), signal < 10 ? 1 : 2);
    written += write(STDERR_FILENO, rest, sizeof rest - 1);
    (void)written;
    _exit(ST_FAILED);
}

static bool is_limited(int resource)
{
    struct rlimit limit;
    return getrlimit((__rlimit_resource_t)resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* Without such a limit a crash is a fault, which the shell and a debugger see as it is. */
void abrupt_end_watch(void)
{
    watching = true;
    on_exit(report_exit, NULL);
    if (!is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA)) return;
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = STACK}, NULL);
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &(struct sigaction){.sa_handler = report_crash, .sa_flags = SA_ONSTACK}, NULL);
}

void abrupt_end_unwatch(void) { watching = false; }
