/* The program's interface: exit codes, clear errors, the JSON of plan and show. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "build.h"
#include "tests/support/altered_files.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"

/* Wrong command lines, and a part of the error: one line, except for errors in the spec, which are reported with their
 * places. */
static const struct {
    const char *arguments, *says;
} wrong[] = {
    {"fly", "unknown command 'fly'; rematch help lists them"},
    {"rnu small.yaml", "unknown command 'rnu' (did you mean 'run'?); "},
    {"Plan small.yaml", "unknown command 'Plan' (did you mean 'plan'?); "},
    {"-x", "unknown command '-x'; "},
    {"help fly", "unknown command 'fly'"},
    {"help plan run", "unexpected 'run'"},
    {"plan", "too few arguments"},
    {"plan --fast small.yaml", "unknown option --fast"},
    {"plan --jsno small.yaml", "unknown option --jsno (did you mean '--json'?); "},
    {"plan --MAX-BATCH=3 small.yaml", "unknown option --MAX-BATCH=3 (did you mean '--max-batch'?); "},
    {"compare --jsonn a b", "(did you mean '--json'?)"},
    {"report --jsno small.yaml", "unknown option --jsno; see rematch report --help"},
    {"plan --json=yes small.yaml", "--json takes no value"},
    {"run small.yaml backend=gpu", "(did you mean 'cuda'?)"},
    {"run small.yaml backend=GPU", "(did you mean 'cuda'?)"},
    {"run small.yaml backend.name=host", "(did you mean 'cpu'?)"},
    {"run small.yaml optimizer=adamW", "(did you mean 'adamw'?)"},
    {"run small.yaml optimizer.learning_rate=1", "(did you mean 'lr'?)"},
    {"plan small.yaml --memory 3GB", "--memory does not apply without a question"},
    {"plan small.yaml --pareto --explain", "--pareto and --explain are two questions"},
    {"plan small.yaml --pareto --slowdown 2", "--slowdown does not apply to --pareto"},
    {"plan small.yaml --pareto --ops", "--ops is about one plan"},
    {"plan small.yaml --max-batch --memory 3GB --alone", "--alone is about one plan"},
    {"plan small.yaml --explain --out plan.h5", "--out is about one plan"},
    {"plan small.yaml --pareto --csv --json", "choose one"},
    {"plan small.yaml --explain --csv", "--csv is a form of the answer to --pareto"},
    {"plan small.yaml --max-batch", "--max-batch needs --memory"},
    {"plan small.yaml --max-batch --memory", "expected BYTES"},
    {"plan small.yaml --max-batch --memory lots", "'lots' is not a size"},
    {"plan small.yaml --max-batch --memory 0", "'0' must be greater than 0"},
    {"plan small.yaml --max-batch --memory -1", "expected a size with a unit such as 16GB"},
    {"plan small.yaml --max-batch --memory 50%", "expected a size with a unit such as 16GB"},
    {"plan small.yaml --max-batch --memory 16", "'16' has no unit; expected a size with a unit such as 16GB"},
    {"plan small.yaml --max-batch --memory 1.5", "expected a size with a unit such as 16GB"},
    {"plan small.yaml --max-batch --memory 1GB --slowdown 0", "less than 1"},
    {"plan small.yaml --min-memory", "--min-memory needs --slowdown"},
    {"plan small.yaml --min-memory --slowdown 0.99", "less than 1"},
    {"plan small.yaml --min-memory --slowdown nan", "'nan' is not a number"},
    {"plan small.yaml --min-memory --slowdown inf", "'inf' is not a number"},
    {"plan small.yaml --min-memory --slowdown 10%", "not a number"},
    {"run small.yaml --pareto", "unknown option --pareto"},
    {"run small.yaml other.yaml", "unexpected 'other.yaml'"},
    {"run small.yaml --only both", "expected baseline|variant"},
    {"run small.yaml --only", "expected baseline|variant"},
    {"plan --graph", "too few arguments"},
    {"plan --graph nothing.yaml", "nothing.yaml"},
    {"plan --graph small.yaml", "a graph file has no such key; a spec is planned without --graph"},
    {"plan chain.yaml", "a spec has no such key; a graph file is planned by rematch plan --graph"},
    {"run nothing", "experiments/nothing.yaml"},
    {"run nothing.yaml", "neither nothing.yaml nor experiments/nothing.yaml is a file"},
    {"run .", "neither . nor experiments/..yaml is a file"},
    {"show nothing.h5", "nothing.h5: cannot read: No such file or directory"},
    {"run folder/nothing.yaml", "folder/nothing.yaml"},
    {"plan small.yaml --out", "--out has no value; expected FILE"},
    {"show small.yaml --out=x", "unknown option --out=x"},
    {"plan small.yaml costs.file=none.h5", "costs.file: none.h5: cannot read: No such file or directory"},
    {"plan small.yaml costs=measured", "costs.file: missing"},
    {"run small.yaml costs.file=small.yaml", "costs.file: small.yaml: not an HDF5 file"},
    {"compare one.h5", "too few arguments"},
    {"list nowhere", "nowhere"},
    {"show small.yaml", "not an HDF5 file"},
    {"child-run", "not by hand"},
    {"run small.yaml batch=51", "rematch: batch: 51 is more than the 50 training samples"},
    {"run small.yaml data.samples=7", "   15 | batch: 8\n               ^\nrematch: 1 error; nothing was run"},
    {"plan small.yaml data.samples=7", ": error: batch: 8 is more than the 7 training samples"},
    {"plan small.yaml policy=selective policy.kinds=[swish]",
     "policy.kinds: 'swish' is not known; expected some of conv|"},
    {"plan small.yaml policy=selective policy.kinds=[conv]",
     "the model has no layer of kind 'conv', but flatten|linear"},
    {"plan small.yaml policy=chen policy.segment_budget=lots", "policy.segment_budget: 'lots' is not a size"},
    {"plan small.yaml policy=optimal policy.budget=0", "policy.budget: '0' is not greater than 0"},
    {"plan small.yaml policy=optimal policy.budget=lots", "policy.budget: 'lots' is not a size"},
    {"run small.yaml policy=optimal policy.budget=1KiB", "the smallest budget that it found kept is "},
    {"run small.yaml policy=dtr policy.budget=1%", "dtr found no schedule that keeps it"},
    {"run small.yaml rng=unsafe policy=store_all", "recomputes no random node"},
    {"run small.yaml rng=unsafe policy=manual policy.schedule=linear", "recomputes no random node"},
    {"run small.yaml commit=every", "commit: every, but the plan recomputes no node with running state"},
    {"run small.yaml commit=each", "commit: 'each' is not known; expected one of once|every"},
    {"run small.yaml fault.kind=skip_recompute fault.node=three", "'three' lacks a recomputation"},
    {"run small.yaml fault.kind=mask_bit fault.node=four", "rematch: fault.node: the model has no node 'four'"},
    {"run small.yaml fault.kind=mask_bit fault.node=drop fault.step=4", "expected 0..3"},
    {"run small.yaml memory=dynamic fault.kind=stale_read fault.node=drop", "stale_read needs an arena"},
    {"run small.yaml data=ones data.shape=[4,4,1] data.classes=4 eval=test", "has no test samples"},
    {"plan small.yaml data=ones data.shape=[4] data.classes=4 data.samples=9", "data.samples"},
    {"schema nothing", "nothing is called 'nothing'"},
    {"plan ./pipe", "pipe: is a pipe that no program writes to"},
    {"plan --graph pipe", "pipe: is a pipe that no program writes to"},
    {"plan small.yaml model=pipe", "pipe: is not a plain file"},
    {"plan small.yaml costs.file=pipe", "costs.file: pipe: "},
    {"plan small.yaml policy=manual policy.schedule=empty", "empty: the schedule ends before node 0 has run forward"},
    {"plan small.yaml policy=manual policy.schedule=pipe", "policy.schedule: pipe: is not a plain file"},
    {"plan small.yaml plan=pipe", "pipe"},
    {"show pipe", "pipe: not a file"},
    {"verify pipe", "pipe: not a file"},
    {"plan small.yaml --out pipe", "pipe: exists and is no plan file"},
    {"run small.yaml steps=2 data=ones data.shape=[4] data.classes=4 epochs=2", "error"},
};

