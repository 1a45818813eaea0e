/* rematch report --figures: complete files in a folder of any name, whatever texts the runs contain. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli.h"
#include "tests/support/made_runs.h"

static void open_with_gnuplot(struct cli *cli)
{
    if (system("command -v gnuplot >/dev/null") != 0) cr_skip_test("gnuplot is not installed");
    cli_open(cli);
}

Test(json, are_svg_and_pdf)
{
    static const char *const names[] = {"memory", "losses", "policies"};
    struct cli cli;
    open_with_gnuplot(&cli);
    cli_expect(&cli, 0, "run small.yaml --quiet");
    cli_expect(&cli, 0, "report results/small/*.h5 --figures drawn/here");
    cr_assert(*cli.err == '\0', "%s", cli.err);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char command[400];
        snprintf(command, sizeof command,
                 "cd drawn/here; grep -q '</svg>' %s.svg && head -c 4 %s.pdf | grep -q %%PDF && tail -c 6 %s.pdf | "
                 "grep -q EOF",
                 names[i], names[i], names[i]);
        cli_run(&cli, command, "--version");
        cr_assert(cli.code == 0, "%s", names[i]);
    }
    cr_assert(folder_count(cli.folder, ".svg") == 3 && folder_count(cli.folder, ".pdf") == 3);
    cli_close(&cli);
}

enum { LONG_NAME = 240 };

/* Drawings are written into a folder of any name, and nothing else happens. */
Test(json, reach_a_folder_of_any_name)
{
    char longest[LONG_NAME + 1];
    const char *const names[] = {
        "|touch OWNED;",
        "|touch OWNED",
        "two\nlines",
        "end\n",
        "\nset output 'OWNED'\n",
        "it's",
        "say \"when\"",
        "`touch OWNED`",
        "$(touch OWNED)",
        "-dash",
        "--help",
        "-",
        "<cat",
        "@names",
        "back\\slash",
        "a;b#c",
        " blank ",
        "\xE2\x80\xAE\x1B[2J",
        longest,
    };
    struct cli cli;
    memset(longest, 'l', LONG_NAME);
    longest[LONG_NAME] = '\0';
    open_with_gnuplot(&cli);
    cli_expect(&cli, 0, "run small.yaml --quiet");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char folder[512];
        setenv("FIGURES", names[i], 1);
        cli_run(&cli, "", "report results/small/*.h5 --figures \"$FIGURES\"");
        cr_assert(cli.code == 0 && !*cli.err, "%s: exit code %d\n%s", names[i], cli.code, cli.err);
        snprintf(folder, sizeof folder, "%s/%s", cli.folder, names[i]);
        cr_assert(folder_count(folder, ".svg") == 3 && folder_count(folder, ".pdf") == 3, "%s", names[i]);
        cli_run(&cli, "rm -r -- \"./$FIGURES\"; test \"$(ls)\" = 'results\nsmall.yaml\nstderr\nstdout'", "--version");
        cr_assert(cli.code == 0, "%s left something", names[i]);
    }
    cli_close(&cli);
}

/* Texts of a file are data of the drawings, no commands of gnuplot, whatever they begin with. */
Test(json, take_texts_as_data)
{
    static const char *const labels[] = {"END", "ENDING", "system('touch OWNED')#", "`touch OWNED`", "it''s"};
    struct cli cli;
    char spec[1024] = "echo 'published: [";
    open_with_gnuplot(&cli);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        snprintf(spec + strlen(spec), sizeof spec - strlen(spec),
                 "{label: '\\''%s'\\'', memory: 0.5, slowdown: 1.25, source: a paper},", labels[i]);
    snprintf(spec + strlen(spec), sizeof spec - strlen(spec), "]' >>small.yaml");
    cli_run(&cli, spec, "run small.yaml --quiet");
    cr_assert(cli.code == 0, "%s", cli.err);
    cli_expect(&cli, 0, "report results/small/*.h5 --figures drawn");
    cli_run(&cli, "ls drawn/OWNED OWNED 2>/dev/null && exit 9; grep -q 'ENDING' drawn/policies.svg", "--version");
    cr_assert(cli.code == 0, "%s%s", cli.out, cli.err);
    cli_close(&cli);
}

/* gnuplot ends without an error where it could not write: an incomplete drawing is none, and exit code 3. */
Test(json, an_incomplete_figure_is_an_error)
{
    static const struct {
        const char *gnuplot, *says;
    } cases[] = {
        {"cat >/dev/null", "left 0 bytes"},
        {"cat >/dev/null; rm -f memory.svg.*", "memory.svg: gnuplot left 0 bytes"},
        {"$REAL; truncate -s 0 losses.pdf.*", "losses.pdf: gnuplot left 0 bytes"},
        {"$REAL; truncate -s -9 policies.svg.*", "policies.svg: gnuplot left"},
        {"$REAL; false", "gnuplot failed"},
        {"kill -9 $$", "gnuplot failed"},
        {"head -c 9 >/dev/null", "gnuplot "}, /* failed, if our write meets the closed pipe; else left 0 bytes */
    };
    struct cli cli;
    open_with_gnuplot(&cli);
    cli_expect(&cli, 0, "run small.yaml --quiet");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char before[512];
        snprintf(before, sizeof before,
                 "export REAL=$(command -v gnuplot); mkdir -p bin; echo '#!/bin/sh\ncase $1 in -e) exit;; esac\n%s' "
                 ">bin/gnuplot; chmod +x bin/gnuplot; PATH=$PWD/bin:$PATH",
                 cases[i].gnuplot);
        cli_run(&cli, before, "report results/small/*.h5 --figures drawn");
        cr_assert(cli.code == 3, "%s: exit code %d\n%s", cases[i].gnuplot, cli.code, cli.err);
        cli_complains(&cli, cases[i].says);
        cli_run(&cli, "test -z \"$(ls drawn)\"", "--version");
        cr_assert(cli.code == 0, "%s left something", cases[i].gnuplot);
    }
    cli_close(&cli);
}
