/* `rematch verify` on everything that a result file says of its run: whatever is altered is named, or listed as not
 * checked. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "result/result_read.h"
#include "tests/support/altered_files.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"

/* A run with all that a file can hold, in result.h5, and its path. */
static void open_result(struct cli *cli, const char *arguments, char path[300])
{
    char all[600];
    cli_open(cli);
    snprintf(all, sizeof all, "run small.yaml --quiet %s", arguments);
    cli_run(cli, "", all);
    cli_run(cli, "mv \"$(ls -S results/small/*.h5 | head -1)\" result.h5", "verify result.h5");
    cr_assert(cli->code == 0, "%s\n%s", cli->out, cli->err);
    cli_says(cli, "record    right: ");
    snprintf(path, 300, "%.250s/copy.h5", cli->folder);
}

static void fresh(const struct cli *cli, const char *copy)
{
    char whole[300];
    snprintf(whole, sizeof whole, "%.250s/result.h5", cli->folder);
    alter_copy(whole, copy);
}

static void expect_wrong(struct cli *cli, const char *arguments, const char *says)
{
    cli_run(cli, "", arguments);
    cr_assert(cli->code == 1, "exit code %d where '%s' is expected\n%s%s", cli->code, says, cli->out, cli->err);
    cli_says(cli, "record    WRONG: ");
    cli_says(cli, says);
    cr_assert(*cli->err == 0, "%s", cli->err);
}

/* An attribute made a text. */
static const struct {
    const char *object, *name, *text, *says;
} texts[] = {
    {"/", "status", "failed: of what", "@status is failed: of what in a .h5; expected completed"},
    {"/", "status", "interrupted", "@status is interrupted in a .h5"},
    {"/", "status", "planned", "@status is planned where @variant is "},
    {"/", "status", "well", "@status is well; expected planned, running, completed, interrupted or failed"},
    {"/", "variant", "plan", "@status is completed where @variant is plan"},
    {"/", "variant", "third", "@variant is third; expected baseline, variant or plan"},
    {"/", "run_id", "0123456789abcdef", "@run_id is 0123456789abcdef; the spec, program, data, "},
    {"/", "experiment", "other", "/@experiment is other; expected small"},
    {"/", "title", "other", "/@title is other; expected a small MLP"},
    {"/", "software", "other", "/@software is other; expected rematch"},
    {"/", "software_version", "1", "/@software_version is 1; expected "},
    {"/", "default", "plan", "/@default is plan; expected steps"},
    {"/steps", "signal", "metric", "/steps@signal is metric; expected loss"},
    {"/plan", "policy", "every", "/plan@policy is every; expected "},
    {"/memory", "mode", "dynamic", "/memory@mode is dynamic; expected planned"},
    {"/provenance/git", "commit", "1", "/@software_version is "},
    {"/provenance/git", "dirty_sha1", "1", "/provenance/git@dirty_sha1 is '1' where @dirty is "},
    {"/provenance/build", "program_xxh3", "0", "@run_id is "},
    {"/provenance/libs", "kernels", "oneDNN 9", "@run_id is "},
    {"/provenance/libs", "libc", "9", "@run_id is "},
    {"/provenance/host", "isa", "other", "@run_id is "},
    {"/provenance/data", "digest_xxh3", "00000000000000000000000000000000", "@run_id is "},
};