/* A pipe without a writer, which would block if opened like a file; an empty file; a chain; and a schedule that
 * recomputes only the first linear layer. */
static void make_odd_files(const struct cli *cli)
{
    char path[512];
    snprintf(path, sizeof path, "%s/pipe", cli->folder);
    cr_assert(mkfifo(path, 0600) == 0);
    cli_file(cli, "empty", "");
    cli_file(cli, "chain.yaml",
             "rematch: 1\nname: c\nstages: [{forward: 1, backward: 2, output: 3, saved: 4, gradient: 5}]\n");
    cli_file(cli, "linear", "F[0,6) B[2,6) F[1,2) B[0,2)\n");
}

Test(cli, wrong_arguments_exit_with_2, .timeout = 120)
{
    struct cli cli;
    cli_open(&cli);
    make_odd_files(&cli);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cli_expect(&cli, 2, wrong[i].arguments);
        cli_complains(&cli, wrong[i].says);
        cr_assert(*cli.out == '\0', "rematch %s printed\n%s", wrong[i].arguments, cli.out);
        const bool placed = strstr(cli.err, ": error: ") != NULL; /* errors in the spec are */
        cr_assert(placed || cli_complaints(&cli) == 1, "rematch %s:\n%s", wrong[i].arguments, cli.err);
    }
    cr_assert(folder_count(cli.folder, ".h5") + folder_count(cli.folder, ".part") == 0);
    cli_close(&cli);
}

