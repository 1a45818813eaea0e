/* How OpenMP threads wait: what the program sets, keeps, records and warns about. */
#include "job/thread_waiting.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/cli.h"

/* A user's environment, what libgomp reports of it (OMP_DISPLAY_ENV), and what the file records. */
static const struct {
    const char *before, *effective[2], *recorded;
} environments[] = {
    {"unset OMP_WAIT_POLICY GOMP_SPINCOUNT",
     {"GOMP_SPINCOUNT = '0'", "OMP_WAIT_POLICY = 'PASSIVE'"},
     "OMP_WAIT_POLICY=passive"},
    {"unset GOMP_SPINCOUNT; export OMP_WAIT_POLICY=passive",
     {"GOMP_SPINCOUNT = '0'", "OMP_WAIT_POLICY = 'PASSIVE'"},
     "OMP_WAIT_POLICY=passive"},
    {"unset GOMP_SPINCOUNT; export OMP_WAIT_POLICY=active",
     {"GOMP_SPINCOUNT = '30000000000'", "OMP_WAIT_POLICY = 'ACTIVE'"},
     "OMP_WAIT_POLICY=active"},
    {"unset OMP_WAIT_POLICY; export GOMP_SPINCOUNT=77",
     {"GOMP_SPINCOUNT = '77'", "OMP_WAIT_POLICY = 'PASSIVE'"},
     "GOMP_SPINCOUNT=77"},
    {"export OMP_WAIT_POLICY=active GOMP_SPINCOUNT=77",
     {"GOMP_SPINCOUNT = '77'", "OMP_WAIT_POLICY = 'ACTIVE'"},
     "OMP_WAIT_POLICY=active GOMP_SPINCOUNT=77"},
};

/* libgomp's last output is of the process that trains or times. */
static void expect_effective(struct cli *cli, size_t i, const char *arguments)
{
    char before[256];
    snprintf(before, sizeof before, "export OMP_DISPLAY_ENV=verbose; %s", environments[i].before);
    cli_run(cli, before, arguments);
    cr_assert(cli->code == 0, "%s; rematch %s: %d\n%s", before, arguments, cli->code, cli->err);
    const char *last = NULL;
    for (const char *at = cli->err; (at = strstr(at, "OPENMP DISPLAY ENVIRONMENT BEGIN")); at++) last = at;
    for (int k = 0; k < 2; k++)
        cr_expect(last && strstr(last, environments[i].effective[k]), "%s; rematch %s: '%s' is not in\n%s", before,
                  arguments, environments[i].effective[k], last ? last : cli->err);
}

Test(waiting, the_environment_of_training_and_timing_is_set_and_recorded, .timeout = 60)
{
    struct cli cli;
    cli_open(&cli);
    for (size_t i = 0; i < sizeof environments / sizeof *environments; i++) {
        expect_effective(&cli, i, "run small.yaml --only variant steps=2");
        json_t *file = cli_json(&cli, 0, "show --json results/small/*.h5");
        const char *waiting = json_string_value(json_object_get(json_object_get(file, "/provenance/host"), "waiting"));
        cr_expect(waiting && strcmp(waiting, environments[i].recorded) == 0, "%s: %s", environments[i].before, waiting);
        json_decref(file);
    }
    cli_close(&cli);
}

/* Times of a step, and the warning. */
static const struct {
    uint64_t median_ns, best_ns;
    const char *says;
} steps[] = {
    {1000, 1000, NULL},
    {1999999, 1000000, NULL},
    {2000000, 1000000, "the median step takes 2.0 times its best case: other processes use the processors"},
    {2200000000, 45000000, "the median step takes 48.9 times its best case: other processes use the processors"},
    {1000, 0, NULL},
    {0, 0, NULL},
};

Test(waiting, a_median_of_twice_the_best_case_is_a_warning)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char text[WAITING_TEXT];
        const char *says = waiting_warning(steps[i].median_ns, steps[i].best_ns, text);
        cr_expect(steps[i].says ? says && strcmp(says, steps[i].says) == 0 : !says, "%zu: %s", i, says ? says : "-");
    }
}
