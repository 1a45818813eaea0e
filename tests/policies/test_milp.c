/* The policy milp: schedules and proofs against an independent search, and solvers that misbehave. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policies/policy.h"
#include "search/solver.h"
#include "search/step_program.h"
#include "tests/support/cli.h"
#include "tests/support/graph_families.h"
#include "tests/support/graph_search.h"
#include "tests/support/policy_text.h"
#include "tests/support/thinning.h"

static const struct plan_options usual = {.lower = {.drop_dead = true}};

struct against {
    int budgets, equal, proven, ordered;
    double worst;
};

/* The time that a programme finds, INFINITY: it has no schedule that keeps the limit; and what it proves. */
static double solve(const struct network *network, size_t limit, bool ordered, double *bound, struct region *region)
{
    const struct step_model m = step_model_create(network, &usual.lower, region);
    struct step_program program;
    struct solver_answer answer;
    struct sequence_cost cost = {.time = INFINITY};
    char *folder;
    bool fits;
    cr_assert(solver_folder(region, &folder) == ST_OK, "%s", status_message());
    cr_assert(step_program_write(&m, limit, ordered, region_text(region, "%s/model.lp", folder), region, &program,
                                 &fits) == ST_OK &&
                  fits && solver_run(folder, 20, region, &answer) == ST_OK,
              "%s", status_message());
    solver_remove(folder);
    *bound = m.floor * (1 + answer.bound / step_program_floor);
    if (answer.solution) {
        struct sequence sequence = step_program_read(&program, answer.solution, region);
        cost = sequence_evaluate(&m, &sequence, limit);
        cr_assert(cost.peak <= limit || !ordered, "%zu of %zu bytes", cost.peak, limit);
    }
    return cost.time;
}

/* With the bytes of some steps of the front of all schedules: never faster than the optimum, which a proof means. */
static void compare(const struct sketch *sketch, const char *what, struct against *a)
{
    struct region *region = region_create();
    size_t limit = SIZE_MAX / 2;
    double least;
    struct schedule s = schedule_empty(region);
    for (int step = 0; graph_search(sketch->network, limit, INFINITY, &least, &s); step++, s = schedule_empty(region)) {
        const struct plan_cost cost = plan_cost(sketch->network, &s, &usual.lower);
        struct policy_notes notes = {0};
        struct plan *plan = plan_build(sketch->network, &s, &usual);
        char text[64];
        snprintf(text, sizeof text, "budget=%zu time_limit=300", plan_static(plan) + cost.live_peak);
        plan_destroy(plan);
        limit = cost.live_peak - 1;
        if (step % 3) continue;
        const struct policy_settings settings = policy_text_settings(policy_find("milp"), text, region);
        const struct policy_input input = {sketch->network, &settings, &usual, &notes};
        plan = NULL;
        const enum status status = policy_plan(policy_find("milp"), &input, &plan);
        const bool proven = strstr(notes.found, "proven the fastest of any class");
        a->budgets++;
        if (status == ST_SPEC) continue; /* outside the formulation */
        cr_assert(status == ST_OK, "%s: %s", what, status_message());
        cr_assert(plan->live_peak <= cost.live_peak && plan->time >= cost.time * (1 - 1e-12), "%s, %s: %g of %g: %s",
                  what, text, plan->time, cost.time, plan->schedule);
        cr_assert(!proven || plan->time <= cost.time * (1 + 1e-9), "%s, %s: %g, the optimum %g", what, text, plan->time,
                  cost.time);
        double bound;
        (void)solve(sketch->network, cost.live_peak, false, &bound, region);
        cr_assert(bound <= cost.time * (1 + 1e-9) && (!proven || bound >= cost.time * (1 - 1e-9)),
                  "%s, %s: %g, the bound %g%s", what, text, cost.time, bound, proven ? ", proven" : "");
        const double ordered = solve(sketch->network, cost.live_peak, true, &bound, region);
        cr_assert(ordered >= cost.time * (1 - 1e-12), "%s, %s: %g of %g", what, text, ordered, cost.time);
        a->ordered += ordered <= cost.time * (1 + 1e-9);
        a->equal += plan->time <= cost.time * (1 + 1e-9);
        a->proven += proven;
        a->worst = fmax(a->worst, plan->time / cost.time - 1);
        plan_destroy(plan);
    }
    region_destroy(region);
}

