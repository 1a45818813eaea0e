/* Plans of graph files that are taken home: stored, shown, checked and reported; their times are no flops. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/altered_files.h"
#include "tests/support/cli.h"

/* Four nodes in a row; the first two are recomputed, and the second's output is what the recomputation is followed by.
 */
static const char chain[] = "rematch: 1\nname: four\ntitle: in a row\nbatch: 2\nstages:\n"
                            "  - {name: a, forward: 1, backward: 2, output: 10, saved: 1, gradient: 10}\n"
                            "  - {name: b, forward: 3, backward: 4, output: 20, saved: 2, gradient: 20}\n"
                            "  - {name: c, forward: 5, backward: 6, output: 30, saved: 3, gradient: 30}\n"
                            "  - {name: d, forward: 7, backward: 8, output: 40, saved: 4, gradient: 40}\n";
static const char manual[] = "'policy={name: manual, schedule: two.schedule}'";

static const struct {
    const char *name, *action;
    double bytes, output, recomputations, time; /* bytes: when the forward ends; time: of its recomputation */
} nodes[] = {{"a", "recompute", 0, 10, 1, 1},
             {"b", "recompute", 20, 20, 1, 3},
             {"c", "store", 33, 30, 0, 0},
             {"d", "store", 4, 40, 0, 0}};
enum { NODES = sizeof nodes / sizeof *nodes };

static void open_chain(struct cli *cli)
{
    cli_open(cli);
    cli_file(cli, "four.yaml", chain);
    cli_file(cli, "two.schedule", "F[0,4) B[2,4) F[0,2) B[0,2)\n");
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_number(value), "%s is no number", key);
    return json_number_value(value);
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

/* The rows are those counted by hand, in times. */
static void check_nodes(const json_t *rows, const char *of)
{
    cr_assert(json_array_size(rows) == NODES, "%s: %zu rows", of, json_array_size(rows));
    for (size_t i = 0; i < NODES; i++) {
        const json_t *row = json_array_get(rows, i);
        cr_expect(!strcmp(text(row, "name"), nodes[i].name) && !strcmp(text(row, "action"), nodes[i].action),
                  "%s: %s: %s", of, text(row, "name"), text(row, "action"));
        cr_expect(number(row, "bytes") == nodes[i].bytes && number(row, "output_bytes") == nodes[i].output,
                  "%s: %s: %g bytes", of, nodes[i].name, number(row, "bytes"));
        cr_expect(number(row, "recomputations") == nodes[i].recomputations &&
                      number(row, "recompute_time") == nodes[i].time,
                  "%s: %s", of, nodes[i].name);
    }
}

static void expect_no_flops(const struct cli *cli, const char *of)
{
    cr_expect(!strstr(cli->out, "flop") && !strstr(cli->out, "FLOP"), "%s:\n%s", of, cli->out);
}

Test(graph_plans, json_has_a_row_a_node)
{
    struct cli cli;
    char arguments[256];
    open_chain(&cli);
    snprintf(arguments, sizeof arguments, "plan --graph four.yaml --json %s", manual);
    json_t *plan = cli_json(&cli, 0, arguments);
    expect_no_flops(&cli, "--json");
    check_nodes(json_object_get(plan, "node_table"), "plan");
    cr_expect(number(plan, "forward_time") == 16 && number(plan, "backward_time") == 20 &&
              number(plan, "recompute_time") == 4 && number(plan, "time") == 40);
    cr_expect(!strcmp(text(plan, "costs"), "file"));
    json_decref(plan);
    plan = cli_json(&cli, 0, "plan small.yaml --alone --json");
    const json_t *rows = json_object_get(plan, "node_table"), *first = json_array_get(rows, 1);
    cr_expect(json_array_size(rows) == 6 && !strcmp(text(first, "name"), "one"), "%s", cli.out);
    cr_expect(!strcmp(text(first, "action"), "recompute") && number(first, "recompute_flops") > 0, "%s", cli.out);
    cr_expect(number(plan, "forward_flops") > 0 && !strcmp(text(plan, "costs"), "flops"));
    json_decref(plan);
    static const char *const others[] = {"", "--pareto", "--explain", "--pareto --csv",
                                         "--max-batch --memory 1MB --json"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(arguments, sizeof arguments, "plan --graph four.yaml %s", others[i]);
        cli_expect(&cli, 0, arguments);
        expect_no_flops(&cli, others[i]);
    }
    cli_close(&cli);
}

/* The tree in a page, to be freed by json_decref. */
static json_t *tree_of(const struct cli *cli, const char *page)
{
    static const char begins[] = "type=\"application/json\"";
    char path[512];
    static char all[1 << 22];
    snprintf(path, sizeof path, "%s/%s", cli->folder, page);
    FILE *file = fopen(path, "r");
    cr_assert(file);
    all[fread(all, 1, sizeof all - 1, file)] = '\0';
    fclose(file);
    const char *script = strstr(all, begins), *from = script ? strchr(script, '{') : NULL;
    const char *to = from ? strstr(from, "</script>") : NULL;
    cr_assert(to, "%s has no tree", page);
    json_t *tree = json_loadb(from, (size_t)(to - from), 0, NULL);
    cr_assert(tree);
    return tree;
}

