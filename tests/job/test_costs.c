/* Planning by times that are not flops. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/support/made_runs.h"
#include "tests/support/policy_text.h"

static void set_times(const struct network *network, int dear)
{
    for (int i = 0; i < network->graph->nodes; i++)
        network->cost[i] = (struct cost){i == dear ? 100000000 : 100, 0, {100, 100}};
}

static struct plan *plan_of(const struct network *network)
{
    static const struct plan_options options = {.lower = {.drop_dead = true}, .state_per_parameter = 1};
    return policy_text_plan(network, "optimal", "budget=90%", &options);
}

static bool recomputes(const struct plan *plan, int node)
{
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->kind == OP_FORWARD && op->recompute && op->node == node) return true;
    }
    return false;
}

/* Every node that the optimum recomputes at a uniform price, and that the budget allows to keep, is kept once it is
 * expensive; the new optimum is then faster than the old one at the new prices. */
Test(costs, optimal_keeps_expensive_nodes)
{
    struct bound_net b = net_bind(&nets[0], RELU_OUTPUT);
    int recomputed = 0, kept = 0;
    set_times(b.network, -1);
    struct plan *cheap = plan_of(b.network);
    for (int dear = 0; dear < b.graph->nodes; dear++) {
        if (!recomputes(cheap, dear)) continue;
        set_times(b.network, dear);
        struct plan *plan = plan_of(b.network);
        double old = cheap->time + 99999900.0 * 2; /* its forward and at least one recomputation at the new price */
        recomputed++;
        kept += !recomputes(plan, dear);
        cr_expect(plan->time <= old, "node %d: %.0f, the old plan takes at least %.0f", dear, plan->time, old);
        plan_destroy(plan);
    }
    cr_expect(recomputed > 0 && kept > 0, "%d recomputed, %d of them kept once dear", recomputed, kept);
    plan_destroy(cheap);
    net_release(&b);
}

Test(costs, a_miss_is_printed_in_percent)
{
    char text[64];
    cr_expect(!strcmp(costs_miss(110, 100, "measured", text), "10.0 % more than measured"), "%s", text);
    cr_expect(!strcmp(costs_miss(95, 100, "the best case", text), "5.0 % less than the best case"), "%s", text);
    cr_expect(!strcmp(costs_miss(95, 0, "measured", text), ""), "%s", text);
    cr_expect(!strcmp(costs_miss(1, (double)NAN, "measured", text), ""), "%s", text);
}
