/* Plans as files: written completely or not at all, executed unchanged by a run, and refused by the name of whatever
 * does not fit. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "result/result_read.h"
#include "tests/support/altered_files.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"

/* The path of a file of the folder. */
static const char *in(const struct cli *cli, const char *name)
{
    static char path[2][600];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", cli->folder, name);
    return path[turn];
}

static const char *attribute(struct result *r, const char *object, const char *name)
{
    return h5_read_attribute_text(&r->h5, object, name, NULL, r->region);
}

/* The paths that a run printed. */
static void paths_of(const struct cli *cli, char baseline[600], char variant[600])
{
    char name[2][256];
    const char *last = strstr(cli->out, "\nbaseline  results");
    cr_assert(last && sscanf(last, "\nbaseline %255s (%*[^)]) variant %255s", name[0], name[1]) == 2, "%s", cli->out);
    snprintf(baseline, 600, "%s", in(cli, name[0]));
    snprintf(variant, 600, "%s", in(cli, name[1]));
}

Test(plan_file, is_a_result_file_without_steps)
{
    struct cli cli;
    struct result *r;
    cli_open(&cli);
    cli_expect(&cli, 0, "plan small.yaml --out plan.h5");
    cr_assert(folder_count(cli.folder, ".h5") == 1 && folder_count(cli.folder, ".new") == 0);
    cr_assert(result_open(in(&cli, "plan.h5"), &r) == ST_OK, "%s", status_message());
    cr_assert(r->steps == 0 && r->whole && !strcmp(r->status, "planned") && !strcmp(r->variant, "plan"));
    cr_assert(!strcmp(r->policy, "manual") && strlen(r->plan_hash) == 32);
    result_close(r);
    cli_expect(&cli, 0, "show plan.h5");
    cli_says(&cli, "planned");
    cli_expect(&cli, 0, "plan small.yaml --out plan.h5 policy=store_all"); /* a plan file may be replaced */
    cli_close(&cli);
}

/* A run executes the plan of its file, and so does a run from the result of the first. */
Test(plan_file, a_run_executes_the_plan_of_its_file)
{
    static const char *const how[] = {"",
                                      "policy=every",
                                      "policy=sqrt rng=mask",
                                      "policy=segments policy.segments=3 policy.unit=stage drop_dead=false",
                                      "relu_save=bits eval.every=2",
                                      "policy=every relu_save=bits",
                                      "policy=optimal"};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        struct cli cli;
        struct result *plan, *run;
        char arguments[900], baseline[600], variant[600];
        cli_open(&cli);
        snprintf(arguments, sizeof arguments, "plan small.yaml %s --out plan.h5", how[i]);
        cli_expect(&cli, 0, arguments);
        snprintf(arguments, sizeof arguments, "run small.yaml %s plan=plan.h5", how[i]);
        cli_expect(&cli, 0, arguments);
        paths_of(&cli, baseline, variant);
        cr_assert(result_open(in(&cli, "plan.h5"), &plan) == ST_OK, "%s", status_message());
        cr_assert(result_open(variant, &run) == ST_OK, "%s", status_message());
        cr_assert(!strcmp(plan->plan_hash, run->plan_hash) && plan->peak_bytes == run->peak_bytes);
        cr_assert(!strcmp(plan->run_id, run->run_id), "the run that was planned");
        cr_assert(!strcmp(attribute(run, "/plan", "source"), "plan.h5"));
        result_close(run);
        result_close(plan);
        cr_assert(result_open(baseline, &run) == ST_OK);
        cr_assert(!strcmp(run->policy, "store_all") && !*attribute(run, "/plan", "source"));
        result_close(run);
        snprintf(arguments, sizeof arguments, "run small.yaml %s plan=%s --quiet", how[i], variant);
        cli_expect(&cli, 0, arguments);
        cli_close(&cli);
    }
}

