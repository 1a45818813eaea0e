/* --json: one object on stdout, which begins with its schema; and what run says in it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/cli.h"

/* In a folder with small.yaml, two of its files A and B, a bundle and a plan. */
static const struct {
    const char *arguments, *schema;
    int code;
} answers[] = {
    {"list . --json", "list", 2}, /* the graph is no spec */
    {"list one --json", "list", 0},
    {"plan small.yaml --json", "plan", 0},
    {"plan small.yaml --ops --json", "plan", 0},
    {"plan small.yaml --pareto --json", "plan-pareto", 0},
    {"plan small.yaml --explain --json", "plan-explain", 0},
    {"plan small.yaml --max-batch --memory 1MiB --json", "plan-max-batch", 0},
    {"plan small.yaml --min-memory --slowdown 1.5 --json", "plan-min-memory", 0},
    {"plan --graph graph.yaml --json", "plan", 0},
    {"run small.yaml --json", "run", 0},
    {"run small.yaml --only variant --json", "run", 0},
    {"run small.yaml --json 'sweep={batch: [2, 4]}'", "sweep", 0},
    {"schema --json", "schema", 0},
    {"schema optimizer --json", "schema", 0},
    {"compare $A $B --json", "compare", 0},
    {"show $A --json", "show", 0},
    {"verify $B --plan-only --json", "verify", 0},
    {"verify x.tar.zst --plan-only --json", "verify-bundle", 0},
    {"doctor --json", "doctor", -1},
};

#define FILES "A=$(ls one/small/*.h5 | head -1); B=$(ls one/small/*.h5 | tail -1)"

Test(json, every_object_begins_with_its_schema, .timeout = 300)
{
    struct cli cli;
    json_error_t error;
    cli_open(&cli);
    cli_file(&cli, "graph.yaml",
             "rematch: 1\nname: g\nnodes:\n"
             "  - {name: a, forward: 1, backward: 2, output: 1KiB, saved: 0, gradient: 1KiB}\n");
    cli_expect(&cli, 0, "run small.yaml --quiet results=one");
    cli_expect(&cli, 0, "bundle one/small/*.h5 --out x.tar.zst");
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        char begins[80];
        cli_run(&cli, FILES, answers[i].arguments);
        cr_assert(cli.code == answers[i].code || answers[i].code < 0, "%s: exit code %d\n%s", answers[i].arguments,
                  cli.code, cli.err);
        snprintf(begins, sizeof begins, "{\n  \"schema\": \"rematch/%s/1\",\n", answers[i].schema);
        cr_expect(strncmp(cli.out, begins, strlen(begins)) == 0, "%s: %.200s", answers[i].arguments, cli.out);
        json_t *all = json_loads(cli.out, JSON_REJECT_DUPLICATES, &error);
        cr_expect(json_object_size(all) > 1, "%s: %s", answers[i].arguments, error.text);
        json_decref(all);
    }
    cli_close(&cli);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Beside what show and compare say of the files; numbers of the verdict are those of its text. */
Test(json, run_says_what_its_files_hold)
{
    static const struct {
        const char *arguments, *verdict;
        const char *judged[2]; /* of the two expectations */
        int code;
    } cases[] = {{"", "equal", {"met", "not met"}, 1},
                 {"policy=sqrt", "equal", {"not judged", "not judged"}, 0},
                 {"fault.kind=skip_recompute fault.step=2 fault.node=one", "differs", {"", ""}, 1}};
    struct cli cli;
    char arguments[1200];
    cli_open(&cli);
    cli_run(&cli,
            "echo 'expect: [{what: live_ratio, below: 9, source: one}, {what: live_ratio, above: 9, source: two}]' "
            ">>small.yaml",
            "--version");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(arguments, sizeof arguments, "run small.yaml --json %s", cases[i].arguments);
        json_t *run = cli_json(&cli, cases[i].code, arguments), *comparison = json_object_get(run, "comparison");
        const json_t *sides[] = {json_object_get(run, "baseline"), json_object_get(run, "variant")},
                     *expectations = json_object_get(run, "expectations");
        cr_expect(json_integer_value(json_object_get(run, "exit_code")) == cases[i].code);
        cr_expect_str_eq(text_of(comparison, "verdict"), cases[i].verdict);
        for (size_t k = 0; k < 2; k++)
            cr_expect_str_eq(text_of(json_array_get(expectations, k), "judgement"), cases[i].judged[k], "%s",
                             cases[i].arguments);
        for (int s = 0; s < 2; s++) {
            const bool finished = json_is_true(json_object_get(sides[s], "finished"));
            snprintf(arguments, sizeof arguments, "show %s --json", text_of(sides[s], "file"));
            json_t *shown = cli_json(&cli, 0, arguments);
            const json_t *plan = json_object_get(shown, "/plan"), *summary = json_object_get(shown, "/summary");
            cr_expect_str_eq(text_of(sides[s], "policy"), text_of(plan, "policy"));
            cr_expect(json_equal(json_object_get(sides[s], "peak_bytes"), json_object_get(plan, "peak_bytes")));
            cr_expect(!finished || json_number_value(json_object_get(sides[s], "last_loss")) ==
                                       json_number_value(json_object_get(summary, "final_loss")));
            json_decref(shown);
        }
        snprintf(arguments, sizeof arguments, "compare %s %s --json", text_of(sides[0], "file"),
                 text_of(sides[1], "file"));
        json_t *compared = cli_json(&cli, strcmp(cases[i].verdict, "equal") ? 1 : 0, arguments);
        json_object_del(compared, "schema");
        cr_expect(json_equal(compared, comparison), "%s", cases[i].arguments);
        json_decref(compared);
        json_decref(run);
    }
    cli_expect(&cli, 2, "run small.yaml --json --verbose");
    cli_complains(&cli, "run: --json and --verbose are two forms; choose one");
    cli_close(&cli);
}
