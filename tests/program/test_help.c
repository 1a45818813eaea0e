/* Usage and help. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli.h"

static const char *const commands[] = {"list",   "plan",   "run",    "schema", "compare", "show",
                                       "report", "bundle", "verify", "doctor", "help"};
enum { COMMANDS = sizeof commands / sizeof *commands };

Test(help, no_command_is_a_usage_error)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 2, "");
    cr_assert(*cli.out == '\0', "%s", cli.out);
    cli_complains(&cli, "no command given\nusage: rematch COMMAND");
    for (size_t i = 0; i < COMMANDS; i++) {
        char line[64];
        snprintf(line, sizeof line, "\n  %-8s ", commands[i]);
        cli_complains(&cli, line);
    }
    cli_close(&cli);
}

/* Help fits 80 columns in a pipe, too, or $COLUMNS. */
Test(help, help_answers_every_usual_form)
{
    static const char *const ways[] = {"help %s", "%s --help", "%s -h", "--help %s", "-h %s"};
    struct cli cli;
    cli_open(&cli);
    for (size_t i = 0; i <= COMMANDS; i++) {
        const char *command = i < COMMANDS ? commands[i] : "";
        char *first = NULL, start[64];
        snprintf(start, sizeof start, *command ? "usage: rematch %s" : "rematch plans, runs and compares%s", command);
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            char arguments[64];
            snprintf(arguments, sizeof arguments, ways[k], command);
            cli_expect(&cli, 0, arguments);
            cr_assert(*cli.err == '\0' && strncmp(cli.out, start, strlen(start)) == 0, "%s%s", cli.out, cli.err);
            cr_assert(!first || strcmp(cli.out, first) == 0, "rematch %s:\n%s", arguments, cli.out);
            if (!first) first = strdup(cli.out);
        }
        for (const char *line = first; *line; line += strcspn(line, "\n") + 1)
            cr_assert(strcspn(line, "\n") <= 80, "%s", line);
        free(first);
    }
    cli_expect(&cli, 0, "--version");
    cli_says(&cli, "rematch ");
    cli_run(&cli, "export COLUMNS=50", "help verify");
    for (const char *line = cli.out; *line; line += strcspn(line, "\n") + 1)
        cr_assert(strcspn(line, "\n") <= 50, "%s", line);
    cli_close(&cli);
}

/* What an option of several commands does is said of each. */
Test(help, an_option_has_the_words_of_its_command)
{
    static const char *const out[][2] = {{"plan", "write the plan to FILE"},
                                         {"bundle", "write the archive to FILE"},
                                         {"report", "write the page to FILE"}};
    struct cli cli;
    cli_open(&cli);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        char arguments[32], says[64];
        snprintf(arguments, sizeof arguments, "help %s", out[i][0]);
        snprintf(says, sizeof says, "  %-26s %s", "--out FILE", out[i][1]);
        cli_expect(&cli, 0, arguments);
        cli_says(&cli, says);
    }
    cli_close(&cli);
}
