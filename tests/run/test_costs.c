/* From a run to the prediction beside the measured time of another one, through the program. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "result/result_read.h"
#include "tests/support/altered_files.h"
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

/* The file of a side has the plan's prediction, and a percentage that follows from its numbers. */
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
    cr_expect(real_at(h5, "/plan", "predicted_step_ns") == predicted, "%s", side);
    cr_expect(real_at(h5, "/plan", "time") == time);
    cr_expect(real_at(h5, "/summary", "predicted_step_ns") == predicted);
    cr_expect(fabs(real_at(h5, "/summary", "prediction_percent") - (predicted - median) / median * 100) < 1e-6);
    cr_expect(!strcmp(h5_read_attribute_text(h5, "/plan", "costs", "", r->region), "measured"));
    cr_expect(!strcmp(h5_read_attribute_text(h5, "/plan", "costs_file", "", r->region), "timed.h5"));
    cr_expect(strlen(h5_read_attribute_text(h5, "/plan", "costs_run_id", "", r->region)) == 16);
    cr_expect(strlen(h5_read_attribute_text(h5, "/plan", "costs_digest_xxh3", "", r->region)) == 32);
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

/* A run of the spec's variant or baseline to the file timed.h5. */
static void time_run(struct cli *cli, const char *more)
{
    char arguments[512];
    snprintf(arguments, sizeof arguments, "run small.yaml --only variant --quiet results=timed %s", more);
    cli_expect(cli, 0, arguments);
    cli_run(cli, "cp timed/small/*.h5 timed.h5; rm -r timed", "--version");
    cr_assert(cli->code == 0, "%s", cli->err);
}

Test(costs, measured_costs_predict_the_step)
{
    static const char *const backends[] = {"ref", "cpu"};
    for (int b = 0; b < 2; b++) {
        struct cli cli;
        char how[256], arguments[512];
        cli_open(&cli);
        snprintf(how, sizeof how, "backend=%s", backends[b]);
        time_run(&cli, how);
        snprintf(how, sizeof how, "backend=%s baseline.relu_save=bits costs.file=timed.h5", backends[b]);
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

Test(costs, the_plan_says_whose_they_are)
{
    struct cli cli;
    cli_open(&cli);
    time_run(&cli, "");
    cli_expect(&cli, 0, "plan small.yaml costs.file=timed.h5");
    cli_says(&cli, "a step is predicted to take ");
    cli_says(&cli, "by measured costs");
    cli_says(&cli, "costs of timed.h5 (run ");
    cr_assert(strstr(cli.out, "not as here") == NULL, "%s", cli.out);
    char path[300];
    snprintf(path, sizeof path, "%s/timed.h5", cli.folder);
    alter_number(path, "/provenance/host", "threads", 4);
    cli_expect(&cli, 0, "plan small.yaml costs.file=timed.h5");
    cli_says(&cli, "4 threads");
    cli_says(&cli, "not as here: the prediction is theirs");
    cli_expect(&cli, 2, "plan small.yaml batch=4 costs.file=timed.h5");
    cli_complains(&cli, "costs.file: timed.h5: batch is 8 in it and 4 here; expected the result file of a run of this");
    cr_expect(cli_complaints(&cli) == 1, "%s", cli.err);
    cli_close(&cli);
}

/* The name of the file does not enter the run id, its times do. */
Test(costs, the_run_id_depends_on_the_times)
{
    struct cli cli;
    char path[300];
    cli_open(&cli);
    time_run(&cli, "");
    cli_expect(&cli, 0, "run small.yaml --quiet --only variant costs.file=timed.h5");
    cr_expect(folder_count(cli.folder, ".h5") == 2);
    cli_run(&cli, "cp timed.h5 other.h5", "run small.yaml --quiet --only variant costs.file=other.h5");
    cr_expect(cli.code == 0 && folder_count(cli.folder, ".h5") == 3, "%s", cli.err);
    snprintf(path, sizeof path, "%s/other.h5", cli.folder);
    alter_number(path, "/summary", "rest_least_ns", 5);
    cli_expect(&cli, 0, "run small.yaml --quiet --only variant costs.file=other.h5");
    cr_expect(folder_count(cli.folder, ".h5") == 4);
    cli_expect(&cli, 0, "run small.yaml --only variant");
    cr_expect(folder_count(cli.folder, ".h5") == 5);
    cli_says(&cli, "of every pass once, by flops");
    cli_close(&cli);
}

/* The times that the file gives its nodes are under its digest. */
Test(costs, verify_finds_a_changed_time)
{
    struct cli cli;
    char path[300];
    cli_open(&cli);
    time_run(&cli, "");
    cli_expect(&cli, 0, "run small.yaml --quiet --only variant costs.file=timed.h5 results=there");
    cli_run(&cli, "cp there/small/*.h5 run.h5", "verify run.h5");
    cr_expect(cli.code == 0, "%s%s", cli.out, cli.err);
    snprintf(path, sizeof path, "%s/run.h5", cli.folder);
    alter_real(path, "/plan", "costs_rest_ns", 1);
    cli_expect(&cli, 1, "verify run.h5");
    cli_says(&cli, "/plan@costs_digest_xxh3 is ");
    cli_close(&cli);
}
