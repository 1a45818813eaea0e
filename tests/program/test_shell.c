/* What the program offers a shell: completion, the manual page, and an installed copy. */
#include <criterion/criterion.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli.h"

/* Defines the function `try LINE`, which prints what bash would put behind LINE's last break, one a line. Words are
 * those that readline makes with the presets of COMP_WORDBREAKS: broken by blanks, and = and : are words of their own.
 */
static const char define_try[] = "try() {\n"
                                 "    local left=\"rematch $1\"\n"
                                 "    COMP_LINE=$left COMP_POINT=${#left} COMP_WORDS=()\n"
                                 "    while [[ $left =~ ^[[:space:]]*([=:]+|[^[:space:]=:]+)(.*)$ ]]; do\n"
                                 "        COMP_WORDS+=(\"${BASH_REMATCH[1]}\") left=${BASH_REMATCH[2]}\n"
                                 "    done\n"
                                 "    [[ $COMP_LINE != *[[:space:]] ]] || COMP_WORDS+=('')\n"
                                 "    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                                 "    _rematch 2>/dev/null\n"
                                 "    printf '[%s]\\n' \"${COMPREPLY[@]}\"\n"
                                 "}\n"
                                 "rematch() { \"$REMATCH_BIN\" \"$@\"; }\n";

/* What is typed, the last word incomplete; what is and what is not among the completions. */
static const struct {
    const char *line, *offered, *not_offered;
} lines[] = {
    {"", "[list]", "[child-run]"},
    {"sho", "[show]\n", "[plan]"},
    {"plan ", "[little-net]", "[small]"},
    {"run lit", "[little-net]\n", "[other-net]"},
    {"plan --memory 16GB ", "[little-net]", "[batch=]"},
    {"plan small.yaml policy.gr", "[policy.groups=]", "[policy.segments=]"}, /* the file's policy is manual */
    {"plan small.yaml policy.", "[policy.name=]", "[policy.budget=]"},
    {"plan small.yaml policy=optimal policy.", "[policy.budget=]", "[policy.groups=]"},
    {"plan small.yaml policy.name=dtr policy.", "[policy.budget=]", "[policy.groups=]"},
    {"plan other-net policy.", "[policy.segments=]", "[policy.groups=]"},
    {"plan small.yaml optimizer=adam optimizer.", "[optimizer.beta1=]", "[optimizer.momentum=]"},
    {"run small.yaml ", "[batch=]", "[little-net]"},
    {"plan small.yaml policy.name=opt", "[optimal]\n", "[policy"},
    {"plan small.yaml policy=", "[optimal]", "[="},
    {"plan small.yaml batch=4 policy.name=s", "[store_all]\n[segments]\n", "[optimal]"},
    {"plan small.yaml policy=segments policy.unit=", "[auto]\n[group]\n[stage]\n", "[optimal]"},
    {"plan small.yaml drop_dead=f", "[false]\n", "[true]"},
    {"plan small.yaml optimizer=ad", "[adam]\n[adamw]\n", "[sgd]"},
    {"run little-net rng=", "[counter]", "[bits]"},
    {"plan small.yaml batch=", "[]\n", "[optimal]"}, /* any number */
    {"plan small.yaml model=", "[]\n", "[glorot"},   /* left to the shell, which completes files */
    {"plan small.yaml nothing=", "[]\n", "[optimal]"},
    {"show small.yaml policy=", "[]\n", "[optimal]"}, /* takes no keys */
    {"plan --graph graph.yaml ", "[placed=]", "[optimizer"},
    {"plan --graph graph.yaml policy=revolve policy.", "[policy.slots=]", "[policy.budget=]"},
    {"plan --graph ", "[]\n", "[little-net]"},
    {"plan small.yaml --", "[--max-batch]", "[--only]"},
    {"run --on", "[--only]\n", "[--quiet]"},
    {"run --only ", "[baseline]\n[variant]\n", "[--only]"},
    {"run --only=v", "[variant]\n", "[baseline]"},
    {"help --completion ", "[bash]\n[zsh]\n", "[plan]"},
    {"help ver", "[verify]\n", "[plan]"},
    {"plan --out ", "[]\n", "[little-net]"},
    {"show ", "[]\n", "[little-net]"},
    {"nothing ", "[]\n", "[plan]"},
    {"run $(touch", "[$(touch bad)]\n", "[little-net]"}, /* a name is never expanded */
};

