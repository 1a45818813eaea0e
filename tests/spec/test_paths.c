/* Paths in specs and options: the home folder is expanded, what only a shell knows is refused, the same for every key.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "spec/spec.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"
#include "tests/support/spec_text.h"

/* NULL: refused. */
static const struct {
    const char *path, *home, *expanded;
} paths[] = {
    {"~", "/h", "/h"},
    {"~/", "/h", "/h/"},
    {"~/a b/~/c", "/h", "/h/a b/~/c"},
    {"~bob", "/h", NULL},
    {"~bob/x", "/h", NULL},
    {"~+/x", "/h", NULL},
    {"~/x", "", NULL},
    {"~/x", "h", NULL},
    {"~/x", NULL, NULL},
    {"a/~/b", "/h", "a/~/b"},
    {"./~", "/h", "./~"},
    {"./~bob", NULL, "./~bob"},
    {"", "/h", ""},
    {"$HOME", "/h", NULL},
    {"${HOME}/x", "/h", NULL},
    {"/scratch/$USER/x", "/h", NULL},
    {"x/${A:-b}", "/h", NULL},
    {"x$_", "/h", NULL},
    {"~/$A", "/h", NULL},
    {"a$", "/h", "a$"},
    {"$5/x", "/h", "$5/x"},
    {"$(pwd)", "/h", "$(pwd)"},
};

Test(paths, begin_at_home_and_have_no_variables)
{
    region_auto *region = region_create();
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const char *expanded;
        if (paths[i].home) setenv("HOME", paths[i].home, 1);
        if (!paths[i].home) unsetenv("HOME");
        const enum status status = file_expand(paths[i].path, region, &expanded);
        cr_expect(status == (paths[i].expanded ? ST_OK : ST_SPEC), "%s: %s", paths[i].path, status_message());
        if (status == ST_OK)
            cr_expect_str_eq(expanded, paths[i].expanded);
        else
            cr_expect(strstr(status_message(), paths[i].path), "%s", status_message());
    }
}

#define MODEL "model: {layers: [flatten, {linear: {units: classes}}]}\n"

/* Every key that is a path: the spec's other lines, the key, and what stands before and behind its value. */
static const struct {
    const char *rest, *key, *before, *behind;
} keys[] = {
    {MODEL, "results", "results: ", ""},
    {MODEL, "plan", "plan: ", ""},
    {"", "model.file", "model: ", ""},
    {"", "model.file", "model: {file: ", "}"},
    {"", "model.init.file", "model: {init: {file: ", "}, layers: [flatten, {linear: {units: classes}}]}"},
    {MODEL, "costs.file", "costs: {name: measured, file: ", "}"},
    {MODEL, "policy.schedule", "policy: {name: manual, schedule: ", "}"},
    {MODEL, "data.path", "data: {name: cifar10, path: ", "}"},
    {MODEL, "data.path", "data: {name: tweets, path: ", "}"},
    {MODEL, "data.vocabulary", "data: {name: tweets, vocabulary: ", "}"},
};

Test(paths, of_all_keys_follow_one_rule, .init = spec_text_begin, .fini = spec_text_end)
{
    static const struct {
        const char *value, *says;
    } refused[] = {{"~bob/x", "'~bob/x' is not looked up"}, {"'${SCRATCH}/x'", "'${SCRATCH}/x' has a variable"}};
    for (size_t i = 0; i < 2 * sizeof keys / sizeof *keys; i++) {
        char text[1024], says[128];
        const size_t k = i / 2;
        snprintf(text, sizeof text, "rematch: 1\nname: small\nbatch: 8\nsteps: 2\noptimizer: {lr: 0.1}\n%s%s%s%s%s\n",
                 strncmp(keys[k].key, "data", 4) ? "data: {name: synthetic, shape: [4, 4, 1], classes: 3}\n" : "",
                 keys[k].rest, keys[k].before, refused[i % 2].value, keys[k].behind);
        struct spec *spec = load(text, "", false);
        const char *said = messages();
        snprintf(says, sizeof says, "%s: %s", keys[k].key, refused[i % 2].says);
        cr_expect(!spec && strstr(said, says), "no '%s' in\n%s", says, said);
        if (spec) spec_destroy(spec);
    }
}

/* What is written and read is below $HOME, from the spec, the command line and options; no folder is called '~'. */
Test(paths, of_the_program_begin_at_home)
{
    static const char *const arguments[] = {
        "run small.yaml --quiet",
        "run small.yaml --quiet 'results=~/other'",
        "plan small.yaml '--out=~/plan.h5'",
        "run small.yaml --quiet 'plan=~/plan.h5'",
        "report home/runs/small/*.h5 '--out=~/page.html'",
    };
    struct cli cli;
    cli_open(&cli);
    cli_run(&cli, "mkdir home; echo 'results: ~/runs' >>small.yaml", "schema");
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        cli_run(&cli, "export HOME=$PWD/home", arguments[i]);
        cr_assert(cli.code == 0, "%s: exit code %d\n%s", arguments[i], cli.code, cli.err);
    }
    cli_run(&cli, "test -e home/runs/small && test -e home/other/small && test -e home/page.html && ! test -e '~'",
            "schema");
    cr_expect(cli.code == 0);
    cli_run(&cli, "export HOME=$PWD/home", "report home/runs/small/*.h5 '--figures=$X/y'");
    cr_expect(cli.code == 2 && strstr(cli.err, "has a variable"), "%s", cli.err);
    cli_close(&cli);
}