/* The message has the beginning of the name, and the reason. */
Test(cli, an_overlong_name_keeps_the_reason)
{
    static const char *const commands[] = {
        "show ", "verify ", "plan --graph ", "plan ./", "plan small.yaml --out ", "plan small.yaml plan="};
    struct cli cli;
    cli_open(&cli);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, "%s$(printf 'a%%.0s' $(seq 6000))", commands[i]);
        cli_run(&cli, "", arguments);
        cr_assert((cli.code == 2 || cli.code == 3) && cli_complaints(&cli) == 1 && strlen(cli.err) < 2100, "%s: %d\n%s",
                  commands[i], cli.code, cli.err);
        cr_assert(strstr(cli.err, "aaaaaaaa") && strstr(cli.err, " too long\n"), "%s:\n%s", commands[i], cli.err);
    }
    cli_close(&cli);
}

/* Files that a spec names are beside it, wherever the program runs; those of an argument are in the current folder. */
Test(cli, files_are_found_beside_their_spec)
{
    static const char spec[] = "rematch: 1\nname: below\nmodel: layers.yaml\nsteps: 2\nbatch: 8\n"
                               "data: {name: synthetic, shape: [4, 4, 1], classes: 4, samples: 50}\n"
                               "policy: {name: manual, schedule: my.schedule}\n";
    struct cli cli;
    char more[1024];
    cli_open(&cli);
    cli_run(&cli, "mkdir below away", "--version");
    cli_file(&cli, "below/spec.yaml", spec);
    cli_file(&cli, "below/layers.yaml", "[flatten, linear: {units: 9, activation: relu}, linear: {units: classes}]\n");
    cli_file(&cli, "below/my.schedule", "F[0,4) B[2,4) F[1,2) B[0,2)\n");
    cli_file(&cli, "my.schedule", "F[0,4) B[0,4)\n");
    cli_expect(&cli, 0, "run below/spec.yaml --only variant results=timed");
    cli_run(&cli, "cp timed/below/*.h5 below/timed.h5", "--version");
    cli_expect(&cli, 0, "plan below/spec.yaml --out below/plan.h5");
    cli_says(&cli, "F[1,2)");
    cli_expect(&cli, 0, "plan below/spec.yaml policy.schedule=my.schedule");
    cr_expect(!strstr(cli.out, "F[1,2)"), "%s", cli.out);
    snprintf(more, sizeof more, "%splan: plan.h5\ncosts: {file: timed.h5}\n", spec);
    cli_file(&cli, "below/spec.yaml", more);
    snprintf(more, sizeof more, "cd away; '%s' run ../below/spec.yaml --only variant >log 2>&1; cd ..", cli_program());
    cli_run(&cli, more, "verify away/results/below/*.h5");
    cr_expect(cli.code == 0, "%s%s", cli.out, cli.err);
    cli_says(&cli, "same bits");
    cr_expect(!strstr(cli.out, "not judged"), "%s", cli.out);
    cli_close(&cli);
}