/* Plans of other specs, and the message about the first difference. */
static const struct {
    const char *overrides, *says;
} others[] = {
    {"batch=16", "batch is 8 in it and 16 here"},
    {"policy=every", "planned with 'policy: {name: manual, groups: [front], keep_saved: auto}'; this spec has"},
    {"policy.keep_saved=false", "this spec has 'policy: {name: manual, groups: [front], keep_saved: false}'"},
    {"rng=stash", "rng is 0 in it and 1 here"},
    {"drop_dead=false", "drop_dead is 1 in it and 0 here"},
    {"relu_save=bits", "node 1 (one): saved_bytes is 0 in it (ref) and 24 here (ref)"},
    {"data.shape=[5,4,1]", "node 0 (flatten1): shape is 16 in it and 20 here"},
    {"data.classes=5", "node 4 (three): shape is 4 in it and 5 here"},
    {"loss=sum", "node 5 (sum): name is cross_entropy in it and sum here"},
};

/* Other models for small.yaml. */
static const char rest[] = "data: {name: synthetic, shape: [4, 4, 1], classes: 4, samples: 50}\n"
                           "batch: 8\nsteps: 4\nseed: 7\nbackend: {name: ref, threads: 1}\n"
                           "policy: {name: manual, groups: [front]}\n";
static const struct {
    const char *group, *last, *says;
} models[] = {
    {"dropout: {name: two, rate: 0.5}", "linear: {name: three, units: classes}",
     "node 3 (two): layer is linear in it and dropout here"},
    {"linear: {name: two, units: 16, activation: relu}",
     "linear: {name: three, units: 4}\n    - linear: {name: four, units: classes}",
     "node 5 (four): name is cross_entropy in it and four here"},
    {"linear: {name: two, units: 16, activation: relu}", "linear: {name: three, units: classes, activation: tanh}",
     "node 4 (three): reads is "},
};

static void expect_refusal(struct cli *cli, const char *arguments, const char *says)
{
    for (int run = 0; run < 2; run++) {
        char all[512];
        snprintf(all, sizeof all, "%s plan=plan.h5 %s", run ? "run" : "plan", arguments);
        cli_expect(cli, 2, all);
        cli_complains(cli, says);
        cli_complains(cli, "plan.h5");
        cr_assert(cli_complaints(cli) == 1, "%s", cli->err);
    }
}

Test(plan_file, of_another_spec_is_refused)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "plan small.yaml --out plan.h5");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char arguments[300];
        snprintf(arguments, sizeof arguments, "small.yaml '%s'", others[i].overrides);
        expect_refusal(&cli, arguments, others[i].says);
    }
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char spec[1024];
        snprintf(spec, sizeof spec,
                 "rematch: 1\nname: other\nmodel:\n  layers:\n    - flatten\n    - group:\n        name: front\n"
                 "        layers:\n          - linear: {name: one, units: 24, activation: relu}\n"
                 "          - dropout: {name: drop, rate: 0.25}\n          - %s\n    - %s\n%s",
                 models[i].group, models[i].last, rest);
        cli_file(&cli, "other.yaml", spec);
        expect_refusal(&cli, "other.yaml", models[i].says);
    }
    cr_assert(folder_count(cli.folder, ".part") == 0 && folder_count(cli.folder, ".h5") == 1);
    cli_close(&cli);
}

static void cut(const char *path) { alter_length(path, 0.5); }
static void schema(const char *path) { alter_text(path, "/", "schema", "other"); }
static void version(const char *path) { alter_text(path, "/", "schema_version", "1.0"); }
static void planless(const char *path) { alter_away(path, "/plan/ops"); }
static void offset(const char *path) { alter_element(path, "/plan/buffers/offset", 0, 256); }
static void beyond(const char *path) { alter_element(path, "/plan/buffers/offset", 1, 1 << 20); }
static void operand(const char *path) { alter_element(path, "/plan/ops/y", 0, 4096); }
static void inputs(const char *path) { alter_element(path, "/plan/nodes/inputs", 0, 4096); }
static void negative(const char *path) { alter_element(path, "/plan/buffers/death", 0, -4096); }
static void no_flag(const char *path) { alter_element(path, "/plan/ops/recompute", 0, 7); }
static void text(const char *path)
{
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs("F[0,6) B[0,6)\n", file) >= 0 && fclose(file) == 0);
}

static const struct {
    void (*spoil)(const char *path);
    const char *says;
} spoils[] = {
    {text, "not an HDF5 file"},
    {cut, "plan.h5"},
    {schema, "schema 'other'"},
    {version, "schema version '1.0'"},
    {planless, "is missing"},
    {offset, "holds an invalid plan"},
    {beyond, "within the arena's"},
    {operand, "an operand is"},
    {inputs, "input 0 is 4096"},
    {negative, "buffer 0: death is -"},
    {no_flag, "a flag other than 0 or 1"},
};

