/* On real networks: what published schemes recompute is recomputed, selective drops what it is told and nothing else,
 * and relus keep what serves a policy best. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/plan.h"
#include "policies/policy.h"
#include "tests/support/small_networks.h"

static const struct plan_options usual = {.lower = {.drop_dead = true, .rng = RNG_COUNTER}};

static struct plan *plan_of(const struct network *network, const char *policy, const struct policy_settings *settings,
                            const struct plan_options *options)
{
    struct plan *plan;
    struct schedule schedule = schedule_empty(network->graph->region);
    cr_assert(policy_find(policy)->emit(network, settings, network->graph->region, &schedule) == ST_OK, "%s",
              status_message());
    cr_assert(plan_build(network, &schedule, options, &plan) == ST_OK, "%s", status_message());
    return plan;
}

/* checkpoint_sequential with use_reentrant: floor(n / k) units a segment, every node of all segments but the last runs
 * twice. Without it a recomputation stops when the last value that is needed is there. */
Test(policies_nets, segments_replay_what_torch_recomputes)
{
    for (const struct net *net = nets; net->name; net++) {
        struct bound_net b = net_bind(net, RELU_OUTPUT);
        struct node_ranges units;
        units = stages_find(b.graph, b.graph->region);
        for (int segments = 1; segments <= units.count; segments++) {
            struct policy_settings settings = {.segments = segments, .unit = UNIT_STAGE, .keep_last = true};
            struct plan_options options = usual;
            struct plan *early = plan_of(b.network, "segments", &settings, &options);
            options.lower.drop_dead = false;
            struct plan *whole = plan_of(b.network, "segments", &settings, &options);
            const int kept = units.count / segments * (segments - 1);
            cr_assert(whole->recomputations == (kept < units.count ? units.range[kept].from : b.graph->nodes),
                      "%s, %d segments: %d recomputes", net->name, segments, whole->recomputations);
            cr_assert(whole->lowered.dropped == 0 &&
                      early->recomputations + early->lowered.dropped == whole->recomputations);
            cr_assert(segments == 1 || early->recomputations < whole->recomputations || early->lowered.dropped == 0);
            plan_destroy(early);
            plan_destroy(whole);
        }
        net_release(&b);
    }
}

static bool is_chosen(const struct layer *layer, const char *kind)
{
    static const struct {
        const char *kind, *layers;
    } families[] = {
        {"pool", " max_pool avg_pool global_avg_pool "},
        {"norm", " layernorm "},
        {"weightless", " max_pool avg_pool global_avg_pool flatten attention gelu select relu dropout add "}};
    char name[64];
    snprintf(name, sizeof name, " %s ", layer->name);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (!strcmp(families[i].kind, kind)) return strstr(families[i].layers, name) != NULL;
    return !strcmp(layer->name, kind);
}

/* No backward reads a chosen node's output as its first forward wrote it, and nothing else is recomputed, or twice. */
static void check_selected(const struct plan *plan, const char *kind)
{
    const struct graph *graph = plan->network->graph;
    int *recomputations = calloc((size_t)graph->nodes, sizeof *recomputations);
    bool *first = calloc((size_t)plan->lowered.buffers, sizeof *first);
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->kind == OP_FORWARD) {
            if (op->y >= 0) first[op->y] = !op->recompute && is_chosen(graph->node[op->node].layer, kind);
            recomputations[op->node] += op->recompute;
        }
        if (op->kind != OP_BACKWARD) continue;
        const int read[] = {op->x[0], op->x[1], op->y};
        for (int k = 0; k < 3; k++)
            cr_assert(read[k] < 0 || !first[read[k]], "%s: op %d reads what was to be dropped", kind, i);
    }
    for (int i = 0; i < graph->nodes; i++)
        cr_assert(recomputations[i] <= is_chosen(graph->node[i].layer, kind), "%s: node %d, %d recomputes", kind, i,
                  recomputations[i]);
    free(first);
    free(recomputations);
}

