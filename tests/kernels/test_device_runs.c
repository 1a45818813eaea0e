/* The program on a device: equal runs, refusals and failures, on a GPU or on its stand-in (tests/device/). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/cli.h"
#include "tests/support/made_runs.h"

/* Parts of joint values begin at odd floats, and are recomputed slice by slice. */
static const char joint_parts[] =
    "model={layers: [flatten, {group: {name: front, layers: [{linear: {units: 17, activation: relu}}, "
    "{dropout: {rate: 0.5}}]}}, {linear: {units: 9, slices: 1}}, {linear: {units: classes}}]} slices=8 update=fused "
    "policy={name: segments, segments: 2, unit: stage, keep_last: false} check=recompute";

/* Evaluations predict with averages of the parameters. */
static const char averaged[] =
    "steps=9 eval={split: train, every: 2} data={name: synthetic, shape: [4, 4, 1], classes: 4, samples: 50} "
    "optimizer={momentum: 0.9, ema: 0.9} lr_schedule={name: cosine, warmup: 2}";

/* Batch norm with statistics of each slice. */
static const char by_slice[] =
    "model={layers: [{group: {name: front, layers: [{conv: {channels: 4, kernel: 3}}, "
    "{batch_norm: {statistics: slice}}, relu]}}, flatten, {linear: {units: classes}}]} slices=4 "
    "policy={name: sliced, groups: [front]}";

/* Every rng mode but unsafe, every memory mode, captured or not, with and without evaluations and a learning rate
 * schedule. */
static const char *const ways[] = {
    "",
    "backend.graph=false",
    "rng=stash steps=12",
    "rng=mask memory=poison",
    "memory=dynamic check=recompute",
    "steps=9 eval={split: train, every: 2} data={name: synthetic, shape: [4, 4, 1], classes: 4, samples: 50}",
    "optimizer={name: adamw, lr: 0.01, clip: 0.5} lr_schedule={name: linear, warmup: 2} steps=6",
    averaged,
    "update=fused optimizer={name: adam, ema: 0.9} lr_schedule={name: step, at: [1]}",
    by_slice,
    "relu_save=bits policy={name: optimal, budget: least}",
    joint_parts,
};

Test(device_runs, variants_equal_their_baselines)
{
    struct cli cli;
    cli_open_on_device(&cli, NULL);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char arguments[1024];
        int used = snprintf(arguments, sizeof arguments, "run small.yaml --quiet backend=cuda");
        /* Each setting is one word of the shell: a blank outside braces parts them. */
        int depth = 0;
        for (const char *c = ways[i]; *c; c++) {
            depth += (*c == '{') - (*c == '}');
            const bool parts = *c == ' ' && depth == 0;
            if (c == ways[i]) used += snprintf(arguments + used, sizeof arguments - (size_t)used, " '");
            used += snprintf(arguments + used, sizeof arguments - (size_t)used, parts ? "' '" : "%c", *c);
        }
        if (*ways[i]) snprintf(arguments + used, sizeof arguments - (size_t)used, "'");
        cli_expect(&cli, 0, arguments);
        cli_says(&cli, "equal");
    }
    cli_close(&cli);
}

/* A captured step must give the bits of single calls, also after an evaluation, which is never captured and draws
 * nothing: the files of both runs are compared. */
Test(device_runs, a_captured_step_equals_its_calls)
{
    static const char run[] =
        "run small.yaml --quiet --only variant backend=cuda rng=stash steps=8 'eval={split: train, every: 3}' "
        "'data={name: synthetic, shape: [4, 4, 1], classes: 4, samples: 50}'";
    struct cli cli;
    char arguments[512];
    cli_open_on_device(&cli, NULL);
    snprintf(arguments, sizeof arguments, "%s results=recorded", run);
    cli_expect(&cli, 0, arguments);
    snprintf(arguments, sizeof arguments, "%s results=called backend.graph=false", run);
    cli_expect(&cli, 0, arguments);
    cli_expect(&cli, 4, "compare recorded/small/*.h5 called/small/*.h5"); /* equal; one plan on both sides */
    cli_says(&cli, "verdict   EQUAL IN EVERY BIT, BUT NOT A PROOF: neither file is of a run that stores everything");
    cli_expect(&cli, 1, "run small.yaml --quiet backend=cuda rng=unsafe");
    cli_says(&cli, "step 0");
    cli_close(&cli);
}

