/* What the suite reports while it runs and when it ends: a line at least every PERIOD seconds, and a summary with the
 * reason of every skipped test and the names of those that failed, also where it is interrupted. Then all that its
 * tests started is ended, too. */
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD = 20, REASONS = 64, NAMED = 40 };

static atomic_int passed, failed, skipped, selected;
static struct reason {
    char text[160];
    int tests;
} reason[REASONS];
static char failure[NAMED][128];
static struct timespec began;
static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;
static sem_t woken;
static volatile sig_atomic_t caught;

/* The suite, and each test, which is a process of it, ends when the process that started it does. */
__attribute__((constructor)) static void end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGTERM); }

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - began.tv_sec) + 1e-9 * (double)(now.tv_nsec - began.tv_nsec);
}

static void print_line(void)
{
    printf("%d of %d tests after %.0f s, %d failed, %d skipped\n", passed + failed + skipped, selected, seconds(),
           failed, skipped);
    fflush(stdout);
}

static void print_summary(void)
{
    printf("\n");
    for (int i = 0; i < REASONS && reason[i].tests; i++) printf("skipped %d: %s\n", reason[i].tests, reason[i].text);
    for (int i = 0; i < failed && i < NAMED; i++) printf("failed: %s\n", failure[i]);
    if (passed + failed + skipped < selected)
        printf("interrupted: %d of %d tests did not end\n", selected - passed - failed - skipped, selected);
    printf("the suite took %.0f s\n%d passed, %d failed, %d skipped\n", seconds(), passed, failed, skipped);
    fflush(stdout);
}

/* The parent of a process, 0: there is no such process. */
static int parent_of(int process)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *in = fopen(path, "r");
    if (!in) return 0;
    const char *name_end = fgets(line, sizeof line, in) ? strrchr(line, ')') : NULL;
    fclose(in);
    return name_end ? atoi(name_end + 4) : 0; /* after ") S " */
}

static bool descends(int process)
{
    for (int steps = 0; process > 1 && steps < 64; steps++)
        if ((process = parent_of(process)) == getpid()) return true;
    return false;
}

/* Ends every process that descends from this one; those whose parents end come to this one. Returns how many there
 * were.
 */
static int end_descendants(void)
{
    int ended = 0;
    DIR *processes = opendir("/proc");
    if (!processes) return 0;
    for (struct dirent *entry; (entry = readdir(processes));) {
        const int process = isdigit((unsigned char)*entry->d_name) ? atoi(entry->d_name) : 0;
        if (process > 1 && descends(process) && kill(process, SIGKILL) == 0) ended++;
    }
    closedir(processes);
    return ended;
}

static void *watch(void *unused)
{
    (void)unused;
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += PERIOD;
        while (sem_timedwait(&woken, &until) < 0 && errno == EINTR)
            ;
        pthread_mutex_lock(&printing);
        if (caught) break;
        print_line();
        pthread_mutex_unlock(&printing);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int round = 0; round < 10 && end_descendants() > 0; round++) usleep(10000);
    print_summary();
    _exit(128 + caught);
}

/* On the main thread, which the watcher then ends: it would take the tests' end for their failure. */
static void interrupted(int signal)
{
    caught = signal;
    sem_post(&woken);
    for (;;) pause();
}

ReportHook(PRE_ALL)(struct criterion_test_set *set)
{
    static const int endings[] = {SIGINT, SIGTERM, SIGHUP};
    pthread_t watcher;
    sigset_t ending;
    struct sigaction action = {.sa_handler = interrupted};
    FOREACH_SET(struct criterion_suite_set * suite, set->suites)
    {
        FOREACH_SET(struct criterion_test * test, suite->tests) selected += !test->data->disabled;
    }
    clock_gettime(CLOCK_MONOTONIC, &began);
    sem_init(&woken, 0, 0);
    sigemptyset(&ending);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        sigaddset(&ending, endings[i]);
        sigaction(endings[i], &action, NULL);
    }
    pthread_sigmask(SIG_BLOCK, &ending, NULL);
    pthread_create(&watcher, NULL, watch, NULL);
    pthread_detach(watcher);
    pthread_sigmask(SIG_UNBLOCK, &ending, NULL);
}

static void count_reason(const char *text)
{
    for (int i = 0; i < REASONS; i++) {
        if (!reason[i].tests) snprintf(reason[i].text, sizeof reason[i].text, "%s", text);
        if (strncmp(reason[i].text, text, sizeof reason[i].text - 1) != 0) continue;
        reason[i].tests++;
        return;
    }
}

ReportHook(POST_TEST)(struct criterion_test_stats *stats)
{
    pthread_mutex_lock(&printing);
    if (stats->test_status == CR_STATUS_SKIPPED) {
        skipped++;
        count_reason(stats->message ? stats->message : "without a reason");
    } else if (stats->test_status == CR_STATUS_PASSED && !stats->crashed && !stats->timed_out) {
        passed++;
    } else {
        if (failed < NAMED)
            snprintf(failure[failed], sizeof *failure, "%s::%s", stats->test->category, stats->test->name);
        failed++;
    }
    pthread_mutex_unlock(&printing);
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats)
{
    (void)stats;
    pthread_mutex_lock(&printing);
    print_summary();
    pthread_mutex_unlock(&printing);
}
