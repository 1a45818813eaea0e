/* What the program suggests for a word that it does not know. tests/spec/test_overrides.c has those for keys and
 * values.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli.h"

static const struct {
    const char *arguments, *says;
} wrong[] = {
    {"plan small.yaml --batch 8", "unknown option --batch (did you mean 'batch=8'?)"},
    {"run small.yaml --batch-size=8", "(did you mean 'batch=8'?)"},
    {"plan small.yaml --lr 0.1", "(did you mean 'optimizer.lr=0.1'?)"},
    {"plan small.yaml --policy", "(did you mean 'policy=VALUE'?)"},
    {"plan small.yaml --threads 2", "(did you mean 'backend.threads=2'?)"},
    {"show --batch 8", "unknown option --batch; see"}, /* takes no keys */
    {"plan small.yaml batch = 8", "unexpected 'batch' (a key is set as in batch=8, without blanks); usage"},
    {"plan small.yaml policy.name: every", "unexpected 'policy.name:' (a key is set"},
    {"plan small.yaml --max-batch --memory 16gb", "(did you mean '16GB'?)"},
    {"plan small.yaml policy=chen policy.segment_budget=64M", "(did you mean '64MB'?)"},
};

Test(guesses, an_option_may_be_meant_as_a_key)
{
    struct cli cli;
    cli_open(&cli);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cli_expect(&cli, 2, wrong[i].arguments);
        cli_complains(&cli, wrong[i].says);
    }
    cli_close(&cli);
}

/* A name that no spec has, or the name of a spec where a file of a run is read. */
Test(guesses, names_of_experiments_are_suggested)
{
    static const struct {
        const char *arguments, *says;
    } cases[] = {
        {"plan litle-net", "no spec 'litle-net' (did you mean 'little-net'?): neither"},
        {"run litle-net.yaml", "(did you mean 'little-net'?)"},
        {"plan big", "no spec 'big' (so begin big-a, big-b): neither"},
        {"run BIG-", "(so begin big-a, big-b)"},
        {"plan l", "(so begins little-net)"},
        {"plan faraway", "no spec 'faraway': neither"},
        {"show big-a", "show: 'big-a' is an experiment, no file; rematch run big-a writes its files to results/big-a/"},
        {"show little-net",
         "show: 'little-net' is an experiment, no file; rematch list results/little-net shows its files"},
        {"verify little-net", "rematch list results/little-net"},
        {"report little-net big-a", "rematch list results/little-net"},
        {"compare nothing.h5 big-b", "'big-b' is an experiment"},
        {"bundle little-net -o x.tar.zst", "rematch list results/little-net"},
        {"list little-net", "rematch list results/little-net"},
        {"show nothing", "nothing: cannot read: No such file or directory"},
    };
    struct cli cli;
    cli_open(&cli);
    cli_run(&cli,
            "mkdir -p experiments results/little-net; for name in little-net big-a big-b; do cp small.yaml "
            "experiments/$name.yaml; done",
            "--version");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_expect(&cli, 2, cases[i].arguments);
        cli_complains(&cli, cases[i].says);
    }
    cli_close(&cli);
}

/* The command that the error names makes a file without them, which means the same. */
Test(guesses, a_file_with_anchors_is_expanded_as_the_error_says)
{
    static const char text[] = "rematch: 1\nname: twice\nmodel:\n  layers:\n  - flatten\n  - group:\n      name: a\n"
                               "      layers: &id001\n      - linear: {units: 5, activation: relu}\n  - group:\n"
                               "      name: b\n      layers: *id001\n  - linear: {units: classes}\n"
                               "data: {name: synthetic, shape: &shape [4, 4, 1], classes: 3}\nbatch: 8\nsteps: 2\n"
                               "optimizer: {lr: 1e-3}\npolicy: {name: optimal, budget: 100%}\n";
    static const char begins[] = "or let a program do so: ";
    struct cli cli;
    char command[512];
    cli_open(&cli);
    cli_file(&cli, "FILE", text);
    cli_expect(&cli, 2, "plan ./FILE");
    cli_complains(&cli, "FILE:8:15: error: anchors (&name) are not allowed; write the value out, or let");
    cli_complains(&cli, "FILE:12:15: error: aliases (*name) are not allowed; write the value out\n");
    cr_expect(cli_complaints(&cli) == 10, "%s", cli.err);
    const char *hint = strstr(cli.err, begins);
    cr_assert(hint && !strstr(hint + 1, begins), "it is said once: %s", cli.err);
    hint += strlen(begins);
    snprintf(command, sizeof command, "%.*s", (int)strcspn(hint, "\n"), hint);
    cli_expect(&cli, 2, "plan small.yaml 'model={layers: &a []}'");
    cr_expect(!strstr(cli.err, begins), "%s", cli.err); /* an argument is no file */
    if (system("python3 -c 'import yaml' 2>/dev/null") == 0) {
        cli_run(&cli, command, "plan NEW.yaml --alone");
        cr_expect(cli.code == 0, "%s", cli.err);
        cli_says(&cli, "policy optimal on 5 nodes");
    }
    cli_close(&cli);
}