/* An attribute made a number. */
static const struct {
    const char *object, *name;
    uint64_t number;
    const char *says;
} numbers[] = {
    {"/provenance/host", "threads", 64, "@run_id is "},
    {"/provenance/host", "cores", 0, "/provenance/host@cores is 0"},
    {"/provenance/git", "dirty", 5, "/provenance/git@dirty_sha1 is "},
    {"/provenance/data", "synthetic", 0, "/provenance/data@synthetic is 0 where it has 0 files"},
    {"/summary", "steps", 3, "/summary@steps is 3; expected 4"},
    {"/summary", "live_peak_bytes", 1, "/summary@live_peak_bytes is 1; expected "},
    {"/summary", "peak_bytes", 1, "/summary@peak_bytes is 1; expected "},
    {"/summary", "timed_steps", 4, "/summary@timed_steps is 4; expected 3"},
    {"/summary", "overhead_bytes", 1, "/summary@overhead_bytes is 1; expected "},
    {"/summary", "high_water_bytes", 1 << 30, "/summary@overhead_bytes is "},
    {"/summary", "start_rss_bytes", 1ull << 40, "/summary@start_rss_bytes is above high_water_bytes"},
    {"/summary", "wall_ns", 9, "/summary@wall_ns is less than "},
    {"/summary", "setup_ns", 1ull << 60, "/summary@wall_ns is less than setup_ns"},
    {"/summary", "rest_least_ns", 1, "/summary@step_best_case_ns is "},
    {"/summary", "step_best_case_ns", 1, "/summary@step_best_case_ns is 1; expected "},
};

static const struct {
    const char *name, *says;
} reals[] = {
    {"step_median_ns", "/summary@step_median_ns is 0.5; expected "},
    {"step_least_ns", "/summary@step_least_ns is 0.5; expected "},
    {"step_most_ns", "/summary@step_most_ns is 0.5; expected "},
};

/* One number of an array; of a real one, of its bits. */
static const struct {
    const char *array;
    int64_t element, add;
    const char *says;
} elements[] = {
    {"/steps/step", 3, 1, "/steps/step: row 3 is of step 4"},
    {"/steps/live_peak", 2, 256, "step 2: live_peak is "},
    {"/steps/total_ns", 2, 1 << 20, "step_m"},
    {"/steps/forward_ns", 1, 20000000000, "step 1: total_ns is "},
    {"/steps/data_ns", 0, 20000000000, "its parts up to data_ns make more"},
    {"/steps/digest_ns", 3, 20000000000, "its parts up to digest_ns make more"},
    {"/memory/step", 0, 1, "/memory/step 0 is 2; expected 1"},
    {"/memory/live", 4, 256, "/memory/live: step 1, op 4: "},
    {"/digests/step", 2, 7, "/digests/step: row 2 is of step 9"},
    {"/eval/step", 0, 1, "/eval/step 0 is 3; expected a multiple of 2"},
    {"/eval/accuracy", 1, 1 << 28, "/eval/accuracy 1 is "},
    {"/state/step", 1, 1, "/state/step: row 1 is of step 2"},
    {"/state/final/two.weight", 17, 1, "/state/final/two.weight is not what the last step's digest is of"},
    {"/state/gradient/one.bias", 3, 1, "/state/gradient/one.bias is not what the last step's digest is of"},
    {"/summary/op_least_ns", 2, 1, "/summary@step_best_case_ns is "},
};

static const struct {
    const char *array;
    size_t element;
    const char *says;
} lists[] = {
    {"/plan/ops/text", 2, "/plan/ops/text 2 is other; expected F drop"},
    {"/plan/buffers/text", 0, "/plan/buffers/text 0 is other; expected flatten1.y"},
    {"/plan/peak_tensors", 1, "/plan/peak_tensors 1 is other; expected "},
    {"/digests/tensor", 1, "/digests/tensor 1 is other; expected one.bias"},
};

static const char everything[] = "record.state=true record.memory_steps=[1,3] eval.every=2";

Test(verify_record, names_a_figure_that_contradicts_the_others, .timeout = 300)
{
    static const char judge[] = "verify copy.h5 --plan-only";
    struct cli cli;
    char copy[300];
    open_result(&cli, everything, copy);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fresh(&cli, copy);
        alter_text(copy, texts[i].object, texts[i].name, texts[i].text);
        expect_wrong(&cli, judge, texts[i].says);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        fresh(&cli, copy);
        alter_number(copy, numbers[i].object, numbers[i].name, numbers[i].number);
        expect_wrong(&cli, judge, numbers[i].says);
    }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        fresh(&cli, copy);
        alter_real(copy, "/summary", reals[i].name, 0.5);
        expect_wrong(&cli, judge, reals[i].says);
    }
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        fresh(&cli, copy);
        alter_element(copy, elements[i].array, elements[i].element, elements[i].add);
        expect_wrong(&cli, judge, elements[i].says);
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        fresh(&cli, copy);
        alter_list_text(copy, lists[i].array, lists[i].element, "other");
        expect_wrong(&cli, judge, lists[i].says);
    }
    cli_close(&cli);
}

