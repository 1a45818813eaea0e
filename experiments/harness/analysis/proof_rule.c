#include "analysis/proof_rule.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "check/simulate.h"
#include "plan/recomputations.h"
#include "result/record_plan.h"

/* One of two files. */
struct side {
    const char *name, *policy, *no_baseline;
    struct plan_data plan;
    const char *wrong;      /* what simulate() finds; NULL: nothing */
    const char *claimed_by; /* who says how often it recomputed, in place of a plan; "": it has one */
    uint64_t claimed;
};

const char *proof_no_baseline(const char *policy, const struct plan_data *plan, struct region *region)
{
    if (strcmp(policy, "store_all") != 0) return region_text(region, "has policy %s", policy);
    if (plan->count[COUNT_RECOMPUTATIONS])
        return region_text(region, "recomputes %zu times", plan->count[COUNT_RECOMPUTATIONS]);
    return recomputations_none(plan) ? NULL : "runs slices out of turn";
}

static enum status read_side(struct result *r, const char *name, struct region *region, struct side *side)
{
    *side = (struct side){.name = name, .policy = r->policy, .claimed_by = record_plan_claimed_by(&r->h5, region)};
    if (*side->claimed_by) {
        side->claimed = h5_read_attribute_u64(&r->h5, "/plan", "recomputations", 0);
        if (side->claimed)
            side->no_baseline = region_text(region, "claims to recompute %" PRIu64 " times", side->claimed);
        return h5_status(&r->h5);
    }
    TRY(record_plan_read(&r->h5, region, &side->plan));
    const enum status status = simulate(&side->plan);
    if (status == ST_DIFFERS) side->wrong = region_text(region, "%s", status_message());
    if (status == ST_OK) side->no_baseline = proof_no_baseline(r->policy, &side->plan, region);
    return status == ST_DIFFERS ? ST_OK : status;
}

/* Why the plan of a variant departs in nothing from storing everything; NULL: it does. */
static const char *no_departure(const struct side *variant, const struct side *baseline, struct region *region)
{
    const size_t count = variant->plan.count[COUNT_RECOMPUTATIONS];
    unsigned char *live;
    if (*variant->claimed_by)
        return variant->claimed
                   ? NULL
                   : region_text(region, "nothing is recomputed: %s claims so of both", variant->claimed_by);
    NEW(region, live, (size_t)variant->plan.ops);
    if (variant->plan.hash && baseline->plan.hash && strcmp(variant->plan.hash, baseline->plan.hash) == 0)
        return region_text(region, "nothing is recomputed: policy %s has the plan of the baseline", variant->policy);
    if (recomputations_live(&variant->plan, live) || recomputations_by_slice(&variant->plan)) return NULL;
    if (count)
        return region_text(region, "nothing is recomputed that is read: policy %s makes %zu dead recomputation%s",
                           variant->policy, count, text_plural((int64_t)count));
    return region_text(region, "nothing is recomputed: policy %s does what store_all does", variant->policy);
}

/* NULL: both sides have plans. */
static const char *claim_of(const struct side side[2], struct region *region)
{
    const char *text = NULL;
    for (int s = 0; s < 2; s++)
        if (*side[s].claimed_by)
            text = region_text(region, "%s %s that %s recomputes %" PRIu64 " times",
                               text ? region_text(region, "%s and", text) : "without plans it is a claim of",
                               side[s].claimed_by, side[s].name, side[s].claimed);
    return text;
}

enum status proof_rule(struct result *a, struct result *b, const char *const name[2], const char **reason,
                       const char **text, const char **claim)
{
    struct region *region = a->region;
    struct side side[2];
    *reason = *claim = NULL;
    TRY(read_side(a, name[0], region, &side[0]));
    TRY(read_side(b, name[1], region, &side[1]));
    *claim = claim_of(side, region);
    for (int s = 0; s < 2; s++) {
        if (!side[s].wrong) continue;
        *reason = "wrong_plan";
        *text = region_text(region, "the plan of %s is wrong: %s", side[s].name, side[s].wrong);
        return ST_OK;
    }
    const int base = side[0].no_baseline && !side[1].no_baseline;
    if (side[base].no_baseline) {
        *reason = "no_baseline";
        *text = region_text(region, "neither file is of a run that stores everything: %s %s, %s %s", side[0].name,
                            side[0].no_baseline, side[1].name, side[1].no_baseline);
    } else if ((*text = no_departure(&side[1 - base], &side[base], region))) {
        *reason = "no_recomputation";
    }
    return ST_OK;
}
