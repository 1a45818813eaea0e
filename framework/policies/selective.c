/* Stores everything except the outputs of the named kinds of layers, which are recomputed one by one just before the
 * first backward that reads them: selective recomputation (Korthikanti et al., "Reducing Activation Recomputation in
 * Large Transformer Models", 2022, section 5, of attention; before it Chen et al., "Training Deep Nets with Sublinear
 * Memory Cost", 2016, section 3, of what is cheap: batch norm, activations, pools).
 *
 * It is good where the kinds are cheap to recompute and their outputs large, which it does not check. Each node is
 * recomputed at most once; an output that no backward reads is not recomputed, and saved tensors that are read without
 * their output (pool indices) stay from the first forward. */
#include <string.h>

#include "policies/policy.h"

struct selective_settings {
    struct setting_list kinds;
};
POLICY_SETTINGS_FIT(struct selective_settings);

static const char weightless[] = "weightless";

static bool is_kind(const struct layer *layer, const char *kind)
{
    if (layer->loss) return false; /* its output is read at its first forward only */
    if (!strcmp(kind, weightless)) return !layer->parameters;
    return !strcmp(layer->name, kind) || (layer->family && !strcmp(layer->family, kind));
}

static bool is_known(const char *kind)
{
    for (const struct layer *const *l = layer_table; *l; l++)
        if (is_kind(*l, kind)) return true;
    return false;
}

static const char *add_name(const char *list, const char *name, struct region *region)
{
    size_t length = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, "|"), at += *at == '|')
        if (strcspn(at, "|") == length && !strncmp(at, name, length)) return list;
    return region_text(region, "%s%s%s", list, *list ? "|" : "", name);
}

static enum status refuse_unknown(const char *kind, struct region *region)
{
    const char *list = "";
    for (const struct layer *const *l = layer_table; *l; l++)
        if (!(*l)->loss) list = add_name(list, (*l)->name, region);
    for (const struct layer *const *l = layer_table; *l; l++)
        if (!(*l)->loss && (*l)->family) list = add_name(list, (*l)->family, region);
    list = add_name(list, weightless, region);
    return fail(ST_SPEC, "policy.kinds: '%s' is not known; expected some of %s", kind, list);
}

static enum status refuse_absent(const struct graph *graph, const char *kind, struct region *region)
{
    const char *list = "";
    for (int i = 0; i < graph->nodes; i++)
        if (!graph->node[i].layer->loss) list = add_name(list, graph->node[i].layer->name, region);
    return fail(ST_SPEC,
                "policy.kinds: the model has no layer of kind '%s', but %s (an activation that is set on a layer is "
                "part of it)",
                kind, *list ? list : "none");
}

static enum status choose(const struct graph *graph, const struct setting_list *kinds, struct region *region,
                          bool *dropped)
{
    if (!kinds->count) return fail(ST_SPEC, "policy.kinds: names no kind of layer");
    for (size_t k = 0; k < kinds->count; k++) {
        if (!is_known(kinds->texts[k])) return refuse_unknown(kinds->texts[k], region);
        bool found = false;
        for (int i = 0; i < graph->nodes; i++)
            if (is_kind(graph->node[i].layer, kinds->texts[k])) dropped[i] = found = true;
        if (!found) return refuse_absent(graph, kinds->texts[k], region);
    }
    return ST_OK;
}

/* Recomputes a value that was dropped, after its inputs. dropped: and not yet recomputed. */
static void recompute(const struct graph *graph, int value, bool *dropped, struct schedule *schedule)
{
    const int node = value - 1;
    if (node < 0 || !dropped[node]) return;
    dropped[node] = false;
    for (int k = 0; k < graph->node[node].layer->inputs; k++)
        recompute(graph, graph->node[node].inputs[k], dropped, schedule);
    schedule_append(schedule, STEP_FORWARD, node, node + 1);
}

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct selective_settings *settings = (const void *)input->settings;
    const struct network *network = input->network;
    const struct graph *graph = network->graph;
    bool *dropped;
    NEW(schedule->region, dropped, (size_t)graph->nodes);
    TRY(choose(graph, &settings->kinds, schedule->region, dropped));
    schedule_append(schedule, STEP_FORWARD, 0, graph->nodes);
    for (int i = graph->nodes - 1; i >= 0; i--) {
        for (struct reading r = reading_of(network, i, network_reads(network, i)); reading_next(&r);)
            if (!r.saved) recompute(graph, r.node + 1, dropped, schedule);
        schedule_append(schedule, STEP_BACKWARD, i, i + 1);
    }
    return ST_OK;
}

static const struct setting keys[] = {
    {"kinds", SETTING_TEXTS, offsetof(struct selective_settings, kinds), 1, 1e3, "[weightless]", NULL,
     "layers whose outputs are recomputed: their names, or families (pool, norm); weightless: every "
     "layer without parameters"},
    {.key = NULL}};

const struct policy policy_selective = {
    .name = "selective", .doc = "outputs of the named kinds of layers are recomputed", .keys = keys, .emit = emit};