/* As it was planned, whatever the policy; and the file alone has all that another machine needs. */
/* Three operators of a forward, of which the first is recomputed before the backward of the second. */
static const char traced[] =
    "rematch: 1\nname: traced\nbatch: 1\ntensors: [{name: x, bytes: 9, constant: true}, {name: a, bytes: 8}, {name: b, "
    "bytes: 4}, {name: m, bytes: 2}, {name: c, bytes: 1}, {name: db, bytes: 4}, {name: da, bytes: 8}, {name: dw, "
    "bytes: "
    "3}]\noperators:\n"
    "  - {name: f0, time: 1, reads: [x], writes: [a]}\n"
    "  - {name: f1, time: 2, reads: [a], writes: [b, m]}\n"
    "  - {name: f2, time: 3, reads: [b], writes: [c]}\n"
    "  - {name: b2, phase: backward, time: 4, reads: [c, b], writes: [db]}\n"
    "  - {name: b1, phase: backward, time: 5, reads: [db, m, a], writes: [da]}\n"
    "  - {name: b0, phase: backward, time: 6, reads: [da, x], writes: [dw]}\n";

static const struct {
    const char *name, *pass, *frees;
    bool recompute;
} operators[] = {
    {"f0", "forward", "", false},
    {"f1", "forward", "f0.y ", false},
    {"f2", "forward", "", false},
    {"b2", "backward", "f1.y f2.y ", false},
    {"f0", "forward", "", true},
    {"b1", "backward", "f1.saved b2.gradient f0.y ", false},
    {"b0", "backward", "b1.gradient ", false},
};
enum { OPERATORS = sizeof operators / sizeof *operators };

Test(graph_plans, json_lists_the_operators_of_a_traced_step)
{
    struct cli cli;
    cli_open(&cli);
    cli_file(&cli, "traced.yaml", traced);
    cli_file(&cli, "one.schedule", "F[0,3) B[2,3) F[0,1) B[0,2)\n");
    json_t *plan = cli_json(&cli, 0,
                            "plan --graph traced.yaml 'policy={name: manual, schedule: one.schedule}' --alone --json "
                            "--ops --out traced.h5"),
           *ops = json_object_get(plan, "ops");
    cr_assert(json_array_size(ops) == OPERATORS, "%zu ops", json_array_size(ops));
    for (size_t i = 0; i < OPERATORS; i++) {
        const json_t *op = json_array_get(ops, i), *frees = json_object_get(op, "frees");
        char freed[128] = "";
        for (size_t k = 0; k < json_array_size(frees); k++)
            snprintf(freed + strlen(freed), sizeof freed - strlen(freed), "%s ",
                     json_string_value(json_array_get(frees, k)));
        cr_expect(!strcmp(text(op, "name"), operators[i].name) && !strcmp(text(op, "pass"), operators[i].pass),
                  "%zu: %s", i, text(op, "name"));
        cr_expect(json_is_true(json_object_get(op, "recompute")) == operators[i].recompute, "%zu", i);
        cr_expect_str_eq(freed, operators[i].frees, "%zu: %s", i, freed);
    }
    json_decref(plan);
    cli_expect(&cli, 0, "verify traced.h5 --plan-only");
    cli_says(&cli, "plan      right: 7 ops");
    cli_close(&cli);
}

Test(graph_plans, are_stored_and_checked)
{
    static const char *const policies[] = {manual, "policy=store_all", "policy=every batch=8",
                                           "'policy={name: optimal, budget: 90%}'", "policy=dtr"};
    static const char *const same[] = {"live_peak_bytes", "arena_bytes",  "peak_bytes",    "time",
                                       "slowdown",        "static_bytes", "recomputations"};
    struct cli cli;
    char arguments[512];
    open_chain(&cli);
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        snprintf(arguments, sizeof arguments, "plan --graph four.yaml %s --json --out %zu.h5", policies[i], i);
        json_t *plan = cli_json(&cli, 0, arguments);
        snprintf(arguments, sizeof arguments, "show %zu.h5 --json", i);
        json_t *file = cli_json(&cli, 0, arguments);
        const json_t *stored = json_object_get(file, "/plan");
        for (size_t k = 0; k < sizeof same / sizeof *same; k++)
            cr_expect(number(plan, same[k]) == number(stored, same[k]), "%s: %s", policies[i], same[k]);
        cr_expect(!strcmp(text(plan, "hash"), text(stored, "hash")) &&
                      !strcmp(text(plan, "schedule"), text(stored, "schedule")),
                  "%s", policies[i]);
        json_decref(plan);
        json_decref(file);
        snprintf(arguments, sizeof arguments, "show %zu.h5", i);
        cli_expect(&cli, 0, arguments);
        expect_no_flops(&cli, arguments);
        cli_says(&cli, "in a row");
    }
    cli_run(&cli, "rm four.yaml two.schedule", "--version"); /* at home they are missing */
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        if (policies[i] == manual) continue; /* its spec names a file, as that of any manual schedule */
        snprintf(arguments, sizeof arguments, "verify %zu.h5", i);
        cli_expect(&cli, 0, arguments);
        cli_says(&cli, "plan      right: ");
        cli_says(&cli, "bounds    right: ");
    }
    cli_close(&cli);
}