/* A backend with a program of its own, which was not copied. */
Test(cli, a_missing_cuda_program_is_named)
{
    struct cli cli;
    if (!strstr(BUILD_BACKENDS, "cuda")) cr_skip_test("no backend has a program of its own");
    cli_open(&cli);
    char alone[512];
    snprintf(alone, sizeof alone, "%s/alone", cli.folder);
    cli_run(&cli, "cp \"$REMATCH_BIN\" alone", "--version");
    setenv("REMATCH_BIN", alone, 1);
    cli_expect(&cli, 77, "plan small.yaml backend=cuda");
    cli_complains(&cli, "backend 'cuda' is in ");
    cli_complains(&cli, "/alone-cuda: No such file or directory\n");
    cli_close(&cli);
}

Test(cli, plan_json_is_complete)
{
    static const char *const numbers[] = {"static_bytes",  "live_peak_bytes", "arena_bytes", "arena_bound_bytes",
                                          "forward_flops", "recompute_flops", "slowdown",    "nodes",
                                          "stages",        "planning_ms",     "checking_ms"};
    struct cli cli;
    cli_open(&cli);
    json_t *plan = cli_json(&cli, 0, "plan small.yaml --json --ops");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        cr_assert(json_is_number(json_object_get(plan, numbers[i])), "%s\n%s", numbers[i], cli.out);
    const json_t *peak = json_object_get(plan, "peak"), *tensors = json_object_get(peak, "tensors");
    cr_assert(json_is_string(json_object_get(plan, "schedule")));
    cr_assert(json_is_string(json_object_get(peak, "op")));
    cr_assert(json_array_size(tensors) > 0);

    json_decref(plan);
    cli_close(&cli);
}

/* The bounds of a plan are in the text, in the JSON, and in the file of its run. */
Test(cli, plans_have_lower_bounds)
{
    struct cli cli;
    char said[64];
    cli_open(&cli);
    json_t *plan = cli_json(&cli, 0, "plan small.yaml --json policy=optimal policy.budget=95%");
    const json_t *own = json_object_get(plan, "bounds"), *budget = json_object_get(plan, "budget_bounds");
    cr_assert(json_equal(json_object_get(own, "live_bytes"), json_object_get(plan, "live_peak_bytes")));
    cr_assert(json_integer_value(json_object_get(own, "memory_floor_bytes")) > 0);
    for (int i = 0; i < 2; i++) {
        const json_t *bounds = i ? budget : own;
        double time = json_real_value(json_object_get(plan, "slowdown"));
        double best = json_real_value(json_object_get(bounds, "best_slowdown"));
        double gap = json_real_value(json_object_get(bounds, "gap_percent"));
        cr_assert(best >= 1 && best <= time && fabs(gap - 100 * (time / best - 1)) < 1e-9, "%g %g %g", time, best, gap);
    }
    cr_assert(json_integer_value(json_object_get(budget, "live_bytes")) >=
              json_integer_value(json_object_get(own, "live_bytes")));
    cr_assert(json_integer_value(json_object_get(json_object_get(plan, "placing"), "tries")) >= 1);
    json_decref(plan);
    cli_expect(&cli, 0, "plan small.yaml policy=every");
    cli_says(&cli, "lower bounds on every schedule");
    plan = cli_json(&cli, 0, "plan small.yaml policy=every --json");
    double gap = json_real_value(json_object_get(json_object_get(plan, "bounds"), "gap_percent"));
    snprintf(said, sizeof said, "gap_percent                %.9g %%\n", gap);
    json_decref(plan);
    cli_expect(&cli, 0, "run small.yaml --only variant --quiet policy=every");
    cli_run(&cli, "file=$(ls results/small/*.h5)", "show \"$file\"");
    cr_assert(cli.code == 0 && strstr(cli.out, said), "%s\nin\n%s", said, cli.out);
    cli_close(&cli);
}