Test(shell, bash_completes_from_the_tables)
{
    struct cli cli;
    cli_open(&cli);
    cli_file(&cli, "try.bash", define_try);
    cli_run(
        &cli,
        "mkdir experiments; cp small.yaml experiments/little-net.yaml; cp small.yaml 'experiments/$(touch bad).yaml';"
        "sed 's/^policy:.*/policy: {name: segments, segments: 2}/' small.yaml >experiments/other-net.yaml;"
        "printf 'rematch: 1\nname: g\nstages: []\n' >graph.yaml",
        "help --completion bash >completion; bash -n completion");
    cr_assert(cli.code == 0, "%s", cli.err);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[512];
        snprintf(line, sizeof line, ". ./try.bash\n. ./completion\ntry '%s'\n", lines[i].line);
        cli_file(&cli, "line", line);
        cli_run(&cli, "", "--version >version; bash line");
        cr_expect(strstr(cli.out, lines[i].offered), "rematch %s: no %s in\n%s%s", lines[i].line, lines[i].offered,
                  cli.out, cli.err);
        cr_expect(!strstr(cli.out, lines[i].not_offered), "rematch %s:\n%s", lines[i].line, cli.out);
    }
    cli_run(&cli, "", "--version >version; ls bad");
    cr_expect(cli.code != 0, "a name was expanded");
    cli_run(&cli, "", "help --completion zsh >completion; ! command -v zsh >/dev/null || zsh -n completion");
    cr_expect(cli.code == 0, "%s", cli.err);
    cli_close(&cli);
}

/* Every option in a usage is explained, by help and in the manual. */
Test(shell, every_option_is_explained)
{
    static const char *const commands[] = {"list", "plan",   "run",    "schema", "compare",
                                           "show", "bundle", "verify", "doctor", "help"};
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "help --man");
    char *manual = strdup(cli.out);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char arguments[64];
        snprintf(arguments, sizeof arguments, "help %s", commands[i]);
        cli_expect(&cli, 0, arguments);
        const char *usage_end = strchr(cli.out, '\n');
        char heading[64];
        snprintf(heading, sizeof heading, "\n.SS rematch %s ", commands[i]);
        const char *section = strstr(manual, heading), *section_end = section ? strstr(section + 1, "\n.S") : NULL;
        cr_assert(section_end, "%s", heading);
        for (const char *option = cli.out; (option = strstr(option, "--")) && option < usage_end; option += 2) {
            const int length = (int)strspn(option, "-abcdefghijklmnopqrstuvwxyz");
            char row[64], roff[128] = "\n.BI \"";
            snprintf(row, sizeof row, "\n  %.*s ", length, option);
            cr_expect(strstr(usage_end, row), "%s: %.*s", commands[i], length, option);
            for (int k = 0; k < length; k++)
                strncat(roff, option[k] == '-' ? "\\-" : (const char[]){option[k], 0}, sizeof roff - strlen(roff) - 1);
            const char *found = strstr(section, roff);
            cr_expect(found && found < section_end, "%s: %s is not in the manual", commands[i], roff);
        }
    }
    free(manual);
    cli_expect(&cli, 2, "help plan --man");
    cli_complains(&cli, "expected one of COMMAND, --man and --completion");
    cli_expect(&cli, 2, "help --completion fish");
    cli_complains(&cli, "expected bash|zsh");
    cli_close(&cli);
}

Test(shell, the_manual_page_has_no_warnings)
{
    struct cli cli;
    if (system("command -v groff >/dev/null") != 0) cr_skip_test("no groff");
    cli_open(&cli);
    cli_run(&cli, "", "help --man | groff -man -Tutf8 -ww -P-cbou");
    cr_expect(cli.code == 0 && !*cli.err, "%s", cli.err);
    cr_expect(strstr(cli.out, "SYNOPSIS") && strstr(cli.out, "ENVIRONMENT"), "%s", cli.out);
    cli_close(&cli);
}

/* From another folder, by another user's HOME: the installed program finds its experiments, and what is here first. */
Test(shell, an_installed_program_finds_its_experiments, .timeout = 120)
{
    static const char *const files[] = {"bin/rematch", "share/man/man1/rematch.1", "share/zsh/site-functions/_rematch",
                                        "share/bash-completion/completions/rematch",
                                        "share/rematch/experiments/models/vgg16.yaml"};
    struct cli cli;
    char command[2048], *program = strdup(cli_program());
    cli_open(&cli);
    snprintf(command, sizeof command,
             "env -u MAKEFLAGS make -o all DEPS=no BUILD='%s' DESTDIR='%s/root' PREFIX=/opt/it install >'%s/log' 2>&1",
             dirname(program), cli.folder, cli.folder);
    cr_assert(system(command) == 0, "%s", command);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(command, sizeof command, "[ -s '%s/root/opt/it/%s' ]", cli.folder, files[i]);
        cr_expect(system(command) == 0, "%s", files[i]);
    }
    snprintf(command, sizeof command, "%s/root/opt/it/bin/rematch", cli.folder);
    setenv("REMATCH_BIN", command, 1);
    setenv("HOME", "/nonexistent", 1);
    cli_expect(&cli, 0, "list");
    cli_says(&cli, "mlp-sequential ");
    cli_expect(&cli, 0, "plan vgg16-recompute batch=1 --alone");
    cli_expect(&cli, 2, "plan mlp-sequentiel");
    cli_complains(&cli, "(did you mean 'mlp-sequential'?)");
    cli_run(&cli, "mkdir experiments; cp small.yaml experiments/vgg16-recompute.yaml", "plan vgg16-recompute --alone");
    cli_says(&cli, "a small MLP");
    cli_close(&cli);
    free(program);
}