/* Of a stored plan an alteration is found, of the plan and of the graph. */
Test(graph_plans, an_altered_file_is_wrong)
{
    struct cli cli;
    char path[512];
    open_chain(&cli);
    cli_expect(&cli, 0, "plan --graph four.yaml policy=every --out plan.h5");
    snprintf(path, sizeof path, "%s/plan.h5", cli.folder);
    alter_array_text(path, "/spec/resolved",
                     "rematch: 1\nname: four\ntitle: in a row\nbatch: 2\nplaced: true\npolicy: every\nnodes:\n"
                     "  - {name: a, forward: 1, backward: 2, output: 11, saved: 1, gradient: 10}\n"
                     "  - {name: b, forward: 3, backward: 4, output: 20, saved: 2, gradient: 20}\n"
                     "  - {name: c, forward: 5, backward: 6, output: 30, saved: 3, gradient: 30}\n"
                     "  - {name: d, forward: 7, backward: 8, output: 40, saved: 4, gradient: 40}\n");
    cli_expect(&cli, 1, "verify plan.h5");
    cli_says(&cli, "it is not of its spec: ");
    cli_expect(&cli, 0, "plan --graph four.yaml policy=every --out plan.h5"); /* a plan file is replaced */
    cli_expect(&cli, 0, "verify plan.h5");
    alter_element(path, "/plan/nodes/output_bytes", 1, 1);
    cli_expect(&cli, 1, "verify plan.h5");
    cli_expect(&cli, 2, "plan --graph four.yaml --out two.schedule");
    cli_complains(&cli, "two.schedule: exists and is no plan file; nothing was written");
    cli_close(&cli);
}

Test(graph_plans, have_a_page)
{
    struct cli cli;
    char arguments[256];
    open_chain(&cli);
    snprintf(arguments, sizeof arguments, "plan --graph four.yaml %s --out a.h5", manual);
    cli_expect(&cli, 0, arguments);
    cli_expect(&cli, 0, "plan --graph four.yaml --out b.h5");
    cli_expect(&cli, 0, "report a.h5 b.h5 -o page.html --trace step.json");
    json_t *tree = tree_of(&cli, "page.html");
    const json_t *plans = json_object_get(tree, "plans"), *choices = json_object_get(tree, "choices");
    cr_assert(json_array_size(plans) == 2);
    /* that of store_all, which the other is compared with, comes first */
    check_nodes(json_object_get(json_array_get(plans, 1), "nodes"), "page");
    /* other policies are planned from the file alone, as plan --pareto plans them from the graph file */
    json_t *pareto = cli_json(&cli, 0, "plan --graph four.yaml placed=true --pareto --json");
    const size_t plans_here = json_array_size(json_object_get(pareto, "plans"));
    cr_expect(json_array_size(json_object_get(choices, "plans")) + 1 >= plans_here && plans_here > 9,
              "%zu of %zu plans", json_array_size(json_object_get(choices, "plans")), plans_here);
    json_decref(pareto);
    json_decref(tree);
    cli_close(&cli);
}

/* A long schedule is cut after some steps; --json has all of it. */
Test(graph_plans, no_schedule_is_an_endless_line)
{
    enum { LONGEST = 1000 };
    struct cli cli;
    char arguments[128];
    cli_open(&cli);
    cli_file(&cli, "wave.yaml",
             "rematch: 1\nname: wave\nbatch: 1\nstages:\n"
             "  - {repeat: 300, name: step, forward: 1, backward: 1, output: 1, saved: 0, gradient: 1}\n");
    json_t *plan = cli_json(&cli, 0, "plan --graph wave.yaml policy=revolve policy.slots=5 --out wave.h5 --json");
    const char *schedule = text(plan, "schedule");
    int steps = 1;
    for (const char *c = schedule; *c; c++) steps += *c == ' ';
    cr_assert(steps > 500 && strlen(schedule) > 2 * (size_t)LONGEST, "%d steps", steps);
    static const char *const commands[] = {"plan --graph wave.yaml policy=revolve policy.slots=5 --alone",
                                           "show wave.h5"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        cli_expect(&cli, 0, commands[i]);
        for (const char *line = cli.out; *line; line += strcspn(line, "\n"), line += *line == '\n')
            cr_expect(strcspn(line, "\n") < LONGEST, "%s: %.60s...", commands[i], line);
        snprintf(arguments, sizeof arguments, "... and %d more of %d steps; --json has all\n", steps - 40, steps);
        cli_says(&cli, arguments);
        cr_expect(strstr(cli.out, " F[0,300) "), "%s", cli.out);
    }
    json_decref(plan);
    cli_expect(&cli, 0, "plan small.yaml --alone"); /* a short one is whole */
    cli_says(&cli, "\nschedule F[0,6) B[");
    cr_expect(!strstr(cli.out, "--json has"), "%s", cli.out);
    cli_close(&cli);
}