Test(plan_file, a_damaged_file_is_refused)
{
    struct cli cli;
    cli_open(&cli);
    for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++) {
        cli_expect(&cli, 0, "plan small.yaml --out whole.h5");
        alter_copy(in(&cli, "whole.h5"), in(&cli, "plan.h5"));
        spoils[i].spoil(in(&cli, "plan.h5"));
        cli_expect(&cli, 2, "run small.yaml plan=plan.h5");
        cli_complains(&cli, spoils[i].says);
        cr_assert(cli_complaints(&cli) == 1, "%s", cli.err);
    }
    cli_expect(&cli, 2, "run small.yaml plan=nothing.h5");
    cli_complains(&cli, "nothing.h5: cannot read");
    cli_close(&cli);
}

Test(plan_file, overwrites_only_plan_files)
{
    struct cli cli;
    char baseline[600], variant[600], arguments[700];
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml");
    paths_of(&cli, baseline, variant);
    snprintf(arguments, sizeof arguments, "plan small.yaml --out %s", variant);
    cli_expect(&cli, 2, arguments);
    cli_complains(&cli, "no plan file");
    cli_expect(&cli, 2, "plan small.yaml --out small.yaml");
    cli_expect(&cli, 2, "plan small.yaml --out .");
    cli_expect(&cli, 0, "plan small.yaml"); /* small.yaml is unchanged */
    cli_expect(&cli, 2, "plan small.yaml --out");
    cli_expect(&cli, 3, "plan small.yaml --out nowhere/plan.h5");
    cli_complains(&cli, "nowhere/plan.h5");
    cli_expect(&cli, 3, "plan small.yaml --out /proc/plan.h5");
    cr_assert(cli_complaints(&cli) == 1, "%s", cli.err);
    cli_close(&cli);
}

/* Names that a temporary file could have, and a second name of the replaced file. */
Test(plan_file, leaves_other_files_alone)
{
    static const char *const names[] = {"plan.h5.new", "plan.h5.part", "plan.h5.end", "plan.h5.tmp"};
    struct cli cli;
    cli_open(&cli);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) cli_file(&cli, names[i], "of another\n");
    cli_expect(&cli, 0, "plan small.yaml --out plan.h5");
    cli_run(&cli, "ln plan.h5 kept.h5; cp plan.h5 before.h5", "plan small.yaml batch=9 --out plan.h5");
    cr_assert(cli.code == 0, "%s", cli.err);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, "--version >version; cat %s", names[i]);
        cli_expect(&cli, 0, arguments);
        cr_expect_str_eq(cli.out, "of another\n");
    }
    cli_expect(&cli, 0, "--version >version; cmp kept.h5 before.h5");
    cli_expect(&cli, 1, "--version >version; cmp plan.h5 before.h5");
    cr_expect(folder_count(cli.folder, "") == 11, "%d files", folder_count(cli.folder, ""));
    cli_close(&cli);
}

/* The limits grow from no block to enough; blocks have 512 or 1024 bytes, depending on the shell. */
Test(plan_file, is_complete_or_absent, .timeout = 120)
{
    struct cli cli;
    int full = 0, whole = 0;
    cli_open(&cli);
    for (int blocks = 0; blocks < 800; blocks += 40) {
        char limit[64];
        snprintf(limit, sizeof limit, "rm -f plan.h5; ulimit -f %d", blocks);
        cli_run(&cli, limit, "plan small.yaml --out plan.h5 --json >/dev/null"); /* >stdout comes after */
        int there = folder_count(cli.folder, "plan.h5");
        cr_assert(folder_count(cli.folder, "-0") == 0 && there == (cli.code == 0), "%d blocks, exit code %d\n%s",
                  blocks, cli.code, cli.err);
        cr_assert(cli.code == 0 || cli.code == 3, "%d blocks, exit code %d\n%s", blocks, cli.code, cli.err);
        full += cli.code == 3;
        whole += there;
        if (there) cli_expect(&cli, 0, "plan small.yaml plan=plan.h5");
    }
    cr_assert(full > 3 && whole > 1, "%d full, %d whole", full, whole);
    cli_close(&cli);
}
