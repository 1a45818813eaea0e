/* The policy optimal as the program plans it, on a network of an experiment. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/cli.h"

/* A residual network in 6 GB: schedules of dtr's own search for this budget are faster than those near it. */
Test(optimal, is_not_behind_dtr_on_a_residual_network)
{
    static const char *const policies[] = {"dtr", "optimal"};
    double slowdown[2] = {0};
    char root[256], arguments[640];
    struct cli cli;
    cli_open(&cli);
    cr_assert(getcwd(root, sizeof root) != NULL);
    for (int k = 0; k < 2; k++) {
        snprintf(arguments, sizeof arguments,
                 "plan %s/experiments/plans/published-cnns.yaml model.file=../models/resnet50.yaml batch=184 "
                 "'policy={name: %s, budget: 6GB}' backend=ref --alone --json",
                 root, policies[k]);
        json_t *plan = cli_json(&cli, 0, arguments);
        slowdown[k] = json_number_value(json_object_get(plan, "slowdown"));
        json_decref(plan);
    }
    cr_assert(1 < slowdown[1] && slowdown[1] <= slowdown[0], "optimal %g, dtr %g", slowdown[1], slowdown[0]);
    cli_close(&cli);
}
