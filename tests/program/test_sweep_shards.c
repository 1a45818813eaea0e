/* Sweeps in several processes: shards, points side by side, finished points, and the index that they share. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/background_runs.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"

/* What a shell command in the test's folder prints as a number. */
static int number_of(const struct cli *cli, const char *command)
{
    char line[2048];
    int number = -1;
    snprintf(line, sizeof line, "cd '%s' && %s", cli->folder, command);
    FILE *shell = popen(line, "r");
    cr_assert(shell && fscanf(shell, "%d", &number) == 1, "%s", command);
    pclose(shell);
    return number;
}

static const char sweep64[] = "echo 'sweep: {policy: [every, sqrt, chen, {name: revolve, slots: 1}, {name: revolve, "
                              "slots: 2}, {name: segments, segments: 2}, {name: segments, segments: 3}, {name: dtr, "
                              "budget: 100%}], seed: {from: 1, to: 8}}' >>small.yaml";

/* Eight policies, eight seeds: each baseline is shared by points of both shards. */
Test(sweep_shards, one_is_killed_and_started_again)
{
    static const char list[] = "find results -name '*.h5' -printf '%p %i %T@\\n' | sort";
    struct cli cli;
    char command[512];
    cli_open(&cli);
    cli_run(&cli, sweep64, "schema");
    const pid_t other = background_start(&cli, ":", "--shard 2/2 >/dev/null 2>other #");
    const pid_t killed = background_start(&cli, ":", "--shard 1/2");
    for (int i = 0; i < 3000 && number_of(&cli, "find . -name '*.h5' | wc -l") < 20; i++) usleep(20000);
    kill(killed, SIGKILL);
    background_end(killed);
    snprintf(command, sizeof command, "%s >before; wc -l <before", list);
    const int before = number_of(&cli, command);
    cli_run(&cli, "mv stderr first", "run small.yaml --shard 1/2");
    cr_assert(cli.code == 0 && before >= 20 && before < 72, "%d files; %s", before, cli.out);
    cli_says(&cli, "points    32 of 64: 32 equal; ");
    const int again = cli_repeats(&cli, "variant: policy") + cli_repeats(&cli, "baseline: policy");
    cr_assert(background_end(other) == 0);

    cr_expect(number_of(&cli, "find results -type f -name '*.h5' | wc -l") == 64 + 8);
    cr_expect(number_of(&cli, "find results -name '*.part' -o -name '*.new' | wc -l") == 0);
    snprintf(command, sizeof command, "%s >after; sort before | comm -23 - after | grep -cv again || true", list);
    cr_expect(number_of(&cli, command) <= 1, "only a run of the other shard may end between listing and killing");
    const int runs = number_of(&cli, "cat first other | grep -c '^variant: policy\\|^baseline: policy'") + again;
    cr_expect(runs == 72 || runs == 73, "%d runs; one was killed", runs);
    cr_expect(number_of(&cli, "wc -l <results/small/sweep.csv") == 65);
    cr_expect(number_of(&cli, "grep -c ',equal,0,' results/small/sweep.csv") == 64, "the index is complete");
    cr_expect(number_of(&cli, "cut -d, -f1 results/small/sweep.csv | sort -n | uniq | wc -l") == 65);
    cli_close(&cli);
}