Test(policies_nets, selective_drops_the_kinds_and_nothing_else)
{
    static const char *const kinds[] = {"conv", "max_pool", "pool",    "weightless",      "dropout",   "add",
                                        "relu", "linear",   "flatten", "global_avg_pool", "attention", "norm"};
    int words = 0;
    for (const struct net *net = nets; net->name; net++)
        for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_AUTO; relu++) {
            struct bound_net b = net_bind(net, relu);
            for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
                struct policy_settings settings = {.kinds = {1, {.texts = &kinds[k]}}};
                struct schedule schedule = schedule_empty(b.graph->region);
                bool any = false;
                for (int i = 0; i < b.graph->nodes; i++) any |= is_chosen(b.graph->node[i].layer, kinds[k]);
                enum status status = policy_find("selective")->emit(b.network, &settings, b.graph->region, &schedule);
                cr_assert(status == (any ? ST_OK : ST_SPEC), "%s, %s", net->name, kinds[k]);
                cr_assert(any || strstr(status_message(), "the model has no layer of kind"), "%s", status_message());
                if (!any) continue;
                struct plan *plan = plan_of(b.network, "selective", &settings, &usual);
                check_selected(plan, kinds[k]);
                words += plan->recomputations > 0;
                plan_destroy(plan);
            }
            net_release(&b);
        }
    cr_assert(words > 20, "%d plans recompute anything", words);
}

/* The k-th of the settings, false after the last. */
static bool settings_at(int k, const struct graph *graph, struct policy_settings *settings)
{
    static const char *const kinds[] = {"weightless", "conv", "linear", "max_pool"};
    static const char *const budgets[] = {"least", "80%", "90%", "97%"};
    *settings = (struct policy_settings){.segments = 1 + k % 4,
                                         .slots = 1 + k % 4,
                                         .by = k % 2,
                                         .kinds = {1, {.texts = &kinds[k % 4]}},
                                         .budget = budgets[k % 4],
                                         .groups = {1, {.texts = &graph->group[k % graph->groups].name}},
                                         .unit = k & 4 ? UNIT_STAGE : UNIT_AUTO,
                                         .keep_saved = k & 8,
                                         .keep_last = k & 16,
                                         .plan = &usual};
    return k < 32;
}

/* The policy's plan, with relus as is best or as they are where nobody says it; NULL where it refuses. */
static struct plan *plan_by(const struct network *network, const struct policy *policy,
                            const struct policy_settings *settings, bool best)
{
    struct schedule schedule = schedule_empty(network->graph->region);
    struct plan *plan;
    enum status status = best ? policy_schedule(policy, network, settings, network->graph->region, &schedule)
                              : policy->emit(network, settings, network->graph->region, &schedule);
    cr_assert(status == ST_OK || status == ST_SPEC, "%s", status_message());
    if (status != ST_OK) return NULL;
    cr_assert(plan_build(network, &schedule, &usual, &plan) == ST_OK, "%s", status_message());
    return plan;
}

/* Its schedule, read again, gives the same plan: what relus keep is said in it. */
static void check_said(const struct plan *plan, const struct network *network)
{
    struct schedule schedule;
    struct plan *again;
    cr_assert(schedule_parse(plan->schedule, network->graph->region, &schedule) == ST_OK, "%s", status_message());
    cr_assert(plan_build(network, &schedule, &usual, &again) == ST_OK, "%s", status_message());
    cr_assert(digest_equal(plan->hash, again->hash) && !strcmp(plan->schedule, again->schedule), "%s", plan->schedule);
    plan_destroy(again);
}

static bool is_worse(const struct plan *a, const struct plan *b, bool bounded)
{
    if (bounded) return a->time > b->time || (a->time == b->time && a->live_peak > b->live_peak);
    return a->live_peak > b->live_peak || (a->live_peak == b->live_peak && a->time > b->time);
}

