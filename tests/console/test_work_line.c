/* The line about long work: when it is shown, and the time left, by a made-up clock. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/work.h"
#include "console/work_line.h"
#include "tests/support/cli.h"

/* Reports in turn: the time in ms since the work began, what and the share of it; the line, NULL: none. */
static const struct {
    int ms;
    const char *what;
    double share;
    const char *line;
} reports[] = {
    {100, "a", 0.1, NULL},
    {1999, "a", 0.4, NULL},
    {2100, "a", 0.5, "  2.10 s so far; a: 50 %, 2.00 s left"}, /* a began at 100 */
    {2200, "a", 0.6, NULL},                                    /* shown 100 ms before */
    {2300, "a", 0.8, "  2.30 s so far; a: 80 %, 550.0 ms left"},
    {3000, "b", 0.2, "  3.00 s so far; b: 20 %"}, /* its first report, which is its beginning */
    {4000, "b", 0.25, "  4.00 s so far; b: 25 %, 3.00 s left"},
    {5000, "b", 0.2, "  5.00 s so far; b: 20 %"}, /* begins again */
    {6000, "b", 0.0, NULL},
    {6500, "b", 1.0, "  6.50 s so far; b: 100 %, 0 us left"},
};

Test(work_line, is_shown_after_two_seconds)
{
    const uint64_t began = 5000000000;
    struct work_line line = {.began = began};
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        char text[WORK_LINE] = "";
        const bool shown =
            work_line_text(&line, began + (uint64_t)reports[i].ms * 1000000, reports[i].what, reports[i].share, text);
        cr_expect(shown == (reports[i].line != NULL), "%d ms: '%s'", reports[i].ms, text);
        if (shown) cr_expect_str_eq(text, reports[i].line, "%d ms: '%s'", reports[i].ms, text);
    }
}

static double last;
static int calls;

static void watch(const char *what, double share)
{
    cr_expect(*what && share >= 0 && share <= 1, "%s %g", what, share);
    last = share;
    calls++;
}

Test(work_line, a_share_is_at_most_1)
{
    work_report("without a watcher", 1, 2);
    work_watch = watch;
    work_report("a", 1, 4);
    cr_expect(last == 0.25);
    work_report("a", 9, 4);
    cr_expect(last == 1 && calls == 2);
}

/* A graph whose planning takes seconds: no cut in it is narrow. */
static void write_graph(const struct cli *cli)
{
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    cr_assert(out);
    fprintf(out, "rematch: 1\nname: net\npolicy: {name: optimal, budget: 30%%}\nnodes:\n");
    for (int i = 0; i < 1500; i++) {
        fprintf(out, "  - {name: n%d, inputs: [", i);
        if (i) fprintf(out, "n%d", i - 1);
        if (i >= 9 && i % 3 == 0) fprintf(out, ", n%d", i - 9 + i % 5);
        fprintf(out, "], forward: %d, backward: %d, output: %d, saved: 0, gradient: 1}\n", i * 7 % 11 + 1,
                i * 5 % 13 + 1, 1000 + i * 37 % 4001);
    }
    cr_assert(!fclose(out));
    cli_file(cli, "net.yaml", text);
    free(text);
}

/* The line is overwritten and at last erased. */
Test(work_line, a_terminal_shows_it_and_a_pipe_does_not, .timeout = 300)
{
    struct cli cli;
    cli_open(&cli);
    write_graph(&cli);
    cli_run(&cli, "script -qec \"'$REMATCH_BIN' plan --graph net.yaml --alone\" typed >/dev/null </dev/null",
            "plan --graph net.yaml --alone");
    cr_expect(cli.code == 0 && !strstr(cli.err, "so far") && !strstr(cli.out, "so far"), "%s%s", cli.out, cli.err);
    cli_run(&cli, "", "--version >version; grep -c 'so far; [a-z]* [a-z]*: [0-9]* %' typed");
    cr_expect(cli.code == 0, "no line on the terminal");
    cr_expect(cli_on_screen(&cli, 80, "", "plan --graph net.yaml --alone") == 0 && cli.code == 0);
    cr_expect(!strstr(cli.out, "so far") && strstr(cli.out, "1500 nodes"), "%s", cli.out);
    cli_close(&cli);
}
