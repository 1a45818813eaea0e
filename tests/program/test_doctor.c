/* `rematch doctor`: what is there, and what is missing, by things taken away. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cli.h"

/* The state and the text of a thing in the answer; NULL: it is not there. */
static const char *state_of(const json_t *answer, const char *what, const char **text)
{
    size_t i;
    json_t *row;
    json_array_foreach (json_object_get(answer, "checks"), i, row) {
        if (strcmp(json_string_value(json_object_get(row, "what")), what) != 0) continue;
        *text = json_string_value(json_object_get(row, "text"));
        return json_string_value(json_object_get(row, "state"));
    }
    return NULL;
}

/* before: what is taken away; then the thing's state, a part of its text, and the exit code, which is that of this
 * thing alone. */
static const struct {
    const char *before, *what, *state, *text;
    int code;
} cases[] = {
    {"export REMATCH_DATA=$PWD", "backend ref", "ok", "threads", 0},
    {"export REMATCH_DATA=$PWD", "backend cpu", "ok", "own kernels, definition", 0},
    {"export REMATCH_DATA=$PWD", "packages", "ok", "make test", 0},
    {"export REMATCH_DATA=$PWD", "data cifar10", "absent", "cifar-10-binary.tar.gz", 0},
    {"export REMATCH_DATA=$PWD", "data tweets", "absent", "no tweets.csv in $REMATCH_DATA (/", 0},
    {"export REMATCH_DATA=/no/folder", "REMATCH_DATA", "MISSING", "'/no/folder' is no folder", 77},
    {"touch data; export REMATCH_DATA=$PWD/data", "REMATCH_DATA", "MISSING", "is no folder", 77},
    {"export REMATCH_DATA= PATH=/nowhere", "packages", "MISSING", "apt-get install -y", 77},
    {"export REMATCH_DATA= OMP_THREAD_LIMIT=1", "backend cpu", "MISSING", "OpenMP runs 1", 77},
    {"mkdir -p cifar10; echo short >cifar10/data_batch_1.bin; export REMATCH_DATA=$PWD", "data cifar10", "DAMAGED",
     "has only 6 bytes; expected: whole records", 77},
};

Test(doctor, names_what_is_missing, .timeout = 900)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli cli;
        json_error_t error;
        const char *text = "";
        if (strstr(cases[i].before, "THREAD") && sysconf(_SC_NPROCESSORS_ONLN) < 2) continue;
        cli_open(&cli);
        cli_run(&cli, cases[i].before, "doctor --json");
        json_t *answer = json_loads(cli.out, 0, &error);
        cr_assert(answer, "%s: %s\n%s", cases[i].before, error.text, cli.out);
        const char *state = state_of(answer, cases[i].what, &text);
        cr_expect(state && !strcmp(state, cases[i].state), "%s: %s is %s\n%s", cases[i].before, cases[i].what, state,
                  cli.out);
        cr_expect(strstr(text, cases[i].text), "%s: '%s' is not in '%s'", cases[i].before, cases[i].text, text);
        cr_expect(cli.code == cases[i].code, "%s: exit code %d, expected %d\n%s", cases[i].before, cli.code,
                  cases[i].code, cli.out);
        cr_expect(json_is_true(json_object_get(answer, "fine")) == (cli.code == 0) && !*cli.err, "%s", cli.err);
        json_decref(answer);
        cli_run(&cli, cases[i].before, "doctor");
        cli_says(&cli, cases[i].text);
        cr_expect(cli.code == cases[i].code);
        cli_close(&cli);
    }
}

/* By pkg-config and the C library's own program. */
Test(doctor, names_the_versions_of_libraries)
{
    static const struct {
        const char *name, *command;
    } libraries[] = {{"hdf5", "pkg-config --modversion hdf5"},
                     {"libyaml", "pkg-config --modversion yaml-0.1"},
                     {"jansson", "pkg-config --modversion jansson"},
                     {"libc", "getconf GNU_LIBC_VERSION | cut -d' ' -f2"},
                     {"cores", "nproc --all"}};
    struct cli cli;
    cli_open(&cli);
    cli_run(&cli, "export REMATCH_DATA=$PWD", "doctor");
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        char version[64] = "", line[128];
        FILE *command = popen(libraries[i].command, "r");
        const bool got = fgets(version, sizeof version, command) != NULL;
        cr_assert(pclose(command) == 0 && got);
        snprintf(line, sizeof line, "\n  %-26s %s", libraries[i].name, version);
        cli_says(&cli, line);
    }
    cli_close(&cli);
}