Test(cli, show_json_holds_the_file)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --only variant --quiet steps=3 eval=test");
    cli_run(&cli, "file=$(ls results/small/*.h5)", "show \"$file\" --json");
    cr_assert(cli.code == 0, "%s", cli.err);
    json_t *all = json_loads(cli.out, 0, NULL);
    const json_t *root = json_object_get(all, "/"), *summary = json_object_get(all, "/summary"),
                 *steps = json_object_get(all, "steps"), *losses = json_object_get(steps, "loss");
    cr_assert_str_eq(json_string_value(json_object_get(root, "schema")), "rematch-run");
    cr_assert_str_eq(json_string_value(json_object_get(root, "status")), "completed");
    cr_assert(json_is_string(json_object_get(json_object_get(all, "/provenance/host"), "cpu")));
    cr_assert(!json_object_get(all, "/provenance/gpu"));
    cr_assert(json_integer_value(json_object_get(summary, "steps")) == 3 && json_array_size(losses) == 3);
    cr_assert(json_real_value(json_array_get(losses, 2)) == json_real_value(json_object_get(summary, "final_loss")));
    const json_t *times = json_object_get(steps, "total_ns"), *numbers = json_object_get(steps, "step");
    const double least = json_real_value(json_object_get(summary, "step_least_ns"));
    double found = INFINITY;
    for (size_t i = 0; i < 3; i++) {
        cr_assert(json_integer_value(json_array_get(numbers, i)) == (json_int_t)i);
        if (i) found = fmin(found, (double)json_integer_value(json_array_get(times, i)));
    }
    cr_assert(found == least, "%g %g", found, least);
    const json_t *ops = json_object_get(json_object_get(all, "summary"), "op_least_ns");
    json_int_t best_case = json_integer_value(json_object_get(summary, "rest_least_ns"));
    for (size_t i = 0; i < json_array_size(ops); i++) best_case += json_integer_value(json_array_get(ops, i));
    cr_assert(json_array_size(ops) > 6 &&
              json_integer_value(json_object_get(summary, "step_best_case_ns")) == best_case);
    json_t *overrides = json_object_get(json_object_get(all, "/spec"), "overrides");
    cr_assert_str_eq(json_string_value(json_array_get(overrides, 0)), "steps: 4 -> 3");
    cr_assert(strstr(json_string_value(json_object_get(json_object_get(all, "/plan"), "schedule")), "F[0,6) B["));
    cr_assert(json_array_size(json_object_get(json_object_get(all, "/plan"), "peak_tensors")) > 0);
    const json_t *eval = json_object_get(all, "eval");
    cr_assert(json_integer_value(json_array_get(json_object_get(eval, "step"), 0)) == 3);
    cr_assert(json_is_real(json_array_get(json_object_get(eval, "accuracy"), 0)));
    json_decref(all);
    cli_close(&cli);
}

/* The tensors live at the peak add up to it; no op has more; stages hold every node. */
static void check_sums(const json_t *plan)
{
    json_int_t live = json_integer_value(json_object_get(plan, "live_peak_bytes")), sum = 0, most = 0, nodes = 0;
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get(json_object_get(plan, "peak"), "tensors"), i, one)
        sum += json_integer_value(json_object_get(one, "bytes"));
    json_array_foreach (json_object_get(plan, "ops"), i, one) {
        json_int_t bytes = json_integer_value(json_object_get(one, "live_bytes"));
        most = bytes > most ? bytes : most;
    }
    json_array_foreach (json_object_get(plan, "table"), i, one)
        nodes += json_integer_value(json_object_get(one, "nodes"));
    cr_assert(sum == live && most == live, "%lld %lld %lld", sum, most, live);
    cr_assert(nodes == json_integer_value(json_object_get(plan, "nodes")));
}

