/* Segments as long as a budget of bytes allows: the greedy memory plan of Chen et al., "Training Deep Nets with
 * Sublinear Memory Cost", 2016, Algorithm 3, with its search for the budget as the authors' code does it (memonger:
 * three refinements from nothing, then a grid of six).
 *
 * It takes the sum of a segment's outputs for its memory, without saved tensors, gradients or scratch, and cuts only
 * between stages. The search counts everything: it lowers each division that it tries and keeps the one of least live
 * peak, of equal ones the fastest. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "policies/policy.h"

enum { REFINEMENTS = 3, GRID = 6 };

struct chen_settings {
    struct segment_settings segment;
    const char *segment_budget; /* bytes; NULL: search */
};
POLICY_SETTINGS_FIT(struct chen_settings);

struct chen_search {
    const struct policy_input *input;
    const struct network *network;
    const struct segment_settings *settings;
    struct node_ranges stages;
    bool *cut, *best; /* before a stage, of the current plan and of the best */
    struct plan_cost least;
    double budget; /* of the best */
    int tries;
};

/* Cuts before the first stage that follows more than budget bytes of outputs. kept: bytes of the cuts; largest: most
 * bytes between two of them. */
static void divide(struct chen_search *s, double budget, double *kept, double *largest)
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

/* Plans the division of a budget; keeps it where it is better. */
static void try_budget(struct chen_search *s, double budget)
{
    region_auto *region = region_create();
    struct schedule schedule = schedule_empty(region);
    policy_cuts_emit(s->network, &s->stages, s->cut, s->settings, &schedule);
    const struct plan_cost cost = plan_cost(s->network, &schedule, &policy_plan_options(s->input)->lower);
    s->tries++;
    if (cost.live_peak > s->least.live_peak) return;
    if (cost.live_peak == s->least.live_peak && cost.time >= s->least.time) return;
    s->least = cost;
    s->budget = budget;
    memcpy(s->best, s->cut, (size_t)s->stages.count * sizeof *s->best);
}

static void find_budget(struct chen_search *s)
{
    double budget = 0, least = INFINITY, kept, largest;
    s->least.live_peak = SIZE_MAX;
    for (int i = 0; i < REFINEMENTS; i++) {
        divide(s, budget, &kept, &largest);
        try_budget(s, budget);
        if (largest < least) least = largest;
        budget = floor(sqrt(kept * largest / 2));
    }
    const double step = (sqrt(2) * budget - least) / GRID;
    for (int i = 1; step > 0 && i <= GRID; i++) {
        divide(s, floor(least + i * step), &kept, &largest);
        try_budget(s, floor(least + i * step));
    }
    s->cut = s->best;
}

static void note_found(const struct chen_search *s, struct policy_notes *notes)
{
    char bytes[UNIT_TEXT];
    snprintf(notes->found, sizeof notes->found, "segments end after %s of outputs, the best of %d budgets tried",
             exact_bytes_text((size_t)s->budget, bytes), s->tries);
}

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct chen_settings *settings = (const void *)input->settings;
    struct chen_search s = {.input = input, .network = input->network, .settings = &settings->segment};
    const char *budget = settings->segment_budget;
    s.stages = stages_find(s.network->graph, schedule->region);
    NEW(schedule->region, s.cut, (size_t)s.stages.count);
    if (!budget || !strcmp(budget, "search")) {
        NEW(schedule->region, s.best, (size_t)s.stages.count);
        find_budget(&s);
        if (input->notes) note_found(&s, input->notes);
    } else {
        uint64_t bytes;
        double kept, largest;
        char suggestion[TEXT_SUGGESTION];
        const char *wrong = text_to_bytes(budget, &bytes);
        if (wrong)
            return fail(ST_SPEC, "policy.segment_budget: '%.*s' %s%s; expected bytes such as 64MiB, or search",
                        text_shown(budget, 40), budget, wrong, text_size_suggestion(budget, suggestion));
        divide(&s, (double)bytes, &kept, &largest);
    }
    policy_cuts_emit(s.network, &s.stages, s.cut, s.settings, schedule);
    return ST_OK;
}

static const struct setting keys[] = {
    {"segment_budget", SETTING_TEXT, offsetof(struct chen_settings, segment_budget), 0, 0, "search", NULL,
     "bytes of outputs after which a segment ends (64MiB), or search: what gives the least live peak"},
    POLICY_SETTING_KEEP_LAST,
    POLICY_SETTING_KEEP_SAVED,
    {.key = NULL}};

const struct policy policy_chen = {
    .name = "chen", .doc = "a segment ends where its outputs exceed a budget", .keys = keys, .emit = emit};