static uint64_t sum(const json_t *steps, const char *column)
{
    const json_t *all = json_object_get(steps, column), *one;
    uint64_t total = 0;
    size_t i;
    cr_assert(json_array_size(all) > 0, "%s", column);
    json_array_foreach (all, i, one) total += (uint64_t)json_integer_value(one);
    return total;
}

/* The classes' times add up to that of the passes, without update and digests. */
Test(device_runs, classes_add_up_to_the_time_of_passes)
{
    struct cli cli;
    const char *key;
    json_t *value;
    uint64_t clocks = 0;
    cli_open_on_device(&cli, NULL);
    cli_expect(&cli, 0, "run small.yaml --quiet --only variant backend=cuda optimizer=adamw results=clocks");
    json_t *file = cli_json(&cli, 0, "show clocks/small/*.h5 --json"), *steps = json_object_get(file, "steps");
    json_object_foreach (json_object_get(file, "/summary"), key, value)
        if (!strncmp(key, "clock_", 6)) clocks += (uint64_t)json_integer_value(value);
    const uint64_t passes = sum(steps, "forward_ns") + sum(steps, "recompute_ns") + sum(steps, "backward_ns");
    cr_assert(passes > 0 && clocks == passes, "clocks %lu, passes %lu ns", clocks, passes);
    json_decref(file);
    cli_close(&cli);
}

/* Each op of a captured step. */
Test(device_runs, plan_with_costs_measured_on_the_device)
{
    struct cli cli;
    cli_open_on_device(&cli, NULL);
    cli_expect(&cli, 0, "run small.yaml --only variant backend=cuda steps=3 results=timed");
    cli_run(&cli, "cp timed/small/*.h5 timed.h5", "verify timed.h5");
    cr_assert(cli.code == 0, "%s%s", cli.out, cli.err);
    cli_run(&cli, "", "run small.yaml --quiet backend=cuda costs.file=timed.h5");
    cr_assert(cli.code == 0, "%d: %s", cli.code, cli.err);
    cli_says(&cli, "equal");
    cli_close(&cli);
}

Test(device_runs, report_a_missing_device)
{
    struct cli cli;
    cli_open_on_device(&cli, "absent");
    cli_expect(&cli, 77, "run small.yaml backend=cuda");
    cli_complains(&cli, "no usable NVIDIA GPU");
    cr_expect(cli_complaints(&cli) == 1, "%s", cli.err);
    cli_close(&cli);
}

/* Beside what two backends reserve when they are opened some 10000 bytes are left, which do not hold the parameters,
 * their gradients and state. */
Test(device_runs, are_refused_before_reserving_if_they_do_not_fit)
{
    struct cli cli;
    cli_open_on_device(&cli, "memory=8640000");
    cli_expect(&cli, 3, "run small.yaml backend=cuda");
    cli_complains(&cli, "nothing was run");
    cr_expect(folder_count(cli.folder, ".h5") == 0 && folder_count(cli.folder, ".part") == 0);
    cli_close(&cli);
}

/* The device is lost after some steps of the baseline: exit code 3, one line, and a readable file. */
Test(device_runs, keep_committed_steps_when_the_device_is_lost)
{
    struct cli cli;
    cli_open_on_device(&cli, "memory=1000000000,lost=2000");
    cli_expect(&cli, 3, "run small.yaml --quiet --only variant backend=cuda steps=100000");
    cli_complains(&cli, "cuda: ");
    cr_assert(folder_count(cli.folder, ".part") == 1, "%s", cli.err);
    cli_run(&cli, "mv */small/*.part left.h5", "show left.h5");
    cr_expect(cli.code == 0, "%d: %s", cli.code, cli.err);
    cli_says(&cli, "failed");
    cli_close(&cli);
}
