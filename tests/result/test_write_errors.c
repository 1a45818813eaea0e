/* Whichever system call fails, no wrong file is left: with preload/failing.c, each call that changes a result file
 * fails in one run. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "result/result_read.h"
#include "tests/support/cli.h"
#include "tests/support/h5_contents.h"
#include "tests/support/made_runs.h"

enum { WORKERS = 4, RUNS_MAX = 5000, WORDS = 24 };

/* A command, and which of its calls fail and how; the final file is the one whose name ends in tail. */
struct subject {
    const char *arguments, *tail, *how;
    int stride;    /* every stride-th call fails in one run */
    bool measured; /* the final file holds times: only its number of lines is compared */
    bool again;    /* after a failure the command is given again, which goes on with the run or refuses to */
};

/* Shared with the workers. */
struct outcome {
    int runs, failed, kept; /* kept: with the file of a run without failures */
    char message[1024];
};

static struct cli cli;
static struct subject subject;
static char *expected;

static void set_up(void)
{
    cr_assert(getenv("REMATCH_FAILING"), "REMATCH_FAILING must name the library; make test sets it");
    cli_open(&cli);
}

static void tear_down(void) { cli_close(&cli); }

TestSuite(write_errors, .init = set_up, .fini = tear_down, .timeout = 300);

static _Noreturn void become_program(const char *folder, uint64_t at)
{
    char out[512], number[24], words[512], *word[WORDS + 2] = {(char *)cli_program()}, *rest = words;
    const char *const sanitizer = getenv("ASAN_OPTIONS");
    char asan[1024];
    snprintf(words, sizeof words, "%s", subject.arguments);
    for (int i = 1; i <= WORDS && (word[i] = strtok_r(rest, " ", &rest)); i++) {
    }
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(number, sizeof number, "%llu", (unsigned long long)at);
    snprintf(asan, sizeof asan, "%s:verify_asan_link_order=0", sanitizer ? sanitizer : "");
    const int nowhere = open("/dev/null", O_RDWR);
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) dup2(nowhere, i);
    setenv("FAILING_FOLDER", out, 1);
    setenv("FAILING_COUNT", "count", 1);
    setenv("FAILING_AT", number, 1);
    setenv("FAILING_HOW", subject.how, 1);
    setenv("ASAN_OPTIONS", asan, 1);
    setenv("PATH", "/nowhere", 1); /* without git, which takes most of the time */
    setenv("LD_PRELOAD", getenv("REMATCH_FAILING"), 1);
    execv(cli_program(), word);
    _exit(127);
}

/* Creates a folder in that of the test. */
static void make_folder(char folder[512], const char *name, int number)
{
    snprintf(folder, 512, "%s/%s%d", cli.folder, name, number);
    mkdir(folder, 0700);
}

/* Runs the program with an empty folder of results, or (again) with what is there; counts its calls into calls[0],
 * those of fsync() into calls[1]. */