Test(milp, proofs_are_right, .timeout = 900)
{
    struct source source = {.seed = 21};
    struct against all = {0};
    if (!solver_found()) cr_skip_test("no cbc");
    for (int c = 0; c < 28; c += THINNING) {
        struct sketch sketch;
        family_draw(&sketch, &source, (enum family)(c % FAMILIES), 8 + c % 2);
        for (int n = 0; n < sketch.graph->nodes; n++) sketch.graph->node[n].relu_save = RELU_OUTPUT;
        network_settle_relus(sketch.network);
        compare(&sketch, family_names[c % FAMILIES], &all);
        sketch_end(&sketch);
    }
    printf("milp: the optimum of all schedules at %d of %d budgets, proven at %d, at most %.2f %% slower; at %d by the "
           "ordered programme alone\n",
           all.equal, all.budgets, all.proven, 100 * all.worst, all.ordered);
    cr_assert(20 * all.equal >= 19 * all.budgets && 2 * all.proven > all.budgets);
    cr_assert(20 * all.ordered >= 19 * all.budgets);
}

/* A folder with a program called cbc, before all others; and one for temporary files. */
struct fake {
    struct cli cli;
    char temporary[300];
};

static void fake_open(struct fake *f, const char *script)
{
    char path[300];
    cli_open(&f->cli);
    snprintf(path, sizeof path, "%s/cbc", f->cli.folder);
    snprintf(f->temporary, sizeof f->temporary, "%s/temporary", f->cli.folder);
    cr_assert(mkdir(f->temporary, 0700) == 0);
    if (!script) return;
    cli_file(&f->cli, "cbc", script);
    cr_assert(chmod(path, 0700) == 0);
}

/* Nothing is left: rmdir() succeeds. */
static void fake_close(struct fake *f)
{
    cr_expect(rmdir(f->temporary) == 0, "files are left in %s", f->temporary);
    cli_close(&f->cli);
}

static const char chain[] = "plan --graph chain.yaml 'policy={name: milp, budget: 60%, time_limit: 0.1}'";
static const char stages[] = "rematch: 1\nname: chain\nstages:\n"
                             "  - {repeat: 8, forward: 1, backward: 2, output: 10, saved: 0, gradient: 10, "
                             "forward_scratch: 0, backward_scratch: 0}\n";

static const struct {
    const char *script; /* NULL: there is no such program */
    int code;
    const char *says;
} solvers[] = {
    {NULL, 77, "coinor-cbc"},
    {"#!/bin/sh\nexit 0\n", 3, "cbc left no answer"},
    {"#!/bin/sh\nkill -SEGV $$\n", 3, "cbc was ended by signal 11"},
    {"#!/bin/sh\nhead -c 100000 /dev/urandom >solution.txt\n", 3, ""},
    {"#!/bin/sh\n: >solution.txt\n", 3, "cbc left no answer"},
    {"#!/bin/sh\necho 'Infeasible - objective value 0' >solution.txt\n", 2, "60%: no schedule keeps it"},
    {"#!/bin/sh\necho 'Stopped on time (no integer solution - continuous used) - objective value 0' >solution.txt\n", 2,
     "milp found no schedule that keeps it in 0.1 s"},
    {"#!/bin/sh\necho 'Optimal - objective value 0.5' >solution.txt\n", 2, "no schedule that milp finds keeps it"},
    {"#!/bin/sh\necho 'Optimal - objective value nan' >solution.txt\n"
     "for i in $(seq 100); do echo $i x$i nan 0; echo $i x-$i 1; echo x99999999999999999999 1; done >>solution.txt\n",
     2, "no schedule that milp finds keeps it"},
    {"#!/bin/sh\necho 'Optimal - objective value 1e300' >solution.txt\n"
     "for i in $(seq 0 2000); do echo $i x$i 1 0; done >>solution.txt\n",
     -1, ""},
};

