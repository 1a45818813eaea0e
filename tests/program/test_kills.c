/* SIGKILL during training: of the parent, of the process that trains, of both. Each kill is between two commits of an
 * unfinished run, and every step that was seen before is in the file. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "result/result_read.h"
#include "tests/support/cli.h"
#include "tests/support/h5_contents.h"
#include "tests/support/made_runs.h"

enum {
    WORKERS = 4,
    KILLS = 50,
    STEPS = 100000,
    SEEN_MOST = 40,
    RESUMES = 12,
    FEW_STEPS = 1000, /* more than run while a kill is on its way */
    REST_NS = 2000000,
    POLLS = 10000
};

enum victim { PARENT, CHILD, BOTH, VICTIMS };
static const char *const names[] = {"the parent", "the child", "both"};

/* Shared with the workers. */
struct outcome {
    int hit[VICTIMS], dumped;
    char message[1024];
};

static struct cli cli;

static void rest(long ns) { nanosleep(&(struct timespec){.tv_nsec = ns}, NULL); }

static void be_silent(void)
{
    const int nowhere = open("/dev/null", O_RDWR);
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) dup2(nowhere, i);
}

static pid_t start(int steps_of_run)
{
    char steps[32];
    snprintf(steps, sizeof steps, "steps=%d", steps_of_run);
    pid_t pid = fork();
    if (pid) return pid;
    be_silent();
    setenv("PATH", "/nowhere", 1); /* without git, which takes most of the time */
    execl(cli_program(), cli_program(), "run", "../small.yaml", "--only", "variant", "--quiet", steps, "results=out",
          "state_every=7", NULL);
    _exit(127);
}

/* The child process of the run, 0: none. */
static pid_t child_of(pid_t pid)
{
    char path[64];
    int child = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%d", &child) != 1) child = 0;
    if (file) fclose(file);
    return child;
}

/* The file that matches; false: none does. */
static bool find(const char *pattern, char path[512])
{
    glob_t found;
    const bool is = glob(pattern, 0, NULL, &found) == 0;
    if (is) snprintf(path, 512, "%s", found.gl_pathv[0]);
    globfree(&found);
    return is;
}

/* Committed steps, -1: the file cannot be read. */
static long steps_of(const char *path, bool *running)
{
    struct result *result;
    if (result_open(path, &result) != ST_OK) return -1;
    const long steps = (long)result->steps;
    *running = strcmp(result->status, "running") == 0 && !result->whole;
    result_close(result);
    return steps;
}

/* Reads until it finds so many steps; returns how many there were, -1: the file could not be read. */
static long watch(long wanted, char part[512])
{
    long seen = 0;
    bool running;
    for (int i = 0; i < POLLS && seen >= 0 && seen < wanted; i++) {
        if (find("out/small/*.part", part)) seen = steps_of(part, &running);
        if (seen < wanted) rest(REST_NS);
    }
    return seen;
}

