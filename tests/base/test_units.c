/* Sizes, work and times as messages and tables write them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "tests/support/cli.h"

static const struct {
    size_t bytes;
    const char *rough, *exact;
} sizes[] = {{0, "0 B", "0 B"},
             {1023, "1023 B", "1023 B"},
             {1024, "1.00 KiB", "1.00 KiB (1024 bytes)"},
             {1145395968, "1.07 GiB", "1.07 GiB (1145395968 bytes)"},
             {SIZE_MAX, "16384 PiB", "16384 PiB (18446744073709551615 bytes)"}};

Test(units, sizes)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char text[UNIT_TEXT];
        cr_expect_str_eq(bytes_text((double)sizes[i].bytes, text), sizes[i].rough);
        cr_expect_str_eq(exact_bytes_text(sizes[i].bytes, text), sizes[i].exact);
    }
}

static const struct {
    double flops;
    const char *text;
} works[] = {{0, "0 FLOP"}, {999, "999 FLOP"}, {1000, "1.00 kFLOP"}, {12345678, "12.3 MFLOP"}, {9.9e11, "990.0 GFLOP"}};

Test(units, works)
{
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        char text[UNIT_TEXT];
        cr_expect_str_eq(flops_text(works[i].flops, text), works[i].text);
    }
}

static const struct {
    uint64_t ns;
    const char *text;
} times[] = {{0, "0 us"},
             {999000, "999 us"},
             {1234567, "1.2 ms"},
             {1000000000, "1.00 s"},
             {UINT64_C(9870000000), "9.87 s"},
             {UINT64_C(119900000000), "119.9 s"},
             {UINT64_C(120000000000), "2 min 00 s"},
             {UINT64_C(3661500000000), "61 min 02 s"}};

Test(units, times)
{
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        char text[UNIT_TEXT];
        cr_expect_str_eq(duration_text(times[i].ns, text), times[i].text);
    }
}

/* The units that names end in, and what show must print after the number. */
static const char *unit_of(const char *name, const char *costs)
{
    static const char *const ends[][2] = {{"_bytes", " B"}, {"_ns", " ns"}, {"_flops", " FLOP"}, {"_percent", " %"}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (text_ends(name, ends[i][0])) return ends[i][1];
    if (strcmp(name, "granularity") == 0) return " B";
    if (strcmp(name, "time") == 0) return strcmp(costs, "measured") == 0 ? " ns" : " FLOP";
    return "";
}

/* Every number of the group in show's JSON stands in its text with its unit; returns how many have one. */
static int check_group(const char *text, const json_t *all, const char *path)
{
    const json_t *group = json_object_get(all, path);
    const char *costs = json_string_value(json_object_get(json_object_get(all, "/plan"), "costs")), *name;
    json_t *value;
    int with_unit = 0;
    json_object_foreach ((json_t *)group, name, value) {
        char line[256], number[64];
        const char *unit = unit_of(name, costs);
        if (!json_is_number(value)) continue;
        if (json_is_integer(value))
            snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        else
            snprintf(number, sizeof number, "%.9g", json_real_value(value));
        snprintf(line, sizeof line, "\n  %-26s %s%s", name, number, unit);
        const char *at = strstr(text, line);
        cr_expect(at && strchr("\n ", at[strlen(line)]), "'%s' is not in\n%s", line + 1, text);
        with_unit += *unit != '\0';
    }
    return with_unit;
}

Test(units, show_prints_what_each_number_is_in)
{
    static const char *const costs[] = {"", "costs.file=timed.h5"};
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --only variant --quiet results=timed");
    cli_run(&cli, "cp timed/small/*.h5 timed.h5", "--version");
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        char run[128];
        snprintf(run, sizeof run, "run small.yaml --only variant --quiet results=r%zu %s", i, costs[i]);
        cli_expect(&cli, 0, run);
        snprintf(run, sizeof run, "show r%zu/small/*.h5 --json", i);
        json_t *all = cli_json(&cli, 0, run);
        snprintf(run, sizeof run, "show r%zu/small/*.h5", i);
        cli_expect(&cli, 0, run);
        cr_expect(check_group(cli.out, all, "/plan") > 10);
        cr_expect(check_group(cli.out, all, "/summary") > 10);
        json_decref(all);
    }
    cli_close(&cli);
}

Test(units, chains_print_bytes_and_the_unit_of_their_file)
{
    struct cli cli;
    cli_open(&cli);
    cli_file(&cli, "net.chain",
             "rematch: 1\nname: net\nstages:\n"
             "  - {forward: 3, backward: 5, output: 1000, saved: 2000, gradient: 3000, repeat: 6}\n");
    cli_expect(&cli, 0, "plan --graph net.chain");
    cli_says(&cli, "times are in the file's unit");
    cli_says(&cli, "  forward 18, backward 30, recompute 0 in 0 ");
    cli_says(&cli, " 23000 B  ");
    cli_says(&cli, "slowdown 1.0000, 48 in all");
    cli_expect(&cli, 0, "plan --graph net.chain policy.name=every");
    cli_says(&cli, "times are in the file's unit");
    cli_says(&cli, "    3000 B  1000 B  2000 B  ");
    cli_close(&cli);
}