static int run_program(const char *folder, uint64_t at, bool again, uint64_t calls[2])
{
    char out[520];
    int state;
    uint64_t zeros[2] = {0};
    snprintf(out, sizeof out, "%s/out", folder);
    if (!again) folder_remove(out);
    if ((mkdir(out, 0700) < 0 && !again) || chdir(folder) < 0) return -1;
    int count = open("count", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(count, zeros, sizeof zeros) != sizeof zeros) return -1;
    pid_t pid = fork();
    if (pid == 0) become_program(folder, at);
    waitpid(pid, &state, 0);
    if (pread(count, calls, sizeof zeros, 0) != sizeof zeros) return -1;
    close(count);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

static const char *wanted;
static char found[512];

static int find(const char *path, const struct stat *file, int flag, struct FTW *place)
{
    (void)file, (void)place;
    const size_t length = strlen(path), tail = strlen(wanted);
    if (flag == FTW_F && length >= tail && strcmp(path + length - tail, wanted) == 0)
        snprintf(found, sizeof found, "%s", path);
    return 0;
}

/* The file of ./out whose name ends in tail; NULL: none. */
static const char *file_of(const char *tail)
{
    *found = 0;
    wanted = tail;
    nftw("out", find, 16, FTW_PHYS);
    return *found ? found : NULL;
}

static char *lines_of(const char *path)
{
    char *text = NULL;
    int lines = 0;
    FILE *file = fopen(path, "r");
    for (int c; file && (c = fgetc(file)) != EOF;) lines += c == '\n';
    if (file) fclose(file);
    return asprintf(&text, "%d lines\n", lines) < 0 ? NULL : text;
}

static char *list(const char *path)
{
    return subject.measured ? lines_of(path) : subject.again ? contents_without(path, "pieces") : contents_of(path);
}

/* What is wrong with the files that a run left, or "". */
static void judge(int code, struct outcome *outcome, char wrong[512])
{
    struct result *result;
    const char *final = file_of(subject.tail);
    char *is = final ? list(final) : NULL, *difference = is ? contents_difference(expected, is) : NULL;
    *wrong = 0;
    if (code != ST_OK && code != ST_FAILED)
        snprintf(wrong, 512, "exit code %d", code);
    else if (code == ST_OK && !final)
        snprintf(wrong, 512, "exit code 0, but no file");
    else if (final && !is)
        snprintf(wrong, 512, "exit code %d, a file that cannot be read", code);
    else if (difference)
        snprintf(wrong, 512, "exit code %d, a file that differs: %.400s", code, difference);
    outcome->kept += final != NULL;
    outcome->failed += code != ST_OK;
    free(difference);
    free(is);
    const char *part = *wrong || strcmp(subject.how, "lost") == 0 ? NULL : file_of(".h5.part");
    const bool opened = part && result_open(part, &result) == ST_OK;
    if (part && !opened)
        snprintf(wrong, 512, "%.400s", status_message());
    else if (opened)
        result_close(result);
}

/* One run for each call of this worker's share, until a run has fewer calls. */
static _Noreturn void work(int worker, struct outcome *outcome)
{
    char folder[512], wrong[512];
    uint64_t calls[2];
    make_folder(folder, "worker", worker);
    for (uint64_t at = 1 + (uint64_t)(worker * subject.stride); outcome->runs < RUNS_MAX;
         at += (uint64_t)(WORKERS * subject.stride)) {
        const int code = run_program(folder, at, false, calls);
        if (calls[0] < at) break;
        judge(code, outcome, wrong);
        if (subject.again && code != ST_OK && !*wrong) judge(run_program(folder, 0, true, calls), outcome, wrong);
        outcome->runs++;
        if (*wrong)
            snprintf(outcome->message, sizeof outcome->message, "call %llu of '%s' (%s): %s", (unsigned long long)at,
                     subject.arguments, subject.how, wrong);
        if (*wrong) break;
    }
    _exit(0);
}

/* The sum of all outcomes; fails the test if any run left a wrong file. */
static struct outcome fail_every_call(struct subject of)
{
    char folder[512];
    uint64_t calls[2];
    struct outcome all = {0}, *each = mmap(NULL, WORKERS * sizeof *each, PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    subject = of;
    make_folder(folder, "alone", 0);
    cr_assert(run_program(folder, 0, false, calls) == ST_OK, "%s", subject.arguments);
    const char *final = file_of(subject.tail);
    expected = final ? list(final) : NULL;
    cr_assert(expected && strlen(expected) > 4, "%s leaves no file", subject.arguments);
    for (int i = 0; i < WORKERS; i++)
        if (fork() == 0) work(i, &each[i]);
    while (wait(NULL) > 0) {
    }
    for (int i = 0; i < WORKERS; i++) {
        cr_assert(!*each[i].message, "%s", each[i].message);
        all.runs += each[i].runs;
        all.failed += each[i].failed;
        all.kept += each[i].kept;
    }
    cr_assert((uint64_t)all.runs >= calls[0] / (uint64_t)subject.stride, "%d runs, %llu calls", all.runs,
              (unsigned long long)calls[0]);
    fprintf(stderr, "%s (%s): %d runs, %d failed, %d left the file\n", subject.arguments, subject.how, all.runs,
            all.failed, all.kept);
    munmap(each, WORKERS * sizeof *each);
    free(expected);
    return all;
}

#define RUN "run ../small.yaml --only variant --quiet results=out policy=store_all"

Test(write_errors, one_failing_call_fails_the_run_or_changes_nothing)
{
    const struct outcome all =
        fail_every_call((struct subject){RUN " steps=1 record.digests=false", ".h5", "once", 1, false});
    cr_assert(all.failed > all.runs * 9 / 10, "%d of %d failed", all.failed, all.runs);
}

Test(write_errors, one_failing_call_of_state_and_digests)
{
    const struct outcome all =
        fail_every_call((struct subject){RUN " steps=1 record.state=true", ".h5", "once", 5, false});
    cr_assert(all.failed > all.runs * 9 / 10, "%d of %d failed", all.failed, all.runs);
}

/* A state that cannot be written is reported and changes nothing. */
Test(write_errors, one_failing_call_with_states)
{
    const struct outcome all =
        fail_every_call((struct subject){RUN " steps=3 state_every=1 record.digests=false", ".h5", "once", 3, false});
    cr_assert(all.failed > all.runs / 2 && all.kept > all.runs / 50, "%d of %d failed, %d kept", all.failed, all.runs,
              all.kept);
}

Test(write_errors, calls_that_fail_from_one_on_fail_the_run)
{
    const struct outcome all = fail_every_call((struct subject){RUN " steps=1", ".h5", "lasting", 9, false});
    cr_assert(all.failed > all.runs * 9 / 10, "%d of %d failed", all.failed, all.runs);
}

/* The system reports success: only reading back shows the loss. */
Test(write_errors, a_lost_write_fails_the_run_or_changes_nothing)
{
    const struct outcome all = fail_every_call((struct subject){RUN " steps=1", ".h5", "lost", 4, false});
    cr_assert(all.failed > all.runs / 4, "%d of %d failed", all.failed, all.runs);
}

/* A file that was found wrong is not gone on from. A batch fills a chunk of the file, which is written once. */
Test(write_errors, a_lost_write_is_not_taken_over_by_the_next_run)
{
    const struct outcome all = fail_every_call(
        (struct subject){RUN " steps=3 state_every=1 record.state=true batch=64 data.shape=[8,8,5] data.samples=200",
                         ".h5", "lost", 5, .again = true});
    cr_assert(all.failed < all.kept, "%d failed, %d kept", all.failed, all.kept);
}

Test(write_errors, a_plan_file_is_complete_or_absent)
{
    static const char plan[] = "plan ../small.yaml --out out/plan.h5";
    const struct outcome once = fail_every_call((struct subject){plan, "plan.h5", "once", 3, false});
    cr_assert(once.failed > once.runs / 2, "%d of %d failed", once.failed, once.runs);
    const struct outcome lost = fail_every_call((struct subject){plan, "plan.h5", "lost", 5, false});
    cr_assert(lost.failed > lost.runs / 4, "%d of %d failed", lost.failed, lost.runs);
}

/* Four per run: the file and its folder, after the layout and at the end; two per step: its row and its commit. */
Test(write_errors, every_nth_step_is_forced_to_the_disk)
{
    static const struct {
        const char *arguments;
        uint64_t syncs;
    } cases[] = {
        {RUN " steps=7", 4}, {RUN " steps=7 record.fsync=3", 4 + 2 * 2}, {RUN " steps=7 record.fsync=1", 4 + 2 * 7}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t calls[2];
        char folder[512];
        make_folder(folder, "alone", 0);
        subject = (struct subject){cases[i].arguments, ".h5", "once", 1, false};
        cr_assert(run_program(folder, 0, false, calls) == ST_OK);
        cr_assert(calls[1] == cases[i].syncs, "%s: %llu calls of fsync()", cases[i].arguments,
                  (unsigned long long)calls[1]);
    }
}