Test(cli, plans_add_up)
{
    static const char *const how[] = {"",
                                      "policy=store_all",
                                      "policy=every",
                                      "policy=sqrt batch=50",
                                      "policy=segments policy.segments=3 policy.unit=stage rng=mask",
                                      "policy=sqrt policy.unit=stage",
                                      "policy=chen",
                                      "policy=revolve policy.slots=2 policy.unit=stage",
                                      "policy=selective"};
    struct cli cli;
    cli_open(&cli);
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments, "plan small.yaml --json --ops %s", how[i]);
        json_t *plan = cli_json(&cli, 0, arguments);
        check_sums(plan);
        json_decref(plan);
    }
    cli_close(&cli);
}

Test(cli, plan_text_and_json_agree)
{
    static const char *const said[] = {
        "one",      "kept",      "recomputed",        "static",           "live peak", "arena", "set by op",
        "slowdown", "F[0,6) B[", "fits this machine", "after the forward"};
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "plan small.yaml --ops");
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) cli_says(&cli, said[i]);
    cli_run(&cli, "sed -i '/^title/d' small.yaml", "plan small.yaml");
    cr_assert(!strncmp(cli.out, "small\n", 6), "it has no title:\n%s", cli.out);
    cr_assert(folder_count(cli.folder, ".h5") == 0);
    cli_close(&cli);
}

Test(cli, plan_lists_the_policies_that_fit)
{
    struct cli cli;
    cli_open(&cli);
    json_t *plan = cli_json(&cli, 0, "plan small.yaml --json batch=50 policy=sqrt"),
           *choices = json_object_get(plan, "choices"), *one;
    bool store_all = false, own = false;
    size_t i;
    json_array_foreach (choices, i, one) {
        const char *name = json_string_value(json_object_get(one, "policy"));
        const json_t *live = json_object_get(one, "live_peak_bytes");
        if (!strcmp(name, "store_all"))
            store_all = json_equal(live, json_object_get(plan, "store_all_live_peak_bytes"));
        if (!strcmp(name, "sqrt")) own = json_equal(live, json_object_get(plan, "live_peak_bytes"));
        cr_assert(json_is_true(json_object_get(one, "fits")));
    }
    cr_assert(store_all && own, "%s", cli.out);
    json_decref(plan);
    plan = cli_json(&cli, 0, "plan small.yaml --json --alone batch=50 policy=sqrt");
    choices = json_object_get(plan, "choices");
    cr_expect(json_array_size(choices) == 1, "only store_all, to which a plan is compared");
    cr_expect(json_is_integer(json_object_get(plan, "store_all_live_peak_bytes")));
    json_decref(plan);
    cli_expect(&cli, 0, "plan small.yaml batch=100000 data.samples=1000000 data.shape=[1024,1024,16]");
    cli_says(&cli, "\ndoes not fit this machine: needs ");
    cli_close(&cli);
}

Test(cli, plan_explains_why_checkpointing_cannot_help)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "plan small.yaml batch=1 policy=every");
    cli_says(&cli, "no checkpointing touches them");
    cli_expect(&cli, 0, "plan small.yaml batch=50 policy=segments policy.segments=1 policy.keep_last=false");
    cli_says(&cli, "the recomputation costs time and saves nothing");
    cli_expect(&cli, 0, "plan small.yaml batch=50 policy=segments policy.segments=5 policy.unit=stage");
    cli_says(&cli, "policy segments recomputes nothing on this network");
    cli_expect(&cli, 0, "plan small.yaml batch=50");
    cr_assert(strstr(cli.out, "note:") == NULL);
    cli_close(&cli);
}

