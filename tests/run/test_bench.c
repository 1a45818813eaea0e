/* From `bench --costs` to the prediction beside the measured time, through the program. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "result/result.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"

static json_t *plan(struct cli *cli, const char *more)
{
    char arguments[600];
    snprintf(arguments, sizeof arguments, "plan small.yaml --json %s", more);
    return cli_json(cli, 0, arguments);
}

static double number(const json_t *json, const char *key) { return json_number_value(json_object_get(json, key)); }

static double real_at(struct h5 *h5, const char *object, const char *name)
{
    double value = NAN;
    h5_read_value(h5, object, name, NUMBER_F64, true, &value, NULL);
    return value;
}

/* If one step counts, its ops and the rest add up to it. */
static void check_undisturbed(struct h5 *h5)
{
    static const char *const phases[] = {"/steps/forward_ns", "/steps/recompute_ns", "/steps/backward_ns"};
    const uint64_t ops = h5_rows(h5, "/summary/op_least_ns"),
                   best_case = h5_read_attribute_u64(h5, "/summary", "step_best_case_ns", 0);
    uint64_t sum = h5_read_attribute_u64(h5, "/summary", "rest_least_ns", 0), ns;
    cr_expect(sum > 0 && ops > 6 && ops == h5_rows(h5, "/plan/ops/op"), "%llu", (unsigned long long)ops);
    uint64_t least = 0, all = 0;
    for (uint64_t i = 0; i < ops; i++) {
        h5_read_rows(h5, "/summary/op_least_ns", NUMBER_U64, 1, i, 1, &ns);
        cr_expect(ns > 0, "op %llu", (unsigned long long)i);
        least += ns;
    }
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        h5_read_rows(h5, phases[i], NUMBER_U64, 1, 1, 1, &ns);
        all += ns;
    }
    cr_expect(least <= all && 2 * least > all, "%llu of %llu", (unsigned long long)least, (unsigned long long)all);
    h5_read_rows(h5, "/steps/total_ns", NUMBER_U64, 1, 1, 1, &ns);
    cr_expect(sum + least == best_case && best_case == ns);
}

/* The file of a side has the plan's prediction, and a percentage that follows from its figures. */
static void check_file(const struct cli *cli, const char *side, double predicted, double time)
{
    char start[32], path[600], name[256];
    struct result *r;
    snprintf(start, sizeof start, "\n%-9s results/", side);
    const char *at = strstr(cli->out, start);
    cr_assert(at && sscanf(at + 11, "%255s", name) == 1, "%s", cli->out);
    snprintf(path, sizeof path, "%s/%s", cli->folder, name);
    cr_assert(result_open(path, &r) == ST_OK, "%s", status_message());
    struct h5 *h5 = &r->h5;
    const double median = real_at(h5, "/summary", "step_median_ns");
    const char *text = h5_read_text(h5, "/plan/costs", r->region);
    char digest[33];
    cr_expect(real_at(h5, "/plan", "predicted_step_ns") == predicted, "%s", side);
    cr_expect(real_at(h5, "/plan", "time") == time);
    cr_expect(real_at(h5, "/summary", "predicted_step_ns") == predicted);
    cr_expect(fabs(real_at(h5, "/summary", "prediction_percent") - (predicted - median) / median * 100) < 1e-6);
    cr_expect(!strcmp(h5_read_attribute_text(h5, "/plan", "costs", "", r->region), "measured"));
    cr_expect(!strcmp(h5_read_attribute_text(h5, "/plan", "costs_file", "", r->region), "costs.yaml"));
    cr_expect(!strcmp(h5_read_attribute_text(h5, "/plan", "costs_digest_xxh3", "", r->region),
                      digest_print(digest_bytes(text, strlen(text)), digest)));
    double sum = 0, costs[3] = {0};
    uint64_t nodes = h5_rows(h5, "/plan/nodes/forward_cost");
    for (uint64_t i = 0; i < nodes; i++) {
        h5_read_rows(h5, "/plan/nodes/forward_cost", NUMBER_F64, 1, i, 1, costs);
        h5_read_rows(h5, "/plan/nodes/backward_cost", NUMBER_F64, 2, i, 1, costs + 1);
        sum += costs[0] + costs[1] + costs[2];
    }
    const double slowdown = real_at(h5, "/plan", "slowdown");
    cr_expect(nodes == 6 && fabs(sum * slowdown - time) < 1, "%g %g %g", sum, slowdown, time);
    check_undisturbed(h5);
    cr_expect(h5_status(h5) == ST_OK, "%s", status_message());
    result_close(r);
}