/* Exit code of a shell command, without output. */
static int shell(const char *format, const char *a, const char *b)
{
    char command[2048];
    snprintf(command, sizeof command, format, a, b);
    int state = system(command);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

/* What is wrong with the files after the kill, or NULL. */
static const char *judge(const char *part, long seen, int all, bool dump)
{
    char whole[512];
    bool running = false;
    const long steps = steps_of(part, &running);
    if (steps < 0) return status_message();
    if (steps < seen) return "a committed step is lost";
    if (find("out/small/*.h5", whole) || !running || steps >= all) return "the run was at its end";
    if (shell("'%s' show %s >/dev/null 2>&1", cli_program(), part) != 0) return "rematch show fails";
    if (dump &&
        shell("cp %s copy.h5 && h5clear -s copy.h5 >/dev/null 2>&1 && h5dump copy.h5 >/dev/null 2>&1%s", part, "") != 0)
        return "h5dump fails";
    return NULL;
}

/* One run, killed up to SEEN_MOST steps after those that it has. */
static const char *kill_one(enum victim victim, int steps, long *seen, bool dump)
{
    char part[512] = "";
    bool running;
    if (find("out/small/*.part", part)) *seen = steps_of(part, &running); /* more than were seen before the last kill */
    const pid_t parent = start(steps);
    *seen = watch(*seen + 1 + rand() % SEEN_MOST, part);
    const pid_t child = child_of(parent);
    if (*seen > 0) rest(rand() % REST_NS);
    if (victim != CHILD || child <= 0) kill(parent, SIGKILL);
    if (victim != PARENT && child > 0) kill(child, SIGKILL);
    while (wait(NULL) > 0) {
    } /* also the child, which this process adopts from its dead parent */
    if (*seen < 0) return "the file cannot be read while it is written";
    if (*seen == 0 || child <= 0) return "the run does not come to its first step";
    return judge(part, *seen, steps, dump);
}

static _Noreturn void work(int worker, bool dump, struct outcome *outcome)
{
    char folder[512];
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    srand((unsigned)worker + 1);
    snprintf(folder, sizeof folder, "%s/%d", cli.folder, worker);
    if (mkdir(folder, 0700) < 0 || chdir(folder) < 0) _exit(1);
    for (int i = 0; i < KILLS; i++) {
        const enum victim victim = (enum victim)((i + worker) % VICTIMS);
        long seen = 0;
        folder_remove("out");
        const char *wrong = kill_one(victim, STEPS, &seen, dump);
        if (wrong) snprintf(outcome->message, sizeof outcome->message, "kill %d, of %s: %s", i, names[victim], wrong);
        if (wrong) break;
        outcome->hit[victim]++;
        outcome->dumped += dump;
    }
    _exit(0);
}

Test(kills, a_kill_within_a_step_keeps_every_committed_step, .timeout = 300)
{
    int hit = 0;
    const bool dump = shell("command -v h5dump >/dev/null && command -v h5clear >/dev/null%s%s", "", "") == 0;
    if (!dump) cr_log_warn("h5dump or h5clear is missing (Debian: hdf5-tools): files are read by rematch alone");
    struct outcome *each =
        mmap(NULL, WORKERS * sizeof *each, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cli_open(&cli);
    for (int i = 0; i < WORKERS; i++)
        if (fork() == 0) work(i, dump, &each[i]);
    while (wait(NULL) > 0) {
    }
    cli_close(&cli);
    for (int i = 0; i < WORKERS; i++) {
        cr_assert(!*each[i].message, "%s", each[i].message);
        for (int v = 0; v < VICTIMS; v++) {
            cr_assert(each[i].hit[v] >= KILLS / VICTIMS, "%s: %d kills", names[v], each[i].hit[v]);
            hit += each[i].hit[v];
        }
        cr_assert(!dump || each[i].dumped == KILLS);
    }
    cr_assert(hit == WORKERS * KILLS, "%d kills hit a running step", hit);
    munmap(each, WORKERS * sizeof *each);
}

/* Each run is killed up to three times, and then goes on to its end. */
Test(kills, a_killed_run_goes_on_to_the_same_bits, .timeout = 300)
{
    char whole[512], *expected, *is;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    srand(1);
    cli_open(&cli);
    snprintf(whole, sizeof whole, "%s/run", cli.folder);
    cr_assert(mkdir(whole, 0700) == 0 && chdir(whole) == 0);
    start(FEW_STEPS);
    while (wait(NULL) > 0) {
    }
    cr_assert(find("out/small/*.h5", whole) && (expected = contents_without(whole, "pieces")));
    for (int i = 0; i < RESUMES;) {
        long seen = 0;
        folder_remove("out");
        for (int kills = 1 + i % 3; kills && i < RESUMES; kills--, i++) {
            const char *wrong = kill_one((enum victim)(i % VICTIMS), FEW_STEPS, &seen, false);
            cr_assert(!wrong, "kill %d: %s", i, wrong);
        }
        start(FEW_STEPS);
        while (wait(NULL) > 0) {
        }
        cr_assert(find("out/small/*.h5", whole) && (is = contents_without(whole, "pieces")), "kill %d: no file", i);
        cr_assert(!contents_difference(expected, is), "kill %d: %s", i, contents_difference(expected, is));
        cr_assert(!find("out/small/*.state*", whole) && !find("out/small/*.part", whole));
        free(is);
    }
    free(expected);
    cli_close(&cli);
}
