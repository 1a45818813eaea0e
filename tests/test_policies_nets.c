/* On real networks: what published schemes replay is replayed, and selective drops what it is told and nothing else. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nets.h"
#include "plan.h"
#include "policy.h"

static const struct plan_options usual = {.lower = {.drop_dead = true, .rng = RNG_COUNTER}};

static struct plan *plan_of(const struct network *network, const char *policy, const struct policy_settings *settings,
                            const struct plan_options *options)
{
    struct plan *plan;
    struct word word = word_empty(network->graph->region);
    cr_assert(policy_find(policy)->emit(network, settings, network->graph->region, &word) == ST_OK, "%s",
              status_message());
    cr_assert(plan_build(network, &word, options, &plan) == ST_OK, "%s", status_message());
    return plan;
}

struct bound {
    struct graph *graph;
    struct backend *backend;
    struct network *network;
};

static struct bound bind(const struct net *net, enum relu_save relu)
{
    struct backend_options options = {.threads = 1};
    struct bound b = {.graph = net_build(net, relu)};
    cr_assert(backend_open("ref", &options, &b.backend) == ST_OK, "%s", status_message());
    cr_assert(network_prepare(b.graph, b.backend, &b.network) == ST_OK, "%s", status_message());
    return b;
}

static void release(struct bound *b)
{
    network_destroy(b->network);
    graph_destroy(b->graph);
    backend_close(b->backend);
}

/* checkpoint_sequential with use_reentrant: floor(n / k) units a segment, every node of all segments but the last runs
 * twice. Without it a replay stops when the last value that is needed is there. */
Test(policies_nets, segments_replay_what_torch_replays)
{
    for (const struct net *net = nets; net->name; net++) {
        struct bound b = bind(net, RELU_OUTPUT);
        struct ranges units;
        cr_assert(chain_stages(b.graph, b.graph->region, &units) == ST_OK);
        for (int segments = 1; segments <= units.count; segments++) {
            struct policy_settings settings = {.segments = segments, .unit = UNIT_STAGE, .keep_last = true};
            struct plan_options options = usual;
            struct plan *early = plan_of(b.network, "segments", &settings, &options);
            options.lower.drop_dead = false;
            struct plan *whole = plan_of(b.network, "segments", &settings, &options);
            const int kept = units.count / segments * (segments - 1);
            cr_assert(whole->replays == (kept < units.count ? units.range[kept].from : b.graph->nodes),
                      "%s, %d segments: %d replays", net->name, segments, whole->replays);
            cr_assert(whole->lowered.dropped == 0 && early->replays + early->lowered.dropped == whole->replays);
            cr_assert(segments == 1 || early->replays < whole->replays || early->lowered.dropped == 0);
            plan_destroy(early);
            plan_destroy(whole);
        }
        release(&b);
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

/* No backward reads a chosen node's output as its first forward wrote it, and nothing else is replayed, or twice. */
static void check_selected(const struct plan *plan, const char *kind)
{
    const struct graph *graph = plan->network->graph;
    int *replays = calloc((size_t)graph->nodes, sizeof *replays);
    bool *first = calloc((size_t)plan->lowered.buffers, sizeof *first);
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->kind == OP_FORWARD) {
            if (op->y >= 0) first[op->y] = !op->replay && is_chosen(graph->node[op->node].layer, kind);
            replays[op->node] += op->replay;
        }
        if (op->kind != OP_BACKWARD) continue;
        const int read[] = {op->x[0], op->x[1], op->y};
        for (int k = 0; k < 3; k++)
            cr_assert(read[k] < 0 || !first[read[k]], "%s: op %d reads what was to be dropped", kind, i);
    }
    for (int i = 0; i < graph->nodes; i++)
        cr_assert(replays[i] <= is_chosen(graph->node[i].layer, kind), "%s: node %d, %d replays", kind, i, replays[i]);
    free(first);
    free(replays);
}

Test(policies_nets, selective_drops_the_kinds_and_nothing_else)
{
    static const char *const kinds[] = {"conv", "max_pool", "pool",    "weightless",      "dropout",   "add",
                                        "relu", "linear",   "flatten", "global_avg_pool", "attention", "norm"};
    int words = 0;
    for (const struct net *net = nets; net->name; net++)
        for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_AUTO; relu++) {
            struct bound b = bind(net, relu);
            for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
                struct policy_settings settings = {.kinds = {1, {.texts = &kinds[k]}}};
                struct word word = word_empty(b.graph->region);
                bool any = false;
                for (int i = 0; i < b.graph->nodes; i++) any |= is_chosen(b.graph->node[i].layer, kinds[k]);
                enum status status = policy_find("selective")->emit(b.network, &settings, b.graph->region, &word);
                cr_assert(status == (any ? ST_OK : ST_SPEC), "%s, %s", net->name, kinds[k]);
                cr_assert(any || strstr(status_message(), "the model has no layer of kind"), "%s", status_message());
                if (!any) continue;
                struct plan *plan = plan_of(b.network, "selective", &settings, &usual);
                check_selected(plan, kinds[k]);
                words += plan->replays > 0;
                plan_destroy(plan);
            }
            release(&b);
        }
    cr_assert(words > 20, "%d plans replay anything", words);
}

Test(policies_nets, selective_refuses_what_it_does_not_know)
{
    static const struct {
        const char *kind, *says;
    } wrong[] = {{"swish", "'swish' is not known; expected some of conv|max_pool|avg_pool|"},
                 {"swish", "|add|pool|norm|weightless"},
                 {"avg", "'avg' is not known"},
                 {"", "'' is not known"},
                 {"cross_entropy", "'cross_entropy' is not known"}};
    struct bound b = bind(&nets[0], RELU_OUTPUT);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct word word = word_empty(b.graph->region);
        struct policy_settings settings = {.kinds = {1, {.texts = &wrong[i].kind}}};
        cr_assert(policy_find("selective")->emit(b.network, &settings, b.graph->region, &word) == ST_SPEC);
        cr_assert(strstr(status_message(), wrong[i].says), "%s", status_message());
    }
    release(&b);
}
