/* What of a plan departs from storing everything, against other ways of finding it: lowering that drops what is dead,
 * and a comparison of all pairs of ops. */
#include "plan/recomputations.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "plan/plan.h"
#include "tests/support/policy_cases.h"

static int plans, recomputations, dead, by_slice;

/* Whether an op is a flatten: over its own input in one plan, it may copy it in another, where more ops read that. */
static bool is_flatten(const struct plan_data *data, int op)
{
    const struct plan_data_node *node = &data->node[data->op[op].node];
    return node->footprint.passes_gradient && node->inputs[1] < 0;
}

/* The live ones of a plan but for flattens, and in *all those that are dead, too. */
static int count_live(const struct plan *plan, struct region *region, int *all)
{
    struct plan_data data;
    unsigned char *live;
    int count = 0, flattens = 0;
    plan_to_data(plan, region, &data);
    NEW(region, live, (size_t)data.ops);
    const int found = recomputations_live(&data, live);
    for (int i = *all = 0; i < data.ops; i++) {
        const struct op *op = &data.op[i];
        cr_assert(!live[i] || op->recompute);
        cr_assert(!live[i] || !is_flatten(&data, i) || op->y != op->x[0], "it does nothing");
        flattens += live[i] && is_flatten(&data, i);
        count += live[i] && !is_flatten(&data, i);
        *all += op->recompute && !is_flatten(&data, i);
    }
    cr_assert(found == count + flattens);
    return count;
}

static void check_live(const struct network *network, const struct schedule *schedule, const char *what)
{
    region_auto *region = region_create();
    plan_auto *kept = plan_build(network, schedule, &(struct plan_options){.lower = {.drop_dead = false}});
    plan_auto *dropped = plan_build(network, schedule, &(struct plan_options){.lower = {.drop_dead = true}});
    int all, left;
    const int found = count_live(kept, region, &all), expected = count_live(dropped, region, &left);
    cr_assert(expected == left, "%s: %d of %d are live after lowering", what, expected, left);
    cr_assert(found == expected, "%s: %d of %d are live; expected %d: %s", what, found, all, expected, kept->schedule);
    plans++;
    recomputations += all;
    dead += all - expected;
}

/* Whether op i may not stand before op k in a step that stores everything. */
static bool out_of_turn(const struct plan_data *data, int i, int k)
{
    const struct op *a = &data->op[i], *b = &data->op[k];
    if (a->recompute || b->recompute || a->kind > OP_BACKWARD || b->kind > OP_BACKWARD) return false;
    if (a->kind != b->kind) return a->kind == OP_BACKWARD;
    if (a->node != b->node) return (a->node > b->node) == (a->kind == OP_FORWARD);
    if (a->parts != b->parts) return (a->parts == PART_INPUT) != (a->part > 0 || b->part > 0);
    return a->slice > b->slice;
}

static void check_order(const struct network *network, const struct schedule *schedule, const char *what)
{
    region_auto *region = region_create();
    plan_auto *plan = plan_build(network, schedule, &(struct plan_options){.lower = {.drop_dead = true}});
    struct plan_data data;
    bool expected = false;
    plan_to_data(plan, region, &data);
    for (int i = 0; i < data.ops; i++)
        for (int k = i + 1; k < data.ops; k++) expected |= out_of_turn(&data, i, k);
    cr_assert(recomputations_by_slice(&data) == expected, "%s: %s", what, plan->schedule);
    cr_assert(recomputations_none(&data) == (!expected && !plan->recomputations), "%s: %s", what, plan->schedule);
    by_slice += expected;
}

static void check_both(const struct network *network, const struct schedule *schedule, const char *what)
{
    check_live(network, schedule, what);
    check_order(network, schedule, what);
}

Test(recomputations, are_live_where_lowering_keeps_them)
{
    schedules_visit(check_live);
    cr_assert(plans > 1000 && recomputations > 10000 && dead > 1000 && dead < recomputations / 2);
    printf("%d plans, %d recomputations, %d of them dead\n", plans, recomputations, dead);
}

Test(recomputations, of_slices_are_live_where_lowering_keeps_them)
{
    sliced_schedules_visit(check_both);
    cr_assert(recomputations > 1000 && dead > 100 && by_slice > 50 && by_slice < plans - 20);
    printf("%d plans, %d recomputations, %d of them dead; %d by slice\n", plans, recomputations, dead, by_slice);
}
