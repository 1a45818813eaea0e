#include "policy_cases.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "policy_text.h"
#include "sliced_schedules.h"
#include "small_training.h"

/* The k-th of the settings under which a policy is tried; NULL after the last. */
static const char *settings_at(int k, const struct graph *graph)
{
    static const int segments[] = {0, 1, 2, 3, 5};
    static const char *const budgets[] = {"search", "0", "2KiB", "20KiB", "1GiB"};
    static const char *const kinds[] = {"weightless", "conv", "max_pool", "linear", "dropout", "add", "pool", "relu"};
    enum { SEGMENTS = sizeof segments / sizeof *segments, KINDS = sizeof kinds / sizeof *kinds };
    if (k >= 2 * 2 * 2 * SEGMENTS * graph->groups) return NULL;
    const int s = k / 8 % SEGMENTS;
    return region_text(graph->region,
                       "keep_saved=%s keep_last=%s unit=%s segments=%d slots=%d segment_budget=%s kinds=%s groups=%s",
                       k % 2 ? "true" : "false", k / 2 % 2 ? "true" : "false", k / 4 % 2 ? "stage" : "auto",
                       segments[s], segments[s], budgets[s], kinds[k % KINDS], graph->group[k / 8 / SEGMENTS].name);
}

static void visit_policy(const struct net *net, const struct network *network, const struct policy *policy,
                         void visit(const struct network *network, const struct schedule *schedule, const char *what))
{
    const struct graph *graph = network->graph;
    const char *settings, *last = "";
    int schedules = 0;
    for (int k = 0; (settings = settings_at(k, graph)) != NULL; k++) {
        struct schedule schedule = schedule_empty(graph->region);
        char what[256], *text;
        if (policy_text_emit(network, policy->name, settings, &schedule) != ST_OK) continue;
        snprintf(what, sizeof what, "%s, %s", net->name, policy->name);
        cr_assert((text = schedule_print(&schedule, graph->region)) != NULL);
        if (!strcmp(text, last)) continue; /* a setting that this policy does not have */
        last = text;
        visit(network, &schedule, what);
        schedules++;
    }
    cr_assert(schedules > 0, "no setting of %s gave a schedule for %s", policy->name, net->name);
}

void schedules_visit(void visit(const struct network *network, const struct schedule *schedule, const char *what))
{
    for (const struct net *net = nets; net->name; net++)
        for (int bits = 0; bits < 2; bits++) {
            struct bound_net b = net_bind(net, bits);
            for (const struct policy *const *policy = policy_table; *policy; policy++)
                if (!(*policy)->needs_slices) visit_policy(net, b.network, *policy, visit);
            net_release(&b);
        }
}

static void visit_slices(const struct bench *bench, struct source *source, const char *what,
                         void visit(const struct network *network, const struct schedule *schedule, const char *what))
{
    static const char *const policies[] = {"microbatch", "sliced", "every", "optimal"};
    const struct slicing slicing = graph_slicing(bench->graph);
    const char *settings = region_text(bench->graph->region, "groups=%s budget=least", bench->graph->group[0].name);
    for (int i = 0; i < 6; i++) {
        struct schedule schedule = schedule_empty(bench->graph->region);
        const char *policy = i < 4 ? policies[i] : "random";
        if (i >= 4) sliced_schedule_draw(source, &slicing, &schedule);
        if (i >= 4 || policy_text_emit(bench->network, policy, settings, &schedule) == ST_OK)
            visit(bench->network, &schedule, region_text(bench->graph->region, "%s, %s", what, policy));
    }
}

void sliced_schedules_visit(void visit(const struct network *network, const struct schedule *schedule,
                                       const char *what))
{
    struct source source = {.seed = 23};
    for (const struct net *small = nets; small->name; small++)
        for (int64_t slices = 2; slices <= 3; slices++)
            for (uint32_t whole = 0; whole < 3; whole++) {
                struct net net = *small;
                net.batch = 6;
                struct graph *graph = net_build(&net, (enum relu_save)(whole % 2));
                sliced_graph(graph, slices, whole > 1 ? 3 : 0, &source);
                graph->fused_update = whole % 2;
                graph->update_part = 1 << 12;
                struct bench bench = set_up_graph(&net, "ref", graph);
                visit_slices(&bench, &source, region_text(graph->region, "%s, %d slices", net.name, (int)slices),
                             visit);
                tear_down(&bench);
            }
}
