/* Segments as long as a budget of bytes allows: the greedy memory plan of Chen et al., "Training Deep Nets with
 * Sublinear Memory Cost", 2016, Algorithm 3, with its search for the budget as the authors' code does it (memonger:
 * three refinements from nothing, then a grid of six).
 *
 * It assumes that what a segment needs is the sum of its outputs: it does not see saved tensors, gradients or scratch,
 * and cuts only between stages. The search does: it lowers every plan that it tries and keeps the one of least live
 * peak, of equal ones the fastest. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "policies/policy.h"

enum { REFINEMENTS = 3, GRID = 6 };

struct search {
    const struct network *network;
    const struct policy_settings *settings;
    struct region *region;
    struct node_ranges stages;
    bool *cut, *best; /* before a stage, of the plan at hand and of the best */
    size_t least;     /* live peak of the best */
    double time;      /* of the best */
    double budget;    /* of the best */
    int tries;
};

/* Cuts before the first stage that follows more than budget bytes of outputs. kept: bytes of the cuts; largest: most
 * bytes between two of them. */
static void divide(struct search *s, double budget, double *kept, double *largest)
{
    const struct graph *graph = s->network->graph;
    double sum = 0;
    *kept = *largest = 0;
    for (int i = 0; i < s->stages.count; i++) {
        const struct node_range *stage = &s->stages.range[i];
        s->cut[i] = i > 0 && sum > budget;
        if (s->cut[i]) {
            *kept += (double)network_round(s->network, graph->value[stage->from].bytes);
            sum = 0;
        }
        for (int v = stage->from + 1; v <= stage->to; v++)
            sum += (double)network_round(s->network, graph->value[v].bytes);
        if (sum > *largest) *largest = sum;
    }
}

/* The division that budget gave. */
static enum status consider(struct search *s, double budget)
{
    struct region *region = region_create();
    struct plan *plan = NULL;
    if (!region) return fail(ST_FAILED, "out of memory for a plan");
    struct schedule schedule = schedule_empty(region);
    struct plan_options options = *policy_plan_options(s->settings);
    options.unplaced = true; /* only the live peak is asked for, and placing takes most of the time */
    enum status status = policy_cuts_emit(s->network, &s->stages, s->cut, s->settings, region, &schedule);
    if (status == ST_OK) status = plan_build(s->network, &schedule, &options, &plan);
    region_destroy(region);
    if (status != ST_OK) return status;
    s->tries++;
    if (plan->live_peak < s->least || (plan->live_peak == s->least && plan->time < s->time)) {
        s->least = plan->live_peak;
        s->time = plan->time;
        s->budget = budget;
        memcpy(s->best, s->cut, (size_t)s->stages.count * sizeof *s->best);
    }
    plan_destroy(plan);
    return ST_OK;
}

static enum status search(struct search *s)
{
    double budget = 0, least = INFINITY, kept, largest;
    s->least = SIZE_MAX;
    NEW(s->region, s->best, (size_t)s->stages.count);
    for (int i = 0; i < REFINEMENTS; i++) {
        divide(s, budget, &kept, &largest);
        TRY(consider(s, budget));
        if (largest < least) least = largest;
        budget = floor(sqrt(kept * largest / 2));
    }
    const double step = (sqrt(2) * budget - least) / GRID;
    for (int i = 1; step > 0 && i <= GRID; i++) {
        divide(s, floor(least + i * step), &kept, &largest);
        TRY(consider(s, floor(least + i * step)));
    }
    s->cut = s->best;
    return ST_OK;
}

static void tell(const struct search *s, struct policy_notes *notes)
{
    char bytes[UNIT_TEXT];
    snprintf(notes->found, sizeof notes->found, "segments end after %s of outputs, the best of %d budgets tried",
             exact_bytes_text((size_t)s->budget, bytes), s->tries);
}

static enum status emit(const struct network *network, const struct policy_settings *settings, struct region *region,
                        struct schedule *schedule)
{
    struct search s = {.network = network, .settings = settings, .region = region};
    const char *budget = settings->segment_budget;
    s.stages = stages_find(network->graph, region);
    NEW(region, s.cut, (size_t)s.stages.count);
    if (!budget || !strcmp(budget, "search")) {
        TRY(search(&s));
        if (settings->notes) tell(&s, settings->notes);
    } else {
        uint64_t bytes;
        double kept, largest;
        const char *wrong = text_to_bytes(budget, &bytes);
        if (wrong)
            return fail(ST_SPEC, "policy.segment_budget: '%.*s' %s; expected bytes such as 64MiB, or search",
                        text_shown(budget, 40), budget, wrong);
        divide(&s, (double)bytes, &kept, &largest);
    }
    return policy_cuts_emit(network, &s.stages, s.cut, settings, region, schedule);
}

static const struct setting keys[] = {
    {"segment_budget", SETTING_TEXT, offsetof(struct policy_settings, segment_budget), 0, 0, "search", NULL,
     "bytes of outputs after which a segment ends (64MiB), or search: what gives the least live peak"},
    POLICY_SETTING_KEEP_LAST,
    POLICY_SETTING_KEEP_SAVED,
    {.key = NULL}};

const struct policy policy_chen = {
    .name = "chen", .doc = "a segment ends where its outputs exceed a budget", .keys = keys, .emit = emit};