/* Neither a run that is finished nor one whose file is another role's or damaged. */
Test(sweep_shards, a_finished_point_is_not_run_again)
{
    struct cli cli;
    cli_open(&cli);
    cli_run(&cli, "echo 'sweep: {policy: [every, sqrt, store_all]}' >>small.yaml", "run small.yaml");
    cr_assert(cli.code == 0 && cli_repeats(&cli, "variant: policy") == 3, "%s", cli.err);
    cli_run(&cli, "cp results/small/sweep.csv first; find . -name '*.h5' -printf '%p %i %T@\\n' | sort >files",
            "run small.yaml");
    cr_assert(cli.code == 0 && !strstr(cli.err, "variant: policy"), "%s", cli.err);
    cli_says(&cli, "points    3 of 3: 3 equal; 3 of them finished before\n");
    cr_expect(number_of(&cli, "cmp first results/small/sweep.csv; echo $?") == 0, "the same table from the files");

    cli_run(&cli, "f=$(ls results/small/*-repeat.h5); head -c 9999 $f >cut; cat cut >$f", "run small.yaml");
    cr_assert(cli.code == 0 && cli_repeats(&cli, "variant: policy") == 1, "%s", cli.err);
    cli_complains(&cli, "cannot be used, so the run is repeated: results/small/");
    cli_expect(&cli, 0, "run small.yaml steps=3");
    cr_assert(cli_repeats(&cli, "variant: policy") == 3, "another spec");
    cli_expect(&cli, 0, "run small.yaml --force");
    cr_assert(cli_repeats(&cli, "variant: policy") == 3 && cli_repeats(&cli, "baseline: policy") == 1, "%s", cli.err);
    cr_expect(number_of(&cli, "find . -name '*.h5' -printf '%p %i %T@\\n' | sort | comm -12 files - | wc -l") == 0);
    cli_expect(&cli, 0, "run small.yaml --force --jobs 2");
    cr_assert(cli_repeats(&cli, ": equal\n") == 3, "%s", cli.err);
    cr_expect(number_of(&cli, "find . -name '*.h5' -printf '%i\\n' | wc -l") == 8, "and those of three steps");
    cli_close(&cli);
}

/* More memory than a library's handle takes. */
static const char larger[] = "sed -i 's/units: 24/units: 48000/' small.yaml; echo 'sweep: {seed: {from: 1, to: 6}}' "
                             ">>small.yaml";

/* The stand-in's memory in which so many runs of small.yaml fit, and half a run more: a plan with much memory tells
 * what else is in use, and a 64th is kept in reserve. */
static double memory_of(double runs)
{
    const double much = 1e9;
    struct cli cli;
    cli_open_on_device(&cli, "memory=1000000000");
    cli_run(&cli, larger, "schema");
    json_t *plan = cli_json(&cli, 0, "plan small.yaml backend={name:\\ cuda} policy=store_all --alone --json");
    const double left = json_number_value(json_object_get(plan, "machine_bytes")),
                 need = json_number_value(json_object_get(plan, "peak_bytes"));
    cr_assert(left > 0 && need > 0);
    json_decref(plan);
    cli_close(&cli);
    return (much * 63 / 64 - left + (runs + 0.5) * need) * 64 / 63;
}

/* As many at a time as fit the device's memory, and no more. */
Test(sweep_shards, points_side_by_side_fit_memory)
{
    for (int fit = 1; fit <= 3; fit++) {
        struct cli cli;
        int now = 0, most = 0, ends = 0;
        char memory[64];
        snprintf(memory, sizeof memory, "memory=%.0f", memory_of(fit));
        cli_open_on_device(&cli, memory);
        cli_run(&cli, larger, "run small.yaml backend={name:\\ cuda} steps=1 --jobs 3");
        cr_assert(cli.code == 0, "%s: %s%s", memory, cli.err, cli.out);
        for (const char *line = cli.err; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
            int number, begins = 0, equal = 0;
            sscanf(line, "point %d of 6: seed=%n", &number, &begins);
            sscanf(line, "point %d of 6: equal%n", &number, &equal);
            now += (begins > 0) - (equal > 0), ends += equal > 0;
            most = now > most ? now : most;
        }
        cr_expect(ends == 6 && most <= fit, "%s: %d at a time\n%s", memory, most, cli.err);
        cr_expect(!strstr(cli.err, " waits for memory: ") == (fit == 3), "%s: %s", memory, cli.err);
        cli_close(&cli);
    }
}

