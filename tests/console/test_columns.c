/* Tables and lines fit a terminal of any width; in a file they are complete. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "console/columns.h"
#include "console/terminal.h"

enum { ROOM = 4096 };

/* The output of print() on a terminal of that width; 0: in a file. */
static void printed(void (*print)(FILE *out), int width, char text[ROOM])
{
    FILE *file = tmpfile(), *out = width ? terminal_lines(file, width) : file;
    cr_assert(file && out);
    cr_assert(terminal_width(out) == width);
    print(out);
    if (out != file) fclose(out);
    rewind(file);
    text[fread(text, 1, ROOM - 1, file)] = '\0';
    fclose(file);
}

static void check(void (*print)(FILE *out), int width, const char *expected)
{
    char text[ROOM];
    printed(print, width, text);
    cr_expect(strcmp(text, expected) == 0, "at %d columns\n%s\nexpected\n%s", width, text, expected);
}

static void print_table(FILE *out)
{
    static const struct column column[] = {{"stage", .least = 8},
                                           {"output", .right = true, .rank = 2},
                                           {"scratch", .right = true, .rank = 3},
                                           {"time", .right = true, .rank = 3},
                                           {"action"}};
    static const char *const cells[] = {
        "one",
        "1.00 KiB",
        "0 B",
        "2 s",
        "kept",
        "größter Block[11]",
        "24.0 MiB",
        "",
        "14 s",
        "",
        "日本語のレイヤー",
        "",
        "3 B",
        "",
        "replayed",
        "...",
        "",
        "",
        "",
        "",
    };
    columns_print(&(struct columns){.column = column, .count = 5, .indent = 1, .rows = 4, .cell = cells}, out);
}

static const char in_full[] = " stage                output  scratch  time  action\n"
                              " one                1.00 KiB      0 B   2 s  kept\n"
                              " größter Block[11]  24.0 MiB           14 s\n"
                              " 日本語のレイヤー                 3 B        replayed\n"
                              " ...\n";

Test(columns, a_file_and_a_wide_terminal_show_all_columns)
{
    check(print_table, 0, in_full);
    check(print_table, 200, in_full);
    check(print_table, 53, in_full);
}

Test(columns, texts_are_cut_before_columns_are_left_out)
{
    check(print_table, 50,
          " stage             output  scratch  time  action\n"
          " one             1.00 KiB      0 B   2 s  kept\n"
          " größter Block…  24.0 MiB           14 s\n"
          " 日本語のレイ…                 3 B        replayed\n"
          " ...\n");
}

Test(columns, the_highest_rank_is_left_out_first_and_named)
{
    check(print_table, 43,
          " stage            output  scratch  action\n"
          " one            1.00 KiB      0 B  kept\n"
          " größter Bloc…  24.0 MiB\n"
          " 日本語のレイ…                3 B  replayed\n"
          " ...\n"
          " (left out at 43 columns: time)\n");
    check(print_table, 29,
          " stage       output  action\n"
          " one       1.00 KiB  kept\n"
          " größter…  24.0 MiB\n"
          " 日本語…             replayed\n"
          " ...\n"
          " (left out at 29 columns:\n"
          "   scratch; time)\n");
    check(print_table, 16,
          " stage  action\n"
          " one    kept\n"
          " größ…\n"
          " 日本…  replayed\n"
          " ...\n"
          " (left out at 16\n"
          "   columns:\n"
          "   output;\n"
          "   scratch;\n"
          "   time)\n");
}

static void print_lines(FILE *out)
{
    fprintf(out, "note: one two three four five\n\n");
    fprintf(out, "  live peak  5.00 KiB  at op 12, the backward of a layer\n");
    fprintf(out, "  a key whose name is long  value and more of it\n");
    fprintf(out, "the peak of it is 12.5 MiB, a quarter of 50 %%\n");
    fprintf(out, "expected one of first|second|third|fourth\n");
    fprintf(out, "see /a/path/that/is/longer/than/all/of/a/line there\n");
    terminal_control(out, "\r");
    fprintf(out, "[##--] ");
    terminal_control(out, "\033[36m");
    fprintf(out, "1/2");
    terminal_control(out, "\033[0m\033[K");
    terminal_control(out, "\r\033[K");
    fprintf(out, "a word at the en");
    fflush(out);
    fprintf(out, "d of this, äöü äöüß\n");
}

Test(columns, lines_are_broken_at_words_with_a_hanging_indent)
{
    check(print_lines, 26,
          "note: one two three four\n"
          "  five\n"
          "\n"
          "  live peak  5.00 KiB  at\n"
          "             op 12, the\n"
          "             backward of a\n"
          "             layer\n"
          "  a key whose name is long\n"
          "    value and more of it\n"
          "the peak of it is\n"
          "  12.5 MiB, a quarter of\n"
          "  50 %\n"
          "expected one of first|\n"
          "  second|third|fourth\n"
          "see\n"
          "/a/path/that/is/longer/than/all/of/a/line\n"
          "  there\n"
          "\r[##--]\033[36m 1/2\033[0m\033[K"
          "\r\033[Ka word at the end of this,\n"
          "  äöü äöüß\n");
}