Test(bench, measured_costs_predict_the_step)
{
    static const char *const backends[] = {"ref", "cpu"};
    for (int b = 0; b < 2; b++) {
        struct cli cli;
        char bench[256], how[256], arguments[512];
        cli_open(&cli);
        snprintf(bench, sizeof bench, "bench --costs small.yaml backend=%s baseline.relu_save=bits --out costs.yaml",
                 backends[b]);
        cli_expect(&cli, 0, bench);
        cr_assert(*cli.out == '\0' && folder_count(cli.folder, ".part") == 0);
        cli_complains(&cli, "kinds of nodes in costs.yaml");
        snprintf(how, sizeof how, "backend=%s baseline.relu_save=bits costs=measured costs.file=costs.yaml",
                 backends[b]);
        json_t *variant = plan(&cli, how);
        cr_expect(!strcmp(json_string_value(json_object_get(variant, "costs")), "measured"));
        cr_expect(number(variant, "predicted_step_ns") > number(variant, "time") && number(variant, "time") > 0);
        snprintf(arguments, sizeof arguments, "%s policy=store_all relu_save=bits", how);
        json_t *baseline = plan(&cli, arguments);
        cr_expect(number(baseline, "slowdown") == 1 && number(variant, "slowdown") > 1);
        snprintf(arguments, sizeof arguments, "run small.yaml steps=2 %s", how);
        cli_expect(&cli, 0, arguments);
        cli_says(&cli, "by measured costs, ");
        cli_says(&cli, " than measured, ");
        cli_says(&cli, " than the best case");
        check_file(&cli, "baseline", number(baseline, "predicted_step_ns"), number(baseline, "time"));
        check_file(&cli, "variant", number(variant, "predicted_step_ns"), number(variant, "time"));
        json_decref(variant);
        json_decref(baseline);
        cli_close(&cli);
    }
}

Test(bench, without_a_file_costs_go_to_stdout)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "bench --costs small.yaml");
    cli_says(&cli, "rematch_costs: 1\n");
    cli_says(&cli, "  # one\n");
    char *text = strdup(cli.out);
    cli_file(&cli, "costs.yaml", text);
    cli_expect(&cli, 0, "plan small.yaml costs=measured costs.file=costs.yaml");
    cli_says(&cli, "a step is predicted to take ");
    cli_says(&cli, "by measured costs");
    cr_assert(strstr(cli.out, "not as here") == NULL, "%s", cli.out);
    char *threads = strstr(text, "threads: 1");
    cr_assert(threads != NULL);
    threads[9] = '4';
    cli_file(&cli, "costs.yaml", text);
    cli_expect(&cli, 0, "plan small.yaml costs=measured costs.file=costs.yaml");
    cli_says(&cli, "4 threads");
    cli_says(&cli, "not as here: the prediction is theirs");
    free(text);
    cli_expect(&cli, 2, "plan small.yaml batch=4 costs=measured costs.file=costs.yaml");
    cli_complains(&cli, "costs.yaml: batch: measured with 8 samples, the spec has 4; make the file with rematch bench");
    cr_expect(cli_complaints(&cli) == 1, "%s", cli.err);
    cli_expect(&cli, 2, "run small.yaml optimizer.momentum=0 costs=measured costs.file=costs.yaml");
    cli_complains(&cli, "costs.yaml: step: measured with");
    cli_close(&cli);
}

/* The name of the file does not enter the run id, its content does. */
Test(bench, the_run_id_depends_on_the_content_of_the_costs)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "bench --costs small.yaml --out costs.yaml");
    cli_expect(&cli, 0, "run small.yaml --quiet --only variant costs=measured costs.file=costs.yaml");
    cr_expect(folder_count(cli.folder, ".h5") == 1);
    cli_run(&cli, "cp costs.yaml other.yaml",
            "run small.yaml --quiet --only variant costs=measured costs.file=other.yaml");
    cr_expect(cli.code == 0 && folder_count(cli.folder, ".h5") == 1, "%s", cli.err);
    cli_run(&cli, "sed -i 's/digest: /digest: 1/' other.yaml",
            "run small.yaml --quiet --only variant costs=measured costs.file=other.yaml");
    cr_expect(cli.code == 0 && folder_count(cli.folder, ".h5") == 2, "%s", cli.err);
    cli_expect(&cli, 0, "run small.yaml --only variant");
    cr_expect(folder_count(cli.folder, ".h5") == 3);
    cli_says(&cli, "of every pass once, by flops");
    cli_close(&cli);
}

Test(bench, a_file_is_complete_or_absent)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 3, "bench --costs small.yaml --out nowhere/costs.yaml");
    cli_complains(&cli, "nowhere/costs.yaml: cannot create a file beside it: No such file or directory");
    cr_expect(!strstr(cli.err, "rounds"), "measured in vain:\n%s", cli.err);
    cli_expect(&cli, 2, "bench --costs small.yaml --out small.yaml");
    cli_complains(&cli, "small.yaml: exists and is no rematch_costs file; nothing was written");
    cli_expect(&cli, 0, "plan small.yaml");
    static const char old[] = "# times in ns, the least of all rounds; add and copy: of a MiB\nrematch_costs: 0\n";
    cli_file(&cli, "costs.yaml", old);
    cli_file(&cli, "costs.yaml.part", "of another\n");
    cli_run(&cli, "ln costs.yaml kept.yaml", "bench --costs small.yaml --out costs.yaml");
    cr_expect(cli.code == 0 && folder_count(cli.folder, "-0") == 0, "%s", cli.err);
    cli_expect(&cli, 0, "--version >version; cat costs.yaml.part kept.yaml");
    cr_expect(strncmp(cli.out, "of another\n", 11) == 0 && strcmp(cli.out + 11, old) == 0);
    cli_expect(&cli, 3, "bench --costs small.yaml batch=100000 data.samples=1000000 data.shape=[1024,1024,16]");
    cli_complains(&cli, "memory: measuring needs");
    cr_expect(*cli.out == '\0');
    cli_close(&cli);
}