/* Each line is a command for a shell, whatever is in its words. */
Test(sweep_shards, printed_commands_run_all_points)
{
    struct cli cli;
    cli_open(&cli);
    cli_run(&cli, "echo 'sweep: {policy: [every, sqrt], seed: [1, 2]}' >>small.yaml",
            "run small.yaml --print-commands --shard 2/2 \"results=it's here\"");
    cr_assert(cli.code == 0 && strstr(cli.out, "--point 4") && !strstr(cli.out, "--point 3"), "%s", cli.out);
    cli_run(&cli, ":", "run small.yaml --print-commands \"results=it's here\" | xargs -d '\\n' -P 2 -n 1 sh -c");
    cr_expect(cli.code == 0 && folder_count(cli.folder, ".h5") == 6, "%s", cli.err);
    cr_expect(number_of(&cli, "grep -c ,equal,0, \"it's here/small/sweep.csv\"") == 4);
    cli_close(&cli);
}

static const struct {
    const char *expect;
    int code, unmet;
} expectations[] = {
    {"{what: live_ratio, below: 1.1, source: s}", 0, 0},
    {"{what: live_ratio, below: 0.9, source: s}", 1, 4},
    {"{what: live_ratio, below: 0.9, source: s, at: {policy: sqrt}}", 1, 2},
    {"{what: live_ratio, below: 0.9, source: s, at: {policy: sqrt, seed: 2}}", 1, 1},
};

/* In one process and in several. */
Test(sweep_shards, expectations_are_judged_at_their_points)
{
    for (size_t i = 0; i < 2 * sizeof expectations / sizeof *expectations; i++) {
        const size_t row = i / 2;
        struct cli cli;
        char before[512];
        cli_open(&cli);
        snprintf(before, sizeof before,
                 "echo 'sweep: {policy: [every, sqrt], seed: [1, 2]}' >>small.yaml; echo 'expect: [%s]' >>small.yaml",
                 expectations[row].expect);
        cli_run(&cli, before, i % 2 ? "run small.yaml --quiet --jobs 2" : "run small.yaml --quiet");
        cr_expect(cli.code == expectations[row].code, "%s: %d\n%s", expectations[row].expect, cli.code, cli.err);
        cr_expect(number_of(&cli, "grep -c 'live_ratio below 0.9: .*, FAILED (s)' results/small/sweep.csv || true") ==
                  expectations[row].unmet);
        cli_run(&cli, ":", "run small.yaml --quiet policy=every");
        cr_expect(cli.code == 0, "the override changes the figure: %s", cli.out);
        cli_close(&cli);
    }
}

static const struct {
    const char *arguments, *message;
} refused[] = {
    {"--shard 0/2", "--shard 0/2: expected I/N, I of 1..N, as in 2/8"},
    {"--shard 3/2", "--shard 3/2: expected I/N"},
    {"--shard 2", "--shard 2: expected I/N"},
    {"--shard 1/x", "--shard 1/x: expected I/N"},
    {"--point 5", "--point 5: expected 1..4"},
    {"--point 1 --shard 1/2", "--shard and --point; expected one of them at most"},
    {"--jobs 0", "--jobs 0: expected an integer of 1..1000000"},
    {"--only variant", "--only is for one run"},
    {"--jobs 2 policy=sqrt seed=1", "small.yaml sweeps nothing: no --jobs, --shard, --point or --print-commands"},
};

Test(sweep_shards, wrong_options_are_refused)
{
    struct cli cli;
    cli_open(&cli);
    cli_run(&cli, "echo 'sweep: {policy: [every, sqrt], seed: [1, 2]}' >>small.yaml", "schema");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments, "run small.yaml %s", refused[i].arguments);
        cli_expect(&cli, 2, arguments);
        cli_complains(&cli, refused[i].message);
        cr_expect(cli_complaints(&cli) == 1 && folder_count(cli.folder, ".csv") == 0, "%s", cli.err);
    }
    cli_close(&cli);
}