/* The same of the running state, which small.yaml has with a batch_norm in place of its dropout. */
Test(verify_record, names_running_state_that_contradicts_its_digests, .timeout = 120)
{
    static const struct {
        const char *array;
        int64_t element;
        const char *says;
    } altered[] = {
        {"/state/final/norm.running_mean", 5,
         "/state/final/norm.running_mean is not what the last step's digest is of"},
        {"/state/final/norm.running_var", 0, "/state/final/norm.running_var is not what the last step's digest is of"},
    };
    struct cli cli;
    char copy[300];
    cli_open(&cli);
    cli_run(&cli, "sed -i 's/dropout:.*/batch_norm: {name: norm}/' small.yaml",
            "run small.yaml --quiet record.state=true");
    cli_run(&cli, "mv \"$(ls -S results/small/*.h5 | head -1)\" result.h5", "verify result.h5");
    cr_assert(cli.code == 0, "%s\n%s", cli.out, cli.err);
    snprintf(copy, sizeof copy, "%.250s/copy.h5", cli.folder);
    for (size_t i = 0; i < sizeof altered / sizeof *altered; i++) {
        fresh(&cli, copy);
        alter_element(copy, altered[i].array, altered[i].element, 1);
        expect_wrong(&cli, "verify copy.h5 --plan-only", altered[i].says);
    }
    fresh(&cli, copy);
    alter_list_text(copy, "/digests/running_tensor", 1, "other");
    expect_wrong(&cli, "verify copy.h5 --plan-only", "/digests/running_tensor 1 is other; expected norm.running_var");
    fresh(&cli, copy);
    alter_element(copy, "/digests/running", 3 * 4 + 2, 1);
    cli_expect(&cli, 3, "verify copy.h5");
    cli_complains(&cli, "step 3: running_digest and /digests/running disagree");
    fresh(&cli, copy);
    alter_element(copy, "/state/initial/norm.running_var", 3, 1);
    cli_expect(&cli, 1, "verify copy.h5");
    cli_says(&cli, "steps     DIFFER: ");
    cli_close(&cli);
}

/* What the second run has otherwise, though its program and data have the same digests. */
Test(verify_record, names_a_figure_that_the_second_run_has_otherwise, .timeout = 120)
{
    struct cli cli;
    char copy[300];
    open_result(&cli, "", copy);
    static const char *const pinned[][2] = {{"/provenance/build", "flags"},   {"/provenance/build", "compiler"},
                                            {"/provenance/build", "variant"}, {"/provenance/build", "backends"},
                                            {"/provenance/data", "name"},     {"/provenance/data", "vocabulary"}};
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++) {
        char says[200];
        fresh(&cli, copy);
        alter_text(copy, pinned[i][0], pinned[i][1], "other");
        snprintf(says, sizeof says, "record    WRONG: %s is 'other'; expected '", pinned[i][1]);
        expect_wrong(&cli, "verify copy.h5", says);
    }
    fresh(&cli, copy);
    alter_number(copy, "/provenance/data", "training_samples", 49);
    expect_wrong(&cli, "verify copy.h5", "record    WRONG: training_samples is '49'; expected '50'");
    fresh(&cli, copy);
    alter_text(copy, "/provenance/host", "cpu", "other"); /* the processor may be another where the bits are the same */
    cli_expect(&cli, 0, "verify copy.h5");
    cli_says(&cli, "not checked:\n");
    cli_says(&cli, "\n  processor, cores, memory and system of the host\n");
    cli_close(&cli);
}

