/* Every command on terminals of several widths: nothing that it prints is wider, and what matters is still there. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli.h"

static const char wide[] = "rematch: 1\n"
                           "name: wide\n"
                           "title: größere Namen als üblich, und ein langer Titel, damit jede Zeile zu lang würde\n"
                           "model:\n"
                           "  layers:\n"
                           "    - flatten\n"
                           "    - group:\n"
                           "        name: a_group_with_a_name_that_is_long\n"
                           "        layers:\n"
                           "          - linear: {name: one_layer_of_a_long_name, units: 24, activation: relu}\n"
                           "          - dropout: {name: another_layer_of_a_long_name, rate: 0.25}\n"
                           "    - linear: {name: head, units: classes}\n"
                           "data: {name: synthetic, shape: [4, 4, 1], classes: 4, samples: 48}\n"
                           "batch: 8\n"
                           "steps: 7\n"
                           "eval: {every: 3}\n"
                           "backend: {name: ref, threads: 1}\n"
                           "policy: {name: manual, groups: [a_group_with_a_name_that_is_long]}\n"
                           "expect:\n"
                           "  - {what: live_ratio, below: 9, source: a source of many words that says much of it}\n";

static const char swept[] = "rematch: 1\n"
                            "name: swept\n"
                            "model: {layers: [flatten, linear: {name: head, units: classes}]}\n"
                            "data: {name: synthetic, shape: [4, 4, 1], classes: 4, samples: 48}\n"
                            "batch: 8\n"
                            "steps: 2\n"
                            "backend: {name: ref, threads: 1}\n"
                            "sweep: {policy.name: [every, sqrt], optimizer.lr: [0.001, 0.0000123456789]}\n";

static const char chain[] = "rematch: 1\n"
                            "name: stages\n"
                            "stages:\n"
                            "  - {name: a_stage_with_a_name_that_is_long, forward: 1000.123456, backward: 2000.123456, "
                            "output: 100000000000, saved: 200000000000, gradient: 300000000000, repeat: 5}\n"
                            "  - {name: loss, forward: 1, backward: 2, output: 1, saved: 2, gradient: 1}\n";

/* What they say at 80 columns. */
static const struct {
    const char *arguments;
    int code;
    const char *says;
} commands[] = {
    {"--help", 0, "exit codes:"},
    {"--version", 0, "backends: "},
    {"list --help", 0, "--json"},
    {"plan --help", 0, "--max-batch"},
    {"run --help", 0, "--only baseline|variant"},
    {"schema --help", 0, "--json"},
    {"compare --help", 0, "--json"},
    {"show --help", 0, "--provenance"},
    {"bundle --help", 0, "--out FILE"},
    {"bundle $A $B -o both.tar.zst", 0, "2 runs"},
    {"verify both.tar.zst", 0, "verdict   HOLDS"},
    {"verify --help", 0, "--plan-only"},
    {"doctor --help", 0, "--json"},
    {"doctor", 0, "backend ref"},
    {"list .", 0, "wide"},
    {"schema", 0, "policy segments: "},
    {"schema conv.scratch_limit", 0, "scratch_limit"},
    {"plan wide.yaml", 0, "live peak of store_all"},
    {"plan wide.yaml --ops", 0, "number"},
    {"plan wide.yaml --explain", 0, "peak set by"},
    {"plan wide.yaml --pareto", 0, "slowdown"},
    {"plan wide.yaml --max-batch --memory 1MB", 0, "what stops it"},
    {"plan wide.yaml --min-memory --slowdown 1.5", 0, "slowdown"},
    {"plan --graph stages.chain", 0, "the front of optimal"},
    {"plan --graph stages.chain policy.name=sqrt --ops", 0, "in the file's unit"},
    {"run wide.yaml", 0, "EQUAL IN EVERY BIT"},
    {"run wide.yaml --only variant", 0, "policy manual"},
    {"run swept.yaml", 4, "point 4 of 4"},
    {"compare $A $B", 0, "EQUAL IN EVERY BIT"},
    {"show $A", 0, "live_peak_bytes"},
    {"show $A --provenance", 0, "memory_bytes"},
    {"verify $A", 0, "plan      right"},
    {"plan wide.yaml polcy.name=every data.shape=[4,4,1,", 2, "'policy'?); expected one of name|title|batch|"},
    {"plan wide.yaml policy.name=nothing_that_there_is_in_any_list_of_the_policies_that_are_known", 2, "one of"},
    {"run wide.yaml --nonsense", 2, "see rematch run --help"},
    {"nonsense", 2, "unknown command"},
};

static void open_all(struct cli *cli)
{
    cli_open(cli);
    cli_file(cli, "wide.yaml", wide);
    cli_file(cli, "swept.yaml", swept);
    cli_file(cli, "stages.chain", chain);
    cli_expect(cli, 0, "run wide.yaml --quiet");
    cli_run(cli, "mkdir kept && mv results/wide/*.h5 kept", "--version");
}

Test(screen, no_command_prints_a_line_wider_than_the_terminal)
{
    static const int widths[] = {80, 40};
    struct cli cli;
    open_all(&cli);
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
            const char *says = commands[i].says;
            const int over = cli_on_screen(
                &cli, widths[w], "unset COLUMNS; A=$(ls kept/*|head -1) B=$(ls kept/*|tail -1)", commands[i].arguments);
            cr_expect(over == 0, "rematch %s: %d lines of more than %d columns\n%s", commands[i].arguments, over,
                      widths[w], cli.out);
            cr_expect(cli.code == commands[i].code, "rematch %s: exit code %d\n%s", commands[i].arguments, cli.code,
                      cli.out);
            cr_expect(w || strstr(cli.out, says), "rematch %s: '%s' is not in\n%s", commands[i].arguments, says,
                      cli.out);
        }
    cli_close(&cli);
}

Test(screen, lines_for_programs_are_the_same_on_a_terminal)
{
    static const char *const same[] = {"schema --json", "plan wide.yaml --pareto --csv", "list . --json"};
    struct cli cli;
    open_all(&cli);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        cli_expect(&cli, 0, same[i]);
        char *piped = strdup(cli.out);
        cr_expect(cli_on_screen(&cli, 40, "", same[i]) > 0, "nothing of %s is wider than 40 columns", same[i]);
        cr_expect(strcmp(piped, cli.out) == 0, "rematch %s\n%s\nis on a terminal\n%s", same[i], piped, cli.out);
        free(piped);
    }
    cli_close(&cli);
}

Test(screen, a_pipe_gets_every_column_and_nothing_broken)
{
    struct cli cli;
    open_all(&cli);
    cli_expect(&cli, 0, "plan wide.yaml");
    cli_says(&cli, "output shape");
    cli_says(&cli, "scratch");
    cli_says(&cli, "backward");
    cli_says(&cli, "a_group_with_a_name_that_is_long: another_layer_of_a_long_name  ");
    cr_expect(!strstr(cli.out, "left out at") && !strstr(cli.out, "…"), "%s", cli.out);
    cli_run(&cli, "export COLUMNS=40", "plan wide.yaml --explain");
    cli_says(&cli, "largest tensors there");
    cr_expect(!strstr(cli.out, "left out at") && !strstr(cli.out, "…"), "%s", cli.out);
    cli_close(&cli);
}