/* Each task of an array runs its part, whatever the array's first number. */
Test(sweep_shards, slurm_tasks_run_all_points)
{
    struct cli cli;
    char command[2048], here[512];
    cr_assert(getcwd(here, sizeof here));
    cli_open(&cli);
    cli_run(&cli, "echo 'sweep: {policy: [every, sqrt], seed: {from: 1, to: 3}}' >>small.yaml", "schema");
    snprintf(command, sizeof command,
             "for task in 4 5; do SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_MIN=4 SLURM_ARRAY_TASK_MAX=5 "
             "SLURM_SUBMIT_DIR=%s SLURM_CPUS_PER_TASK=1 REMATCH_BIN='%s' sh '%s/experiments/cluster/sweep.sbatch' "
             "small.yaml steps=2 >>tasks 2>&1 || exit; done; grep -c '^points    3 of 6: 3 equal' tasks",
             cli.folder, cli_program(), here);
    cr_expect(number_of(&cli, command) == 2);
    cr_expect(number_of(&cli, "grep -c ,equal,0, results/small/sweep.csv") == 6);
    snprintf(command, sizeof command,
             "env -u SLURM_ARRAY_TASK_ID sh '%s/experiments/cluster/sweep.sbatch' small.yaml 2>&1 | grep -c 'submit it "
             "as an array'",
             here);
    cr_expect(number_of(&cli, command) == 1);
    cli_close(&cli);
}

/* Snakemake finds a job for each point. */
Test(sweep_shards, snakemake_plans_a_job_a_point)
{
    struct cli cli;
    char command[2048], here[512];
    if (system("command -v snakemake >/dev/null") != 0) cr_skip_test("no snakemake");
    cr_assert(getcwd(here, sizeof here));
    cli_open(&cli);
    cli_run(&cli, "echo 'sweep: {policy: [every, sqrt], seed: {from: 1, to: 3}}' >>small.yaml", "schema");
    snprintf(
        command, sizeof command,
        "REMATCH_BIN='%s' snakemake -s '%s/experiments/cluster/Snakefile' -n -p --config spec=small.yaml "
        "set='steps=2 seed=1' 2>&1 | grep -c 'run small.yaml steps=2 seed=1 backend.threads=1 --point [12] --quiet'",
        cli_program(), here);
    cr_expect(number_of(&cli, command) == 2);
    cli_close(&cli);
}

static const char *const damages[] = {
    "s/\"point\": 1,/\"point\": 99999,/",
    "s/\"outcome\": \"equal\"/\"outcome\": 1/",
    "s/\"sweep\": \"/&0/",
    "s/\"points\": \\[/\"points\": 3, \"x\": [/",
    "1,9d",
};

/* Rows that are damaged, or of another sweep, are left out; running their points again restores them. */
Test(sweep_shards, a_damaged_index_is_not_believed)
{
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        struct cli cli;
        char before[256];
        cli_open(&cli);
        cli_run(&cli, "echo 'sweep: {seed: [1, 2]}' >>small.yaml", "run small.yaml steps=1 --shard 1/2");
        cr_assert(cli.code == 0, "%s", cli.err);
        cli_run(&cli, "cp results/small/sweep.json whole", "run small.yaml steps=1 --shard 2/2");
        cr_assert(number_of(&cli, "grep -c ,equal,0, results/small/sweep.csv") == 2);
        snprintf(before, sizeof before, "sed '%s' whole >results/small/sweep.json", damages[i]);
        cli_run(&cli, before, "run small.yaml steps=1 --shard 2/2");
        cr_assert(cli.code == 0, "%s: %d %s", damages[i], cli.code, cli.err);
        cr_expect(number_of(&cli, "grep -c '^1,1,not run,0,' results/small/sweep.csv") == 1, "%s", damages[i]);
        cli_expect(&cli, 0, "run small.yaml steps=1 --shard 1/2");
        cr_expect(number_of(&cli, "grep -c ,equal,0, results/small/sweep.csv") == 2, "%s", damages[i]);
        cli_close(&cli);
    }
}