/* What the second run computes. Real numbers are altered in their bits. */
Test(verify_record, names_a_value_that_the_second_run_computes_otherwise, .timeout = 120)
{
    static const struct {
        const char *array;
        int64_t element, add;
        const char *says;
    } computed[] = {
        {"/steps/metric", 1, 1, "steps     DIFFER: first at step 1, in "},
        {"/steps/lr", 2, 1, "steps     DIFFER: first at step 2, in "},
        {"/steps/grad_norm", 3, 1, "steps     DIFFER: first at step 3, in "},
        {"/steps/gradients_zero", 0, 1, "steps     DIFFER: first at step 0, in "},
        {"/eval/loss", 0, 1, "steps     DIFFER: "},
        {"/eval/accuracy", 1, -1, "steps     DIFFER: "},
        {"/state/initial/one.weight", 7, 1, "steps     DIFFER: "},
        {"/state/x", 128 + 9, 1, "steps     DIFFER: first at step 1, in /state/x"},
        {"/state/labels", 4, 1, "steps     DIFFER: first at step 0, in /state/labels"},
    };
    struct cli cli;
    char copy[300];
    open_result(&cli, everything, copy);
    for (size_t i = 0; i < sizeof computed / sizeof *computed; i++) {
        fresh(&cli, copy);
        alter_element(copy, computed[i].array, computed[i].element, computed[i].add);
        cli_run(&cli, "", "verify copy.h5");
        cr_assert(cli.code == 1, "%s: exit code %d\n%s", computed[i].array, cli.code, cli.out);
        cli_says(&cli, computed[i].says);
    }
    cli_close(&cli);
}

/* A missing piece is a file that cannot be read. */
Test(verify_record, a_missing_piece_is_named)
{
    static const char *const pieces[] = {"/provenance/host",    "/provenance/git", "/provenance/data/sha256",
                                         "/steps/recompute_ns", "/memory/step",    "/summary"};
    struct cli cli;
    char copy[300];
    open_result(&cli, everything, copy);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        fresh(&cli, copy);
        alter_away(copy, pieces[i]);
        cli_expect(&cli, 3, "verify copy.h5 --plan-only");
        cli_complains(&cli, pieces[i]);
        cr_assert(cli_complaints(&cli) == 1, "%s", cli.err);
    }
    cli_close(&cli);
}

Test(verify_record, a_planted_fault_is_no_proof)
{
    struct cli cli;
    char before[600];
    cli_open(&cli);
    cli_expect(&cli, 1, "run small.yaml --quiet fault.kind=mask_bit fault.step=2 fault.node=drop");
    snprintf(before, sizeof before,
             "for f in results/small/*.h5; do '%s' show $f | grep -q ' variant *variant' && cp $f fault.h5; done",
             cli_program());
    cli_run(&cli, before, "verify fault.h5");
    cr_assert(cli.code == 1, "exit code %d\n%s\n%s", cli.code, cli.out, cli.err);
    cli_says(&cli, "plan      right");
    cli_says(&cli, "steps     same bits");
    cli_says(&cli, "fault     a run with a planted fault, at step 2 in node drop: no proof");
    json_t *all = cli_json(&cli, 1, "verify fault.h5 --json");
    cr_assert(json_is_false(json_object_get(all, "right")));
    cr_assert(json_is_true(json_object_get(json_object_get(all, "record"), "fault")));
    json_decref(all);
    cli_close(&cli);
}

