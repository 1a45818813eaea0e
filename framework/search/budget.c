#include "search/budget.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

enum status budget_parse(const char *text, struct budget *budget)
{
    *budget = (struct budget){.kind = BUDGET_LEAST};
    if (!strcmp(text, "least")) return ST_OK;
    size_t length = strlen(text);
    const char *wrong;
    if (length && length < 32 && text[length - 1] == '%') {
        char number[32];
        memcpy(number, text, length);
        number[length - 1] = '\0';
        budget->kind = BUDGET_PERCENT;
        wrong = text_to_real(number, &budget->percent);
        if (!wrong && !(budget->percent > 0)) wrong = "is not greater than 0";
    } else {
        budget->kind = BUDGET_BYTES;
        wrong = text_to_bytes(text, &budget->bytes);
        if (!wrong && !budget->bytes) wrong = "is not greater than 0";
    }
    if (!wrong) return ST_OK;
    return fail(ST_SPEC,
                "'%.*s' %s; expected bytes such as 6GB, a share of store_all such as 64%%, or "
                "least",
                text_shown(text, 40), text, wrong);
}

/* A copy in which relus keep their outputs, and one that is moved behind a pool has the footprint of where it was
 * written. */
static struct network *as_written(const struct network *network, struct region *region)
{
    struct network *written = network_copy(network, region);
    for (int i = 0; i < network->graph->nodes; i++) footprint_keep_sign_bits(&written->binding[i].footprint, false);
    for (int i = 0; i < network->graph->nodes; i++) {
        const struct node *node = &network->graph->node[i];
        if (!node->relu_of_input) continue;
        struct footprint *here = &written->binding[i].footprint;
        struct footprint *there = &written->binding[node->inputs[0] - 1].footprint;
        here->reads[PART_INDEX_INPUT] &= ~(unsigned)READS_Y;
        here->writes_dy = false;
        there->reads[PART_INDEX_PARAMS] |= READS_Y;
        there->writes_dy = true;
    }
    return written;
}

size_t budget_baseline(const struct network *network, const struct plan_options *options)
{
    region_auto *region = region_create();
    const struct schedule all = schedule_store_all(network->graph->nodes, region);
    return plan_cost(as_written(network, region), &all, &options->lower).live_peak;
}

/* The least percentage, to two decimals, of which bytes are a share. */
static double percent_of(size_t bytes, size_t baseline)
{
    double percent = ceil(1e4 * (double)bytes / (double)baseline) / 100;
    while ((double)baseline * percent / 100 < (double)bytes) percent += 0.01;
    return percent;
}

enum status budget_refuse(const struct network *network, const struct budget *budget,
                          const struct plan_options *options, const struct plan *least, const char *policy)
{
    char op[128], bytes[UNIT_TEXT], given[UNIT_TEXT], share[64] = "", fixed[96] = "";
    const bool percent = budget->kind == BUDGET_PERCENT;
    const char *tensors = plan_peak_text(least, least->region);
    if (percent)
        snprintf(given, sizeof given, "%.10g%%", budget->percent);
    else
        exact_bytes_text((size_t)budget->bytes, given);
    if (percent)
        snprintf(share, sizeof share, "%.2f%% of store_all's live peak, outputs kept, ",
                 percent_of(least->arena_bytes, budget_baseline(network, options)));
    if (plan_static(least))
        snprintf(fixed, sizeof fixed, ", %s %s that no schedule changes", percent ? "besides" : "including",
                 bytes_text((double)plan_static(least), bytes));
    return fail(
        ST_SPEC,
        "policy.budget: %s: %s found no schedule that keeps it; the smallest budget that it found kept is %s%s%s; it "
        "is set by %s with %s",
        given, policy, share, exact_bytes_text(percent ? least->arena_bytes : plan_peak(least), bytes), fixed,
        plan_op_text(least, least->peak_op, op), tensors);
}

size_t budget_room(const struct network *network, const struct budget *budget, const struct plan_options *options)
{
    const size_t fixed = plan_static_of(network, options);
    if (budget->kind == BUDGET_BYTES) return budget->bytes > fixed ? (size_t)(budget->bytes - fixed) : 0;
    const double share = (double)budget_baseline(network, options) * budget->percent / 100;
    return share < (double)(SIZE_MAX / 2) ? (size_t)share : SIZE_MAX / 2;
}

enum status budget_evaluation(const struct plan *evaluation, size_t limit)
{
    if (!limit || evaluation->arena_bytes <= limit) return ST_OK;
    char needs[UNIT_TEXT], leaves[UNIT_TEXT], op[128];
    const char *tensors = plan_peak_text(evaluation, evaluation->region);
    return fail(ST_SPEC,
                "policy.budget: an evaluation needs an arena of %s, and the budget leaves %s; it is set by %s with %s",
                exact_bytes_text(evaluation->arena_bytes, needs), exact_bytes_text(limit, leaves),
                plan_op_text(evaluation, evaluation->peak_op, op), tensors);
}