/* What is open is no worse than either for all of them, by what the policy is after; the rest, which is as it was where
 * nobody chose, counts how often that helps. */
Test(policies_nets, relus_keep_what_serves_the_policy_best)
{
    int better = 0, refused = 0;
    for (const struct net *net = nets; net->name; net++) {
        struct bound_net open = net_bind(net, RELU_AUTO),
                         fixed[] = {net_bind(net, RELU_OUTPUT), net_bind(net, RELU_BITS)};
        struct policy_settings settings;
        for (const struct policy *const *policy = policy_table; *policy; policy++)
            for (int k = 0; settings_at(k, open.graph, &settings); k++) {
                const bool bounded = setting_find((*policy)->keys, "budget") && strcmp(settings.budget, "least") != 0;
                if ((*policy)->chooses_relus) continue;
                struct plan *best = plan_by(open.network, *policy, &settings, true);
                struct plan *ruled = plan_by(open.network, *policy, &settings, false);
                for (int i = 0; i < 2; i++) {
                    struct plan *plan = plan_by(fixed[i].network, *policy, &settings, false);
                    cr_assert(!plan || best, "%s, %s: only what is fixed is not refused", net->name, (*policy)->name);
                    cr_assert(!plan || !is_worse(best, plan, bounded), "%s, %s, settings %d: %s\nis worse than %s",
                              net->name, (*policy)->name, k, best->schedule, plan->schedule);
                    plan_destroy(plan);
                }
                cr_assert(!ruled || (best && !is_worse(best, ruled, bounded)));
                better += best && (!ruled || is_worse(ruled, best, bounded));
                refused += !best;
                if (best) check_said(best, open.network);
                plan_destroy(ruled);
                plan_destroy(best);
            }
        net_release(&open);
        for (int i = 0; i < 2; i++) net_release(&fixed[i]);
    }
    cr_assert(better > 50 && refused > 0, "%d better, %d refused", better, refused);
}

/* A schedule that says what relus keep is left as it is. */
Test(policies_nets, what_a_word_says_of_relus_stays)
{
    char path[] = P_tmpdir "/rematch-schedule-XXXXXX", text[64];
    struct bound_net b = net_bind(&nets[0], RELU_AUTO);
    struct schedule schedule = schedule_empty(b.graph->region);
    struct policy_settings settings = {.schedule = path};
    const int nodes = b.graph->nodes, length = snprintf(text, sizeof text, "F[0,%d) B[0,%d):output", nodes, nodes);
    const int file = mkstemp(path);
    cr_assert(file >= 0 && write(file, text, (size_t)length) == length && close(file) == 0);
    cr_assert(policy_schedule(policy_find("manual"), b.network, &settings, b.graph->region, &schedule) == ST_OK, "%s",
              status_message());
    cr_expect(!strcmp(schedule_print(&schedule, b.graph->region), text), "%s",
              schedule_print(&schedule, b.graph->region));
    unlink(path);
    net_release(&b);
}

Test(policies_nets, selective_refuses_what_it_does_not_know)
{
    static const struct {
        const char *kind, *says;
    } wrong[] = {{"swish", "'swish' is not known; expected some of conv|max_pool|avg_pool|"},
                 {"swish", "|pool|norm|weightless"},
                 {"avg", "'avg' is not known"},
                 {"", "'' is not known"},
                 {"cross_entropy", "'cross_entropy' is not known"}};
    struct bound_net b = net_bind(&nets[0], RELU_OUTPUT);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct schedule schedule = schedule_empty(b.graph->region);
        struct policy_settings settings = {.kinds = {1, {.texts = &wrong[i].kind}}};
        cr_assert(policy_find("selective")->emit(b.network, &settings, b.graph->region, &schedule) == ST_SPEC);
        cr_assert(strstr(status_message(), wrong[i].says), "%s", status_message());
    }
    net_release(&b);
}