/* Whatever is altered of what a plan was made from, `plan:` refuses and verify calls wrong, or neither does. */
Test(verify_record, judges_a_plan_as_the_plan_key_does, .timeout = 300)
{
    static const char *const columns[] = {"inputs",
                                          "elements",
                                          "draws",
                                          "wants_gradient",
                                          "forward_flops",
                                          "backward_params_flops",
                                          "output_bytes",
                                          "gradient_bytes",
                                          "saved_bytes",
                                          "forward_scratch_bytes",
                                          "backward_scratch_bytes",
                                          "reads",
                                          "split",
                                          "y_over_x",
                                          "dx_over_dy",
                                          "writes_dy",
                                          "passes_gradient",
                                          "backward_input_flops"};
    struct cli cli;
    char whole[300], plan[300], array[64];
    cli_open(&cli);
    cli_expect(&cli, 0, "plan small.yaml --out whole.h5 policy=store_all");
    snprintf(whole, sizeof whole, "%.250s/whole.h5", cli.folder);
    snprintf(plan, sizeof plan, "%.250s/plan.h5", cli.folder);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        for (int node = 1; node < 4; node += 2) {
            snprintf(array, sizeof array, "/plan/nodes/%s", columns[i]);
            alter_copy(whole, plan);
            alter_element(plan, array, node, 1);
            cli_run(&cli, "", "plan small.yaml policy=store_all plan=plan.h5");
            const int taken = cli.code;
            cli_run(&cli, "", "verify plan.h5");
            cr_assert(taken == 0 || taken == 2, "%s of node %d: exit code %d", columns[i], node, taken);
            cr_assert((taken == 2) == (cli.code != 0), "%s of node %d: %d taking it, %d judging it\n%s", columns[i],
                      node, taken, cli.code, cli.out);
        }
    alter_copy(whole, plan);
    alter_element(plan, "/plan/nodes/saved_bytes", 1, 8);
    cli_expect(&cli, 1, "verify plan.h5");
    cli_says(&cli, "plan      WRONG: it is not of its spec: plan: ");
    cli_says(&cli, "node 1 (one): saved_bytes is 8 in it (ref) and 0 here (ref)");
    alter_copy(whole, plan);
    alter_list_text(plan, "/plan/parameters/shape", 0, "3x3");
    cli_expect(&cli, 1, "verify plan.h5");
    cli_says(&cli, "parameter 0: shape is 3x3 in it and 24x16 here");
    alter_copy(whole, plan);
    alter_text(plan, "/provenance/host", "isa", "other"); /* other kernels may have needed other bytes */
    alter_element(plan, "/plan/nodes/saved_bytes", 1, 8);
    cli_expect(&cli, 1, "verify plan.h5");
    cli_says(&cli, "bounds    not judged: not of the kernels here: ");
    cli_says(&cli, "record    WRONG: @run_id");
    cli_close(&cli);
}

/* A run that recomputes is no baseline, whatever its file calls it and its policy. */
Test(verify, a_baseline_stores_everything)
{
    struct cli cli;
    struct result *r;
    char path[300], spec[4096];
    open_result(&cli, "--only variant", path);
    fresh(&cli, path);
    alter_text(path, "/", "variant", "baseline");
    expect_wrong(&cli, "verify copy.h5 --plan-only", "@variant is baseline; expected variant, as it has policy manual");
    cr_assert(result_open(path, &r) == ST_OK, "%s", status_message());
    snprintf(spec, sizeof spec, "%s", h5_read_text(&r->h5, "/spec/resolved", r->region));
    result_close(r);
    char *policy = strstr(spec, "\npolicy: ") + strlen("\npolicy: "), *end = strchr(policy, '\n');
    static const char stored[] = "{name: store_all}";
    memmove(policy + strlen(stored), end, strlen(end) + 1);
    memcpy(policy, stored, strlen(stored));
    alter_array_text(path, "/spec/resolved", spec);
    alter_text(path, "/plan", "policy", "store_all");
    expect_wrong(&cli, "verify copy.h5 --plan-only",
                 "@variant is baseline; expected variant, as it recomputes 2 times");
    cli_close(&cli);
}

/* The second run is of the spec that the file has, to the letter: a run id is of that text. */
Test(verify, a_second_run_has_the_id_of_the_file)
{
    struct cli cli;
    struct result *r;
    char path[300], spec[4096], id[17];
    open_result(&cli, "--only variant", path);
    fresh(&cli, path);
    cr_assert(result_open(path, &r) == ST_OK, "%s", status_message());
    snprintf(spec, sizeof spec, "# a comment\n%s", h5_read_text(&r->h5, "/spec/resolved", r->region));
    result_close(r);
    alter_array_text(path, "/spec/resolved", spec);
    expect_wrong(&cli, "verify copy.h5", "@run_id is ");
    cr_assert(sscanf(strstr(cli.out, "of the file have "), "of the file have %16s", id) == 1, "%s", cli.out);
    alter_text(path, "/", "run_id", id);
    expect_wrong(&cli, "verify copy.h5", "the second run has the id ");
    cli_says(&cli, "steps     same bits");
    cli_close(&cli);
}
