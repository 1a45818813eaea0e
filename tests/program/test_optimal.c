/* The policy optimal as the program plans it, on a network of an experiment. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cli.h"

/* The plan of a spec of experiments/plans with these arguments. */
static json_t *plan_experiment(struct cli *cli, const char *arguments)
{
    char root[256], command[1024];
    cr_assert(getcwd(root, sizeof root) != NULL);
    snprintf(command, sizeof command, "plan %s/experiments/plans/%s --alone --json", root, arguments);
    return cli_json(cli, 0, command);
}

/* A residual network in 6 GB: schedules of DTR's simulation within this budget are faster than those near it. */
Test(optimal, is_not_behind_dtr_on_a_residual_network)
{
    static const char *const policies[] = {"dtr", "optimal"};
    double slowdown[2] = {0};
    char arguments[640];
    struct cli cli;
    cli_open(&cli);
    for (int k = 0; k < 2; k++) {
        snprintf(arguments, sizeof arguments,
                 "published-cnns.yaml model.file=../models/resnet50.yaml batch=184 "
                 "'policy={name: %s, budget: 6GB}' backend=ref",
                 policies[k]);
        json_t *plan = plan_experiment(&cli, arguments);
        slowdown[k] = json_number_value(json_object_get(plan, "slowdown"));
        json_decref(plan);
    }
    cr_assert(1 < slowdown[1] && slowdown[1] <= slowdown[0], "optimal %g, dtr %g", slowdown[1], slowdown[0]);
    cli_close(&cli);
}

/* A ResNet of 251 layers fits where one of 137 does: the least is set by one block, and 6,000 buffers are placed within
 * the live peak. */
Test(optimal, least_arena_does_not_grow_with_depth, .timeout = 600)
{
    static const int blocks[] = {15, 30};
    json_int_t arena[2] = {0};
    char arguments[640];
    struct cli cli;
    cli_open(&cli);
    for (int k = 0; k < 2; k++) {
        snprintf(arguments, sizeof arguments,
                 "resnet-depth.yaml model.parameters.more1=2 model.parameters.more2=%d model.parameters.more3=%d "
                 "model.parameters.more4=2 'policy={name: optimal, budget: least}'",
                 blocks[k], 3 * blocks[k] / 2);
        json_t *plan = plan_experiment(&cli, arguments);
        arena[k] = json_integer_value(json_object_get(plan, "arena_bytes"));
        cr_assert(arena[k] > 0 && arena[k] == json_integer_value(json_object_get(plan, "live_peak_bytes")));
        json_decref(plan);
    }
    cr_assert(arena[0] == arena[1], "%lld and %lld bytes", (long long)arena[0], (long long)arena[1]);
    cli_close(&cli);
}

enum { DEPTH = 4 };

/* U-Net++ (Zhou et al., 2018): node (depth, column) reads all nodes of its depth before it, and one below. */
static void write_unetpp(const struct cli *cli)
{
    static const char two_convs[] = "          - conv: {channels: %d, kernel: 3, padding: 1, activation: relu}\n"
                                    "          - conv: {channels: %d, kernel: 3, padding: 1, activation: relu}\n";
    char text[16384] = "rematch: 1\nname: unetpp\nmodel:\n  layers:\n";
    for (int column = 0; column < DEPTH; column++)
        for (int depth = 0; depth + column < DEPTH; depth++) {
            char *end = text + strlen(text);
            const int channels = 16 << depth;
            if (!column && depth) end += sprintf(end, "    - max_pool: {kernel: 2}\n");
            end += sprintf(end, "    - group:\n        name: x%d%d\n        layers:\n", depth, column);
            if (column) end += sprintf(end, "          - upsample: {factor: 2, from: x%d%d}\n", depth + 1, column - 1);
            for (int k = 0; k < column; k++) end += sprintf(end, "          - concat: {from: x%d%d}\n", depth, k);
            sprintf(end, two_convs, channels, channels);
        }
    strcat(text, "    - global_avg_pool\n    - linear: {units: classes}\n"
                 "data: {name: synthetic, shape: [64, 64, 3], classes: 10}\nbatch: 8\nsteps: 2\n"
                 "optimizer: {name: sgd, lr: 0.01, momentum: 0.9}\nbackend: ref\npolicy: store_all\n");
    cli_file(cli, "unetpp.yaml", text);
}

static void plan_unetpp(struct cli *cli, const char *budget, double *slowdown, json_int_t *peak)
{
    char arguments[128];
    snprintf(arguments, sizeof arguments, "plan unetpp.yaml 'policy={name: optimal, budget: %s}' --alone --json",
             budget);
    json_t *plan = cli_json(cli, 0, arguments);
    *slowdown = json_number_value(json_object_get(plan, "slowdown"));
    *peak = json_integer_value(json_object_get(plan, "peak_bytes"));
    json_decref(plan);
}

/* What the least takes, given as a budget, is served as fast; and no budget is served slower than a smaller one. */
Test(optimal, serves_bytes_as_fast_as_the_least_on_unetpp, .timeout = 600)
{
    double least, slowdown, before;
    json_int_t bytes, peak;
    char budget[32];
    struct cli cli;
    cli_open(&cli);
    write_unetpp(&cli);
    plan_unetpp(&cli, "least", &least, &bytes);
    before = least;
    for (int i = 0; i < 8; i++) {
        const json_int_t given = bytes + bytes * i / 20;
        snprintf(budget, sizeof budget, "%lld", (long long)given);
        plan_unetpp(&cli, budget, &slowdown, &peak);
        cr_expect(peak <= given && slowdown <= before * (1 + 1e-9), "%lld bytes for %s: x%g, x%g in fewer",
                  (long long)peak, budget, slowdown, before);
        before = fmin(before, slowdown);
    }
    cr_expect(before < 1.1 && least > 1.2, "from x%g to x%g", least, before);
    cli_close(&cli);
}
