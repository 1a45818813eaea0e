/* Large inputs: processor time that grows with them and not with their square, and what is refused by its number. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "analysis/result_row.h"
#include "tests/support/cli.h"

/* ---- graph files ---- */

static void write_nodes(FILE *out, int count)
{
    fprintf(out, "rematch: 1\nname: g\nnodes:\n");
    for (int i = 0; i < count; i++)
        fprintf(out, "  - {name: n%d, forward: 3, backward: 6, output: 64KiB, saved: 8KiB, gradient: 64KiB%s%.0d%s}\n",
                i, i % 4 || !i ? "" : ", inputs: [n", i % 4 || !i ? 0 : i - 1, i % 4 || !i ? "" : "]");
}

/* A repeat whose copies read by name. */
static void write_repeat(FILE *out, int count)
{
    fprintf(out, "rematch: 1\nname: g\nnodes:\n");
    for (int i = 0; i < count / 8; i++)
        fprintf(
            out,
            "  - repeat: 4\n    nodes:\n"
            "      - {name: a%d, forward: 3, backward: 6, output: 64KiB, saved: 8KiB, gradient: 64KiB}\n"
            "      - {name: b%d, inputs: [a%d], forward: 3, backward: 6, output: 64KiB, saved: 0, gradient: 64KiB}\n",
            i, i, i);
}

/* All operators read one weight; every gradient is read by the backward before it. */
static void write_trace(FILE *out, int count)
{
    fprintf(out, "rematch: 1\nname: g\ntensors:\n  - {name: t-1, bytes: 64KiB, constant: true}\n"
                 "  - {name: w, bytes: 1KiB, constant: true}\n");
    for (int i = 0; i < count; i++)
        fprintf(out, "  - {name: t%d, bytes: 64KiB}\n  - {name: d%d, bytes: 64KiB}\n", i, i);
    fprintf(out, "operators:\n");
    for (int i = 0; i < count; i++)
        fprintf(out, "  - {name: f%d, time: 5, reads: [t%d, w], writes: [t%d]}\n", i, i - 1, i);
    for (int i = count - 1; i >= 0; i--)
        fprintf(out, "  - {name: b%d, phase: backward, time: 5, reads: [t%d, %s%d], writes: [d%d]}\n", i, i - 1,
                i + 1 < count ? "d" : "t", i + 1 < count ? i + 1 : i, i);
}

static const struct {
    const char *name, *arguments;
    void (*write)(FILE *out, int count);
    int count; /* of the smaller input */
} growing[] = {
    {"nodes", "plan --graph large.yaml policy.name=store_all", write_nodes, 7000},
    {"repeat", "plan --graph large.yaml policy.name=every", write_repeat, 7000},
    {"trace", "plan --graph large.yaml policy.name=store_all", write_trace, 4000},
};

/* Seconds of processor time. */
static double time_of(struct cli *cli, size_t c, int count)
{
    struct rusage before, after;
    char path[512];
    snprintf(path, sizeof path, "%s/large.yaml", cli->folder);
    FILE *out = fopen(path, "w");
    cr_assert(out != NULL);
    growing[c].write(out, count);
    cr_assert(fclose(out) == 0);
    getrusage(RUSAGE_CHILDREN, &before);
    cli_run(cli, "", growing[c].arguments);
    getrusage(RUSAGE_CHILDREN, &after);
    cr_assert(cli->code == 0, "%s %d: %s", growing[c].name, count, cli->err);
    return (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
           1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec);
}

/* Eight times the input takes eight times the time, and where each is compared with each, 64 times. */
Test(scale, planning_grows_with_the_nodes, .timeout = 600)
{
    enum { TIMES = 8, TRIES = 3 };
    const double most = 20;
    struct cli cli;
    cli_open(&cli);
    for (size_t c = 0; c < sizeof growing / sizeof *growing; c++) {
        double least = INFINITY; /* of several, since other processes delay some */
        for (int i = 0; i < TRIES && least > most; i++)
            least = fmin(least, time_of(&cli, c, TIMES * growing[c].count) / time_of(&cli, c, growing[c].count));
        cr_expect(least <= most, "%s: %d times the input takes %.1f times the time", growing[c].name, TIMES, least);
    }
    cli_close(&cli);
}

/* What would take hours or all memory is left out or refused, with the number. */
Test(scale, too_many_stages_for_a_front_are_named, .timeout = 300)
{
    static const struct {
        const char *arguments, *says;
        int nodes, code;
    } cases[] = {
        {"plan --graph large.yaml", "up to 4096 stages; this network has 5000", 5000, 0},
    };
    struct cli cli;
    char path[512];
    cli_open(&cli);
    snprintf(path, sizeof path, "%s/large.yaml", cli.folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *out = fopen(path, "w");
        cr_assert(out != NULL);
        write_nodes(out, cases[i].nodes);
        cr_assert(fclose(out) == 0);
        cli_run(&cli, "", cases[i].arguments);
        cr_assert(cli.code == cases[i].code, "%s", cli.err);
        cr_expect(strstr(cli.code ? cli.err : cli.out, cases[i].says), "%s%s", cli.out, cli.err);
    }
    cli_close(&cli);
}

/* ---- result files ---- */

/* Each variant finds its baseline among many: the one of its experiment, of its invocation. */
Test(scale, baselines_are_found_among_many, .timeout = 30)
{
    enum { RUNS = 20000 };
    json_t *rows = json_array();
    for (int i = 0; i < 2 * RUNS; i++) {
        char trains[16], invocation[16];
        snprintf(trains, sizeof trains, "%d", i % RUNS / 2); /* two baselines train the same */
        snprintf(invocation, sizeof invocation, "%d", i % RUNS);
        json_array_append_new(rows,
                              json_pack("{s:s, s:s, s:s, s:n, s:i, s:{s:s, s:s, s:s, s:b}}", "experiment", "e", "side",
                                        i < RUNS ? "baseline" : "variant", "created", "now", "reason", "number", i,
                                        "match", "trains", trains, "invocation", invocation, "how", "", "whole", 1));
    }
    json_t *baselines = result_baselines(rows);
    for (int i = RUNS; i < 2 * RUNS; i++) {
        const json_t *found = result_row_baseline(baselines, json_array_get(rows, (size_t)i));
        cr_assert(json_integer_value(json_object_get(found, "number")) == i - RUNS, "run %d", i);
    }
    json_decref(baselines);
    json_decref(rows);
}

/* The files are closed one by one; more than a page can show are refused before any is read. */
Test(scale, reports_and_lists_of_many_files, .timeout = 300)
{
    enum { COPIES = 100 };
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --quiet");
    cli_run(&cli,
            "mkdir many; for i in $(seq 100); do for f in results/small/*.h5; do cp -p $f "
            "many/$i-$(basename $f); done; done; ulimit -n 40",
            "report many/*.h5 --trace t.json -o page.html");
    cr_assert(cli.code == 0, "%s", cli.err);
    cli_run(&cli, "ulimit -n 40", "list many --json");
    cr_assert(cli.code == 0, "%s", cli.err);
    int equal = 0;
    for (const char *at = cli.out; (at = strstr(at, "\"verdict\": \"equal\"")); at++) equal++;
    cr_expect(equal == COPIES, "%d", equal);
    cli_run(&cli, "", "report $(seq 1001)");
    cr_expect(cli.code == 2);
    cli_complains(&cli, "report: 1001 files; expected at most 1000");
    cli_complains(&cli, "rematch list FOLDER");
    cli_close(&cli);
}
