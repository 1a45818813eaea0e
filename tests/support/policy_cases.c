#include "policy_cases.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "policies/policy.h"
#include "small_networks.h"

/* The k-th of the settings under which a policy is tried; false after the last. */
static bool settings_at(int k, const struct graph *graph, struct policy_settings *settings, const char **group)
{
    static const int64_t segments[] = {0, 1, 2, 3, 5};
    static const char *const budgets[] = {"search", "0", "2KiB", "20KiB", "1GiB"};
    static const char *const kinds[] = {"weightless", "conv", "max_pool", "linear", "dropout", "add", "pool", "relu"};
    enum { SEGMENTS = sizeof segments / sizeof *segments, KINDS = sizeof kinds / sizeof *kinds };
    if (k >= 2 * 2 * 2 * SEGMENTS * graph->groups) return false;
    *settings = (struct policy_settings){.keep_saved = k % 2, .keep_last = k / 2 % 2};
    settings->unit = k / 4 % 2 ? UNIT_STAGE : UNIT_AUTO;
    settings->segments = settings->slots = segments[k / 8 % SEGMENTS];
    settings->by = k / 8 % 2;
    settings->segment_budget = k / 8 % SEGMENTS ? budgets[k / 8 % SEGMENTS] : NULL;
    settings->kinds = (struct setting_list){.count = 1, .texts = &kinds[k % KINDS]};
    *group = graph->group[k / 8 / SEGMENTS].name;
    settings->groups = (struct setting_list){.count = 1, .texts = group};
    return true;
}

static void visit_policy(const struct net *net, const struct network *network, const struct policy *policy,
                         void visit(const struct network *network, const struct schedule *schedule, const char *what))
{
    const struct graph *graph = network->graph;
    struct policy_settings settings;
    const char *group, *last = "";
    int words = 0;
    for (int k = 0; settings_at(k, graph, &settings, &group); k++) {
        struct schedule schedule = schedule_empty(graph->region);
        char what[256], *text;
        if (policy->emit(network, &settings, graph->region, &schedule) != ST_OK) continue;
        snprintf(what, sizeof what, "%s, %s", net->name, policy->name);
        cr_assert((text = schedule_print(&schedule, graph->region)) != NULL);
        if (!strcmp(text, last)) continue; /* a setting that this policy does not look at */
        last = text;
        visit(network, &schedule, what);
        words++;
    }
    cr_assert(words > 0, "no setting of %s gave a schedule for %s", policy->name, net->name);
}

void words_visit(void visit(const struct network *network, const struct schedule *schedule, const char *what))
{
    for (const struct net *net = nets; net->name; net++)
        for (int bits = 0; bits < 2; bits++) {
            struct bound_net b = net_bind(net, bits);
            for (const struct policy *const *policy = policy_table; *policy; policy++)
                visit_policy(net, b.network, *policy, visit);
            net_release(&b);
        }
}