/* Each is one error with its exit code, and leaves no file. */
Test(milp, a_solver_is_not_trusted, .timeout = 120)
{
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++) {
        struct fake f;
        char before[700];
        fake_open(&f, solvers[i].script);
        cli_file(&f.cli, "chain.yaml", stages);
        snprintf(before, sizeof before, "export TMPDIR=%s PATH=%s:%s", f.temporary, f.cli.folder,
                 solvers[i].script ? "$PATH" : "/nowhere");
        cli_run(&f.cli, before, chain);
        cr_expect(solvers[i].code < 0 || f.cli.code == solvers[i].code, "solver %zu: %d: %s%s", i, f.cli.code,
                  f.cli.out, f.cli.err);
        if (solvers[i].code > 0) cli_complains(&f.cli, solvers[i].says);
        cr_expect(f.cli.code < 128 && (f.cli.code == 0 || cli_complaints(&f.cli) <= 3), "solver %zu: %s", i, f.cli.err);
        fake_close(&f);
    }
}

/* It is interrupted, then killed; and a stop signal ends it at once. */
Test(milp, a_solver_that_hangs_is_ended, .timeout = 120)
{
    struct fake f;
    char before[700];
    fake_open(&f, "#!/bin/sh\ntrap '' INT\necho $PPID >$TMPDIR/../parent\nsleep 600\n");
    cli_file(&f.cli, "chain.yaml", stages);
    snprintf(before, sizeof before, "export TMPDIR=%s PATH=%s:$PATH", f.temporary, f.cli.folder);
    cli_run(&f.cli, before, chain);
    cr_expect(f.cli.code == 3, "%d: %s", f.cli.code, f.cli.err);
    cli_complains(&f.cli, "cbc was ended by signal 9");
    snprintf(before, sizeof before,
             "export TMPDIR=%s PATH=%s:$PATH; rm parent; (while [ ! -s parent ]; do sleep 0.1; done; "
             "kill -TERM $(cat parent)) & true",
             f.temporary, f.cli.folder);
    cli_run(&f.cli, before, chain);
    cr_expect(f.cli.code == 128 + 15, "%d: %s", f.cli.code, f.cli.err);
    fake_close(&f);
}

Test(milp, says_what_it_needs)
{
    struct cli cli;
    cli_open(&cli);
    cli_file(&cli, "chain.yaml", stages);
    cli_expect(&cli, 2, "plan --graph chain.yaml 'policy={name: milp, budget: least}'");
    cli_complains(&cli, "milp needs bytes such as 6GB");
    cli_expect(&cli, 2, "plan --graph chain.yaml policy=milp");
    cli_complains(&cli, "budget");
    cli_expect(&cli, 2, "plan --graph chain.yaml 'policy={name: milp, budget: 50%, time_limit: 0}'");
    cli_complains(&cli, "time_limit");
    cli_run(&cli, "export TMPDIR=/nowhere", "plan --graph chain.yaml 'policy={name: milp, budget: 60%}'");
    cr_expect(cli.code == 3 || cli.code == 77);
    cli_run(&cli, "export PATH=/nowhere", "plan --graph chain.yaml --pareto");
    cr_expect(cli.code == 0 && strstr(cli.out, "coinor-cbc"), "%d: %s%s", cli.code, cli.out, cli.err);
    cli_close(&cli);
}

/* A batch with slices has schedules that the programme does not know of, and that may be faster in fewer bytes. */
Test(milp, proves_nothing_about_slices)
{
    struct cli cli;
    if (!solver_found()) cr_skip_test("no cbc");
    cli_open(&cli);
    cli_file(&cli, "net.yaml",
             "rematch: 1\nname: net\nmodel:\n  layers:\n"
             "    - repeat: {name: r, times: 3, layers: [{conv: {channels: 8, kernel: 3, padding: 1}}, relu]}\n"
             "    - global_avg_pool\n    - linear: {units: classes}\n"
             "data: {name: synthetic, shape: [12, 12, 3], classes: 4}\nbatch: 8\nslices: 2\nsteps: 2\n"
             "optimizer: {name: sgd, lr: 0.1}\nbackend: ref\npolicy: {name: milp, budget: 80%}\n");
    cli_expect(&cli, 0, "plan net.yaml");
    cli_says(&cli, "of the undivided batch");
    cr_expect(!strstr(cli.out, "any class"), "%s", cli.out);
    cli_expect(&cli, 2, "plan net.yaml policy.budget=60%");
    cli_complains(&cli, "no schedule of the undivided batch");
    cli_expect(&cli, 0, "plan net.yaml policy=microbatch");
    cli_expect(&cli, 0, "plan net.yaml 'policy={name: optimal, budget: 60%}'");
    cli_close(&cli);
}