/* In the text, in the JSON, and in the file of the plan. */
Test(cli, policies_report_their_search)
{
    static const struct {
        const char *policy, *found;
    } cases[] = {{"chen", "segments end after "}, {"dtr", "the schedule of "}, {"sqrt", NULL}};
    struct cli cli;
    cli_open(&cli);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, "plan small.yaml policy=%s --out plan.h5 --json", cases[i].policy);
        json_t *plan = cli_json(&cli, 0, arguments);
        const char *found = json_string_value(json_object_get(plan, "policy_found"));
        cr_assert(cases[i].found ? found && strstr(found, cases[i].found) : !found, "%s: %s", cases[i].policy, found);
        snprintf(arguments, sizeof arguments, "plan small.yaml policy=%s", cases[i].policy);
        cli_expect(&cli, 0, arguments);
        if (found) cli_says(&cli, found);
        cli_expect(&cli, 0, "show plan.h5");
        if (found) cli_says(&cli, found);
        json_decref(plan);
    }
    cli_close(&cli);
}

/* A file's texts are not trusted: shown, they cannot control the terminal. */
Test(cli, texts_of_a_file_cannot_control_a_terminal)
{
    static const char *const ways[] = {"show odd.h5", "show odd.h5 --json", "list ."};
    struct cli cli;
    char path[512];
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --only variant --quiet steps=1");
    cli_run(&cli, "mv results/small/*.h5 odd.h5", "show odd.h5");
    snprintf(path, sizeof path, "%s/odd.h5", cli.folder);
    alter_text(path, "/", "title",
               "odd\x1b[31m \xC2\x9B"
               "31m\xFF\nverdict   EQUAL");
    alter_text(path, "/", "status",
               "done\x1b[31m \xC2\x9B"
               "31m\xFF\nverdict   EQUAL");
    cli_run(&cli, "cp odd.h5 results/small/odd.h5", "list .");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        cli_expect(&cli, 0, ways[i]);
        cli_says(&cli, "?[31m ??31m??verdict   EQUAL");
        cr_assert(!strpbrk(cli.out, "\x1b\x9b\xff"), "%s", cli.out);
    }
    cli_close(&cli);
}

/* Without the data set of tweets, the run uses synthetic tokens, and every output says so. */
Test(cli, synthetic_tokens_are_announced)
{
    static const char text[] = "rematch: 1\nname: text\n"
                               "model: {layers: [embedding: {vocabulary: 9000, positions: 4, units: 2}, select, "
                               "linear: {units: classes}]}\n"
                               "data: {name: tweets, max_length: 4}\nbatch: 2\nsteps: 1\noptimizer: {lr: 1e-9}\n"
                               "expect:\n  - {what: loss, below: 1e-6, source: us}\n"
                               "  - {what: peak_ratio, below: 9, source: us}\n";
    struct cli cli;
    cli_open(&cli);
    cli_file(&cli, "text.yaml", text);
    cli_run(&cli, "unset REMATCH_DATA", "plan text.yaml");
    cr_assert(cli.code == 0, "%s", cli.err);
    cli_complains(&cli, "warning: SYNTHETIC tokens stand in for the tweets: data set tweets: no tweets.csv");
    cli_run(&cli, "unset REMATCH_DATA", "run text.yaml --quiet");
    cr_assert(cli.code == 4 && cli_complaints(&cli) == 1, "%s%s", cli.out, cli.err);
    cli_complains(&cli, "warning: SYNTHETIC");
    cli_says(&cli, "not judged: other data stand in");
    cli_says(&cli, "met (us)");
    cli_run(&cli, "file=$(ls results/text/*.h5 | head -1)", "show \"$file\" --provenance");
    cli_says(&cli, "SYNTHETIC tokens stand in");
    cli_says(&cli, "synthetic-tokens\n");
    cli_run(&cli, "unset REMATCH_DATA", "run text.yaml data.path=/nowhere");
    cr_assert(cli.code == 77 && cli_complaints(&cli) == 1, "%s", cli.err);
    cli_close(&cli);
}
